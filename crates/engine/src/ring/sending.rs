//! Sending on a connection of the ring: memory by the ring, files by sendfile(2) and pipes by splice(2) as
//! far as the socket has room.
//!
//! It is not a queue (the outbox is). Invariants: at most one send is in progress, and the segment lent to
//! it stays at the outbox's front until it has completed. Files and pipes are sent in bounded shares of a
//! turn.

use std::rc::Rc;

use plimsoll_io::limits::{GATHER_SEGMENTS_MAX, TURN_SEND_BYTES_MAX};
use plimsoll_io::outbox::Front;
use rustix::io::Errno;
use rustix::net::{SendFlags, Shutdown, shutdown};

use super::connection::{Connection, State};
use crate::limits::GATHERED_BYTES_MAX;

impl Connection {
    /// Starts to send pushed segments; returns whether there is more of a file than this turn's share.
    pub(super) fn flush(self: &Rc<Self>) -> bool {
        let mut state = self.state.borrow_mut();
        state.stream.set_queued(false);
        self.send(&mut state);
        let has_more = state.can_send() && !state.is_dropped;
        state.stream.set_queued(has_more);
        has_more
    }

    /// Queues the connection, to be flushed when the task's turn ends.
    pub(super) fn queue(self: &Rc<Self>, state: &mut State) {
        if state.stream.start_queueing(state.can_send()) {
            self.ring.to_flush.push(Rc::clone(self));
        }
    }

    /// Handles a completed send.
    pub(super) fn on_sent(self: &Rc<Self>, result: Result<u32, Errno>) {
        let mut state = self.state.borrow_mut();
        state.sending = None;
        match result {
            Ok(bytes) => state.stream.advance(u64::from(bytes)),
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) if !state.is_dropped => state.sending = Some(self.ring.wait_for_room(self)),
            Err(Errno::AGAIN | Errno::CANCELED) => state.is_stuck = true,
            Err(error) => self.fail(&mut state, error),
        }
        state.drop_unsendable();
        self.send_on(&mut state);
    }

    /// Continues to send after an operation has completed.
    pub(super) fn send_on(self: &Rc<Self>, state: &mut State) {
        self.send(state);
        if !state.is_dropped && state.can_send() && state.stream.start_queueing(true) {
            self.ring.to_flush.push_for_next_turn(Rc::clone(self));
        }
        self.settle(state);
    }

    fn send(self: &Rc<Self>, state: &mut State) {
        let turn = self.ring.to_flush.turn();
        while state.can_send() && state.stream.share.may_send(turn) {
            match state.stream.outbox().front() {
                Some(Front::File(..) | Front::Piped(_)) => self.send_unread(state),
                Some(Front::Bytes) | None => self.send_bytes(state),
            }
        }
        // After a drop, the close that follows sends the end: no call for it. Otherwise the connection may
        // be reset by now; the next receive reports that.
        if state.stream.take_end() && !state.is_dropped {
            let _ = self.with_fd(|fd| shutdown(fd, Shutdown::Write));
        }
        state.stream.wake_after_sending();
    }

    /// Sends a part of the file or of the pipe at the front, or waits for writability.
    fn send_unread(self: &Rc<Self>, state: &mut State) {
        match self.with_fd(|fd| state.stream.send_unread(fd)) {
            Ok(sent) => state.stream.count_sent(sent),
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) if state.is_dropped => state.is_stuck = true,
            Err(Errno::AGAIN) => state.sending = Some(self.ring.wait_for_room(self)),
            Err(error) => self.fail(state, error),
        }
    }

    /// Submits a send of bytes from memory.
    fn send_bytes(self: &Rc<Self>, state: &mut State) {
        let mut slices = [&[][..]; GATHER_SEGMENTS_MAX];
        let outbox = state.stream.outbox();
        let count = outbox.gather(&mut slices);
        let (together, bytes) = short_ones(&slices[..count]);
        let sent_together = together.max(1);
        let mut flags = SendFlags::NOSIGNAL;
        // The head and the file's first bytes share a packet.
        flags.set(SendFlags::MORE, outbox.more_after(sent_together));
        flags.set(SendFlags::DONTWAIT, state.is_dropped);
        let key = if together > 0 {
            let mut gathered = self.ring.gather();
            gathered.reserve(bytes);
            slices[..together].iter().for_each(|slice| gathered.extend_from_slice(slice));
            self.ring.send_gathered(self, gathered, flags)
        } else {
            let share = usize::try_from(TURN_SEND_BYTES_MAX).unwrap_or(usize::MAX);
            let lent = &slices[0][..slices[0].len().min(share)];
            // SAFETY: the bytes belong to a segment in the outbox, which owns them on the heap, or are
            // static. The outbox is part of the connection, which the operation keeps alive. Only `advance`
            // and `clear` remove its front, and neither is called while `sending` is set.
            unsafe { self.ring.send_lent(self, lent, flags) }
        };
        state.sending = Some(key);
    }
}

/// Returns how many of the first slices are short enough to be gathered, and their bytes.
fn short_ones(slices: &[&[u8]]) -> (usize, usize) {
    let (mut count, mut bytes) = (0, 0);
    while count < slices.len() && bytes + slices[count].len() <= GATHERED_BYTES_MAX {
        bytes += slices[count].len();
        count += 1;
    }
    (count, bytes)
}
