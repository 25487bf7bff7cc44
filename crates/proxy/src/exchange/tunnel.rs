//! A connection that has changed its protocol: bytes both ways, until both sides have ended.
//!
//! It does not know the protocol. Invariants: no more is received from one side than the other takes, beyond
//! a bound. A tunnel without a byte in either direction ends. An error at one side never looks like a clean
//! end at the other.

use std::cell::Cell;
use std::pin::pin;
use std::rc::Rc;
use std::time::Duration;

use plimsoll_io::{Deadline, Either, Elapsed, Instant, Lease, Phase, Rx, Segment, Slot, Tx, pacing, select};

use super::Deadlines;
use super::signals::Signals;
use crate::limits::RELAY_AHEAD_BYTES_MAX;
use crate::proxy::Shared;

/// One side of a tunnel.
pub(super) struct End<'a> {
    pub(super) rx: &'a mut Rx,
    pub(super) tx: &'a mut Tx,
    /// Bytes that were received before the change.
    pub(super) early: Option<Lease>,
}

/// A tunnel between a client and an origin.
pub(super) struct Tunnel<'a> {
    shared: &'a Shared,
    deadlines: Deadlines<'a>,
    signals: &'a Signals,
    slot: Rc<dyn Slot>,
    /// The time of the latest byte in either direction.
    active_at: Cell<Instant>,
}

/// One side has broken, or both are idle.
struct Ended;

impl Tunnel<'_> {
    /// Creates a tunnel of the client with this slot.
    pub(super) fn new<'a>(
        shared: &'a Shared,
        deadlines: Deadlines<'a>,
        signals: &'a Signals,
        slot: Rc<dyn Slot>,
    ) -> Tunnel<'a> {
        Tunnel { shared, deadlines, signals, slot, active_at: Cell::new(shared.io.now()) }
    }

    /// Moves bytes until both sides have ended, or one has broken. Returns whether both have ended.
    pub(super) async fn run(&self, client: End<'_>, origin: End<'_>) -> bool {
        let Deadlines { upload, download } = self.deadlines;
        let there = pin!(self.copy(client.rx, client.early, origin.tx, upload, |_| {}));
        let back = self.copy(origin.rx, origin.early, client.tx, download, |bytes| self.signals.count(bytes));
        let (mut there, mut back) = (there, pin!(back));
        let ended = match select(there.as_mut(), back.as_mut()).await {
            Either::Left(Ok(())) => back.await,
            Either::Right(Ok(())) => there.await,
            Either::Left(Err(ended)) | Either::Right(Err(ended)) => Err(ended),
        };
        ended.is_ok()
    }

    /// Moves bytes from one side to the other, until the end of the one.
    async fn copy(
        &self,
        rx: &mut Rx,
        early: Option<Lease>,
        tx: &mut Tx,
        deadline: &Deadline,
        count: impl Fn(u64),
    ) -> Result<(), Ended> {
        let times = &self.shared.settings.times;
        let mut next = early.map(Segment::Lease);
        loop {
            if let Some(segment) = next {
                self.active_at.set(deadline.now());
                self.slot.enter(Phase::Working, deadline.now());
                count(segment.len());
                tx.push(segment);
                drain(tx, RELAY_AHEAD_BYTES_MAX, deadline, times.between_bytes).await?;
            }
            deadline.set(self.active_at.get() + times.tunnel_idle);
            next = match deadline.within(rx.recv_for(tx, u64::MAX)).await {
                Ok(Ok(Some(segment))) => Some(segment),
                Ok(Ok(None)) => break,
                Ok(Err(_)) => return Err(Ended),
                // The other direction may have been active meanwhile.
                Err(Elapsed) if deadline.now() < self.active_at.get() + times.tunnel_idle => None,
                Err(Elapsed) => return Err(Ended),
            };
        }
        drain(tx, 0, deadline, times.between_bytes).await?;
        tx.finish();
        Ok(())
    }
}

/// Waits until at most `below` bytes are unsent.
async fn drain(tx: &mut Tx, below: u64, deadline: &Deadline, stall_time: Duration) -> Result<(), Ended> {
    match pacing::drain(tx, below, deadline, stall_time, |_, _| {}).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(_)) | Err(Elapsed) => Err(Ended),
    }
}
