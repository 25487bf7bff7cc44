//! The listener of the ring's engine.
//!
//! It is not the dispatcher, and has no multishot accept: that takes whoever comes, also when the server is
//! full, so that nothing would bound the connections that nobody serves yet, and it does not tell who they
//! are, which cannot be asked of one that was reset meanwhile. What must hold: at most so many
//! connections are accepted as were asked for; none that was accepted is lost before the listener is.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use io_uring::types::Fd;
use plimsoll_io::{Accept, Address, Peer, Stream};
use rustix::io::Errno;
use rustix::net::addr::{SocketAddrLen, SocketAddrStorage};
use rustix::net::{Shutdown, SocketAddrAny, SocketFlags, acceptfrom_with, shutdown};

use super::operations::Key;
use super::ring::Ring;
use super::socket::Socket;
use crate::ready::{Bound, is_that_connections, peer_of};

/// A listening socket of one thread.
pub(crate) struct RingListener {
    accepting: Rc<Accepting>,
    /// Whether no other thread has it too.
    is_alone: bool,
}

/// What the ring knows of it.
pub(super) struct Accepting {
    bound: Bound,
    ring: Rc<Ring>,
    /// Accepts under way, at most.
    accepts_max: usize,
    state: RefCell<State>,
}

/// Where the kernel writes who was accepted.
pub(super) struct Name {
    storage: MaybeUninit<SocketAddrStorage>,
    len: SocketAddrLen,
}

impl Default for Name {
    fn default() -> Name {
        let len = u32::try_from(size_of::<SocketAddrStorage>()).unwrap_or(0);
        Name { storage: MaybeUninit::zeroed(), len }
    }
}

impl Name {
    /// Where the kernel writes the address and its length.
    pub(super) fn places(&mut self) -> (*mut SocketAddrStorage, *mut SocketAddrLen) {
        (self.storage.as_mut_ptr(), &raw mut self.len)
    }

    /// What was written, if it is an address: that of a Unix socket without a name is none.
    fn address(&self) -> Option<SocketAddrAny> {
        let is_some = (size_of::<u16>()..=size_of::<SocketAddrStorage>()).contains(&(self.len as usize));
        // SAFETY: every byte of the storage was zero before the kernel wrote, and the length is in bounds.
        is_some.then(|| unsafe { SocketAddrAny::new(self.storage, self.len) })
    }
}

#[derive(Default)]
struct State {
    accepts: Vec<Key>,
    accepted: VecDeque<Result<(OwnedFd, Peer), Errno>>,
    waker: Option<Waker>,
    is_ending: bool,
}

impl RingListener {
    /// A listener that has up to `accepts_max` accepts under way; `is_alone` if no other thread has it too.
    pub(crate) fn new(ring: &Rc<Ring>, bound: Bound, accepts_max: usize, is_alone: bool) -> RingListener {
        let (ring, state) = (Rc::clone(ring), RefCell::default());
        RingListener { accepting: Rc::new(Accepting { bound, ring, accepts_max, state }), is_alone }
    }

    /// The next connection as a descriptor, for a dispatcher.
    pub(crate) fn poll_accept_fd(&self, cx: &mut Context<'_>) -> Poll<io::Result<(OwnedFd, Peer)>> {
        let mut state = self.accepting.state.borrow_mut();
        while let Some(accepted) = state.accepted.pop_front() {
            match accepted {
                Ok(accepted) => return Poll::Ready(Ok(accepted)),
                Err(error) if is_that_connections(error) => {}
                Err(error) => return Poll::Ready(Err(error.into())),
            }
        }
        while state.accepts.len() < self.accepting.accepts_max && !state.is_ending {
            state.accepts.push(self.accepting.ring.accept(&self.accepting));
        }
        state.waker = Some(cx.waker().clone());
        Poll::Pending
    }

    /// Ready when no accept is under way any more: what was accepted by then is for
    /// [`RingListener::accept_now`].
    pub(crate) fn poll_end(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut state = self.accepting.state.borrow_mut();
        if !std::mem::replace(&mut state.is_ending, true) {
            state.accepts.iter().for_each(|key| self.accepting.ring.cancel(*key));
        }
        state.waker = Some(cx.waker().clone());
        if state.accepts.is_empty() { Poll::Ready(()) } else { Poll::Pending }
    }

    /// A connection that waits already.
    pub(crate) fn accept_now(&self) -> Option<(OwnedFd, Peer)> {
        let mut state = self.accepting.state.borrow_mut();
        while let Some(accepted) = state.accepted.pop_front() {
            if let Ok(accepted) = accepted {
                return Some(accepted);
            }
        }
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let (fd, address) = acceptfrom_with(&self.accepting.bound.fd, flags).ok()?;
        Some((fd, peer_of(address)))
    }
}

impl Accepting {
    pub(super) fn raw(&self) -> Fd {
        Fd(self.bound.fd.as_raw_fd())
    }

    /// An accept has completed.
    pub(super) fn on_accepted(&self, key: Key, result: Result<u32, Errno>, name: &Name) {
        let mut state = self.state.borrow_mut();
        state.accepts.retain(|other| *other != key);
        match result {
            Ok(fd) => {
                // SAFETY: the kernel has just made this descriptor for us, and nobody else knows it.
                let fd = unsafe { OwnedFd::from_raw_fd(fd.cast_signed()) };
                state.accepted.push_back(Ok((fd, peer_of(name.address()))));
            }
            Err(Errno::CANCELED) => {}
            // One word of it is enough, however many accepts hear it.
            Err(_) if state.accepted.iter().any(Result::is_err) => {}
            Err(error) => state.accepted.push_back(Err(error)),
        }
        if let Some(waker) = state.waker.take() {
            waker.wake();
        }
    }
}

impl Accept for RingListener {
    fn poll_accept(&self, cx: &mut Context<'_>) -> Poll<io::Result<Stream>> {
        self.poll_accept_fd(cx).map(|accepted| {
            let (fd, peer) = accepted?;
            Ok(Stream::new(Socket::accepted(&self.accepting.ring, fd, peer)))
        })
    }

    fn address(&self) -> &Address {
        self.accepting.bound.address()
    }
}

impl Drop for RingListener {
    fn drop(&mut self) {
        let mut state = self.accepting.state.borrow_mut();
        state.is_ending = true;
        state.accepted.clear();
        if self.is_alone {
            // Its port is free for the next one from now on, and not only when its accepts have ended.
            let _ = shutdown(&self.accepting.bound.fd, Shutdown::Both);
        }
        for key in &state.accepts {
            self.accepting.ring.cancel(*key);
        }
    }
}
