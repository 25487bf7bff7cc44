//! A pool of workers, each a thread that serves one connection at a time, behind a bounded queue.
//!
//! A connection between two requests needs no worker: it is parked in the idle set, which the accepting
//! thread watches. When its client sends something, it queues again like a new connection. This is not the
//! pool of threads for blocking work (`offload`). Invariants: the number of workers is as configured, from
//! start to end. Every accepted connection is served or refused. Without a free worker it queues. While the
//! queue is full, either nothing is accepted, or new connections are refused ([`WhenFull`]).

use std::future::poll_fn;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use plimsoll_io::{Handler, Io, LocalFuture, Parked, Resume, Setup};

use super::dispatch::{Accepted, accept_all};
use super::idle::{Idle, IdleSet};
use super::queue::Queue;
use super::worker::{Common, Workers};
use super::{EngineKind, Plan, WhenFull};
use crate::connections::{Connections, serve_until_evicted};
use crate::driver::Driver;
use crate::limits::{
    ACCEPT_PAUSE, EVENTS_MAX, LAST_WORD_TIME, QUEUE_CHECK_PAUSE, QUEUE_PER_WORKER_MAX, QUEUE_TIME_MAX,
    REFUSALS_MAX, WORKER_WAIT_MAX,
};
use crate::ready::{Bound, PollMethod, Reports};
use crate::sockets::Wait;

/// A connection that waits for a worker.
pub(super) struct Entry {
    /// The listener that accepted it.
    pub(super) listener: usize,
    pub(super) accepted: Accepted,
    /// The state that its conversation resumes from, if it was parked.
    pub(super) parked: Option<Parked>,
    /// Whether the idle set has watched it before.
    pub(super) is_watched: bool,
}

pub(super) fn serve(plan: Plan) -> io::Result<()> {
    let Plan { threads, listeners, stop, connections, grace, when_full, .. } = plan;
    let count = threads.max(1);
    let queue = Arc::new(Queue::new(count, count.saturating_mul(QUEUE_PER_WORKER_MAX)));
    let setups: Arc<[Setup]> = listeners.iter().map(|(_, setup)| Arc::clone(setup)).collect();
    let (idle, offload) = (Arc::new(IdleSet::new()?), EngineKind::Pool.offload()?);
    let common = Common { workers: count, queue, idle, setups, offload, stop, connections, grace };
    let workers = Workers::start(count, &common).inspect_err(|_| common.queue.close())?;
    let opened = Door::open(&common, when_full).inspect_err(|_| common.queue.close())?;
    accept_until_the_end(&opened, listeners, grace);
    // They end themselves when the grace period is over, a moment later than the accepting thread would.
    workers.wait(grace.saturating_add(Duration::from_secs(1)));
    Ok(())
}

fn accept_until_the_end(door: &Rc<Door>, listeners: Vec<(Bound, Setup)>, grace: Duration) {
    let driver = &door.driver;
    let entered = driver.enter();
    let mut accepting = Vec::new();
    for (listener, (bound, _)) in listeners.into_iter().enumerate() {
        let (asks, enters) = (Rc::clone(door), Rc::clone(door));
        let room = move |cx: &mut Context<'_>| asks.poll_room(cx);
        let new = move |accepted| Entry { listener, accepted, parked: None, is_watched: false };
        let enter = move |accepted| enters.enter(new(accepted));
        let accepts = accept_all(driver, bound, &door.connections, room, enter);
        accepting.push(driver.spawn(Box::pin(accepts)));
    }
    let looking: LocalFuture = match door.when_full {
        WhenFull::Refuse => Box::pin(look_after(Rc::clone(door), driver.io())),
        WhenFull::Block => Box::pin(relieve_workers(Rc::clone(door), driver.io())),
    };
    driver.spawn(looking);
    if let Some(reports) = driver.sockets().reports(door.idle.poller()) {
        driver.spawn(Box::pin(queue_ready(Rc::clone(door), reports)));
    }
    accepting.push(driver.spawn(Box::pin(end_idle(Rc::clone(door), driver.io()))));
    driver.run(grace, || accepting.iter().all(|task| !driver.is_live(*task)));
    door.close(grace);
    driver.clear();
    drop(entered);
}

/// The accepting thread: queues or refuses new connections, and parked ones that have become readable.
struct Door {
    driver: Rc<Driver>,
    queue: Arc<Queue<Entry>>,
    idle: Arc<IdleSet>,
    handlers: Vec<Rc<dyn Handler>>,
    connections: Arc<Connections>,
    when_full: WhenFull,
    /// Held by each refusal in progress.
    refusing: Rc<()>,
    /// Held by each connection that was idle and is being ended.
    ending: Rc<()>,
}

impl Door {
    fn open(common: &Common, when_full: WhenFull) -> io::Result<Rc<Door>> {
        let Common { queue, idle, setups, offload, stop, connections, .. } = common.clone();
        // Epoll and not poll(2): this thread may end any number of idle connections at once.
        let driver = Driver::new(Wait::Ready(PollMethod::Epoll), offload, &stop, &connections)?;
        let _entered = driver.enter();
        let handlers: Vec<_> = setups.iter().map(|setup| setup(driver.io())).collect();
        for handler in &handlers {
            driver.spawn(handler.background());
        }
        let (refusing, ending) = Default::default();
        Ok(Rc::new(Door { driver, queue, idle, handlers, connections, when_full, refusing, ending }))
    }

    /// Ready when another connection may be accepted, or taken out of the idle set: to be served, or to be
    /// refused.
    fn poll_room(&self, cx: &mut Context<'_>) -> Poll<()> {
        match self.when_full {
            WhenFull::Refuse if self.refusals_left() > 0 => Poll::Ready(()),
            WhenFull::Refuse | WhenFull::Block => self.queue.poll_room(cx),
        }
    }

    fn enter(&self, entry: Entry) {
        if self.when_full == WhenFull::Refuse && !self.queue.has_room() {
            self.refuse(entry);
        } else {
            self.queue.push(entry);
        }
    }

    /// Returns how many connections may be taken at once when [`Door::poll_room`] is ready.
    fn room(&self) -> usize {
        match (self.queue.room(), self.when_full) {
            (0, WhenFull::Refuse) => self.refusals_left(),
            (room, _) => room,
        }
    }

    /// Queues up to `count` idle connections with bytes from their clients. Returns whether there may be
    /// more.
    fn queue_ready(&self, count: usize) -> bool {
        let mut ready = Vec::new();
        let may_be_more = self.idle.take_ready(count, &mut ready);
        for Idle { entry, parked } in ready {
            entry.accepted.admitted.entry().queue();
            self.enter(Entry { parked: Some(parked), ..entry });
        }
        may_be_more
    }

    /// Ends a connection that was idle, as its protocol specifies.
    fn end(&self, Idle { entry, parked }: Idle) {
        let Entry { listener, accepted: Accepted { fd, peer, admitted }, .. } = entry;
        let slot = Arc::clone(admitted.entry());
        let stream = self.driver.sockets().accepted(fd, peer, slot.slot());
        let end = self.handlers[listener].resume(stream, parked, Resume::End);
        let counted = Rc::clone(&self.ending);
        self.driver.spawn(Box::pin(async move {
            let _counted = (admitted, counted);
            serve_until_evicted(&slot, end).await;
        }));
    }

    fn refuse(&self, Entry { listener, accepted, parked, .. }: Entry) {
        let Accepted { fd, peer, admitted } = accepted;
        self.connections.count_refused();
        let stream = self.driver.sockets().accepted(fd, peer, admitted.entry().slot());
        let (handler, refusing) = (&self.handlers[listener], Rc::clone(&self.refusing));
        let refusal = match parked {
            None => handler.refuse(stream),
            Some(parked) => handler.resume(stream, parked, Resume::Refuse),
        };
        self.driver.spawn(Box::pin(async move {
            let _counted = (admitted, refusing);
            refusal.await;
        }));
    }

    /// Returns how many more refusals may start now.
    fn refusals_left(&self) -> usize {
        REFUSALS_MAX.saturating_sub(self.refusals())
    }

    fn refusals(&self) -> usize {
        Rc::strong_count(&self.refusing) - 1
    }

    /// Returns how many connections that were idle are being ended.
    fn endings(&self) -> usize {
        Rc::strong_count(&self.ending) - 1
    }

    /// Has queued connections served until the grace period is over, and refuses the rest.
    fn close(&self, grace: Duration) {
        self.queue.close();
        let queue = Arc::clone(&self.queue);
        let empty = self.driver.spawn(Box::pin(async move { poll_fn(|cx| queue.poll_empty(cx)).await }));
        let is_over = || !self.driver.is_live(empty) && self.refusals() == 0 && self.endings() == 0;
        self.driver.run(grace, is_over);
        self.connections.count_cut_off(self.endings());
        self.queue.take_all().into_iter().for_each(|entry| self.refuse(entry));
        self.driver.run(grace.saturating_add(LAST_WORD_TIME), || self.refusals() == 0);
    }
}

/// Queues idle connections with bytes from their clients.
async fn queue_ready(door: Rc<Door>, reports: Rc<Reports>) {
    loop {
        poll_fn(|cx| door.poll_room(cx)).await;
        if door.queue_ready(door.room().min(EVENTS_MAX)) {
            // Other tasks have their turn.
            door.driver.io().yield_now().await;
        } else if let Err(error) = poll_fn(|cx| reports.poll_ready(cx)).await {
            tracing::warn!(%error, "idle connections are not watched just now");
            door.driver.io().sleep(ACCEPT_PAUSE).await;
        }
    }
}

/// Ends idle connections when their time is over, when their slots are needed, and at the order to stop.
async fn end_idle(door: Rc<Door>, io: Io) {
    let deadline = io.deadline();
    while !io.is_stopping() {
        let over = poll_fn(|cx| {
            let over = door.idle.poll_over(cx, io.now());
            deadline.set(door.idle.check_at());
            // The order to stop wakes every task.
            if io.is_stopping() && over.is_pending() { Poll::Ready(Vec::new()) } else { over }
        });
        let over = deadline.within(over).await.unwrap_or_default();
        over.into_iter().for_each(|idle| door.end(idle));
    }
    // A request that has arrived by now is served.
    while door.queue_ready(EVENTS_MAX) {}
    door.idle.close().into_iter().for_each(|idle| door.end(idle));
}

/// Evicts connections that hold a worker, where others have waited too long for one.
async fn relieve_workers(door: Rc<Door>, io: Io) {
    loop {
        poll_fn(|cx| door.queue.poll_waiting(cx)).await;
        io.sleep(QUEUE_CHECK_PAUSE).await;
        let overdue = door.queue.overdue(WORKER_WAIT_MAX);
        if overdue > 0 {
            door.connections.relieve_workers(overdue);
        }
    }
}

/// Refuses connections that have waited too long.
async fn look_after(door: Rc<Door>, io: Io) {
    loop {
        poll_fn(|cx| door.queue.poll_waiting(cx)).await;
        io.sleep(QUEUE_CHECK_PAUSE).await;
        let overdue = door.queue.take_overdue(QUEUE_TIME_MAX, door.refusals_left());
        overdue.into_iter().for_each(|entry| door.refuse(entry));
    }
}
