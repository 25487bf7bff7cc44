//! A pool of workers, each a thread that serves one connection at a time, behind a queue that is bounded.
//!
//! It is not a pool of threads for blocking work (`offload`). What must hold: there are as many workers as
//! were asked for, from the beginning to the end; nobody who was accepted is left without an answer or a
//! word: who finds no worker waits, and is told where waiting is not wanted.

use std::future::poll_fn;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use plimsoll_io::{Handler, Io, LocalFuture, Setup};

use super::dispatch::{Accepted, accept_all};
use super::queue::Queue;
use super::worker::{Common, Workers};
use super::{Kind, Plan, WhenFull};
use crate::connections::Connections;
use crate::driver::Driver;
use crate::limits::{
    LAST_WORD_TIME, QUEUE_LOOK_PAUSE, QUEUE_PER_WORKER_MAX, QUEUE_TIME_MAX, REFUSALS_MAX, WORKER_WAIT_MAX,
};
use crate::ready::Bound;

/// A connection that waits for a worker, and which listener it came to.
pub(super) struct Entry {
    pub(super) listener: usize,
    pub(super) accepted: Accepted,
}

pub(super) fn serve(plan: Plan) -> io::Result<()> {
    let Plan { threads, listeners, stop, connections, grace, when_full, .. } = plan;
    let count = threads.max(1);
    let queue = Arc::new(Queue::new(count, count.saturating_mul(QUEUE_PER_WORKER_MAX)));
    let setups: Arc<[Setup]> = listeners.iter().map(|(_, setup)| Arc::clone(setup)).collect();
    let common = Common { queue, setups, offload: Kind::Pool.offload()?, stop, connections, grace };
    let workers = Workers::start(count, &common).inspect_err(|_| common.queue.close())?;
    let opened = Door::open(&common, when_full).inspect_err(|_| common.queue.close())?;
    accept_until_the_end(&opened, listeners, grace);
    // They end themselves when the grace is over, a moment later than the accepting thread would.
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
        let enter = move |accepted| enters.enter(Entry { listener, accepted });
        let accepts = accept_all(driver, bound, &door.connections, room, enter);
        accepting.push(driver.spawn(Box::pin(accepts)));
    }
    let looking: LocalFuture = match door.when_full {
        WhenFull::Refuse => Box::pin(look_after(Rc::clone(door), driver.io())),
        WhenFull::Block => Box::pin(relieve_workers(Rc::clone(door), driver.io())),
    };
    driver.spawn(looking);
    driver.run(grace, || accepting.iter().all(|task| !driver.is_live(*task)));
    door.close(grace);
    driver.clear();
    drop(entered);
}

/// The accepting thread: who comes is put into the queue, or told that there is no room.
struct Door {
    driver: Rc<Driver>,
    queue: Arc<Queue<Entry>>,
    handlers: Vec<Rc<dyn Handler>>,
    connections: Arc<Connections>,
    when_full: WhenFull,
    /// Held by each refusal under way.
    refusing: Rc<()>,
}

impl Door {
    fn open(common: &Common, when_full: WhenFull) -> io::Result<Rc<Door>> {
        let Common { queue, setups, offload, stop, connections, .. } = common.clone();
        let driver = Driver::new(Kind::Pool.wait(), offload, &stop, &connections)?;
        let _entered = driver.enter();
        let handlers: Vec<_> = setups.iter().map(|setup| setup(driver.io())).collect();
        for handler in &handlers {
            driver.spawn(handler.background());
        }
        Ok(Rc::new(Door { driver, queue, handlers, connections, when_full, refusing: Rc::new(()) }))
    }

    /// Ready when another connection may be accepted: to be served, or to be refused.
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

    fn refuse(&self, Entry { listener, accepted }: Entry) {
        let Accepted { fd, peer, admitted } = accepted;
        self.connections.count_refused();
        let stream = self.driver.sockets().accepted(fd, peer, admitted.entry().slot());
        let (refusal, refusing) = (self.handlers[listener].refuse(stream), Rc::clone(&self.refusing));
        self.driver.spawn(Box::pin(async move {
            let _counted = (admitted, refusing);
            refusal.await;
        }));
    }

    /// Refusals that may be begun beside those under way.
    fn refusals_left(&self) -> usize {
        REFUSALS_MAX.saturating_sub(self.refusals())
    }

    fn refusals(&self) -> usize {
        Rc::strong_count(&self.refusing) - 1
    }

    /// Has those who wait served until the grace is over, and tells the rest that they will not be.
    fn close(&self, grace: Duration) {
        self.queue.close();
        let queue = Arc::clone(&self.queue);
        let empty = self.driver.spawn(Box::pin(async move { poll_fn(|cx| queue.poll_empty(cx)).await }));
        self.driver.run(grace, || !self.driver.is_live(empty) && self.refusals() == 0);
        self.queue.take_all().into_iter().for_each(|entry| self.refuse(entry));
        self.driver.run(grace.saturating_add(LAST_WORD_TIME), || self.refusals() == 0);
    }
}

/// Closes connections that keep a worker waiting, where others have waited for a worker for too long.
async fn relieve_workers(door: Rc<Door>, io: Io) {
    loop {
        poll_fn(|cx| door.queue.poll_waiting(cx)).await;
        io.sleep(QUEUE_LOOK_PAUSE).await;
        let overdue = door.queue.overdue(WORKER_WAIT_MAX);
        if overdue > 0 {
            door.connections.relieve_workers(overdue);
        }
    }
}

/// Refuses those who have waited too long.
async fn look_after(door: Rc<Door>, io: Io) {
    loop {
        poll_fn(|cx| door.queue.poll_waiting(cx)).await;
        io.sleep(QUEUE_LOOK_PAUSE).await;
        let overdue = door.queue.take_overdue(QUEUE_TIME_MAX, door.refusals_left());
        overdue.into_iter().for_each(|entry| door.refuse(entry));
    }
}
