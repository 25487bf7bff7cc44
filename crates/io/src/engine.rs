//! The traits between an engine and the protocols that it runs.
//!
//! Protocols do not call these: [`crate::Io`] wraps them. Invariant: no method waits, except that
//! `offload` may run its job in place where the connection has a thread of its own.

use std::future::Future;
use std::io;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::SystemTime;

use crate::address::Address;
use crate::carrier::{Event, EventSource, Watch, Watcher};
use crate::exec::TimerId;
use crate::file::Fs;
use crate::io::Io;
use crate::job::Job;
use crate::listener::Listener;
use crate::offload::NotDone;
use crate::parking::{Parked, Resume};
use crate::stream::Stream;
use crate::time::Instant;

/// A future that stays on its thread.
pub type LocalFuture = Pin<Box<dyn Future<Output = ()>>>;

/// The worker pool for a job of blocking work, so that one kind of work never starves another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Opening and reading files.
    Files,
    /// Writing, syncing and renaming files: these wait for the disk, many at a time.
    Writes,
    /// Reading and sorting whole folders: long work, separate so that short work does not queue behind
    /// it.
    Listings,
    /// Work that takes time in proportion to the size of a file or a tree: digests of whole files,
    /// copying, clearing trees. No other kind of work queues behind it.
    Chores,
    /// Queries and changes of the account directory.
    Directory,
    /// Hashing passwords: each hash occupies a core for a long time.
    Passwords,
}

/// The clock, network, files and randomness of the protocols on one thread.
pub trait Engine {
    /// Returns the time as of this turn.
    fn now(&self) -> Instant;
    /// Returns the time of day as of this turn.
    fn wall(&self) -> SystemTime;
    /// Returns the time of day now: later than [`Engine::wall`] if this turn has taken long.
    fn wall_exact(&self) -> SystemTime {
        self.wall()
    }
    /// Wakes `waker` once, at `at`.
    fn timer(&self, at: Instant, waker: &Waker) -> TimerId;
    /// Cancels a timer. Cancelling a fired timer is not an error.
    fn cancel(&self, timer: TimerId);
    /// Starts to connect. The stream's first `drain` returns when it is connected.
    ///
    /// # Errors
    /// The operating system's immediate error.
    fn connect(&self, to: &Address) -> io::Result<Stream>;
    /// Listens for streams.
    ///
    /// # Errors
    /// The operating system's error.
    fn listen(&self, at: &Address) -> io::Result<Listener>;
    /// Returns non-blocking file access: [`io::ErrorKind::WouldBlock`] if the data is not in memory.
    /// Where a connection has its own thread, this `Fs` blocks instead and never returns that error.
    fn nonblocking(&self) -> &dyn Fs;
    /// Returns blocking file access, for files of a file system [in memory](Fs::is_in_memory).
    fn in_memory(&self) -> &dyn Fs;
    /// Runs `job` where it may block. It runs all slices of the job, and jobs of other owners between
    /// two slices.
    ///
    /// # Errors
    /// [`NotDone::Busy`] if too many jobs wait, in all or of the job's owner; the job is dropped.
    fn offload(&self, work: Work, job: Job) -> Result<(), NotDone>;
    /// Ready once the server is to stop; it stays ready. The order to stop wakes every task.
    fn poll_stopping(&self, cx: &mut Context<'_>) -> Poll<()>;
    /// Ready once another connection needs the worker that this connection holds; it stays ready. For a
    /// connection between two requests, which must then [park](crate::Tx::park) or end at once: the
    /// engine may have notified no other connection. Never ready where connections share a thread,
    /// because they hold no worker.
    fn poll_room_wanted(&self, _: &mut Context<'_>) -> Poll<()> {
        Poll::Pending
    }
    /// Reports that this connection only waits for its end. If it occupies a worker that others may wait
    /// for, the engine releases that worker.
    fn leave(&self) {}
    /// Calls `watcher` at each `event` of `fd`, until the watch is dropped.
    ///
    /// # Errors
    /// The operating system's error; [`io::ErrorKind::Unsupported`] in the simulator.
    fn watch(
        &self,
        fd: &Arc<OwnedFd>,
        event: Event,
        watcher: &Weak<dyn Watcher>,
    ) -> io::Result<Box<dyn Watch>> {
        let _ = (fd, event, watcher);
        Err(io::ErrorKind::Unsupported.into())
    }
    /// Calls `watcher` once, at the end of this turn.
    fn call_at_turn_end(&self, watcher: &Weak<dyn Watcher>) {
        let _ = watcher;
    }
    /// Polls `source` in each turn, until it is dropped.
    fn poll_events(&self, source: &Weak<dyn EventSource>) {
        let _ = source;
    }
    /// Fills `into` with unpredictable bytes (in the simulator, bytes that the seed determines).
    fn entropy(&self, into: &mut [u8]);
}

/// A protocol that is ready to serve. The engine calls it for each connection.
pub trait Handler {
    /// Serves one connection from its first byte to its last.
    fn serve(&self, stream: Stream) -> LocalFuture;

    /// Reports to a peer that the server is too busy, in the protocol's own form, and ends the
    /// connection. A protocol without such a response drops the connection.
    fn refuse(&self, stream: Stream) -> LocalFuture {
        Box::pin(async move { drop(stream) })
    }

    /// Resumes a conversation that was [parked](crate::Tx::park), maybe on another thread and by another
    /// handler of this protocol. A protocol that never parks does not implement it.
    fn resume(&self, stream: Stream, parked: Parked, action: Resume) -> LocalFuture {
        let _ = (parked, action);
        Box::pin(async move { drop(stream) })
    }

    /// Runs the background work of one thread that serves connections (such as flushing a log). It is
    /// dropped when that thread ends.
    fn background(&self) -> LocalFuture {
        Box::pin(std::future::pending())
    }
}

/// Creates the handler of one thread.
pub type Setup = Arc<dyn Fn(Io) -> Rc<dyn Handler> + Send + Sync>;
