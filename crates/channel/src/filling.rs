//! Moves the segments of a channel's outbox into its ring: bytes by copying, files by passing or by copying.
//!
//! It waits for nothing, and sends no wake-up. Invariants: bytes leave in the order of their push. A
//! file is copied if it cannot be passed. Frames that the peer has not taken are bounded by the slots.

use std::io;

use plimsoll_io::limits::GATHER_SEGMENTS_MAX;
use plimsoll_io::outbox::Front;
use plimsoll_io::{File, FileRange};

use crate::frame::FILE_FRAME_WORDS;
use crate::limits::COPIED_CHUNK_BYTES;
use crate::meter::Count;
use crate::ring::{Corrupt, WORD_BYTES};
use crate::transport::{Channel, State};
use crate::waiting::{Lack, Wait};

/// An error that ends the channel.
pub(crate) type Failure = (io::ErrorKind, &'static str);

/// The result of an attempt to move the front of the outbox.
enum Moved {
    /// So many bytes were moved.
    Bytes(u64),
    /// The peer has to take something first.
    Nothing(Lack),
    /// The outbox is empty, and the end is sent if it is due.
    All,
}

impl Channel {
    /// Moves what fits into the ring, up to about `bytes_max` bytes. Returns whether more may fit at once. If
    /// not, and something is left, the peer will wake this side when there is room.
    pub(crate) fn fill_ring(&self, state: &mut State, bytes_max: u64) -> Result<bool, Failure> {
        let mut moved = 0;
        while moved < bytes_max {
            let mut now = self.move_front(state)?;
            if matches!(now, Moved::Nothing(_)) {
                state.outgoing.ring().about_to_wait(self.region()).map_err(corrupt)?;
                // With the flag raised, the peer wakes this side, unless it has made room before it could
                // see it.
                now = self.move_front(state)?;
            }
            match now {
                Moved::Bytes(bytes) => moved += bytes,
                Moved::All => {
                    self.end_wait(state);
                    return Ok(false);
                }
                Moved::Nothing(lack) => {
                    self.wait_for(state, lack);
                    return Ok(false);
                }
            }
            self.end_wait(state);
        }
        Ok(true)
    }

    /// Notes that this side waits. A wait for the same that was noted before continues.
    fn wait_for(&self, state: &mut State, lack: Lack) {
        if state.waiting.as_ref().is_none_or(|wait| wait.lack() != lack) {
            self.end_wait(state);
            state.waiting = Some(Wait::new(self.meter(), lack, self.io.now()));
        }
    }

    /// Notes that this side waits no more.
    pub(crate) fn end_wait(&self, state: &mut State) {
        if let Some(wait) = state.waiting.take() {
            wait.end(self.io.now());
        }
    }

    fn move_front(&self, state: &mut State) -> Result<Moved, Failure> {
        let room = state.outgoing.ring().room(self.region()).map_err(corrupt)?;
        state.forget_taken();
        match state.outbox.front() {
            None => Ok(self.move_end(state, room)),
            Some(Front::Bytes) => Ok(self.move_bytes(state, room)),
            Some(Front::File(file, range)) => {
                let part = FileRange { file: file.clone(), range };
                self.move_file(state, room, &part)
            }
            Some(Front::Piped(_)) => Err((io::ErrorKind::Unsupported, "a pipe was pushed into a channel")),
        }
    }

    fn has_slot(&self, state: &State) -> bool {
        state.untaken.len() < self.slots()
    }

    fn move_end(&self, state: &mut State, room: usize) -> Moved {
        if !state.is_finishing || state.has_sent_end {
            return Moved::All;
        }
        if room == 0 {
            return Moved::Nothing(Lack::Room);
        }
        state.outgoing.send_end(self.region());
        state.has_sent_end = true;
        Moved::All
    }

    fn move_bytes(&self, state: &mut State, room: usize) -> Moved {
        if !self.has_slot(state) {
            return Moved::Nothing(Lack::Slot);
        }
        let mut slices = [&[][..]; GATHER_SEGMENTS_MAX];
        let count = state.outbox.gather(&mut slices);
        let bytes = state.outgoing.send_bytes(self.region(), room, &slices[..count]) as u64;
        if bytes == 0 {
            return Moved::Nothing(Lack::Room);
        }
        state.take_slot();
        state.outbox.advance(bytes);
        self.meter().add(Count::BytesCopied, bytes);
        Moved::Bytes(bytes)
    }

    fn move_file(&self, state: &mut State, room: usize, part: &FileRange) -> Result<Moved, Failure> {
        let length = part.range.end - part.range.start;
        if !self.passes(length) {
            return self.copy_file(state, room, part);
        }
        if room < FILE_FRAME_WORDS {
            return Ok(Moved::Nothing(Lack::Room));
        }
        if !self.has_slot(state) {
            return Ok(Moved::Nothing(Lack::Slot));
        }
        if !self.pass(&part.file)? {
            return self.copy_file(state, room, part);
        }
        state.outgoing.send_file(self.region(), part.range.start, length);
        state.take_slot();
        state.outbox.advance(length);
        self.meter().add(Count::FilesPassed, 1);
        self.meter().add(Count::BytesPassed, length);
        Ok(Moved::Bytes(length))
    }

    fn pass(&self, file: &File) -> Result<bool, Failure> {
        // An orderly peer takes descriptors, so that the socket has room.
        self.link.pass(file).map_err(|error| match error.kind() {
            io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset => {
                (io::ErrorKind::BrokenPipe, "the peer's process has closed the connection")
            }
            _ => (io::ErrorKind::InvalidData, "the peer does not take the files that it was passed"),
        })
    }

    fn copy_file(&self, state: &mut State, room: usize, part: &FileRange) -> Result<Moved, Failure> {
        let left = usize::try_from(part.range.end - part.range.start).unwrap_or(usize::MAX);
        let most = left.min(room.saturating_sub(1).saturating_mul(WORD_BYTES)).min(COPIED_CHUNK_BYTES);
        if most == 0 {
            return Ok(Moved::Nothing(Lack::Room));
        }
        if !self.has_slot(state) {
            return Ok(Moved::Nothing(Lack::Slot));
        }
        let mut chunk = self.pools.chunk.borrow_mut();
        chunk.resize(COPIED_CHUNK_BYTES, 0);
        let read = self.io.in_memory(|fs| fs.read_at(&part.file, &mut chunk[..most], part.range.start));
        match read {
            Ok(0) => Err((io::ErrorKind::UnexpectedEof, "the file became shorter while it was sent")),
            Err(error) => Err((error.kind(), "the file cannot be read")),
            Ok(bytes) => {
                let sent = state.outgoing.send_bytes(self.region(), room, &[&chunk[..bytes]]) as u64;
                state.take_slot();
                state.outbox.advance(sent);
                self.meter().add(Count::BytesCopied, sent);
                Ok(Moved::Bytes(sent))
            }
        }
    }
}

impl State {
    /// Gives the frame that was published last a slot.
    fn take_slot(&mut self) {
        let (behind, _) = self.outgoing.ring().positions();
        self.untaken.push_back(behind);
    }

    /// Releases the slots of the frames that the peer has taken: it has read behind them.
    fn forget_taken(&mut self) {
        let (tail, head) = self.outgoing.ring().positions();
        let used = tail.wrapping_sub(head);
        while self.untaken.front().is_some_and(|behind| tail.wrapping_sub(*behind) >= used) {
            self.untaken.pop_front();
        }
    }
}

fn corrupt(Corrupt(why): Corrupt) -> Failure {
    (io::ErrorKind::InvalidData, why)
}
