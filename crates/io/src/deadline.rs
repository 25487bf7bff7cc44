//! One lazy deadline per connection: moving it costs a store, not a timer.
//!
//! There is no timer per wait. The engine's timer stays armed from one wait to the next; when it fires
//! early, it is armed again for the current deadline. Invariants: a wait never outlives its deadline by
//! more than a turn, and a connection that is served without waiting arms nothing.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use pin_project_lite::pin_project;

use crate::exec::TimerId;
use crate::io::Io;
use crate::time::Instant;

/// The deadline of a connection's current wait.
pub struct Deadline {
    io: Io,
    at: Cell<Instant>,
    armed: Cell<Option<(Instant, TimerId)>>,
    /// The waker of the current wait. Only while there is one does moving the deadline need more than a
    /// store.
    waiting: RefCell<Option<Waker>>,
}

/// The error of a wait whose deadline came first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Elapsed;

impl Deadline {
    pub(crate) fn new(io: Io) -> Deadline {
        Deadline { io, at: Cell::new(Instant::NEVER), armed: Cell::new(None), waiting: RefCell::new(None) }
    }

    /// Returns the time as of this turn.
    pub fn now(&self) -> Instant {
        self.io.now()
    }

    /// Moves the deadline to `time` from now.
    pub fn after(&self, time: Duration) {
        self.set(self.io.now() + time);
    }

    /// Moves the deadline to `at`; [`Instant::NEVER`] switches it off.
    pub fn set(&self, at: Instant) {
        let earlier = at < self.at.replace(at);
        // The waiting task has armed a timer for the later time, and must arm it again.
        if earlier && let Some(waker) = self.waiting.borrow().as_ref() {
            waker.wake_by_ref();
        }
    }

    /// Waits for `future`, until the deadline at the latest. At the deadline the future is dropped.
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
    /// The future of [`Deadline::within`]. A type for the same reason as [`select`](crate::select)'s.
    #[must_use = "futures do nothing unless polled"]
    pub struct Within<'a, F> {
        deadline: &'a Deadline,
        #[pin]
        future: F,
        // Set by the first poll.
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

/// Clears the waker of the current wait when the wait ends or is dropped.
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
