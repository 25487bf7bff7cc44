//! One lazy deadline per connection: moving it costs a store, not a timer.
//!
//! It is not a timer per wait. The engine's timer stays armed from one wait to the next; when it fires
//! early, it is armed again for the time that is meant by then. What must hold: a wait never outlives its
//! deadline by more than a turn, and a connection that is served without waiting arms nothing.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use pin_project_lite::pin_project;

use crate::exec::TimerId;
use crate::io::Io;
use crate::time::Instant;

/// When a connection's present wait ends.
pub struct Deadline {
    io: Io,
    at: Cell<Instant>,
    armed: Cell<Option<(Instant, TimerId)>>,
    /// Who waits just now: only then does moving the deadline need more than a store.
    waiting: RefCell<Option<Waker>>,
}

/// The deadline came first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Elapsed;

impl Deadline {
    pub(crate) fn new(io: Io) -> Deadline {
        Deadline { io, at: Cell::new(Instant::NEVER), armed: Cell::new(None), waiting: RefCell::new(None) }
    }

    /// The clock as of this turn.
    pub fn now(&self) -> Instant {
        self.io.now()
    }

    /// Moves the deadline to `time` from now.
    pub fn after(&self, time: Duration) {
        self.set(self.io.now() + time);
    }

    /// Moves the deadline to `at`, or takes it away with [`Instant::NEVER`].
    pub fn set(&self, at: Instant) {
        let earlier = at < self.at.replace(at);
        // Whoever waits armed a timer for later: it has to look again.
        if earlier && let Some(waker) = self.waiting.borrow().as_ref() {
            waker.wake_by_ref();
        }
    }

    /// Waits for `future`, until the deadline at the latest. On time-out the future is dropped.
    ///
    /// # Errors
    /// [`Elapsed`] if the deadline came first.
    pub fn within<F: Future>(&self, future: F) -> Within<'_, F> {
        Within { deadline: self, future, waits: None }
    }

    fn poll_elapsed(&self, cx: &mut Context<'_>) -> Poll<Elapsed> {
        let (at, now) = (self.at.get(), self.io.now());
        if now >= at {
            return Poll::Ready(Elapsed);
        }
        match self.armed.get() {
            Some((armed, _)) if now < armed && armed <= at => {}
            _ if at == Instant::NEVER => {}
            _ => self.arm(at, cx),
        }
        self.waiting.replace(Some(cx.waker().clone()));
        Poll::Pending
    }

    fn arm(&self, at: Instant, cx: &Context<'_>) {
        self.disarm();
        self.armed.set(Some((at, self.io.timer(at, cx.waker()))));
    }

    fn disarm(&self) {
        if let Some((_, timer)) = self.armed.take() {
            self.io.cancel(timer);
        }
    }
}

pin_project! {
    /// What [`Deadline::within`] waits by: a type, as [`select`](crate::select)'s is and for the same reason.
    #[must_use = "futures do nothing unless polled"]
    pub struct Within<'a, F> {
        deadline: &'a Deadline,
        #[pin]
        future: F,
        // Once it has begun.
        waits: Option<Ended<'a>>,
    }
}

impl<F: Future> Future for Within<'_, F> {
    type Output = Result<F::Output, Elapsed>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        this.waits.get_or_insert(Ended(this.deadline));
        let polled = match this.future.poll(cx) {
            Poll::Ready(output) => Poll::Ready(Ok(output)),
            Poll::Pending => this.deadline.poll_elapsed(cx).map(Err),
        };
        if polled.is_ready() {
            this.waits.take();
        }
        polled
    }
}

/// Forgets who waited, however the wait ended.
struct Ended<'a>(&'a Deadline);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        self.0.waiting.replace(None);
    }
}

impl Drop for Deadline {
    fn drop(&mut self) {
        self.disarm();
    }
}
