//! How many bytes of plaintext the bytes of a transport stand for.
//!
//! Callers count plaintext: for records of transfers, and for the progress of a slow peer. The transport
//! below counts the encrypted bytes. Invariants: a byte counts as sent at most once; all do when all are
//! sent. Within one push, plaintext counts as sent in proportion.

use std::collections::VecDeque;

/// The latest pushes, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    pushes: VecDeque<Push>,
    /// The sums over `pushes`.
    total: Push,
}

/// Bytes that were pushed at once.
#[derive(Clone, Copy, Debug, Default)]
struct Push {
    plain: u64,
    sealed: u64,
}

impl Ledger {
    /// Notes a push. `plain` is 0 for what TLS itself sends.
    pub(crate) fn push(&mut self, plain: u64, sealed: u64) {
        if sealed == 0 {
            return;
        }
        self.pushes.push_back(Push { plain, sealed });
        self.total.plain += plain;
        self.total.sealed += sealed;
    }

    /// Returns the bytes of plaintext of which something is among the last `pending` encrypted bytes, and
    /// forgets all pushes before those.
    pub(crate) fn pending(&mut self, pending: u64) -> u64 {
        while let Some(first) = self.pushes.front()
            && self.total.sealed - first.sealed >= pending
        {
            self.total.plain -= first.plain;
            self.total.sealed -= first.sealed;
            self.pushes.pop_front();
        }
        let Some(first) = self.pushes.front() else { return 0 };
        let sent = self.total.sealed.saturating_sub(pending);
        let sent_plain = u128::from(first.plain) * u128::from(sent) / u128::from(first.sealed);
        self.total.plain - u64::try_from(sent_plain).unwrap_or(first.plain)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn plaintext_is_pending_in_proportion_within_a_push_and_whole_pushes_are_forgotten() {
        let mut ledger = Ledger::default();
        ledger.push(100, 120);
        ledger.push(0, 30);
        ledger.push(1000, 1020);
        assert_eq!(ledger.pending(1170), 1100);
        assert_eq!(ledger.pending(1110), 1050);
        assert_eq!(ledger.pending(1040), 1000, "the rest is of TLS itself");
        assert_eq!(ledger.pending(510), 500);
        assert_eq!(ledger.pending(0), 0);
        assert_eq!(ledger.pushes.len(), 0);
        ledger.push(7, 36);
        assert_eq!(ledger.pending(36), 7);
    }

    proptest! {
        #[test]
        fn pending_plaintext_only_falls_while_bytes_are_sent(
            pushes in prop::collection::vec((0..5000_u64, 1..6000_u64), 1..20),
            steps in prop::collection::vec(0..4000_u64, 1..40),
        ) {
            let mut ledger = Ledger::default();
            let (mut pending, mut plain) = (0, 0);
            for (bytes, sealed) in pushes {
                ledger.push(bytes, sealed);
                pending += sealed;
                plain += bytes;
            }
            let mut before = ledger.pending(pending);
            prop_assert_eq!(before, plain);
            for step in steps {
                pending = pending.saturating_sub(step);
                let now = ledger.pending(pending);
                prop_assert!(now <= before);
                prop_assert_eq!(pending == 0 && now > 0, false);
                before = now;
            }
        }
    }
}
