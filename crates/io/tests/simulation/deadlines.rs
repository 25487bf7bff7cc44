//! The one lazy deadline of a connection, over an engine that counts the timers it is given.

use std::cell::Cell;
use std::future::pending;
use std::io;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, SystemTime};

use plimsoll_io::exec::{TimerId, Timers};
use plimsoll_io::sim::{Faults, Sim};
use plimsoll_io::{Address, Elapsed, Engine, Fs, Instant, Io, Job, Listener, NotDone, Stream, Work, join};

use crate::SECOND;

/// An engine with a clock and timers only.
#[derive(Default)]
struct Clockwork {
    now: Cell<Duration>,
    timers: Timers,
    armed: Cell<usize>,
}

impl Engine for Clockwork {
    fn now(&self) -> Instant {
        Instant::from_start(self.now.get())
    }
    fn wall(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH
    }
    fn timer(&self, at: Instant, waker: &Waker) -> TimerId {
        self.armed.set(self.armed.get() + 1);
        self.timers.add(at, waker)
    }
    fn cancel(&self, timer: TimerId) {
        self.timers.cancel(timer);
    }
    fn connect(&self, _: &Address) -> io::Result<Stream> {
        Err(io::ErrorKind::Unsupported.into())
    }
    fn listen(&self, _: &Address) -> io::Result<Listener> {
        Err(io::ErrorKind::Unsupported.into())
    }
    fn nonblocking(&self) -> &dyn Fs {
        unreachable!("no files here")
    }
    fn in_memory(&self) -> &dyn Fs {
        unreachable!("no files here")
    }
    fn offload(&self, _: Work, _: Job) -> Result<(), NotDone> {
        Err(NotDone::Busy)
    }
    fn poll_stopping(&self, _: &mut Context<'_>) -> Poll<()> {
        Poll::Pending
    }
    fn entropy(&self, _: &mut [u8]) {}
}

fn poll_once<F: Future>(future: F) -> Poll<F::Output> {
    std::pin::pin!(future).poll(&mut Context::from_waker(Waker::noop()))
}

fn clockwork() -> (Rc<Clockwork>, Io) {
    let clockwork = Rc::new(Clockwork::default());
    (Rc::clone(&clockwork), Io::new(clockwork))
}

#[test]
fn waiting_again_and_again_arms_one_timer() {
    let (engine, io) = clockwork();
    let deadline = io.deadline();
    for request in 0..100 {
        engine.now.set(SECOND * request / 100);
        deadline.after(SECOND * 30);
        assert!(poll_once(deadline.within(pending::<()>())).is_pending());
    }
    assert_eq!((engine.armed.get(), engine.timers.len()), (1, 1));
}

#[test]
fn a_future_that_is_ready_at_once_arms_no_timer() {
    let (engine, io) = clockwork();
    let deadline = io.deadline();
    deadline.after(SECOND);
    assert_eq!(poll_once(deadline.within(async { 5 })), Poll::Ready(Ok(5)));
    assert_eq!(engine.armed.get(), 0);
}

#[test]
fn one_that_is_off_arms_nothing_and_never_comes() {
    let (engine, io) = clockwork();
    let deadline = io.deadline();
    assert!(poll_once(deadline.within(pending::<()>())).is_pending());
    deadline.after(SECOND);
    deadline.set(Instant::NEVER);
    engine.now.set(SECOND * 5);
    assert!(poll_once(deadline.within(pending::<()>())).is_pending());
    assert_eq!(engine.armed.get(), 0);
}

#[test]
fn moving_it_earlier_arms_again_and_later_does_not() {
    let (engine, io) = clockwork();
    let deadline = io.deadline();
    let wait = |seconds| {
        deadline.after(SECOND * seconds);
        assert!(poll_once(deadline.within(pending::<()>())).is_pending());
        (engine.armed.get(), engine.timers.len(), engine.timers.next())
    };
    assert_eq!(wait(10), (1, 1, Some(Instant::from_start(SECOND * 10))));
    assert_eq!(wait(20), (1, 1, Some(Instant::from_start(SECOND * 10))));
    assert_eq!(wait(5), (2, 1, Some(Instant::from_start(SECOND * 5))));
}

#[test]
fn dropping_it_forgets_its_timer() {
    let (engine, io) = clockwork();
    let deadline = io.deadline();
    deadline.after(SECOND);
    assert!(poll_once(deadline.within(pending::<()>())).is_pending());
    drop(deadline);
    assert!(engine.timers.is_empty());
}

/// Returns when a wait within a deadline that `moves` elapsed.
fn elapsed_at(moves: impl AsyncFnOnce(&Io, &plimsoll_io::Deadline) + 'static) -> Duration {
    let sim = Sim::new(0, Faults::none());
    let host = sim.host("one");
    let io = host.io();
    sim.run(&host, async move {
        let deadline = io.deadline();
        deadline.after(SECOND * 10);
        let wait = async {
            assert_eq!(deadline.within(pending::<()>()).await, Err(Elapsed));
            io.now().since_start()
        };
        join(wait, moves(&io, &deadline)).await.0
    })
}

#[test]
fn a_deadline_expires_at_its_time() {
    assert_eq!(elapsed_at(async |_, _| {}), SECOND * 10);
}

#[test]
fn a_deadline_moved_later_during_a_wait_expires_later() {
    let later = elapsed_at(async |io, deadline| {
        io.sleep(SECOND * 6).await;
        deadline.after(SECOND * 10);
    });
    assert_eq!(later, SECOND * 16);
}

#[test]
fn moved_earlier_between_two_waits_it_comes_earlier() {
    let sim = Sim::new(0, Faults::none());
    let host = sim.host("one");
    let io = host.io();
    let at = sim.run(&host, async move {
        let deadline = io.deadline();
        deadline.after(SECOND * 10);
        deadline.within(io.sleep(SECOND)).await.unwrap();
        deadline.after(SECOND);
        assert_eq!(deadline.within(pending::<()>()).await, Err(Elapsed));
        io.now().since_start()
    });
    assert_eq!(at, SECOND * 2);
}
