//! The state of a stream socket that does not depend on how its engine waits: the send queue, the half-close,
//! the first error, and the waiting tasks.
//!
//! It has no descriptor and never waits. Invariants: after the first error nothing is sent, and every later
//! call returns that error. The end is sent once, behind the last pushed byte.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use plimsoll_io::Segment;
use plimsoll_io::limits::{TURN_RECEIVE_BYTES_MAX, TURN_RECEIVES_MAX, TURN_SEND_BYTES_MAX};
use plimsoll_io::outbox::{Front, Outbox};
use rustix::io::Errno;
use rustix::net::sockopt::set_socket_linger;

use crate::sendfile::FileSender;
use crate::splice;

/// The state of one stream socket.
#[derive(Default)]
pub(crate) struct StreamState {
    outbox: Outbox,
    files: FileSender,
    pub(crate) share: TurnShare,
    /// Whether the connection is not established yet.
    pub(crate) connecting: bool,
    finishing: bool,
    is_shut: bool,
    is_queued: bool,
    error: Option<Errno>,
    is_truncated: bool,
    /// Whether the error is that of a file, and the connection is intact.
    is_of_file: bool,
    /// The task that waits to receive.
    pub(crate) receiver: Option<Waker>,
    /// The task that waits until at most so many bytes are unsent.
    pub(crate) drainer: Option<(u64, Waker)>,
}

/// The receives and sends of a connection in the present turn, which bound its share of the loop.
#[derive(Default)]
pub(crate) struct TurnShare {
    turn: u64,
    pub(crate) receives: u32,
    pub(crate) received_bytes: usize,
    sent_bytes: u64,
}

impl TurnShare {
    fn renew(&mut self, turn: u64) {
        if self.turn != turn {
            *self = TurnShare { turn, ..TurnShare::default() };
        }
    }

    pub(crate) fn may_receive(&mut self, turn: u64) -> bool {
        self.renew(turn);
        self.receives < TURN_RECEIVES_MAX && self.received_bytes < TURN_RECEIVE_BYTES_MAX
    }

    pub(crate) fn may_send(&mut self, turn: u64) -> bool {
        self.renew(turn);
        self.sent_bytes < TURN_SEND_BYTES_MAX
    }
}

impl StreamState {
    /// Creates the state of a socket that is connecting.
    pub(crate) fn connecting() -> StreamState {
        StreamState { connecting: true, ..StreamState::default() }
    }

    pub(crate) fn outbox(&self) -> &Outbox {
        &self.outbox
    }

    /// See [`plimsoll_io::Transport::push`].
    pub(crate) fn push(&mut self, segment: Segment) {
        debug_assert!(!self.finishing, "pushed after finish");
        if self.error.is_none() {
            self.outbox.push(segment);
        } else {
            self.outbox.lose(&segment);
        }
    }

    /// See [`plimsoll_io::Transport::finish`].
    pub(crate) fn finish(&mut self) {
        self.finishing = true;
    }

    /// See [`plimsoll_io::Transport::unsent`].
    pub(crate) fn unsent(&self) -> u64 {
        if self.error.is_none() { self.outbox.unsent() } else { 0 }
    }

    /// Returns the number of bytes that the peer has not acknowledged, of which the kernel has `in_kernel`,
    /// the end counted as one.
    ///
    /// # Errors
    /// The error that broke the connection.
    pub(crate) fn unacknowledged(&self, in_kernel: u64) -> io::Result<u64> {
        let in_kernel = in_kernel.saturating_sub(u64::from(self.is_finishing()));
        match self.error() {
            Some(error) => Err(error),
            None => Ok(self.unsent() + in_kernel),
        }
    }

    /// See [`plimsoll_io::Transport::lost`].
    pub(crate) fn lost(&self) -> u64 {
        // The outbox of a broken connection may still lend segments to the kernel: they are lost, too.
        self.outbox.lost() + self.outbox.unsent() - self.unsent()
    }

    /// See [`plimsoll_io::Transport::poll_drain`].
    pub(crate) fn poll_drain(&mut self, cx: &Context<'_>, below: u64) -> Poll<io::Result<()>> {
        if let Some(error) = self.error() {
            return Poll::Ready(Err(error));
        }
        if self.is_drained(below) {
            return Poll::Ready(Ok(()));
        }
        self.drainer = Some((below, cx.waker().clone()));
        Poll::Pending
    }

    fn is_drained(&self, below: u64) -> bool {
        !self.connecting && self.outbox.unsent() <= below
    }

    /// Whether there is something to send on an established connection.
    pub(crate) fn has_unsent(&self) -> bool {
        !self.connecting && self.unsent() > 0
    }

    /// Returns whether the socket has to be queued for a flush: it has something to send (`can_send`) or an
    /// end to send, and is not queued yet.
    pub(crate) fn start_queueing(&mut self, can_send: bool) -> bool {
        let is_due = can_send || (self.finishing && !self.is_shut);
        is_due && !std::mem::replace(&mut self.is_queued, true)
    }

    /// Records whether the socket is queued for a flush.
    pub(crate) fn set_queued(&mut self, is_queued: bool) {
        self.is_queued = is_queued;
    }

    /// Sends a part of the file or of the pipe at the front by one call, and returns how many bytes.
    pub(crate) fn send_unread(&mut self, to: BorrowedFd<'_>) -> Result<u64, Errno> {
        let (file, range) = match self.outbox.front() {
            Some(Front::File(file, range)) => (file, range),
            Some(Front::Piped(pipe)) => return splice::empty(pipe, to, self.outbox.more_after(1)),
            Some(Front::Bytes) | None => return Ok(0),
        };
        let source = file.descriptor().ok_or(Errno::BADF)?;
        // The full bound, even if other bytes were sent before in this turn. A part of a file then goes in
        // one call, without a second one for as many bytes as the head had.
        let count = TURN_SEND_BYTES_MAX.min(range.end - range.start);
        let sent = self.files.send(to, source, range.start, count);
        // Nothing is sent if the file is shorter than when its length was determined.
        self.is_truncated = sent == Ok(0);
        self.is_of_file = self.is_truncated || sent.is_err_and(is_of_file);
        if self.is_truncated { Err(Errno::IO) } else { sent }
    }

    /// See [`plimsoll_io::Transport::drop_unreadable`].
    pub(crate) fn drop_unreadable(&mut self) -> Option<u64> {
        if self.finishing || !std::mem::take(&mut self.is_of_file) {
            return None;
        }
        (self.error, self.is_truncated) = (None, false);
        Some(self.outbox.take_lost())
    }

    /// Records that `bytes` of the outbox were sent, and counts them in this turn's share.
    pub(crate) fn count_sent(&mut self, bytes: u64) {
        self.share.sent_bytes += bytes;
        self.advance(bytes);
    }

    /// Records that `bytes` of the outbox were sent.
    pub(crate) fn advance(&mut self, bytes: u64) {
        self.outbox.advance(bytes);
    }

    /// Records the error that broke the connection.
    pub(crate) fn fail(&mut self, error: Errno) {
        self.error.get_or_insert(error);
    }

    /// Drops what a broken connection will not send. Call it only while no segment is lent to the kernel.
    pub(crate) fn drop_unsendable(&mut self) {
        if self.error.is_some() {
            self.outbox.clear();
        }
    }

    pub(crate) fn has_failed(&self) -> bool {
        self.error.is_some()
    }

    /// Returns the error that broke the connection.
    pub(crate) fn error(&self) -> Option<io::Error> {
        let error = self.error?;
        let truncated = "the file became shorter while it was sent";
        Some(if self.is_truncated {
            io::Error::new(io::ErrorKind::UnexpectedEof, truncated)
        } else {
            error.into()
        })
    }

    /// Returns the error if a file was too short: received bytes are not returned any more.
    pub(crate) fn truncation(&self) -> Option<io::Error> {
        if self.is_truncated { self.error() } else { None }
    }

    /// Returns true once, when everything is sent and the sending side is to be shut down.
    pub(crate) fn take_end(&mut self) -> bool {
        let is_due = self.finishing && self.error.is_none() && self.outbox.unsent() == 0;
        is_due && !std::mem::replace(&mut self.is_shut, true)
    }

    /// Prepares the close of `fd`. A close sends a clean end, which claims that everything was sent: a
    /// connection that was not finished is reset instead, by a linger time of zero.
    pub(crate) fn prepare_close(&self, fd: impl AsFd) {
        let is_delivered = self.finishing && self.error.is_none() && self.outbox.unsent() == 0;
        if !is_delivered {
            let _ = set_socket_linger(fd, Some(Duration::ZERO));
        }
    }

    pub(crate) fn is_finishing(&self) -> bool {
        self.finishing
    }

    /// Registers the task that waits to receive.
    pub(crate) fn wait_to_receive(&mut self, cx: &Context<'_>) {
        match &mut self.receiver {
            Some(waker) => waker.clone_from(cx.waker()),
            none => *none = Some(cx.waker().clone()),
        }
    }

    pub(crate) fn wake_receiver(&mut self) {
        if let Some(waker) = self.receiver.take() {
            waker.wake();
        }
    }

    /// Wakes the task that waits to drain, if it can continue, and after an error the one that waits to
    /// receive.
    pub(crate) fn wake_after_sending(&mut self) {
        let has_failed = self.error.is_some();
        if self.drainer.as_ref().is_some_and(|(below, _)| has_failed || self.is_drained(*below))
            && let Some((_, waker)) = self.drainer.take()
        {
            waker.wake();
        }
        if has_failed {
            self.wake_receiver();
        }
    }
}

/// Whether an error of sendfile(2) is that of the file and its disk. A socket has none of these.
fn is_of_file(error: Errno) -> bool {
    const OF_FILE: [Errno; 7] =
        [Errno::IO, Errno::STALE, Errno::UCLEAN, Errno::BADMSG, Errno::NODATA, Errno::REMOTEIO, Errno::NXIO];
    OF_FILE.contains(&error)
}
