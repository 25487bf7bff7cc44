//! The listener of the ring's engine.
//!
//! It is not the dispatcher. It does not use multishot accept, which accepts without bound even when the
//! server is full. Multishot accept also omits the peer's address, which cannot be queried after a reset.
//! Invariants: no more connections are accepted than were requested. No accepted connection is lost before
//! the listener is dropped.

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
    /// Whether no other thread shares it.
    is_alone: bool,
}

/// The listener's state, which its operations keep alive.
pub(super) struct Accepting {
    bound: Bound,
    ring: Rc<Ring>,
    /// Upper bound of accepts in progress.
    accepts_max: usize,
    state: RefCell<State>,
}

/// The memory into which the kernel writes the peer's address.
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
    /// Returns the pointers for the address and its length.
    pub(super) fn places(&mut self) -> (*mut SocketAddrStorage, *mut SocketAddrLen) {
        (self.storage.as_mut_ptr(), &raw mut self.len)
    }

    /// Returns the address, if one was written: an unnamed Unix socket has none.
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
    /// Creates a listener with up to `accepts_max` accepts in progress; `is_alone` if no other thread shares
    /// it.
    pub(crate) fn new(ring: &Rc<Ring>, bound: Bound, accepts_max: usize, is_alone: bool) -> RingListener {
        let (ring, state) = (Rc::clone(ring), RefCell::default());
        RingListener { accepting: Rc::new(Accepting { bound, ring, accepts_max, state }), is_alone }
    }

    /// Accepts the next connection, as a descriptor, for a dispatcher.
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

    /// Ready when no accept is in progress any more. [`RingListener::accept_now`] returns the connections
    /// accepted by then.
    pub(crate) fn poll_end(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut state = self.accepting.state.borrow_mut();
        if !std::mem::replace(&mut state.is_ending, true) {
            state.accepts.iter().for_each(|key| self.accepting.ring.cancel(*key));
        }
        state.waker = Some(cx.waker().clone());
        if state.accepts.is_empty() { Poll::Ready(()) } else { Poll::Pending }
    }

    /// Accepts a connection that is already queued.
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

    /// Handles a completed accept.
    pub(super) fn on_accepted(&self, key: Key, result: Result<u32, Errno>, name: &Name) {
        let mut state = self.state.borrow_mut();
        state.accepts.retain(|other| *other != key);
        match result {
            Ok(fd) => {
                // SAFETY: the kernel has just created this descriptor for this operation, and nothing else
                // owns it.
                let fd = unsafe { OwnedFd::from_raw_fd(fd.cast_signed()) };
                state.accepted.push_back(Ok((fd, peer_of(name.address()))));
            }
            Err(Errno::CANCELED) => {}
            // One such error is enough, however many accepts fail.
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
            // Frees the port at once, and not only when the accepts have ended.
            let _ = shutdown(&self.accepting.bound.fd, Shutdown::Both);
        }
        for key in &state.accepts {
            self.accepting.ring.cancel(*key);
        }
    }
}
