//! One end of a connection, as the transport that protocols use.
//!
//! It has no state of its own: all state is in the connection. Invariants: dropping it closes the end,
//! and a future over it may be dropped at any time.

use std::io;
use std::rc::Rc;
use std::task::{Context, Poll};

use super::connection::{Connection, Side, State};
use super::link::SimLink;
use super::pipe::End;
use super::trace::Happened;
use crate::address::Address;
use crate::carrier::Endpoint;
use crate::lease::Lease;
use crate::segment::Segment;
use crate::stream::Stream;
use crate::transport::{Peer, Transport, Want};

pub(super) struct Socket {
    connection: Rc<Connection>,
    side: Side,
    peer: Peer,
    local: Address,
    takes_files: bool,
}

/// The result of a check for input.
enum Found {
    Bytes(usize),
    End,
    Error(io::ErrorKind),
    Nothing,
}

impl Socket {
    pub(super) fn stream(connection: Rc<Connection>, side: Side, peer: Peer, local: Address) -> Stream {
        let world = &connection.world;
        world.network.opened();
        let takes_files = world.chance(world.faults.takes_files);
        Stream::new(Rc::new(Socket { connection, side, peer, local, takes_files }))
    }

    pub(super) fn connection(&self) -> &Rc<Connection> {
        &self.connection
    }

    pub(super) fn side(&self) -> Side {
        self.side
    }

    fn find(&self) -> Found {
        self.connection.with(|state| {
            let half = state.half(self.side);
            let broken = half.broken.or(half.send_error.filter(|_| half.is_of_file));
            let incoming = state.incoming(self.side);
            match (incoming.arrived(), incoming.end, broken) {
                (0, End::Arrived, _) => Found::End,
                (0, _, Some(kind)) => Found::Error(kind),
                (0, _, None) => Found::Nothing,
                (count, _, _) => Found::Bytes(count),
            }
        })
    }

    fn receive(&self, count: usize, want: Want) -> Lease {
        let mut lease = self.connection.machine(self.side).pool(want).lease();
        let count = self.connection.world.portion(count.min(lease.capacity()));
        self.connection.with(|state| state.incoming(self.side).receive(count, lease.block_mut()));
        self.connection.log(self.side, Happened::Received, count);
        self.connection.plan_taking(self.side.other());
        lease
    }

    fn end_received(&self) {
        let before =
            self.connection.with(|state| std::mem::replace(&mut state.half(self.side).end_received, true));
        if !before {
            self.connection.log(self.side, Happened::ToldEnd, 0);
        }
    }

    fn wait(&self, cx: &Context<'_>) {
        let waker = cx.waker().clone();
        self.connection.with(|state| state.incoming(self.side).receiver = Some(waker));
    }

    fn error(&self, kind: io::ErrorKind) -> io::Error {
        self.connection.log(self.side, Happened::ToldError, 0);
        kind.into()
    }
}

/// Whether draining down to `below` is over, and with which error.
fn drained(state: &mut State, side: Side, below: u64) -> Option<Option<io::ErrorKind>> {
    let connected = state.connected;
    let half = state.half(side);
    if half.send_error.is_some() {
        return Some(half.send_error);
    }
    (connected && half.sends.outbox.unsent() <= below).then_some(None)
}

impl Transport for Socket {
    fn poll_recv(&self, cx: &mut Context<'_>, want: Want) -> Poll<io::Result<Option<Lease>>> {
        match self.find() {
            Found::Bytes(_) if self.connection.world.chance(self.connection.world.faults.hold_back) => {
                self.connection.log(self.side, Happened::HeldBack, 0);
                cx.waker().wake_by_ref();
                Poll::Pending
            }
            Found::Bytes(count) => Poll::Ready(Ok(Some(self.receive(count, want)))),
            Found::End => {
                self.end_received();
                Poll::Ready(Ok(None))
            }
            Found::Error(kind) => Poll::Ready(Err(self.error(kind))),
            Found::Nothing => {
                self.wait(cx);
                Poll::Pending
            }
        }
    }

    /// If a file is pushed into a stream that takes none, or any pipe: the protocol did not check first,
    /// and an engine without that capability could not send it.
    #[allow(clippy::panic, reason = "a simulation fails loudly where a protocol breaks the contract")]
    fn push(&self, segment: Segment) {
        if matches!(segment, Segment::File(_)) && !self.takes_files {
            panic!("a file was pushed into a stream that takes no files");
        }
        if matches!(segment, Segment::Piped(_)) {
            panic!("a pipe was pushed into a stream that takes none");
        }
        let bytes = usize::try_from(segment.len()).unwrap_or(usize::MAX);
        self.connection.log(self.side, Happened::Pushed, bytes);
        self.connection.with(|state| {
            let half = state.half(self.side);
            if half.sends.finished {
                half.send_error.get_or_insert(io::ErrorKind::BrokenPipe);
            }
            if half.send_error.is_none() {
                half.sends.outbox.push(segment);
            } else {
                half.sends.outbox.lose(&segment);
            }
        });
        self.connection.plan_taking(self.side);
    }

    fn poll_drain(&self, cx: &mut Context<'_>, below: u64) -> Poll<io::Result<()>> {
        let waker = cx.waker();
        let drained = self.connection.with(|state| {
            let drained = drained(state, self.side, below);
            if drained.is_none() {
                state.half(self.side).sends.drainer = Some((below, waker.clone()));
            }
            drained
        });
        match drained {
            None => Poll::Pending,
            Some(None) => Poll::Ready(Ok(())),
            Some(Some(kind)) => Poll::Ready(Err(self.error(kind))),
        }
    }

    fn unsent(&self) -> u64 {
        self.connection.with(|state| state.half(self.side).sends.outbox.unsent())
    }

    fn lost(&self) -> u64 {
        self.connection.with(|state| state.half(self.side).sends.outbox.lost())
    }

    fn unacknowledged(&self) -> io::Result<Option<u64>> {
        let (left, has_failed) = self.connection.with(|state| {
            let half = state.half(self.side);
            (half.sends.not_arrived(), half.send_error.is_some())
        });
        match left {
            Some(left) if !has_failed => Ok(Some(left)),
            _ => Err(self.error(io::ErrorKind::ConnectionReset)),
        }
    }

    fn drop_unreadable(&self) -> Option<u64> {
        self.connection.drop_unreadable(self.side)
    }

    fn takes_files(&self) -> bool {
        self.takes_files
    }

    fn into_endpoint(self: Rc<Self>) -> Option<Endpoint> {
        Some(Endpoint::Simulated(Box::new(SimLink::new(self))))
    }

    fn finish(&self) {
        if !self.connection.with(|state| state.half(self.side).sends.finished) {
            self.connection.log(self.side, Happened::Finished, 0);
            self.connection.finish(self.side);
        }
    }

    fn peer(&self) -> &Peer {
        &self.peer
    }

    fn local(&self) -> io::Result<Address> {
        Ok(self.local.clone())
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        self.connection.close(self.side);
        self.connection.world.network.closed();
    }
}
