//! The count of changes that a database keeps, as far as this process has seen it.
//!
//! Each change that takes something from somebody raises the count in the same transaction. What must hold: a
//! change of somebody else's is never taken for our own; the reverse costs a question for each thing
//! remembered, and no more.

use std::sync::atomic::{AtomicI64, Ordering};

/// The latest count that we know of.
pub(in crate::directory) struct Seen(AtomicI64);

impl Seen {
    /// From the count as it is now.
    pub(in crate::directory) fn new(count: i64) -> Seen {
        Seen(AtomicI64::new(count))
    }

    /// A change of our own raised the count to `count`. If anybody else's came before it, that is still to
    /// be seen.
    pub(in crate::directory) fn raised_to(&self, count: i64) {
        // A count that does not follow is found to be another one at the next look.
        let _ = self.0.compare_exchange(count - 1, count, Ordering::SeqCst, Ordering::SeqCst);
    }

    /// Whether `count` is not what was known.
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
        // 7 is somebody else's.
        seen.raised_to(8);
        assert!(seen.is_news(8) && !seen.is_news(8));
        assert!(seen.is_news(3), "what was restored from a copy is another one");
    }
}
