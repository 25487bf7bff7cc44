//! The wait for a job that an engine runs elsewhere.
//!
//! It is not the pool of threads (the engine's). What must hold: work whose wait is dropped is still done,
//! and a question that nobody waits for any more is not asked; a job that panics, or that the pool dropped,
//! ends its wait with an error and not never.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use crate::engine::Job;
use crate::file::Fs;

/// Why blocking work was not done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotDone {
    /// Too much is waiting already. Say "try again later".
    Busy,
    /// The job panicked; how far it came is not known.
    Lost,
}

impl From<NotDone> for io::Error {
    fn from(not_done: NotDone) -> io::Error {
        match not_done {
            NotDone::Busy => {
                io::Error::new(io::ErrorKind::ResourceBusy, "too many file operations are waiting")
            }
            NotDone::Lost => io::Error::other("a file operation panicked"),
        }
    }
}

/// Where the result is left: shared by the job and its wait.
struct Slot<T> {
    result: Option<Result<T, NotDone>>,
    /// Whether nobody waits any more.
    unwanted: bool,
    waker: Option<Waker>,
}

type Shared<T> = Arc<Mutex<Slot<T>>>;

fn lock<T>(slot: &Shared<T>) -> MutexGuard<'_, Slot<T>> {
    slot.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The job's end of the slot: answers `Lost` if it is dropped before the job has answered.
struct Answer<T>(Shared<T>);

impl<T> Answer<T> {
    fn set(&self, result: Result<T, NotDone>) {
        let mut slot = lock(&self.0);
        if slot.result.is_none() {
            slot.result = Some(result);
        }
        let waker = slot.waker.take();
        drop(slot);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl<T> Drop for Answer<T> {
    fn drop(&mut self) {
        self.set(Err(NotDone::Lost));
    }
}

/// What becomes of a job that nobody waits for any more when its turn comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unwanted {
    /// It is done all the same: it changes something.
    Done,
    /// It is dropped: its result was all that there is to it.
    Dropped,
}

/// The wait for a job's result.
pub(crate) struct Wait<T>(Shared<T>);

impl<T> Future for Wait<T> {
    type Output = Result<T, NotDone>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut slot = lock(&self.0);
        match slot.result.take() {
            Some(result) => Poll::Ready(result),
            None => {
                slot.waker = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }
}

impl<T> Drop for Wait<T> {
    fn drop(&mut self) {
        lock(&self.0).unwanted = true;
    }
}

/// Packs `work` as a job, and the wait for its result.
pub(crate) fn job<T: Send + 'static>(
    unwanted: Unwanted,
    work: impl FnOnce(&dyn Fs) -> T + Send + 'static,
) -> (Job, Wait<T>) {
    let slot: Shared<T> = Arc::new(Mutex::new(Slot { result: None, unwanted: false, waker: None }));
    let answer = Answer(Arc::clone(&slot));
    let job: Job = Box::new(move |fs| {
        if unwanted == Unwanted::Done || !lock(&answer.0).unwanted {
            let result = work(fs);
            answer.set(Ok(result));
        }
    });
    (job, Wait(slot))
}
