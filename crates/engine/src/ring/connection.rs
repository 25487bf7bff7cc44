//! What the ring keeps of a stream: its descriptor, what is to be sent, what was received.
//!
//! It is not what a protocol holds (a [`Socket`](super::socket::Socket) is): it lives on when that is
//! dropped, until no operation uses it. What must hold: one receive and one send at most are under way;
//! what is lent to a send stays as it is until the send has completed.

use std::cell::RefCell;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use io_uring::types::Fd;
use plimsoll_io::outbox::Outbox;
use plimsoll_io::{Lease, Peer, Segment, Want};
use rustix::io::Errno;
use rustix::net::sockopt;

use super::operations::Key;
use super::ring::{How, Received, Ring};
use crate::ready::connected;
use crate::sendfile::FileSender;

/// One stream, as the ring knows it.
pub(super) struct Connection {
    /// There until it is handed over to be closed.
    fd: RefCell<Option<OwnedFd>>,
    pub(super) peer: Peer,
    pub(super) ring: Rc<Ring>,
    pub(super) state: RefCell<State>,
}

#[derive(Default)]
pub(super) struct State {
    pub(super) outbox: Outbox,
    pub(super) files: FileSender,
    /// The receive that is under way.
    receiving: Option<Key>,
    /// The send, or the wait for room to send, that is under way.
    pub(super) sending: Option<Key>,
    /// What the receive under way is for.
    wanted: Option<Want>,
    received: Option<Lease>,
    /// The last receive has emptied the socket.
    is_empty: bool,
    has_ended: bool,
    /// Since the connection broke, all that came before has been received.
    is_exhausted: bool,
    pub(super) connecting: bool,
    pub(super) finishing: bool,
    pub(super) shut: bool,
    pub(super) queued: bool,
    /// Nobody holds the stream any more.
    pub(super) is_dropped: bool,
    /// It was dropped, and the peer had no room for the rest.
    pub(super) is_stuck: bool,
    pub(super) error: Option<Errno>,
    pub(super) truncated: bool,
    receiver: Option<Waker>,
    pub(super) drainer: Option<(u64, Waker)>,
    /// The turn in which something of a file was sent last, and how much in it.
    pub(super) share: (u64, u64),
}

impl Connection {
    pub(super) fn accepted(ring: &Rc<Ring>, fd: OwnedFd, peer: Peer) -> Rc<Connection> {
        Connection::new(ring, fd, peer, State::default())
    }

    pub(super) fn connecting(ring: &Rc<Ring>, fd: OwnedFd, peer: Peer) -> Rc<Connection> {
        let connection = Connection::new(ring, fd, peer, State { connecting: true, ..State::default() });
        connection.state.borrow_mut().sending = Some(ring.wait_for_room(&connection));
        connection
    }

    fn new(ring: &Rc<Ring>, fd: OwnedFd, peer: Peer, state: State) -> Rc<Connection> {
        let (fd, state) = (RefCell::new(Some(fd)), RefCell::new(state));
        Rc::new(Connection { fd, peer, ring: Rc::clone(ring), state })
    }

    /// The descriptor, as operations name it. One that was closed is no descriptor.
    pub(super) fn raw(&self) -> Fd {
        Fd(self.fd.borrow().as_ref().map_or(-1, AsRawFd::as_raw_fd))
    }

    /// Calls `act` with the descriptor.
    pub(super) fn with_fd<T>(
        &self,
        act: impl FnOnce(BorrowedFd<'_>) -> Result<T, Errno>,
    ) -> Result<T, Errno> {
        self.fd.borrow().as_ref().map_or(Err(Errno::BADF), |fd| act(fd.as_fd()))
    }

    pub(super) fn poll_recv(
        self: &Rc<Self>,
        cx: &mut Context<'_>,
        want: Want,
    ) -> Poll<io::Result<Option<Lease>>> {
        let mut state = self.state.borrow_mut();
        if let Some(error) = state.told_error().filter(|_| state.truncated || state.is_exhausted) {
            return Poll::Ready(Err(error));
        }
        if let Some(lease) = state.received.take() {
            return Poll::Ready(Ok(Some(lease)));
        }
        if state.has_ended {
            // The system tells an error once, and an end after it: who has not taken it in is told again.
            return Poll::Ready(state.told_error().map_or(Ok(None), Err));
        }
        if state.receiving.is_none() && !state.connecting {
            self.receive(&mut state, want);
        }
        match &mut state.receiver {
            Some(kept) => kept.clone_from(cx.waker()),
            none => *none = Some(cx.waker().clone()),
        }
        Poll::Pending
    }

    fn receive(self: &Rc<Self>, state: &mut State, want: Want) {
        let how = match (state.error, state.is_empty) {
            // What the peer sent before it broke off can still be read.
            (Some(_), _) => How::AtOnce,
            (None, true) => How::AfterAWait,
            (None, false) => How::AtFirst,
        };
        state.receiving = Some(self.ring.receive(self, want, how));
        state.wanted = Some(want);
    }

    /// A receive has completed.
    pub(super) fn on_received(self: &Rc<Self>, received: Received) {
        let mut state = self.state.borrow_mut();
        state.receiving = None;
        match received {
            Received::Bytes { lease, has_more } => {
                state.is_empty = !has_more;
                state.received = Some(lease);
            }
            Received::End => state.has_ended = true,
            Received::Failed(Errno::NOBUFS) if !self.ring.has_ended() && !state.is_dropped => {
                // All blocks were taken in one turn, and are replaced by now.
                let want = state.wanted.unwrap_or(Want::Head);
                self.receive(&mut state, want);
                return;
            }
            Received::Failed(Errno::AGAIN) => state.is_exhausted = state.error.is_some(),
            // Who still waits tries again.
            Received::Failed(Errno::CANCELED | Errno::INTR | Errno::NOBUFS) => {}
            Received::Failed(error) => {
                state.is_exhausted = true;
                state.fail(error);
            }
        }
        let receiver = state.receiver.take();
        state.wake_drainer();
        self.settle(&mut state);
        drop(state);
        if let Some(waker) = receiver {
            waker.wake();
        }
    }

    /// There is room to send, the connection is made, or it is broken.
    pub(super) fn on_room(self: &Rc<Self>, result: Result<u32, Errno>) {
        let mut state = self.state.borrow_mut();
        state.sending = None;
        if std::mem::take(&mut state.connecting) {
            let connected = result.and_then(|_| self.with_fd(|fd| connected(fd)));
            state.error = connected.err();
            state.wake_receiver();
        }
        if result.is_err() {
            state.is_stuck = state.is_dropped;
        }
        self.send_on(&mut state);
    }

    /// Nobody holds the stream any more.
    pub(super) fn abandon(self: &Rc<Self>) {
        let mut state = self.state.borrow_mut();
        state.is_dropped = true;
        state.received = None;
        (state.receiver, state.drainer) = (None, None);
        for key in state.receiving.into_iter().chain(state.sending) {
            self.ring.cancel(key);
        }
        state.is_stuck = !state.finishing;
        self.send_on(&mut state);
    }

    /// Notes what broke the connection. A receive that waits is tried again, once.
    pub(super) fn fail(&self, state: &mut State, error: Errno) {
        state.fail(error);
        if let Some(key) = state.receiving {
            self.ring.cancel(key);
        }
    }

    /// Closes what was dropped, once nothing uses it.
    pub(super) fn settle(self: &Rc<Self>, state: &mut State) {
        if !state.is_dropped || state.receiving.is_some() || state.sending.is_some() {
            return;
        }
        let Some(fd) = self.fd.take() else { return };
        state.is_stuck = true;
        let delivered = state.finishing && state.outbox.unsent() == 0 && state.error.is_none();
        if !delivered {
            // A close would send a clean end, which says that all was sent. A linger of zero is a reset.
            let _ = sockopt::set_socket_linger(&fd, Some(Duration::ZERO));
        }
        self.ring.close(fd);
    }
}

impl State {
    pub(super) fn push(&mut self, segment: Segment) {
        if self.error.is_none() {
            self.outbox.push(segment);
        } else {
            self.outbox.lose(&segment);
        }
    }

    fn fail(&mut self, error: Errno) {
        self.error.get_or_insert(error);
        self.forget_unsent();
        self.wake_receiver();
    }

    /// Forgets what will not be sent, unless some of it is lent just now.
    pub(super) fn forget_unsent(&mut self) {
        if self.error.is_some() && self.sending.is_none() {
            self.outbox.clear();
        }
    }

    pub(super) fn told_error(&self) -> Option<io::Error> {
        let error = self.error?;
        let truncated = "the file became shorter while it was sent";
        Some(if self.truncated {
            io::Error::new(io::ErrorKind::UnexpectedEof, truncated)
        } else {
            error.into()
        })
    }

    fn wake_receiver(&mut self) {
        if let Some(waker) = self.receiver.take() {
            waker.wake();
        }
    }

    pub(super) fn wake_drainer(&mut self) {
        let ready = |below: u64| self.error.is_some() || (!self.connecting && self.outbox.unsent() <= below);
        if self.drainer.as_ref().is_some_and(|(below, _)| ready(*below))
            && let Some((_, waker)) = self.drainer.take()
        {
            waker.wake();
        }
    }
}
