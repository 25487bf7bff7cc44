//! Futures for the results of jobs that an engine runs on a worker.
//!
//! This is not the worker pool (the engine has it). Invariants: a change whose future is dropped still runs,
//! except a sliced one (a copy), which is cancelled; so is a query. A job that panics, or that the pool
//! dropped, ends its wait with an error.

use std::io;
use std::ops::ControlFlow;
use std::pin::Pin;
use std::task::{Context, Poll};

use crate::file::Fs;
use crate::job::{Progress, SlicedWork, Task};
use crate::oneshot::{Receiver, Sender, oneshot};

/// The reason for which blocking work was not done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotDone {
    /// Too many jobs wait. The client should retry later.
    Busy,
    /// The job panicked, or the pool dropped it; its progress is unknown.
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

/// The treatment of a job whose future was dropped before its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unwanted {
    /// It still runs: it changes something.
    Done,
    /// It is dropped: its result was its only effect.
    Dropped,
}

/// The future of a job's result.
pub(crate) struct Wait<T>(Receiver<T>);

impl<T> Future for Wait<T> {
    type Output = Result<T, NotDone>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(cx).map(|result| result.ok_or(NotDone::Lost))
    }
}

/// Work that is done in one slice, and the sender of its result.
struct Once<F, T> {
    work: Option<(F, Sender<T>)>,
    unwanted: Unwanted,
}

/// Wraps `work` as a task. Also returns the future of its result.
pub(crate) fn once<T: Send + 'static>(
    unwanted: Unwanted,
    work: impl FnOnce(&dyn Fs) -> T + Send + 'static,
) -> (impl Task + 'static, Wait<T>) {
    let (sender, receiver) = oneshot();
    (Once { work: Some((work, sender)), unwanted }, Wait(receiver))
}

impl<T: Send, F: FnOnce(&dyn Fs) -> T + Send> Task for Once<F, T> {
    fn run_slice(&mut self, fs: &dyn Fs) -> Progress {
        if !self.is_abandoned()
            && let Some((work, sender)) = self.work.take()
        {
            sender.send(work(fs));
        }
        Progress::Finished
    }

    fn is_abandoned(&self) -> bool {
        let is_wanted = self.work.as_ref().is_some_and(|(_, sender)| sender.is_wanted());
        self.unwanted == Unwanted::Dropped && !is_wanted
    }
}

/// Work in slices, and the sender of its result.
struct Slices<S: SlicedWork> {
    work: S,
    sender: Option<Sender<S::Output>>,
}

/// Wraps `work` as a task. Also returns the future of its result.
pub(crate) fn slices<S: SlicedWork>(work: S) -> (impl Task + 'static, Wait<S::Output>) {
    let (sender, receiver) = oneshot();
    (Slices { work, sender: Some(sender) }, Wait(receiver))
}

impl<S: SlicedWork> Slices<S> {
    fn is_wanted(&self) -> bool {
        self.sender.as_ref().is_some_and(Sender::is_wanted)
    }
}

impl<S: SlicedWork> Task for Slices<S> {
    fn run_slice(&mut self, fs: &dyn Fs) -> Progress {
        if !self.is_wanted() {
            self.work.cancel(fs);
            return Progress::Finished;
        }
        match self.work.run_slice(fs) {
            ControlFlow::Continue(()) => Progress::Unfinished,
            ControlFlow::Break(output) => {
                if let Some(sender) = self.sender.take() {
                    sender.send(output);
                }
                Progress::Finished
            }
        }
    }

    fn is_abandoned(&self) -> bool {
        !self.is_wanted() && !self.work.leaves_something()
    }
}
