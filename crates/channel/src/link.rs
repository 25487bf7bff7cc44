//! The link of a channel on a real machine: a mapped region, an eventfd for each side, and the Unix socket.
//!
//! It knows no frames. Invariants: the socket stays open as long as the link, so the peer sees the end of
//! this process, however it ends. The engine owns no descriptor of the link: dropping the link closes all of
//! them.

use std::cell::RefCell;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::rc::Weak;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use plimsoll_io::{Event, File, Handle, Io, Link, Watch, Watcher};
use rustix::event::{EventfdFlags, eventfd};
use rustix::net::{Shutdown, shutdown};

use crate::message::{is_read_only_file, receive, send};
use crate::region::{Region, invalid};

/// The message that carries a descriptor.
const PASSED: &[u8] = b"f";

/// A link to another process.
pub(crate) struct SystemLink {
    io: Io,
    socket: Arc<OwnedFd>,
    region: Region,
    own_bell: Arc<OwnedFd>,
    peer_bell: OwnedFd,
    watches: RefCell<Vec<Box<dyn Watch>>>,
}

impl SystemLink {
    pub(crate) fn new(
        io: &Io,
        socket: Arc<OwnedFd>,
        region: Region,
        own_bell: OwnedFd,
        peer_bell: OwnedFd,
    ) -> SystemLink {
        let (io, own_bell, watches) = (io.clone(), Arc::new(own_bell), RefCell::default());
        SystemLink { io, socket, region, own_bell, peer_bell, watches }
    }
}

/// Creates the eventfd of one side.
pub(crate) fn new_bell() -> io::Result<OwnedFd> {
    Ok(eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?)
}

impl Link for SystemLink {
    fn words(&self) -> &[AtomicU64] {
        self.region.words()
    }

    fn watch(&self, watcher: &Weak<dyn Watcher>) -> io::Result<()> {
        let bell = self.io.watch(&self.own_bell, Event::Bell, watcher)?;
        let socket = self.io.watch(&self.socket, Event::HangUp, watcher)?;
        self.watches.borrow_mut().extend([bell, socket]);
        Ok(())
    }

    fn call_at_turn_end(&self, watcher: &Weak<dyn Watcher>) {
        self.io.call_at_turn_end(watcher);
    }

    fn ring(&self) {
        // The counter is full only if the peer never waits, and then it needs no wake-up.
        let _ = rustix::io::write(&self.peer_bell, &1u64.to_ne_bytes());
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
        // At once, and not only when the engine has ended its watch. The peer may have closed the socket.
        let _ = shutdown(&self.socket, Shutdown::Both);
    }
}
