//! The change counter of a database, as far as this process has read it.
//!
//! Each change that takes a right away increments the counter in the same transaction. Invariants: a
//! change of another process is never taken for our own. The reverse is harmless: it costs one lookup for
//! each cached entry.

use std::sync::atomic::{AtomicI64, Ordering};

/// The latest known value of the counter.
pub(in crate::directory) struct ChangeCounter(AtomicI64);

impl ChangeCounter {
    /// Begins with the present value of the counter.
    pub(in crate::directory) fn new(count: i64) -> ChangeCounter {
        ChangeCounter(AtomicI64::new(count))
    }

    /// Notes that a change of our own set the counter to `count`. If another process has changed it in
    /// between, [`ChangeCounter::replace_with`] will still report that.
    pub(in crate::directory) fn note_own_change(&self, count: i64) {
        // If the old value is not `count - 1`, the next poll finds a difference.
        let _ = self.0.compare_exchange(count - 1, count, Ordering::SeqCst, Ordering::SeqCst);
    }

    /// Sets the known value. Returns whether `count` differs from it.
    pub(in crate::directory) fn replace_with(&self, count: i64) -> bool {
        self.0.swap(count, Ordering::SeqCst) != count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_changes_are_not_reported_and_those_of_other_processes_are_once() {
        let seen = ChangeCounter::new(5);
        seen.note_own_change(6);
        assert!(!seen.replace_with(6));
        // 7 is another process's change.
        seen.note_own_change(8);
        assert!(seen.replace_with(8) && !seen.replace_with(8));
        assert!(seen.replace_with(3), "what was restored from a copy is another one");
    }
}
