//! The handle through which a protocol calls the engine that it runs on.
//!
//! It is not generic over engines: protocol code compiles once. Invariant: it stays on the thread it was
//! made for (it is not `Send`).

use std::future::poll_fn;
use std::io;
use std::os::fd::OwnedFd;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, SystemTime};

use crate::address::Address;
use crate::carrier::{Event, EventSource, Watch, Watcher};
use crate::deadline::Deadline;
use crate::engine::{Engine, Work};
use crate::exec::TimerId;
use crate::file::Fs;
use crate::job::{Job, JobOwner, SlicedWork};
use crate::limits::FILES_TIME_MAX;
use crate::listener::Listener;
use crate::offload::{self, NotDone, Unwanted};
use crate::resource_pool::ResourcePool;
use crate::stream::Stream;
use crate::time::Instant;

/// The clock, network, files and randomness of the thread that a protocol runs on.
#[derive(Clone)]
pub struct Io {
    engine: Rc<dyn Engine>,
    resource_pool: Rc<ResourcePool>,
    owner: JobOwner,
}

impl Io {
    /// Wraps an engine.
    pub fn new(engine: Rc<dyn Engine>) -> Io {
        Io { engine, resource_pool: Rc::default(), owner: JobOwner::NONE }
    }

    /// Returns the same handle, for work on behalf of `owner`. That work queues behind the owner's other
    /// work, and delays no other owner's.
    #[must_use]
    pub fn for_owner(&self, owner: JobOwner) -> Io {
        Io { owner, ..self.clone() }
    }

    /// Returns the owner on whose behalf blocking work is done.
    pub fn owner(&self) -> JobOwner {
        self.owner
    }

    /// Returns the same handle with an empty pool of resources, for a transport to keep. An idle connection
    /// whose transport refers to the pool that it is in would keep the pool, and itself, alive.
    #[must_use]
    pub fn for_transport(&self) -> Io {
        Io { resource_pool: Rc::default(), ..self.clone() }
    }

    /// Returns this thread's pool of idle connections and similar resources. All clones share it.
    pub fn resource_pool(&self) -> &ResourcePool {
        &self.resource_pool
    }

    /// Returns the time as of this turn.
    pub fn now(&self) -> Instant {
        self.engine.now()
    }

    /// Returns the time of day as of this turn.
    pub fn wall(&self) -> SystemTime {
        self.engine.wall()
    }

    /// Returns the time of day now. A blocking engine may send a whole file within one turn, so a duration
    /// needs this clock.
    pub fn wall_exact(&self) -> SystemTime {
        self.engine.wall_exact()
    }

    /// Waits for `time`.
    pub async fn sleep(&self, time: Duration) {
        let deadline = self.deadline();
        deadline.after(time);
        let elapsed = deadline.within(std::future::pending::<()>()).await;
        debug_assert!(elapsed.is_err(), "what is pending for ever was ready");
    }

    /// Creates a deadline that is off.
    pub fn deadline(&self) -> Deadline {
        Deadline::new(self.clone())
    }

    /// Connects a stream.
    ///
    /// # Errors
    /// The operating system's error.
    pub async fn connect(&self, to: &Address) -> io::Result<Stream> {
        let mut stream = self.engine.connect(to)?;
        stream.tx.drain(u64::MAX).await?;
        Ok(stream)
    }

    /// Listens for streams.
    ///
    /// # Errors
    /// The operating system's error.
    pub fn listen(&self, at: &Address) -> io::Result<Listener> {
        self.engine.listen(at)
    }

    /// Runs a query of files: at once if the data is in memory, else on a worker that may block.
    /// `question` may run twice, the second time from the start.
    ///
    /// # Errors
    /// The query's error; [`io::ErrorKind::ResourceBusy`] if too many jobs wait;
    /// [`io::ErrorKind::TimedOut`] if the result takes longer than [`FILES_TIME_MAX`].
    pub async fn files<T: Send + 'static>(
        &self,
        question: impl Fn(&dyn Fs) -> io::Result<T> + Send + 'static,
    ) -> io::Result<T> {
        match self.try_files(&question) {
            Some(answered) => answered,
            None => self.ask(Work::Files, question).await,
        }
    }

    /// Runs a query of files without blocking. Returns `None` if the data is not in memory.
    pub fn try_files<T>(&self, question: impl FnOnce(&dyn Fs) -> io::Result<T>) -> Option<io::Result<T>> {
        let answered = question(self.engine.nonblocking());
        match &answered {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => None,
            _ => Some(answered),
        }
    }

    /// Runs work on files without blocking. Returns `None` if `work` does, because it would have to
    /// wait.
    pub fn nonblocking<T>(&self, work: impl FnOnce(&dyn Fs) -> Option<T>) -> Option<T> {
        work(self.engine.nonblocking())
    }

    /// Runs short work in place, on files of a file system [in memory](Fs::is_in_memory). It waits for no
    /// disk there, and costs no change of threads.
    pub fn in_memory<T>(&self, work: impl FnOnce(&dyn Fs) -> T) -> T {
        work(self.engine.in_memory())
    }

    /// Runs a query of files on a worker that may block. If the future is dropped, the query may never
    /// run.
    ///
    /// # Errors
    /// As [`Io::files`]; [`io::ErrorKind::TimedOut`] if the result takes longer than [`FILES_TIME_MAX`].
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

    /// Runs long work in slices, so that other work runs in between. If the future is dropped, no
    /// further slice runs, and the effects of the finished slices are undone.
    ///
    /// # Errors
    /// As [`Io::offload`].
    pub async fn offload_slices<S: SlicedWork>(&self, kind: Work, work: S) -> Result<S::Output, NotDone> {
        let (task, wait) = offload::slices(work);
        self.engine.offload(kind, Job::new(self.owner, task))?;
        wait.await
    }

    /// Runs `work` once on a worker that may block. If the future is dropped, the work is still
    /// finished.
    ///
    /// # Errors
    /// [`NotDone::Busy`] if too many jobs wait, [`NotDone::Lost`] if it panicked.
    pub async fn offload<T: Send + 'static>(
        &self,
        kind: Work,
        work: impl FnOnce(&dyn Fs) -> T + Send + 'static,
    ) -> Result<T, NotDone> {
        let (task, wait) = offload::once(Unwanted::Done, work);
        self.engine.offload(kind, Job::new(self.owner, task))?;
        wait.await
    }

    /// Queues `work` to run once on a worker that may block, and does not wait for it.
    ///
    /// # Errors
    /// [`NotDone::Busy`] if too many jobs wait; the work does not run.
    pub fn hand_off(&self, kind: Work, work: impl FnOnce(&dyn Fs) + Send + 'static) -> Result<(), NotDone> {
        let (task, _) = offload::once(Unwanted::Done, work);
        self.engine.offload(kind, Job::new(self.owner, task))
    }

    /// Waits until the server is to stop. Level-triggered: once it is ready, it stays ready.
    pub async fn stopping(&self) {
        poll_fn(|cx| self.engine.poll_stopping(cx)).await;
    }

    /// Whether the server is to stop.
    pub fn is_stopping(&self) -> bool {
        self.poll_stopping(&mut Context::from_waker(Waker::noop())).is_ready()
    }

    /// Polls for [`Io::stopping`].
    pub fn poll_stopping(&self, cx: &mut Context<'_>) -> Poll<()> {
        self.engine.poll_stopping(cx)
    }

    /// Waits until another connection needs the worker that this connection holds. Level-triggered and
    /// binding: a connection between two requests must then [park](crate::Tx::park) or end at once.
    pub async fn room_wanted(&self) {
        poll_fn(|cx| self.engine.poll_room_wanted(cx)).await;
    }

    /// Reports that this connection only waits for its end, so that the engine can give its worker to
    /// another.
    pub fn leave(&self) {
        self.engine.leave();
    }

    /// Calls `watcher` at each `event` of `fd`, until the watch is dropped: for transports that the engine
    /// does not have.
    ///
    /// # Errors
    /// The operating system's error; [`io::ErrorKind::Unsupported`] in the simulator.
    pub fn watch(
        &self,
        fd: &Arc<OwnedFd>,
        event: Event,
        watcher: &Weak<dyn Watcher>,
    ) -> io::Result<Box<dyn Watch>> {
        self.engine.watch(fd, event, watcher)
    }

    /// Calls `watcher` once, at the end of this turn.
    pub fn call_at_turn_end(&self, watcher: &Weak<dyn Watcher>) {
        self.engine.call_at_turn_end(watcher);
    }

    /// Polls `source` in each turn, until it is dropped.
    pub fn poll_events(&self, source: &Weak<dyn EventSource>) {
        self.engine.poll_events(source);
    }

    /// Fills `into` with unpredictable bytes.
    pub fn entropy(&self, into: &mut [u8]) {
        self.engine.entropy(into);
    }

    /// Yields until every other ready task has been polled.
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
