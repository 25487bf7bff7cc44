//! The stream socket of the readiness engines.
//!
//! It does not know the protocol. Invariants: a system call is tried only when the last hint allows it.
//! Pushed segments leave at the end of the task's turn, and then whenever the peer makes room, even if the
//! task is not polled. Dropping it without `finish` resets the connection.

use std::cell::RefCell;
use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use plimsoll_io::limits::GATHER_SEGMENTS_MAX;
use plimsoll_io::outbox::{Front, Outbox};
use plimsoll_io::{
    Address, Discarded, EndProbe, Endpoint, Filled, Lease, Peer, Pipe, Segment, Transport, Want,
};
use rustix::fs::CWD;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendFlags, Shutdown, recv, send, sendmsg, shutdown};

use super::address::{connected, local_address};
use super::poll_method::{Hint, Interest};
use super::reactor::{Reactor, Source};
use crate::send_queue::unacknowledged;
use crate::splice::{fill, new_pipe};
use crate::stream_state::StreamState;
use crate::tcp_state::{end_probe, round_trip};

/// A stream socket of one thread.
pub(crate) struct Socket {
    fd: Descriptor,
    peer: Peer,
    token: usize,
    this: Weak<Socket>,
    reactor: Rc<Reactor>,
    state: RefCell<State>,
}

/// A socket's descriptor, until it moves to another thread.
struct Descriptor(Option<OwnedFd>);

impl AsFd for Descriptor {
    fn as_fd(&self) -> BorrowedFd<'_> {
        // Without one, calls are made on a descriptor that is no socket, and fail.
        self.0.as_ref().map_or(CWD, AsFd::as_fd)
    }
}

#[derive(Default)]
struct State {
    stream: StreamState,
    /// Whether the reactor reports its readiness. False until the first wait.
    is_watched: bool,
    /// Whether a probe has a copy of the descriptor, with which the registration outlives the socket.
    is_probed: bool,
    readable: bool,
    writable: bool,
    has_more: bool,
}

impl Socket {
    /// Creates a socket that was accepted.
    pub(crate) fn accepted(reactor: &Rc<Reactor>, fd: OwnedFd, peer: Peer) -> Rc<Socket> {
        // The request is often there already: a receive is worth trying at once.
        Socket::new(reactor, fd, peer, State { readable: true, writable: true, ..State::default() })
    }

    /// Creates a socket that is connecting.
    pub(super) fn connecting(reactor: &Rc<Reactor>, fd: OwnedFd, peer: Peer) -> io::Result<Rc<Socket>> {
        let socket =
            Socket::new(reactor, fd, peer, State { stream: StreamState::connecting(), ..State::default() });
        reactor.watch_stream(socket.token, socket.as_fd())?;
        socket.state.borrow_mut().is_watched = true;
        Ok(socket)
    }

    fn new(reactor: &Rc<Reactor>, fd: OwnedFd, peer: Peer, state: State) -> Rc<Socket> {
        reactor.add(|token| {
            Rc::new_cyclic(|this| Socket {
                fd: Descriptor(Some(fd)),
                peer,
                token,
                this: Weak::clone(this),
                reactor: Rc::clone(reactor),
                state: RefCell::new(state),
            })
        })
    }

    /// Takes the descriptor, for another thread, out of a socket that has sent everything. Returns `None` if
    /// other references to the socket exist.
    pub(crate) fn into_descriptor(self: Rc<Self>) -> Option<OwnedFd> {
        Rc::into_inner(self)?.fd.0.take()
    }

    /// Registers with the reactor, to learn when the socket is readable or writable.
    fn watch(&self, state: &mut State) {
        if state.is_watched || state.stream.has_failed() {
            return;
        }
        match self.reactor.watch_stream(self.token, self.as_fd()) {
            Ok(()) => state.is_watched = true,
            // Without registration, its task would never be woken.
            Err(error) => state.fail(Errno::from_io_error(&error).unwrap_or(Errno::NOMEM)),
        }
    }

    fn queue_if_more(&self, state: &mut State) {
        if state.stream.start_queueing(state.can_send()) {
            self.reactor.to_flush.push(Weak::clone(&self.this));
        }
    }

    /// Sends this turn's share; returns whether there is more that could be sent at once.
    pub(super) fn flush(&self) -> bool {
        let mut state = self.state.borrow_mut();
        state.stream.set_queued(false);
        self.send(&mut state);
        let has_more = state.can_send();
        state.stream.set_queued(has_more);
        has_more
    }

    /// Sends this turn's share, then the end if it is due, and wakes the tasks that wait for that.
    fn send(&self, state: &mut State) {
        self.send_share(state);
        if !state.writable && state.stream.unsent() > 0 {
            self.watch(state);
        }
        if state.stream.take_end() {
            // The connection may be reset by now; the next receive reports that.
            let _ = shutdown(&self.fd, Shutdown::Write);
        }
        state.stream.wake_after_sending();
    }

    fn send_share(&self, state: &mut State) {
        let turn = self.reactor.to_flush.turn();
        while state.can_send() && state.stream.share.may_send(turn) {
            match self.send_once(state) {
                Ok(sent) => state.stream.count_sent(sent),
                Err(Errno::AGAIN) => state.writable = false,
                Err(Errno::INTR) => {}
                Err(error) => state.fail(error),
            }
        }
    }

    /// Sends the outbox's front by one system call.
    fn send_once(&self, state: &mut State) -> Result<u64, Errno> {
        let outbox = state.stream.outbox();
        match outbox.front() {
            Some(Front::File(..) | Front::Piped(_)) => state.stream.send_unread(self.fd.as_fd()),
            Some(Front::Bytes) => {
                let (sent, whole) = self.send_bytes(outbox)?;
                // The kernel took a part: the buffer is full, and an event will follow when there is room.
                state.writable = whole;
                Ok(sent)
            }
            None => Ok(0),
        }
    }

    /// Sends bytes from memory. Returns how many, and whether that was all of them.
    fn send_bytes(&self, outbox: &Outbox) -> Result<(u64, bool), Errno> {
        let mut slices = [&[][..]; GATHER_SEGMENTS_MAX];
        let count = outbox.gather(&mut slices);
        let mut flags = SendFlags::NOSIGNAL;
        // The head and the file's first bytes share a packet.
        flags.set(SendFlags::MORE, outbox.more_after(count));
        let slices = &slices[..count];
        let sent = match slices {
            [one] => send(&self.fd, one, flags)?,
            many => {
                let mut gathered = [IoSlice::new(&[]); GATHER_SEGMENTS_MAX];
                for (slot, slice) in gathered.iter_mut().zip(many) {
                    *slot = IoSlice::new(slice);
                }
                sendmsg(&self.fd, &gathered[..count], &mut SendAncillaryBuffer::default(), flags)?
            }
        };
        let asked: usize = slices.iter().map(|slice| slice.len()).sum();
        Ok((sent as u64, sent == asked))
    }

    fn receive(&self, state: &mut State, want: Want) -> io::Result<Option<Received<Lease>>> {
        let pool = match want {
            Want::Head => &self.reactor.heads,
            Want::Body => &self.reactor.bodies,
        };
        let mut lease = pool.lease();
        let room = rustix::buffer::spare_capacity(lease.block_mut());
        let received = recv(&self.fd, room, RecvFlags::empty()).map(|(bytes, _)| bytes);
        Ok(state.received(received, pool.block_bytes())?.map(|received| match received {
            Received::Bytes(bytes) => {
                state.stream.share.received_bytes += bytes;
                Received::Bytes(lease)
            }
            Received::End => Received::End,
        }))
    }

    /// Has the kernel discard bytes: "Since version 2.4, Linux supports the use of MSG_TRUNC in the flags
    /// argument of recv(2) [...]. This flag causes the received bytes of data to be discarded, rather than
    /// passed back in a caller-supplied buffer" (tcp(7)). A Unix socket fills the buffer, which is then
    /// ignored.
    fn discard(&self, state: &mut State, bytes_max: u64) -> io::Result<Option<Received<u64>>> {
        let mut unread = self.reactor.unread();
        let room = usize::try_from(bytes_max).unwrap_or(usize::MAX).min(unread.len());
        let received = recv(&self.fd, &mut unread[..room], RecvFlags::TRUNC).map(|(_, bytes)| bytes);
        // Not counted in the share of bytes: no byte is copied.
        Ok(state.received(received, room)?.map(|received| match received {
            Received::Bytes(bytes) => Received::Bytes(bytes as u64),
            Received::End => Received::End,
        }))
    }

    /// Has the kernel move bytes into a pipe.
    fn receive_into(
        &self,
        state: &mut State,
        pipe: &Pipe,
        bytes_max: u64,
    ) -> io::Result<Option<Received<Filled>>> {
        let filled = fill(pipe, self.fd.as_fd(), bytes_max, state.has_more);
        let bytes = match filled {
            Ok(Filled::Full | Filled::Refused) => return Ok(filled.ok().map(Received::Bytes)),
            Ok(Filled::End) => Ok(0),
            Ok(Filled::Bytes(bytes)) => Ok(usize::try_from(bytes).unwrap_or(usize::MAX)),
            Err(error) => Err(error),
        };
        // Not counted in the share of bytes, as no byte is copied. A pipe may be full before it holds
        // `bytes_max`, so a short splice does not mean that the socket is empty: only EAGAIN does.
        Ok(state.received(bytes, bytes.unwrap_or(0))?.map(|received| match received {
            Received::Bytes(bytes) => Received::Bytes(Filled::Bytes(bytes as u64)),
            Received::End => Received::End,
        }))
    }

    /// Reads by `read` when the socket is readable, and waits otherwise; `None` is the peer's end.
    fn poll_read<T>(
        &self,
        cx: &Context<'_>,
        read: impl Fn(&mut State) -> io::Result<Option<Received<T>>>,
    ) -> Poll<io::Result<Option<T>>> {
        let mut state = self.state.borrow_mut();
        while state.readable && !state.stream.connecting {
            if let Some(error) = state.stream.truncation() {
                return Poll::Ready(Err(error));
            }
            if !state.stream.share.may_receive(self.reactor.to_flush.turn()) {
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            match read(&mut state)? {
                Some(Received::Bytes(bytes)) => return Poll::Ready(Ok(Some(bytes))),
                Some(Received::End) => return Poll::Ready(Ok(None)),
                None => {}
            }
        }
        self.watch(&mut state);
        // Checked only now: the bytes that the peer sent before it aborted can still be read.
        if let Some(error) = state.stream.error() {
            return Poll::Ready(Err(error));
        }
        state.stream.wait_to_receive(cx);
        Poll::Pending
    }
}

/// The result of a read.
enum Received<T> {
    Bytes(T),
    End,
}

impl State {
    /// Evaluates a call with `room` for so many bytes. Returns `None` if the call is to be retried, or
    /// readiness awaited.
    fn received(
        &mut self,
        received: Result<usize, Errno>,
        room: usize,
    ) -> io::Result<Option<Received<usize>>> {
        match received {
            // The kernel reports an error once, and then an end. The stored error is reported until the
            // caller drops the socket.
            Ok(0) => self.stream.error().map_or(Ok(Some(Received::End)), Err),
            Ok(bytes) => {
                // A short receive has emptied the socket, unless the peer's end or an urgent byte was
                // reported, too.
                self.readable = bytes == room || self.has_more;
                self.stream.share.receives += 1;
                Ok(Some(Received::Bytes(bytes)))
            }
            Err(Errno::AGAIN) => {
                self.readable = false;
                Ok(None)
            }
            Err(Errno::INTR) => Ok(None),
            Err(error) => {
                self.fail(error);
                Err(self.stream.error().unwrap_or_else(|| error.into()))
            }
        }
    }

    fn can_send(&self) -> bool {
        self.writable && self.stream.has_unsent()
    }

    fn fail(&mut self, error: Errno) {
        self.stream.fail(error);
        self.stream.drop_unsendable();
        self.readable = true;
    }
}

impl Transport for Socket {
    fn poll_recv(&self, cx: &mut Context<'_>, want: Want) -> Poll<io::Result<Option<Lease>>> {
        self.poll_read(cx, |state| self.receive(state, want))
    }

    fn poll_discard(&self, cx: &mut Context<'_>, bytes_max: u64) -> Poll<io::Result<Discarded>> {
        self.poll_read(cx, |state| self.discard(state, bytes_max))
            .map_ok(|bytes| Discarded { bytes: bytes.unwrap_or(0), beyond: None })
    }

    fn takes_piped(&self) -> bool {
        true
    }

    fn pipe(&self) -> Option<Pipe> {
        Pipe::open(self.reactor.pipes_max, new_pipe)
    }

    fn poll_recv_into(&self, cx: &mut Context<'_>, pipe: &Pipe, bytes_max: u64) -> Poll<io::Result<Filled>> {
        let filled = self.poll_read(cx, |state| self.receive_into(state, pipe, bytes_max));
        filled.map_ok(|filled| filled.unwrap_or(Filled::End))
    }

    fn push(&self, segment: Segment) {
        let mut state = self.state.borrow_mut();
        state.stream.push(segment);
        self.queue_if_more(&mut state);
    }

    fn poll_drain(&self, cx: &mut Context<'_>, below: u64) -> Poll<io::Result<()>> {
        let mut state = self.state.borrow_mut();
        if state.stream.unsent() > below {
            // A task that waits for draining pushes nothing more, so there is no gain in waiting for the
            // turn's end.
            self.send(&mut state);
            self.queue_if_more(&mut state);
        }
        state.stream.poll_drain(cx, below)
    }

    fn unsent(&self) -> u64 {
        self.state.borrow().stream.unsent()
    }

    fn lost(&self) -> u64 {
        self.state.borrow().stream.lost()
    }

    fn unacknowledged(&self) -> io::Result<Option<u64>> {
        let state = self.state.borrow();
        Ok(Some(state.stream.unacknowledged(unacknowledged(&self.fd)?)?))
    }

    fn end_probe(&self) -> Option<EndProbe> {
        let probe = end_probe(self.as_fd())?;
        self.state.borrow_mut().is_probed = true;
        Some(probe)
    }

    fn round_trip(&self) -> Option<Duration> {
        round_trip(self.as_fd())
    }

    fn drop_unreadable(&self) -> Option<u64> {
        self.state.borrow_mut().stream.drop_unreadable()
    }

    fn takes_files(&self) -> bool {
        true
    }

    fn into_endpoint(self: Rc<Self>) -> Option<Endpoint> {
        // Its registration would otherwise stay with the descriptor.
        if self.state.borrow().is_watched {
            self.reactor.unwatch(self.as_fd());
        }
        Some(Endpoint::Descriptor(Arc::new(self.into_descriptor()?)))
    }

    fn finish(&self) {
        let mut state = self.state.borrow_mut();
        state.stream.finish();
        self.queue_if_more(&mut state);
    }

    fn peer(&self) -> &Peer {
        &self.peer
    }

    fn local(&self) -> io::Result<Address> {
        local_address(&self.fd)
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Source for Socket {
    fn interest(&self) -> Interest {
        let state = self.state.borrow();
        let is_blocked = state.stream.unsent() > 0 && !state.writable;
        Interest {
            read: state.stream.receiver.is_some() && !state.readable,
            write: state.stream.connecting || is_blocked,
            hang_up: false,
        }
    }

    /// Tries to send, and wakes the tasks that can continue.
    fn on_ready(&self, hint: Hint) {
        let mut state = self.state.borrow_mut();
        state.has_more |= hint.has_more;
        if hint.writable {
            state.writable = true;
            if std::mem::take(&mut state.stream.connecting)
                && let Err(error) = connected(&self.fd)
            {
                state.fail(error);
            }
            self.send(&mut state);
            self.queue_if_more(&mut state);
        }
        if hint.readable || state.stream.has_failed() {
            state.readable = true;
            let receiver = state.stream.receiver.take();
            drop(state);
            if let Some(waker) = receiver {
                waker.wake();
            }
        }
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        let mut state = std::mem::take(self.state.get_mut());
        if state.stream.is_finishing() {
            // The close that follows sends the end: no call for it.
            self.send_share(&mut state);
        }
        if state.is_watched && state.is_probed {
            self.reactor.unwatch(self.as_fd());
        }
        if self.fd.0.is_some() {
            state.stream.prepare_close(&self.fd);
        }
        self.reactor.remove(self.token);
    }
}
