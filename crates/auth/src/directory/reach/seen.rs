//! The change counter of a database, as far as this process has read it.
//!
//! Each change that takes a right away increments the counter in the same transaction. Invariants: a
//! change of another process is never taken for our own. The reverse is harmless: it costs one lookup for
//! each cached entry.

use std::sync::atomic::{AtomicI64, Ordering};

/// The latest known value of the counter.
pub(in crate::directory) struct Seen(AtomicI64);

impl Seen {
    /// Begins with the present value of the counter.
    pub(in crate::directory) fn new(count: i64) -> Seen {
        Seen(AtomicI64::new(count))
    }

    /// Notes that a change of our own set the counter to `count`. If another process has changed it in
    /// between, [`Seen::is_news`] will still report that.
    pub(in crate::directory) fn raised_to(&self, count: i64) {
        // If the old value is not `count - 1`, the next poll finds a difference.
        let _ = self.0.compare_exchange(count - 1, count, Ordering::SeqCst, Ordering::SeqCst);
    }

    /// Sets the known value. Returns whether `count` differs from it.
    pub(in crate::directory) fn is_news(&self, count: i64) -> bool {
        self.0.swap(count, Ordering::SeqCst) != count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ones_own_changes_are_no_news_and_everybody_elses_are_once() {
        let seen = Seen::new(5);
        seen.raised_to(6);
        assert!(!seen.is_news(6));
        // 7 is another process's change.
        seen.raised_to(8);
        assert!(seen.is_news(8) && !seen.is_news(8));
        assert!(seen.is_news(3), "what was restored from a copy is another one");
    }
}
