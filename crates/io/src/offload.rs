//! The wait for a job that an engine runs elsewhere.
//!
//! It is not the pool of threads (the engine's). What must hold: work whose wait is dropped is still done,
//! and a question that nobody waits for any more is not asked; a job that panics, or that the pool dropped,
//! ends its wait with an error and not never.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use crate::engine::Job;
use crate::file::Fs;
use crate::oneshot::{Receiver, oneshot};

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

/// What becomes of a job that nobody waits for any more when its turn comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unwanted {
    /// It is done all the same: it changes something.
    Done,
    /// It is dropped: its result was all that there is to it.
    Dropped,
}

/// The wait for a job's result.
pub(crate) struct Wait<T>(Receiver<T>);

impl<T> Future for Wait<T> {
    type Output = Result<T, NotDone>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(cx).map(|result| result.ok_or(NotDone::Lost))
    }
}

/// Packs `work` as a job, and the wait for its result.
pub(crate) fn job<T: Send + 'static>(
    unwanted: Unwanted,
    work: impl FnOnce(&dyn Fs) -> T + Send + 'static,
) -> (Job, Wait<T>) {
    let (sender, receiver) = oneshot();
    let job: Job = Box::new(move |fs| {
        if unwanted == Unwanted::Done || sender.is_wanted() {
            sender.send(work(fs));
        }
    });
    (job, Wait(receiver))
}
