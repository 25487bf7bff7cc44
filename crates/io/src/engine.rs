//! What an engine implements, and what it is given to run.
//!
//! It is not what protocols call: [`crate::Io`] wraps it. What must hold: no method waits, except that
//! `offload` may run its job in place where the connection has a thread of its own.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::SystemTime;

use crate::address::Address;
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

/// Which pool of threads blocking work goes to, so that one kind never starves another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Opening and reading files.
    Files,
    /// Writing, syncing and renaming files: it waits for the disk, many at a time.
    Writes,
    /// Reading whole folders and putting them in order: long work, that short work must not wait for.
    Listings,
    /// What takes as long as a file or a tree is large, and nobody should wait behind: digests of whole
    /// files, copying, clearing trees.
    Chores,
    /// Asking and changing the directory of accounts.
    Directory,
    /// Hashing passwords: a core each for a good while.
    Passwords,
}

/// The clock, network, files and chance that one thread's protocols run on.
pub trait Engine {
    /// The clock as of this turn.
    fn now(&self) -> Instant;
    /// The time of day.
    fn wall(&self) -> SystemTime;
    /// Wakes `waker` at `at`, once.
    fn timer(&self, at: Instant, waker: &Waker) -> TimerId;
    /// Forgets a timer; one that has fired is no error.
    fn cancel(&self, timer: TimerId);
    /// Starts to connect; the stream's first `drain` tells when it is connected.
    ///
    /// # Errors
    /// What the system says at once.
    fn connect(&self, to: &Address) -> io::Result<Stream>;
    /// Listens for streams.
    ///
    /// # Errors
    /// What the system says.
    fn listen(&self, at: &Address) -> io::Result<Listener>;
    /// Files without waiting: what is not in memory is [`io::ErrorKind::WouldBlock`]. Where a connection
    /// has its own thread, this `Fs` waits and never says so.
    fn at_hand(&self) -> &dyn Fs;
    /// Runs `job` where it may block: all of its slices, and between two of them jobs of other owners.
    ///
    /// # Errors
    /// [`NotDone::Busy`] if too much is waiting already, of all or of the job's owner; the job is dropped.
    fn offload(&self, work: Work, job: Job) -> Result<(), NotDone>;
    /// Ready once the server is to end; stays so. Every task is woken when it comes.
    fn poll_stopping(&self, cx: &mut Context<'_>) -> Poll<()>;
    /// Ready once others need the worker that this connection holds; stays so. It is for a connection
    /// between two requests, which must then [park](crate::Tx::park) or end at once: the engine may have
    /// told no other. It never comes where connections take turns, because they hold no worker.
    fn poll_room_wanted(&self, _: &mut Context<'_>) -> Poll<()> {
        Poll::Pending
    }
    /// Says that nothing is left of this connection but to wait for its end: where it has a place that others
    /// may wait for, they get it.
    fn leave(&self) {}
    /// Fills `into` with unpredictable bytes (in the simulator, the seed's).
    fn entropy(&self, into: &mut [u8]);
}

/// A protocol, ready to serve: what an engine calls for each connection.
pub trait Handler {
    /// Serves one connection from its first byte to its last.
    fn serve(&self, stream: Stream) -> LocalFuture;

    /// Tells a peer that it cannot be served now, in the protocol's own words, and ends the connection. A
    /// protocol without such words drops it.
    fn refuse(&self, stream: Stream) -> LocalFuture {
        Box::pin(async move { drop(stream) })
    }

    /// Resumes a conversation that was [parked](crate::Tx::park), maybe on another thread and by another
    /// handler of this protocol. A protocol that never parks is never asked.
    fn resume(&self, stream: Stream, parked: Parked, how: Resume) -> LocalFuture {
        let _ = (parked, how);
        Box::pin(async move { drop(stream) })
    }

    /// What goes on beside the connections (a log to be flushed), one per thread that serves; dropped when
    /// that thread ends.
    fn background(&self) -> LocalFuture {
        Box::pin(std::future::pending())
    }
}

/// Makes the handler of one thread.
pub type Setup = Arc<dyn Fn(Io) -> Rc<dyn Handler> + Send + Sync>;
