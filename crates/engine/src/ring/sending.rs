//! Sending on a connection of the ring: memory by the ring, files by sendfile(2) as far as the socket has
//! room.
//!
//! It is not a queue (the outbox is). Invariants: at most one send is in progress, and the segment lent to
//! it stays at the outbox's front until it has completed. A file is sent in bounded shares of a turn.

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
        state.queued = false;
        self.send(&mut state);
        state.queued = state.can_send() && !state.is_dropped;
        state.queued
    }

    /// Queues the connection, to be flushed when the task's turn ends.
    pub(super) fn queue(self: &Rc<Self>, state: &mut State) {
        if !state.queued && (state.can_send() || (state.finishing && !state.shut)) {
            state.queued = true;
            self.ring.flush_later(Rc::clone(self));
        }
    }

    /// Handles a completed send.
    pub(super) fn on_sent(self: &Rc<Self>, result: Result<u32, Errno>) {
        let mut state = self.state.borrow_mut();
        state.sending = None;
        match result {
            Ok(bytes) => state.outbox.advance(u64::from(bytes)),
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) if !state.is_dropped => state.sending = Some(self.ring.wait_for_room(self)),
            Err(Errno::AGAIN | Errno::CANCELED) => state.is_stuck = true,
            Err(error) => self.fail(&mut state, error),
        }
        state.forget_unsent();
        self.send_on(&mut state);
    }

    /// Continues to send after an operation has completed.
    pub(super) fn send_on(self: &Rc<Self>, state: &mut State) {
        self.send(state);
        if state.can_send() && !state.queued && !state.is_dropped {
            state.queued = true;
            self.ring.flush_next_turn(Rc::clone(self));
        }
        self.settle(state);
    }

    fn send(self: &Rc<Self>, state: &mut State) {
        let turn = self.ring.turn();
        if state.share.0 != turn {
            state.share = (turn, 0);
        }
        while state.can_send() && state.share.1 < TURN_SEND_BYTES_MAX {
            match state.outbox.front() {
                Some(Front::File(..)) => self.send_file(state),
                // This transport does not declare that it takes pipes.
                Some(Front::Piped(_)) => self.fail(state, Errno::OPNOTSUPP),
                _ => self.send_bytes(state),
            }
        }
        if state.finishing && !state.shut && state.error.is_none() && state.outbox.unsent() == 0 {
            state.shut = true;
            // After a drop, the close that follows sends the end: no call for it. Otherwise the connection
            // may be reset by now; the next receive reports that.
            if !state.is_dropped {
                let _ = self.with_fd(|fd| shutdown(fd, Shutdown::Write));
            }
        }
        state.wake_drainer();
    }

    /// Sends a part of the file at the front, or waits for writability.
    fn send_file(self: &Rc<Self>, state: &mut State) {
        let Some(Front::File(file, range)) = state.outbox.front() else { return };
        // The full bound, even if other bytes were sent before in this turn: a part of a file goes in one
        // call.
        let (offset, count) = (range.start, TURN_SEND_BYTES_MAX.min(range.end - range.start));
        let source = file.descriptor().ok_or(Errno::BADF);
        let files = &mut state.files;
        let sent = source.and_then(|source| self.with_fd(|fd| files.send(fd, source, offset, count)));
        match sent {
            Ok(0) => {
                // The file is shorter than when its length was determined.
                state.truncated = true;
                self.fail(state, Errno::IO);
            }
            Ok(sent) => {
                state.share.1 += sent;
                state.outbox.advance(sent);
            }
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) if state.is_dropped => state.is_stuck = true,
            Err(Errno::AGAIN) => state.sending = Some(self.ring.wait_for_room(self)),
            Err(error) => self.fail(state, error),
        }
    }

    /// Submits a send of bytes from memory.
    fn send_bytes(self: &Rc<Self>, state: &mut State) {
        let mut slices = [&[][..]; GATHER_SEGMENTS_MAX];
        let count = state.outbox.gather(&mut slices);
        let (together, bytes) = short_ones(&slices[..count]);
        let sent_together = together.max(1);
        let mut flags = SendFlags::NOSIGNAL;
        // The head and the file's first bytes share a packet.
        flags.set(SendFlags::MORE, state.outbox.more_after(sent_together));
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

impl State {
    fn can_send(&self) -> bool {
        let is_free = self.sending.is_none() && !self.connecting && !self.is_stuck;
        is_free && self.error.is_none() && self.outbox.unsent() > 0
    }
}
