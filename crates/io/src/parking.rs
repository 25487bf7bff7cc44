//! Parking: between two requests, a conversation gives its connection back to the engine, with the state to
//! resume from.
//!
//! It waits for nothing itself: the engine waits for the client, without a worker. Invariants: a connection
//! is parked with nothing unread in memory and nothing unsent; a conversation that was parked is resumed
//! once, by a handler of the same protocol, on any thread.

use std::any::Any;
use std::cell::Cell;

use crate::stream::Stream;
use crate::time::Instant;

/// A conversation between two requests, without its connection and its thread.
pub struct Parked {
    /// The state that the conversation resumes from. Only handlers of its own protocol can read it.
    pub state: Box<dyn Any + Send>,
    /// The time at which the connection ends, unless the client has sent something.
    pub until: Instant,
}

/// The reason for handing a parked connection to its protocol again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resume {
    /// The client has sent something, or has closed its side.
    Serve,
    /// The client has sent something, and no worker is free: the client gets the protocol's refusal.
    Refuse,
    /// The idle time is over, the server stops, or the slot is needed.
    End,
}

/// The cell in which a conversation leaves its connection and the state to resume from, for the engine.
#[derive(Default)]
pub struct ParkingSpot(Cell<Option<(Parked, Stream)>>);

impl ParkingSpot {
    /// Leaves a conversation and its connection. The engine takes the socket out of the connection, by its
    /// [endpoint](crate::Transport::into_endpoint) if it is not the engine's own.
    pub fn park(&self, parked: Parked, stream: Stream) {
        self.0.set(Some((parked, stream)));
    }

    /// Takes the parked conversation and its connection. Returns `None` if the conversation has ended.
    pub fn take(&self) -> Option<(Parked, Stream)> {
        self.0.take()
    }
}
