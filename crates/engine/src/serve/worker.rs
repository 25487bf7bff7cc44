//! The workers of the engine `pool`: threads that serve one connection after another.
//!
//! They do not accept. Invariants: a worker takes its next connection when the present one is parked, or
//! only waits for its client to close. The number of such connections is bounded. A panic ends one
//! connection.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use plimsoll_io::{Handler, LocalFuture, Resume, Setup, Stop};

use super::EngineKind;
use super::dispatch::Accepted;
use super::idle::{Idle, IdleSet};
use super::pool::Entry;
use super::queue::Queue;
use crate::connections::{Connections, serve_until_evicted};
use crate::driver::{ConnectionWorker, Driver};
use crate::limits::{CONNECTION_STACK_BYTES, ENDING_PER_WORKER_MAX};
use crate::offload::Offload;

/// The state that all workers share.
#[derive(Clone)]
pub(super) struct Common {
    /// The number of workers.
    pub(super) workers: usize,
    pub(super) queue: Arc<Queue<Entry>>,
    pub(super) idle: Arc<IdleSet>,
    /// A protocol for each listener.
    pub(super) setups: Arc<[Setup]>,
    pub(super) offload: Offload,
    pub(super) stop: Stop,
    pub(super) connections: Arc<Connections>,
    pub(super) grace: Duration,
}

/// All workers of a server.
pub(super) struct Workers {
    /// Nothing is sent on it: it is closed when the last worker has ended.
    ended: Receiver<()>,
}

impl Workers {
    /// Starts `count` workers. Each has its driver when this returns.
    pub(super) fn start(count: usize, common: &Common) -> io::Result<Workers> {
        let ((alive, ended), (ready, started)) = (channel(), channel());
        for number in 0..count {
            let (common, alive, ready) = (common.clone(), alive.clone(), ready.clone());
            let thread = std::thread::Builder::new().name(format!("worker-{number}"));
            let spawned = thread.stack_size(CONNECTION_STACK_BYTES).spawn(move || {
                run(number, common, ready);
                drop(alive);
            });
            spawned.map_err(|error| short_of(count, &error))?;
        }
        drop(ready);
        let all = started.into_iter().collect::<io::Result<()>>();
        all.map(|()| Workers { ended }).map_err(|error| short_of(count, &error))
    }

    /// Waits until all have ended, for `time` at most: a worker may hang in a file system call.
    pub(super) fn wait(self, time: Duration) {
        // Closed or timed out: there is nothing else to do in either case.
        let _ = self.ended.recv_timeout(time);
    }
}

fn short_of(count: usize, error: &io::Error) -> io::Error {
    let message = format!("{count} workers cannot be started: {error}; fewer may do (--threads)");
    io::Error::new(error.kind(), message)
}

/// Runs one worker, from its first connection to its last.
fn run(number: usize, common: Common, ready: Sender<io::Result<()>>) {
    let Common { setups, offload, stop, connections, grace, .. } = common.clone();
    let made = Driver::new(EngineKind::Pool.wait(), offload, &stop, &connections);
    let (made, result) = made.map_or_else(|error| (None, Err(error)), |driver| (Some(driver), Ok(())));
    // The starting thread reports an error; if it has gone, there is nothing to serve.
    let (Ok(()), Some(driver)) = (ready.send(result), made) else { return };
    drop(ready);
    let _entered = driver.enter();
    let handlers: Vec<Rc<dyn Handler>> = setups.iter().map(|setup| setup(driver.io())).collect();
    for handler in &handlers {
        driver.spawn(handler.background());
    }
    let worker = Rc::new(Worker::new(number, common));
    driver.share_worker(Rc::<Worker>::clone(&worker));
    let working = driver.spawn(Box::pin(work(Rc::clone(&driver), Rc::clone(&worker), handlers)));
    driver.run(grace, || !driver.is_live(working));
    connections.count_cut_off(worker.open.get());
    driver.clear();
}

/// Takes one connection after another, until the queue is closed and empty.
async fn work(driver: Rc<Driver>, worker: Rc<Worker>, handlers: Vec<Rc<dyn Handler>>) {
    let handlers: Rc<[Rc<dyn Handler>]> = handlers.into();
    while let Some(entry) = poll_fn(|cx| worker.common.queue.poll_take(worker.number, cx)).await {
        let slot = WorkerSlot::new(&worker);
        driver.spawn(Box::pin(serve(Rc::clone(&driver), Rc::clone(&handlers), slot, entry)));
        poll_fn(|cx| worker.poll_until(cx, Worker::is_vacant)).await;
    }
    poll_fn(|cx| worker.poll_until(cx, |worker| worker.open.get() == 0)).await;
}

/// Serves a connection until it ends or is parked.
async fn serve(driver: Rc<Driver>, handlers: Rc<[Rc<dyn Handler>]>, slot: WorkerSlot, entry: Entry) {
    let handler = &handlers[entry.listener];
    let (mut entry, mut action) = (entry, Resume::Serve);
    while let Some(parked) = serve_once(&driver, &**handler, entry, action).await {
        // Not parked because the server stops, or because the kernel is short of memory.
        let Err(returned) = slot.worker.common.idle.park(parked) else { return };
        let Idle { entry: returned, parked } = returned;
        (entry, action) = (Entry { parked: Some(parked), ..returned }, Resume::End);
    }
}

/// Serves a connection once. Returns the connection if it is to be parked.
async fn serve_once(driver: &Driver, handler: &dyn Handler, entry: Entry, action: Resume) -> Option<Idle> {
    let Entry { listener, accepted: Accepted { fd, peer, admitted }, parked, is_watched } = entry;
    let slot = admitted.entry();
    let (stream, parkable) = driver.sockets().parkable(fd, peer.clone(), slot.slot())?;
    let serving: LocalFuture = match parked {
        None => handler.serve(stream),
        Some(parked) => handler.resume(stream, parked, action),
    };
    // Polled in the connection's own task, so that a panic in it ends the connection and not the worker.
    serve_until_evicted(slot, serving).await;
    let (fd, parked) = parkable.parked()?;
    let accepted = Accepted { fd, peer, admitted };
    Some(Idle { entry: Entry { listener, accepted, parked: None, is_watched }, parked })
}

/// A worker's connections: the one it serves, and those that only wait for their end.
struct Worker {
    number: usize,
    common: Common,
    /// How many have started.
    begun: Cell<u64>,
    /// The number of the one being served.
    served: Cell<Option<u64>>,
    open: Cell<usize>,
    /// The worker's waker, while it waits for a change of these.
    waiting: RefCell<Option<Waker>>,
}

impl Worker {
    fn new(number: usize, common: Common) -> Worker {
        let (begun, served, open, waiting) = Default::default();
        Worker { number, common, begun, served, open, waiting }
    }

    /// Returns whether it can take another connection.
    fn is_vacant(&self) -> bool {
        self.served.get().is_none() && self.open.get() < ENDING_PER_WORKER_MAX
    }

    fn poll_until(&self, cx: &mut Context<'_>, reached: impl Fn(&Worker) -> bool) -> Poll<()> {
        if reached(self) {
            return Poll::Ready(());
        }
        *self.waiting.borrow_mut() = Some(cx.waker().clone());
        Poll::Pending
    }

    fn changed(&self) {
        if let Some(worker) = self.waiting.take() {
            worker.wake();
        }
    }
}

impl ConnectionWorker for Worker {
    fn poll_room_wanted(&self, cx: &mut Context<'_>) -> Poll<()> {
        // With a worker for each connection, an idle connection keeps its worker, so its next request needs
        // no other thread. With more connections, another one needs this worker soon, if not already.
        if self.common.connections.open() > self.common.workers {
            return Poll::Ready(());
        }
        self.common.queue.poll_room_wanted(self.number, cx)
    }

    fn leave(&self) {
        self.served.set(None);
        self.changed();
    }
}

/// One connection's slot at a worker. Dropping it with the task, even by a panic, releases the slot.
struct WorkerSlot {
    worker: Rc<Worker>,
    number: u64,
}

impl WorkerSlot {
    fn new(worker: &Rc<Worker>) -> WorkerSlot {
        let number = worker.begun.get() + 1;
        worker.begun.set(number);
        worker.served.set(Some(number));
        worker.open.set(worker.open.get() + 1);
        WorkerSlot { worker: Rc::clone(worker), number }
    }
}

impl Drop for WorkerSlot {
    fn drop(&mut self) {
        let worker = &self.worker;
        if worker.served.get() == Some(self.number) {
            worker.served.set(None);
        }
        worker.open.set(worker.open.get() - 1);
        worker.changed();
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::TcpStream;

    use plimsoll_io::{Io, LocalFuture, Segment, Stream, Want};

    use super::*;
    use crate::ready::bind;
    use crate::serve::{Plan, WhenFull, serve};

    /// Longer than anything in these tests takes, even on a busy machine.
    const PATIENCE: Duration = Duration::from_secs(60);

    /// Echoes the first bytes in capitals; panics if they begin with `!`.
    struct Moody;

    impl Handler for Moody {
        fn serve(&self, mut stream: Stream) -> LocalFuture {
            Box::pin(async move {
                let Ok(Some(mut lease)) = stream.rx.recv(Want::Head).await else { return };
                assert_ne!(lease.first(), Some(&b'!'), "asked to");
                lease.make_ascii_uppercase();
                stream.tx.push(Segment::Lease(lease));
                let _ = stream.finish().await;
            })
        }
    }

    fn answer(at: &str, request: &[u8]) -> Vec<u8> {
        let mut stream = TcpStream::connect(at).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.write_all(request).unwrap();
        let mut answer = Vec::new();
        // A panic resets the connection, which ends the read, too.
        let _ = stream.read_to_end(&mut answer);
        answer
    }

    #[test]
    fn a_panic_ends_its_connection_and_the_worker_serves_the_next_one() {
        let bound = bind(&":0".parse().unwrap()).unwrap();
        let at = bound.address().to_string();
        let setup: Setup = Arc::new(|_: Io| Rc::new(Moody));
        let (stop, connections) = (Stop::new(), Connections::new(100));
        let plan = Plan {
            engine: EngineKind::Pool,
            threads: 1,
            when_full: WhenFull::Block,
            listeners: vec![(bound, setup)],
            stop: stop.clone(),
            grace: PATIENCE,
            connections: Arc::clone(&connections),
        };
        let server = std::thread::spawn(move || serve(plan));
        for _ in 0..3 {
            assert_eq!(answer(&at, b"!"), b"");
            assert_eq!(answer(&at, b"hello"), b"HELLO");
        }
        stop.order();
        server.join().unwrap().unwrap();
        assert_eq!((connections.panicked(), connections.open(), connections.cut_off()), (3, 0, 0));
    }
}
