//! The receiving half of a channel's side: the part that is next, and its bytes.
//!
//! It wakes no peer: the end of the turn does. Invariants: a file is taken from the link once, in the order
//! of the frames. A task takes no more than its share of a turn.

use std::io;
use std::task::{Context, Poll};

use plimsoll_io::limits::TURN_RECEIVE_BYTES_MAX;
use plimsoll_io::{FileRange, Lease, Want};

use super::{Channel, Side, State};
use crate::frame::Front;
use crate::meter::Count;
use crate::ring::Corrupt;

impl Channel {
    /// Returns the part that is received next. An error is recorded.
    pub(super) fn front(&self, state: &mut State) -> io::Result<Front> {
        if let Some((kind, why)) = state.broken {
            return Err(io::Error::new(kind, why));
        }
        if let Some(FileRange { range, .. }) = &state.file {
            return Ok(Front::File { offset: range.start, length: range.end - range.start });
        }
        let front =
            state.incoming.front(self.region()).map_err(|Corrupt(why)| (io::ErrorKind::InvalidData, why));
        let front = front.and_then(|front| match front {
            Front::Abort => Err((io::ErrorKind::ConnectionReset, "the peer has aborted the connection")),
            Front::File { .. } if !matches!(self.side, Side::Connector(_)) => {
                Err((io::ErrorKind::InvalidData, "the connecting side has announced a file"))
            }
            Front::File { offset, length } => {
                let taken = self.link.take();
                let file = taken.map_err(|_| (io::ErrorKind::InvalidData, "a passed file is missing"))?;
                state.incoming.take_file();
                self.meter().add(Count::FilesReceived, 1);
                self.meter().add(Count::BytesReceived, length);
                state.file = Some(FileRange { file, range: offset..offset + length });
                Ok(front)
            }
            Front::Empty if state.has_hung_up => {
                Err((io::ErrorKind::ConnectionReset, "the peer's process has closed the connection"))
            }
            front => Ok(front),
        });
        front.map_err(|(kind, why)| {
            self.fail(state, kind, why);
            io::Error::new(kind, why)
        })
    }

    /// Returns whether the task that waits to receive has something to receive. A wake-up may be late, or
    /// only tell of room in the other ring. Then the flag is raised again, and the task is not woken: it
    /// would take the idle connection for one in use.
    pub(super) fn can_receive(&self, state: &mut State) -> bool {
        if state.receiver.is_none() {
            return false;
        }
        match self.front(state) {
            Ok(Front::Empty) => state.incoming.ring().about_to_wait(self.region()) != Ok(0),
            // An error has woken it already.
            _ => true,
        }
    }

    /// Returns the part that is received next; pending if there is none.
    pub(super) fn poll_front(&self, cx: &mut Context<'_>, state: &mut State) -> Poll<io::Result<Front>> {
        if state.received_in_turn >= TURN_RECEIVE_BYTES_MAX {
            // Others have their turn. The end of this one wakes the task.
            state.wait_to_receive(cx);
            self.call_at_turn_end(state);
            return Poll::Pending;
        }
        loop {
            match self.front(state)? {
                Front::Empty => {}
                front => return Poll::Ready(Ok(front)),
            }
            state.wait_to_receive(cx);
            if state.incoming.ring().about_to_wait(self.region()) == Ok(0) {
                return Poll::Pending;
            }
            // Something was published meanwhile, or the next look finds what is wrong.
        }
    }

    /// Receives bytes of the frames at the front.
    pub(super) fn receive_bytes(&self, state: &mut State, want: Want) -> io::Result<Lease> {
        let mut lease = self.pools.lease(want);
        while let Ok(Front::Bytes(_)) = self.front(state) {
            let block = lease.block_mut();
            let room = block.capacity() - block.len();
            if state.incoming.take_bytes(self.region(), block, room) == 0 {
                break;
            }
        }
        self.count_received(state, lease.len());
        Ok(lease)
    }

    /// Receives bytes of the passed file at the front, by reading it.
    pub(super) fn receive_from_file(&self, state: &mut State, want: Want) -> io::Result<Lease> {
        let mut lease = self.pools.lease(want);
        let Some(FileRange { file, range }) = &mut state.file else { return Ok(lease) };
        let block = lease.block_mut();
        let left = usize::try_from(range.end - range.start).unwrap_or(usize::MAX);
        block.resize(block.capacity().min(left), 0);
        let read = self.link.read_passed(file, block, range.start)?;
        block.truncate(read);
        if read == 0 {
            let (kind, why) = (io::ErrorKind::UnexpectedEof, "a passed file is shorter than announced");
            self.fail(state, kind, why);
            return Err(io::Error::new(kind, why));
        }
        range.start += read as u64;
        if range.is_empty() {
            state.file = None;
        }
        self.count_received(state, read);
        Ok(lease)
    }

    /// Counts received bytes in this turn's share. At its end, the peer may be woken: there is room again.
    pub(super) fn count_received(&self, state: &mut State, bytes: usize) {
        state.received_in_turn += bytes;
        self.call_at_turn_end(state);
    }
}
