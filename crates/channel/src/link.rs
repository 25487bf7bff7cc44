//! The link of a channel on a real machine: a mapped region, a doorbell for each side, and the Unix socket.
//!
//! It knows no frames. Invariants: the socket stays open as long as the link, so the peer sees the end of
//! this process, however it ends. The engine owns no descriptor of the link: dropping the link closes all of
//! them.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::rc::Weak;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use plimsoll_io::{Event, File, Handle, Io, Link, ParkedLink, Watch, Watcher};
use rustix::net::{Shutdown, shutdown};

use crate::bells::{BellParts, OwnPlace, PeerPlace};
use crate::message::{is_read_only_file, receive, send};
use crate::region::{Region, invalid};

/// The message that carries a descriptor.
const PASSED: &[u8] = b"f";
/// The message that wakes a parked peer.
const WAKE: &[u8] = b"w";
/// Bytes of such messages that are received at a time.
const WAKES: usize = 16;

/// A link to another process.
pub(crate) struct SystemLink {
    io: Io,
    socket: Arc<OwnedFd>,
    region: Arc<Region>,
    /// `None` after parking.
    own: RefCell<Option<OwnPlace>>,
    peer: Arc<PeerPlace>,
    watch: RefCell<Option<Box<dyn Watch>>>,
    is_parked: Cell<bool>,
}

/// The parts of a link besides its socket.
struct LinkParts {
    region: Arc<Region>,
    own: BellParts,
    peer: Arc<PeerPlace>,
}

impl SystemLink {
    pub(crate) fn new(
        io: &Io,
        socket: Arc<OwnedFd>,
        region: Region,
        own: OwnPlace,
        peer: PeerPlace,
    ) -> SystemLink {
        SystemLink::of(io, socket, Arc::new(region), own, Arc::new(peer))
    }

    fn of(
        io: &Io,
        socket: Arc<OwnedFd>,
        region: Arc<Region>,
        own: OwnPlace,
        peer: Arc<PeerPlace>,
    ) -> SystemLink {
        let (watch, is_parked) = Default::default();
        SystemLink { io: io.clone(), socket, region, own: RefCell::new(Some(own)), peer, watch, is_parked }
    }

    /// Builds a link again, on any thread, and takes the messages that have woken it.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidData`] for other messages; the operating system's error.
    pub(crate) fn resumed(
        io: &Io,
        socket: Arc<OwnedFd>,
        parts: Box<dyn Any + Send>,
    ) -> io::Result<SystemLink> {
        let parts = parts.downcast::<LinkParts>().map_err(|_| invalid("these are no parts of a link"))?;
        let (mut message, mut files) = ([0; WAKES], Vec::new());
        // The end is received again by the channel.
        while let Some(bytes @ 1..) = receive(&socket, &mut message, &mut files)? {
            if !files.is_empty() || message[..bytes].iter().any(|byte| *byte != WAKE[0]) {
                return Err(invalid("the peer has sent another message than a wake-up"));
            }
        }
        let LinkParts { region, own, peer } = *parts;
        Ok(SystemLink::of(io, socket, region, OwnPlace::of(io, own)?, peer))
    }
}

impl Link for SystemLink {
    fn words(&self) -> &[AtomicU64] {
        self.region.words()
    }

    fn watch(&self, watcher: &Weak<dyn Watcher>) -> io::Result<()> {
        if let Some(own) = &*self.own.borrow() {
            own.watch(watcher);
        }
        *self.watch.borrow_mut() = Some(self.io.watch(&self.socket, Event::HangUp, watcher)?);
        Ok(())
    }

    fn call_at_turn_end(&self, watcher: &Weak<dyn Watcher>) {
        self.io.call_at_turn_end(watcher);
    }

    fn ring(&self) -> bool {
        self.peer.ring()
    }

    fn ring_parked(&self) {
        // The buffer is full only if the peer takes no message, and then it has been woken.
        let _ = send(&self.socket, WAKE, &[]);
    }

    fn park(&self) -> Option<ParkedLink> {
        let own = self.own.take()?.parts();
        self.is_parked.set(true);
        self.watch.take();
        let parts = LinkParts { region: Arc::clone(&self.region), own, peer: Arc::clone(&self.peer) };
        Some((Arc::clone(&self.socket), Box::new(parts)))
    }

    fn pass(&self, file: &File) -> io::Result<bool> {
        let Some(fd) = file.descriptor().filter(|fd| is_read_only_file(fd)) else { return Ok(false) };
        send(&self.socket, PASSED, &[fd])?;
        Ok(true)
    }

    fn take(&self) -> io::Result<File> {
        let (mut message, mut files) = ([0; PASSED.len()], Vec::new());
        let received = receive(&self.socket, &mut message, &mut files)?;
        match (received, files.pop()) {
            (Some(1), Some(fd)) if files.is_empty() && is_read_only_file(fd.as_fd()) => {
                Ok(File::new(Handle::Descriptor(fd)))
            }
            (Some(1), Some(_)) => Err(invalid("the peer has passed what is no file open for reading only")),
            _ => Err(invalid("the peer has announced a file that it has not passed")),
        }
    }

    fn read_passed(&self, file: &File, into: &mut [u8], offset: u64) -> io::Result<usize> {
        self.io.in_memory(|fs| fs.read_at(file, into, offset))
    }
}

impl Drop for SystemLink {
    fn drop(&mut self) {
        if !self.is_parked.get() {
            // At once, and not only when the engine has ended its watch. The peer may have closed the socket.
            let _ = shutdown(&self.socket, Shutdown::Both);
        }
    }
}
