//! The link of a channel on a real machine: a mapped region, an eventfd for each side, and the Unix socket.
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
use rustix::event::{EventfdFlags, eventfd};
use rustix::net::{Shutdown, shutdown};

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
    shared: LinkParts,
    watches: RefCell<Vec<Box<dyn Watch>>>,
    is_parked: Cell<bool>,
}

/// The parts of a link besides its socket.
#[derive(Clone)]
struct LinkParts {
    region: Arc<Region>,
    own_bell: Arc<OwnedFd>,
    peer_bell: Arc<OwnedFd>,
}

impl SystemLink {
    pub(crate) fn new(
        io: &Io,
        socket: Arc<OwnedFd>,
        region: Region,
        own_bell: OwnedFd,
        peer_bell: OwnedFd,
    ) -> SystemLink {
        let (own_bell, peer_bell) = (Arc::new(own_bell), Arc::new(peer_bell));
        SystemLink::of(io, socket, LinkParts { region: Arc::new(region), own_bell, peer_bell })
    }

    fn of(io: &Io, socket: Arc<OwnedFd>, shared: LinkParts) -> SystemLink {
        let (watches, is_parked) = Default::default();
        SystemLink { io: io.clone(), socket, shared, watches, is_parked }
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
        Ok(SystemLink::of(io, socket, *parts))
    }
}

/// Creates the eventfd of one side.
pub(crate) fn new_bell() -> io::Result<OwnedFd> {
    Ok(eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?)
}

impl Link for SystemLink {
    fn words(&self) -> &[AtomicU64] {
        self.shared.region.words()
    }

    fn watch(&self, watcher: &Weak<dyn Watcher>) -> io::Result<()> {
        let bell = self.io.watch(&self.shared.own_bell, Event::Bell, watcher)?;
        let socket = self.io.watch(&self.socket, Event::HangUp, watcher)?;
        self.watches.borrow_mut().extend([bell, socket]);
        Ok(())
    }

    fn call_at_turn_end(&self, watcher: &Weak<dyn Watcher>) {
        self.io.call_at_turn_end(watcher);
    }

    fn ring(&self) {
        // The counter is full only if the peer never waits, and then it needs no wake-up.
        let _ = rustix::io::write(&self.shared.peer_bell, &1u64.to_ne_bytes());
    }

    fn ring_parked(&self) {
        // The buffer is full only if the peer takes no message, and then it has been woken.
        let _ = send(&self.socket, WAKE, &[]);
    }

    fn park(&self) -> Option<ParkedLink> {
        self.is_parked.set(true);
        self.watches.borrow_mut().clear();
        Some((Arc::clone(&self.socket), Box::new(self.shared.clone())))
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
