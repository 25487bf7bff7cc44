//! What a protocol calls: the engine it runs on, in the form of a value.
//!
//! It is not generic over engines: protocol code compiles once. What must hold: it stays on the thread it
//! was made for (it is not `Send`).

use std::future::poll_fn;
use std::io;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, SystemTime};

use crate::address::Address;
use crate::deadline::Deadline;
use crate::engine::{Engine, Work};
use crate::exec::TimerId;
use crate::file::Fs;
use crate::job::{Job, JobOwner, SlicedWork};
use crate::limits::FILES_TIME_MAX;
use crate::listener::Listener;
use crate::offload::{self, NotDone, Unwanted};
use crate::shelf::Shelf;
use crate::stream::Stream;
use crate::time::Instant;

/// Clock, network, files and chance of the thread that a protocol runs on.
#[derive(Clone)]
pub struct Io {
    engine: Rc<dyn Engine>,
    shelf: Rc<Shelf>,
    owner: JobOwner,
}

impl Io {
    /// Wraps an engine.
    pub fn new(engine: Rc<dyn Engine>) -> Io {
        Io { engine, shelf: Rc::default(), owner: JobOwner::NONE }
    }

    /// The same, for work on behalf of `owner`: it waits behind that owner's other work, and delays no other
    /// owner's.
    #[must_use]
    pub fn for_owner(&self, owner: JobOwner) -> Io {
        Io { owner, ..self.clone() }
    }

    /// On whose behalf blocking work is done.
    pub fn owner(&self) -> JobOwner {
        self.owner
    }

    /// What is kept on this thread for whoever needs it next: one shelf for all clones.
    pub fn shelf(&self) -> &Shelf {
        &self.shelf
    }

    /// The clock as of this turn.
    pub fn now(&self) -> Instant {
        self.engine.now()
    }

    /// The time of day.
    pub fn wall(&self) -> SystemTime {
        self.engine.wall()
    }

    /// Waits for `time`.
    pub async fn sleep(&self, time: Duration) {
        let deadline = self.deadline();
        deadline.after(time);
        let elapsed = deadline.within(std::future::pending::<()>()).await;
        debug_assert!(elapsed.is_err(), "what is pending for ever was ready");
    }

    /// A deadline that is off.
    pub fn deadline(&self) -> Deadline {
        Deadline::new(self.clone())
    }

    /// Connects a stream.
    ///
    /// # Errors
    /// What the system says.
    pub async fn connect(&self, to: &Address) -> io::Result<Stream> {
        let mut stream = self.engine.connect(to)?;
        stream.tx.drain(u64::MAX).await?;
        Ok(stream)
    }

    /// Listens for streams.
    ///
    /// # Errors
    /// What the system says.
    pub fn listen(&self, at: &Address) -> io::Result<Listener> {
        self.engine.listen(at)
    }

    /// Runs a question about files: at once if it can be answered from memory, else where it may block.
    /// `question` may be asked twice, the second time from the start.
    ///
    /// # Errors
    /// What the question answers; [`io::ErrorKind::ResourceBusy`] if too much is waiting;
    /// [`io::ErrorKind::TimedOut`] if the answer takes longer than [`FILES_TIME_MAX`].
    pub async fn files<T: Send + 'static>(
        &self,
        question: impl Fn(&dyn Fs) -> io::Result<T> + Send + 'static,
    ) -> io::Result<T> {
        match self.files_at_hand(&question) {
            Some(answered) => answered,
            None => self.ask(Work::Files, question).await,
        }
    }

    /// As [`Io::files`], if the question can be answered from memory; else nothing.
    pub fn files_at_hand<T>(&self, question: impl FnOnce(&dyn Fs) -> io::Result<T>) -> Option<io::Result<T>> {
        let answered = question(self.engine.at_hand());
        match &answered {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => None,
            _ => Some(answered),
        }
    }

    /// What is done with files, if nothing is to be waited for; else nothing.
    pub fn at_hand<T>(&self, work: impl FnOnce(&dyn Fs) -> Option<T>) -> Option<T> {
        work(self.engine.at_hand())
    }

    /// Lets others go first: the other tasks, and where this thread may wait, whoever waits for its core.
    /// What has come by then is known.
    pub async fn let_others_go(&self) {
        self.engine.at_hand().let_others_go();
        self.yield_now().await;
    }

    /// Asks a question about files where it may block. If the future is dropped, it may never be asked.
    ///
    /// # Errors
    /// As [`Io::files`]; [`io::ErrorKind::TimedOut`] if the answer takes longer than [`FILES_TIME_MAX`].
    pub async fn ask<T: Send + 'static>(
        &self,
        kind: Work,
        question: impl FnOnce(&dyn Fs) -> io::Result<T> + Send + 'static,
    ) -> io::Result<T> {
        let (task, wait) = offload::once(Unwanted::Dropped, question);
        self.engine.offload(kind, Job::new(self.owner, task))?;
        let deadline = self.deadline();
        deadline.after(FILES_TIME_MAX);
        deadline.within(wait).await.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??
    }

    /// Does long work a slice at a time, so that others have their turns in between. If the future is
    /// dropped, no further slice is done, and what the slices did is undone.
    ///
    /// # Errors
    /// As [`Io::offload`].
    pub async fn offload_slices<S: SlicedWork>(&self, kind: Work, work: S) -> Result<S::Output, NotDone> {
        let (task, wait) = offload::slices(work);
        self.engine.offload(kind, Job::new(self.owner, task))?;
        wait.await
    }

    /// Runs `work` once where it may block. If the future is dropped, the work is still finished.
    ///
    /// # Errors
    /// [`NotDone::Busy`] if too much is waiting, [`NotDone::Lost`] if it panicked.
    pub async fn offload<T: Send + 'static>(
        &self,
        kind: Work,
        work: impl FnOnce(&dyn Fs) -> T + Send + 'static,
    ) -> Result<T, NotDone> {
        let (task, wait) = offload::once(Unwanted::Done, work);
        self.engine.offload(kind, Job::new(self.owner, task))?;
        wait.await
    }

    /// Hands `work` over to be done once where it may block, and does not wait for it.
    ///
    /// # Errors
    /// [`NotDone::Busy`] if too much is waiting; the work is not done.
    pub fn hand_off(&self, kind: Work, work: impl FnOnce(&dyn Fs) + Send + 'static) -> Result<(), NotDone> {
        let (task, _) = offload::once(Unwanted::Done, work);
        self.engine.offload(kind, Job::new(self.owner, task))
    }

    /// Waits until the server is to end. Level-triggered: once it is ready, it stays ready.
    pub async fn stopping(&self) {
        poll_fn(|cx| self.engine.poll_stopping(cx)).await;
    }

    /// Whether the server is to end.
    pub fn is_stopping(&self) -> bool {
        self.poll_stopping(&mut Context::from_waker(Waker::noop())).is_ready()
    }

    /// See [`Io::stopping`].
    pub fn poll_stopping(&self, cx: &mut Context<'_>) -> Poll<()> {
        self.engine.poll_stopping(cx)
    }

    /// Waits until others need the worker that this connection holds. Level-triggered, and binding: a
    /// connection between two requests must then [park](crate::Tx::park) or end at once.
    pub async fn room_wanted(&self) {
        poll_fn(|cx| self.engine.poll_room_wanted(cx)).await;
    }

    /// Says that nothing is left of this connection but to wait for its end: its place is for others.
    pub fn leave(&self) {
        self.engine.leave();
    }

    /// Fills `into` with unpredictable bytes.
    pub fn entropy(&self, into: &mut [u8]) {
        self.engine.entropy(into);
    }

    /// Lets every other task have its turn.
    pub async fn yield_now(&self) {
        let mut yielded = false;
        poll_fn(|cx| {
            if std::mem::replace(&mut yielded, true) {
                return Poll::Ready(());
            }
            cx.waker().wake_by_ref();
            Poll::Pending
        })
        .await;
    }

    pub(crate) fn timer(&self, at: Instant, waker: &Waker) -> TimerId {
        self.engine.timer(at, waker)
    }

    pub(crate) fn cancel(&self, timer: TimerId) {
        self.engine.cancel(timer);
    }
}
