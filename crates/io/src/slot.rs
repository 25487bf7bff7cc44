//! The slot of a connection, as its conversation uses it. The conversation reports its phase, from which
//! the engine chooses a connection to close when slots run short.
//!
//! It closes nothing itself. Invariant: reporting is an atomic store at most, because it happens for
//! each request.

use std::cell::Cell;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;

use crate::time::Instant;
use crate::transport::Peer;

/// The phase of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The server waits for bytes of the client, to begin or to complete a request.
    Waiting,
    /// The server works on a request or sends a response, and has made progress just now.
    Working,
    /// A request has completed, and the connection is kept for another one.
    Idle,
    /// All is sent, and the server waits for the client to close its side.
    Ending,
}

/// The reports of a conversation about its connection. Each method is called on the connection's own
/// thread.
pub trait Slot {
    /// Reports what the connection does from `now` on.
    fn enter(&self, phase: Phase, now: Instant);

    /// Reports that the client has shown valid credentials. It holds until the connection ends.
    fn authenticate(&self);

    /// Whether the client has shown valid credentials.
    fn is_authenticated(&self) -> bool;

    /// Counts the connection for the address of `client`, which a trusted proxy has named, instead of the
    /// address before; for `None`, it counts for no address. Credentials that were shown for an earlier
    /// client count no more. Returns false if the address has its share of the slots: the conversation must
    /// refuse the client, and the connection counts for no address.
    fn count_for(&self, client: Option<&Peer>) -> bool;

    /// Reports whether a connection to another server, of which there are few, waits for this client.
    fn keep_upstream(&self, waits: bool);

    /// Has the engine evict a client that keeps such a connection waiting, because this conversation waits
    /// for one: a client without progress for long, or else one of the address with the most connections,
    /// if these are more than the mean.
    fn relieve_upstream(&self);

    /// Whether the engine needs the slot for another connection. The conversation is polled once after that,
    /// and then dropped: it can push a last message and [finish](crate::Tx::finish) in that poll.
    fn is_evicted(&self) -> bool;
}

/// Waits until the engine needs `slot` for another connection: see [`Slot::is_evicted`].
pub async fn evicted(slot: &dyn Slot) {
    // No waker is stored: an eviction wakes the task itself.
    poll_fn(|_| if slot.is_evicted() { Poll::Ready(()) } else { Poll::Pending }).await;
}

/// Waits for a client while a connection to another server waits, too, and reports that: see
/// [`Slot::keep_upstream`]. Dropping the future ends the report.
pub async fn keeping_upstream<T>(slot: &dyn Slot, wait: impl Future<Output = T>) -> T {
    struct UpstreamReport<'a>(&'a dyn Slot);
    impl Drop for UpstreamReport<'_> {
        fn drop(&mut self) {
            self.0.keep_upstream(false);
        }
    }
    slot.keep_upstream(true);
    let _report = UpstreamReport(slot);
    wait.await
}

/// The slot of a connection that no engine counts: every connection that this side opened, and every
/// connection of the simulator.
#[derive(Default)]
pub(crate) struct UncountedSlot {
    is_authenticated: Cell<bool>,
}

impl UncountedSlot {
    pub(crate) fn shared() -> Rc<dyn Slot> {
        Rc::new(UncountedSlot::default())
    }
}

impl Slot for UncountedSlot {
    fn enter(&self, _: Phase, _: Instant) {}

    fn authenticate(&self) {
        self.is_authenticated.set(true);
    }

    fn is_authenticated(&self) -> bool {
        self.is_authenticated.get()
    }

    fn count_for(&self, _: Option<&Peer>) -> bool {
        self.is_authenticated.set(false);
        true
    }

    fn keep_upstream(&self, _: bool) {}

    fn relieve_upstream(&self) {}

    fn is_evicted(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;
    use std::pin::pin;
    use std::task::{Context, Waker};

    use super::*;

    /// Notes whether an upstream connection is kept.
    #[derive(Default)]
    struct Noting(Cell<bool>);

    impl Slot for Noting {
        fn enter(&self, _: Phase, _: Instant) {}

        fn authenticate(&self) {}

        fn is_authenticated(&self) -> bool {
            false
        }

        fn count_for(&self, _: Option<&Peer>) -> bool {
            true
        }

        fn keep_upstream(&self, waits: bool) {
            self.0.set(waits);
        }

        fn relieve_upstream(&self) {}

        fn is_evicted(&self) -> bool {
            false
        }
    }

    #[test]
    fn a_dropped_wait_keeps_no_upstream_connection() {
        let slot = Noting::default();
        {
            let waiting = pin!(keeping_upstream(&slot, pending::<()>()));
            assert!(waiting.poll(&mut Context::from_waker(Waker::noop())).is_pending());
            assert!(slot.0.get());
        }
        assert!(!slot.0.get());
    }
}
