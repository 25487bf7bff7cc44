//! The operations of an engine that a transport over shared memory needs: events of its descriptors, a
//! call at the end of a turn, and the connection that sets the transport up.
//!
//! It is not that transport (the crate `channel` is), and it shares no memory itself. Invariants: an
//! event is a hint, which may come without a cause and never fails to come; a watch that was dropped
//! calls no watcher.

use std::any::Any;
use std::io;
use std::os::fd::OwnedFd;
use std::rc::Weak;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use crate::file::File;

/// The parts of a link without its thread: the socket, and the state from which the link is built again.
pub type ParkedLink = (Arc<OwnedFd>, Box<dyn Any + Send>);

/// An event of a descriptor, or of its simulated counterpart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A socket has something to receive, or is broken.
    Readable,
    /// The peer has written to an eventfd. The engine consumes its count where it has to.
    Bell,
    /// The peer of a socket has closed it. This event comes once.
    HangUp,
}

/// A transport that is called at events.
pub trait Watcher {
    /// Handles an event.
    fn on_event(&self, event: Event);

    /// Handles the end of the turn for which the call was requested.
    fn on_turn_end(&self);
}

/// Events in shared memory, which no descriptor reports while the thread is awake. The engine polls them in
/// each turn.
pub trait EventSource {
    /// Asks the peers for wake-ups, because the thread is about to wait. Returns whether an event has arrived
    /// already: then the thread does not wait.
    fn about_to_wait(&self) -> bool;

    /// Asks the peers for no more wake-ups, and reports the events that have arrived.
    fn report(&self);
}

/// A watch of a descriptor, which ends when it is dropped.
pub trait Watch {}

/// A connection that was taken out of its stream.
pub enum Endpoint {
    /// A socket of the kernel.
    Descriptor(Arc<OwnedFd>),
    /// A connection of the simulator.
    Simulated(Box<dyn Link>),
}

/// The memory that two processes share, with their wake-ups and the files that they pass.
pub trait Link {
    /// Returns the shared memory. The peer may change it at any time.
    fn words(&self) -> &[AtomicU64];

    /// Calls `watcher` at each wake-up, and once when the peer has closed its side.
    ///
    /// # Errors
    /// The operating system's error.
    fn watch(&self, watcher: &Weak<dyn Watcher>) -> io::Result<()>;

    /// Calls `watcher` once, at the end of this turn.
    fn call_at_turn_end(&self, watcher: &Weak<dyn Watcher>);

    /// Reports a wake-up to the peer. Returns whether its thread had to be woken, by a system call.
    fn ring(&self) -> bool;

    /// Wakes a peer that was parked, by its socket.
    fn ring_parked(&self) {
        self.ring();
    }

    /// Returns the parts for another thread, if the link can be parked. It is not used after that.
    fn park(&self) -> Option<ParkedLink> {
        None
    }

    /// Passes an open file to the peer, which [takes](Link::take) it in the same order. Returns false if
    /// the file must not be passed, because its descriptor permits more than reading.
    ///
    /// # Errors
    /// The error of sending; the link is unusable then.
    fn pass(&self, file: &File) -> io::Result<bool>;

    /// Takes the next file that the peer has passed.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidData`] if there is none, or if it is no regular file that is open for
    /// reading only.
    fn take(&self) -> io::Result<File>;

    /// Reads a passed file at `offset` into `into`. Returns the number of bytes read, 0 at its end.
    ///
    /// # Errors
    /// The operating system's error.
    fn read_passed(&self, file: &File, into: &mut [u8], offset: u64) -> io::Result<usize>;
}
