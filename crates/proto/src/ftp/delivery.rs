//! The end of a download's audit entry: the moment at which the client's machine has acknowledged the last
//! byte.
//!
//! The kernel buffers megabytes, so that the end of sending is no end of the transfer. This module sends
//! nothing, and delays no reply: the conversation waits for the next command meanwhile. Invariant: an audit
//! entry ends within [`DELIVERY_TIME_MAX`], and before the next command is executed, also if its wait is
//! dropped.

use plimsoll_io::{Instant, Io, Stream};
use plimsoll_operations::AuditEntry;

use super::limits::{DELIVERY_PAUSE_MAX, DELIVERY_PAUSE_MIN, DELIVERY_PAUSES, DELIVERY_TIME_MAX};

/// A download whose last bytes the kernel has taken.
pub(super) struct Delivery {
    io: Io,
    data: Stream,
    audit: Option<AuditEntry>,
    /// The download's start.
    start: Instant,
}

impl Delivery {
    /// Returns the delivery of a download, unless it is complete: then its audit entry has ended.
    pub(super) fn of(io: &Io, data: Stream, audit: AuditEntry, start: Instant) -> Option<Box<Delivery>> {
        let delivery = Delivery { io: io.clone(), data, audit: Some(audit), start };
        delivery.is_pending().then(|| Box::new(delivery))
    }

    fn is_pending(&self) -> bool {
        matches!(self.data.tx.unacknowledged(), Ok(Some(1..)))
    }

    /// Waits until the client's machine has acknowledged all bytes, the connection has broken, or the time is
    /// over. The audit entry ends when this value is dropped.
    pub(super) async fn wait(&self) {
        let until = self.io.now() + DELIVERY_TIME_MAX;
        while self.is_pending() && self.io.now() < until {
            let pause = (self.io.now() - self.start) / DELIVERY_PAUSES;
            self.io.sleep(pause.clamp(DELIVERY_PAUSE_MIN, DELIVERY_PAUSE_MAX)).await;
        }
    }
}

impl Drop for Delivery {
    fn drop(&mut self) {
        let Some(audit) = self.audit.take() else { return };
        match self.data.tx.unacknowledged() {
            Ok(_) => audit.done(),
            Err(_) => audit.failed("broken off"),
        }
    }
}
