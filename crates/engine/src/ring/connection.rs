//! The ring's state of a stream: its descriptor, the segments to send, the bytes received.
//!
//! It is not the protocol's handle (a [`Socket`](super::socket::Socket) is). It outlives the handle until no
//! operation uses it. Invariants: at most one receive and one send are in progress. Memory that is lent to a
//! send stays unchanged until the send has completed.

use std::cell::{RefCell, RefMut};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::rc::Rc;
use std::task::{Context, Poll};

use io_uring::types::Fd;
use plimsoll_io::{Filled, Lease, Peer, Pipe, Want};
use rustix::event::PollFlags;
use rustix::io::Errno;

use super::operations::Key;
use super::ring::{ReceiveMode, Received, Ring};
use crate::ready::connected;
use crate::splice::fill;
use crate::stream_state::StreamState;

/// One stream of the ring.
pub(crate) struct Connection {
    /// Set until it is handed over to be closed.
    fd: RefCell<Option<OwnedFd>>,
    pub(super) peer: Peer,
    pub(super) ring: Rc<Ring>,
    pub(super) state: RefCell<State>,
}

#[derive(Default)]
pub(super) struct State {
    pub(super) stream: StreamState,
    /// The receive, or the wait for readability, in progress.
    receiving: Option<Key>,
    /// The send, or the wait for writability, in progress.
    pub(super) sending: Option<Key>,
    /// The kind of bytes that the receive in progress is for.
    wanted: Option<Want>,
    received: Option<Lease>,
    /// Whether the last receive emptied the socket.
    is_empty: bool,
    /// Whether the peer has ended its sending or broken the connection, as a wait for readability reported.
    has_hung_up: bool,
    has_ended: bool,
    /// Whether the connection broke and all bytes before that have been received.
    is_exhausted: bool,
    /// Whether the stream was dropped.
    pub(super) is_dropped: bool,
    /// Whether nothing more is sent: the stream was dropped unfinished, or while its socket's buffer was
    /// full.
    pub(super) is_stuck: bool,
}

impl Connection {
    pub(super) fn accepted(ring: &Rc<Ring>, fd: OwnedFd, peer: Peer) -> Rc<Connection> {
        Connection::new(ring, fd, peer, State::default())
    }

    pub(super) fn connecting(ring: &Rc<Ring>, fd: OwnedFd, peer: Peer) -> Rc<Connection> {
        let state = State { stream: StreamState::connecting(), ..State::default() };
        let connection = Connection::new(ring, fd, peer, state);
        connection.state.borrow_mut().sending = Some(ring.wait_for_room(&connection));
        connection
    }

    fn new(ring: &Rc<Ring>, fd: OwnedFd, peer: Peer, state: State) -> Rc<Connection> {
        let (fd, state) = (RefCell::new(Some(fd)), RefCell::new(state));
        Rc::new(Connection { fd, peer, ring: Rc::clone(ring), state })
    }

    /// Returns the descriptor for operations; -1 after it was closed.
    pub(super) fn raw(&self) -> Fd {
        Fd(self.fd.borrow().as_ref().map_or(-1, AsRawFd::as_raw_fd))
    }

    /// Takes the descriptor, if no operation uses it.
    pub(super) fn take_idle(&self) -> Option<OwnedFd> {
        let state = self.state.borrow();
        let is_idle = state.receiving.is_none() && state.sending.is_none() && !state.stream.has_unsent();
        if is_idle { self.fd.take() } else { None }
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
        state.check_receivable()?;
        if let Some(lease) = state.received.take() {
            return Poll::Ready(Ok(Some(lease)));
        }
        if state.has_ended {
            return Poll::Ready(Ok(None));
        }
        if state.receiving.is_none() && !state.stream.connecting {
            self.receive(&mut state, want);
        }
        state.stream.wait_to_receive(cx);
        Poll::Pending
    }

    /// Moves received bytes into a pipe, or waits for readability. Bytes of a receive into memory that is
    /// in progress come first.
    pub(super) fn poll_recv_into(
        self: &Rc<Self>,
        cx: &mut Context<'_>,
        pipe: &Pipe,
        bytes_max: u64,
    ) -> Poll<io::Result<Filled>> {
        let mut state = self.state.borrow_mut();
        loop {
            state.check_receivable()?;
            if state.received.is_some() {
                return Poll::Ready(Ok(if pipe.bytes() == 0 { Filled::Refused } else { Filled::Full }));
            }
            if state.has_ended {
                return Poll::Ready(Ok(Filled::End));
            }
            if state.receiving.is_some() || state.stream.connecting {
                break;
            }
            if !state.stream.share.may_receive(self.ring.to_flush.turn()) {
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            if state.is_empty && !state.stream.has_failed() {
                state.receiving = Some(self.ring.wait_for_bytes(self));
                break;
            }
            if let Some(filled) = self.fill(&mut state, pipe, bytes_max) {
                return Poll::Ready(Ok(filled));
            }
        }
        state.stream.wait_to_receive(cx);
        Poll::Pending
    }

    /// Moves received bytes into a pipe. Returns `None` if the state has changed and is to be evaluated.
    fn fill(&self, state: &mut State, pipe: &Pipe, bytes_max: u64) -> Option<Filled> {
        match self.with_fd(|fd| fill(pipe, fd, bytes_max, state.has_hung_up)) {
            Ok(Filled::End) => state.has_ended = true,
            Ok(filled) => {
                state.stream.share.receives += 1;
                return Some(filled);
            }
            Err(Errno::AGAIN) => {
                state.is_empty = true;
                state.is_exhausted = state.stream.has_failed();
            }
            Err(Errno::INTR) => {}
            Err(error) => {
                state.is_exhausted = true;
                state.fail(error);
            }
        }
        None
    }

    /// Handles the end of a wait for readability.
    pub(super) fn on_readable(self: &Rc<Self>, result: Result<u32, Errno>) {
        let mut state = self.state.borrow_mut();
        let hang_up = u32::from((PollFlags::RDHUP | PollFlags::HUP | PollFlags::ERR).bits());
        state.has_hung_up |= result.is_ok_and(|events| events & hang_up != 0);
        // A task that still waits tries again, even if the wait has failed.
        state.is_empty = false;
        self.end_receive(state);
    }

    fn receive(self: &Rc<Self>, state: &mut State, want: Want) {
        let mode = match (state.stream.has_failed(), state.is_empty) {
            // The bytes that the peer sent before it aborted can still be read.
            (true, _) => ReceiveMode::WithoutWaiting,
            (false, true) => ReceiveMode::OnceReadable,
            (false, false) => ReceiveMode::Immediately,
        };
        state.receiving = Some(self.ring.receive(self, want, mode));
        state.wanted = Some(want);
    }

    /// Handles a completed receive.
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
                // All blocks were taken in one turn, and have been replaced by now.
                let want = state.wanted.unwrap_or(Want::Head);
                self.receive(&mut state, want);
                return;
            }
            Received::Failed(Errno::AGAIN) => state.is_exhausted = state.stream.has_failed(),
            // A task that still waits tries again.
            Received::Failed(Errno::CANCELED | Errno::INTR | Errno::NOBUFS) => {}
            Received::Failed(error) => {
                state.is_exhausted = true;
                state.fail(error);
            }
        }
        self.end_receive(state);
    }

    /// Wakes the tasks that wait, after a receive has completed.
    fn end_receive(self: &Rc<Self>, mut state: RefMut<'_, State>) {
        state.receiving = None;
        let receiver = state.stream.receiver.take();
        state.stream.wake_after_sending();
        self.settle(&mut state);
        drop(state);
        if let Some(waker) = receiver {
            waker.wake();
        }
    }

    /// Handles the end of a wait: the socket is writable, the connection is established, or it is broken.
    pub(super) fn on_room(self: &Rc<Self>, result: Result<u32, Errno>) {
        let mut state = self.state.borrow_mut();
        state.sending = None;
        if std::mem::take(&mut state.stream.connecting) {
            if let Err(error) = result.and_then(|_| self.with_fd(|fd| connected(fd))) {
                state.fail(error);
            }
            state.stream.wake_receiver();
        }
        if result.is_err() {
            state.is_stuck = state.is_dropped;
        }
        self.send_on(&mut state);
    }

    /// Handles the drop of the stream: cancels its operations.
    pub(super) fn abandon(self: &Rc<Self>) {
        let mut state = self.state.borrow_mut();
        state.is_dropped = true;
        state.received = None;
        (state.stream.receiver, state.stream.drainer) = (None, None);
        for key in state.receiving.into_iter().chain(state.sending) {
            self.ring.cancel(key);
        }
        state.is_stuck = !state.stream.is_finishing();
        self.send_on(&mut state);
    }

    /// Records the error that broke the connection. A waiting receive is cancelled and retried once.
    pub(super) fn fail(&self, state: &mut State, error: Errno) {
        state.fail(error);
        if let Some(key) = state.receiving {
            self.ring.cancel(key);
        }
    }

    pub(super) fn drop_unreadable(&self) -> Option<u64> {
        let mut state = self.state.borrow_mut();
        let dropped = state.stream.drop_unreadable();
        // The receive that was cancelled at the failure is tried again.
        state.is_exhausted &= dropped.is_none();
        dropped
    }

    /// Closes a dropped stream's descriptor, once no operation uses it.
    pub(super) fn settle(self: &Rc<Self>, state: &mut State) {
        if !state.is_dropped || state.receiving.is_some() || state.sending.is_some() {
            return;
        }
        let Some(fd) = self.fd.take() else { return };
        state.is_stuck = true;
        state.stream.prepare_close(&fd);
        self.ring.close(fd);
    }
}

impl State {
    /// Returns the error that later receives report: a file that was too short, or the one that broke the
    /// connection, once the bytes before it were received.
    fn check_receivable(&self) -> io::Result<()> {
        // The kernel reports an error once, and then an end. The stored error is reported until the stream is
        // dropped.
        let is_over = self.is_exhausted || (self.has_ended && self.received.is_none());
        let broken = if is_over { self.stream.error() } else { None };
        self.stream.truncation().or(broken).map_or(Ok(()), Err)
    }

    pub(super) fn can_send(&self) -> bool {
        self.sending.is_none() && !self.is_stuck && self.stream.has_unsent()
    }

    fn fail(&mut self, error: Errno) {
        self.stream.fail(error);
        self.drop_unsendable();
    }

    /// Drops segments that will not be sent, unless one is lent to an operation.
    pub(super) fn drop_unsendable(&mut self) {
        if self.sending.is_none() {
            self.stream.drop_unsendable();
        }
    }
}
