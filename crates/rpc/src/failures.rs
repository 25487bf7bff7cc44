//! Rate limits on failures: wrong passwords, wrong secrets, sign-ups.
//!
//! Invariants: the memory is bounded. Concurrent attempts cannot exceed a budget once one has failed. A
//! clock that is set back refuses attempts for a bounded time only.

use std::time::Duration;

use plimsoll_io::Io;

use crate::table::{Key, Table};
use crate::time::{self, Millis, millis};

/// A rate limit: `count` attempts at once, then one more per `forgiven_after`. A count of 0 means 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// How many attempts are admitted at once.
    pub count: u32,
    /// The time after which one attempt is forgiven.
    pub forgiven_after: Duration,
}

/// The used part of a budget, stored as the time at which the last failure is forgiven.
#[derive(Clone, Copy, Default)]
pub struct Failures {
    forgiven_at: Millis,
    in_progress: u32,
}

impl Failures {
    /// Returns the failures that are not yet forgiven, rounded up.
    fn count(self, now: Millis, budget: Budget) -> u64 {
        self.left(now, budget).div_ceil(one(budget))
    }

    /// Returns the time until all is forgiven. It is bounded, because the clock may be set back: that
    /// must lock no account out.
    fn left(self, now: Millis, budget: Budget) -> Millis {
        self.forgiven_at.saturating_sub(now).min(one(budget) * u64::from(budget.count.max(1)) * 2)
    }

    /// Counts a failure. Returns the failures that are not yet forgiven.
    pub fn fail(&mut self, now: Millis, budget: Budget) -> u64 {
        self.forgiven_at = now + self.left(now, budget) + one(budget);
        self.count(now, budget)
    }

    /// Admits an attempt, or returns how long none is admitted. Concurrent attempts count as failed once
    /// one has failed.
    pub fn enter(&mut self, now: Millis, budget: Budget) -> Option<Duration> {
        let left = self.left(now, budget);
        let concurrent = if left == 0 { 0 } else { u64::from(self.in_progress) };
        let taken = left.div_ceil(one(budget)) + concurrent;
        let room = one(budget) * u64::from(budget.count).saturating_sub(concurrent + 1);
        let is_full = taken >= u64::from(budget.count.max(1));
        self.in_progress += u32::from(!is_full);
        is_full.then(|| Duration::from_millis(left.saturating_sub(room).max(1)))
    }

    /// Ends an admitted attempt.
    pub fn leave(&mut self) {
        self.in_progress = self.in_progress.saturating_sub(1);
    }
}

/// The cost of one attempt: the time after which it is forgiven.
fn one(budget: Budget) -> Millis {
    millis(budget.forgiven_after).max(1)
}

/// Failures by key, shared by all threads.
pub struct FailureCounts(Table<Failures>);

impl FailureCounts {
    /// Creates empty counts.
    #[must_use]
    pub fn new() -> FailureCounts {
        FailureCounts(Table::new())
    }

    /// Changes the count of a key.
    pub fn change<T>(&self, key: Key, change: impl FnOnce(&mut Failures) -> T) -> T {
        let priority = |failures: &Failures| failures.forgiven_at.saturating_add(failures.in_progress.into());
        self.0.change(key, change, priority)
    }

    /// Counts a failure.
    pub fn fail(&self, io: &Io, key: Key, budget: Budget) {
        let now = time::now(io);
        self.change(key, |failures| failures.fail(now, budget));
    }

    /// Returns how long until a budget admits another attempt; `None` if it does now.
    pub fn retry_after(&self, io: &Io, key: &Key, budget: Budget) -> Option<Duration> {
        let now = time::now(io);
        let left = self.0.get(key, |failures| failures.left(now, budget)).unwrap_or(0);
        let room = one(budget) * u64::from(budget.count.max(1) - 1);
        (left > room).then(|| Duration::from_millis(left - room))
    }
}

impl Default for FailureCounts {
    fn default() -> FailureCounts {
        FailureCounts::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUDGET: Budget = Budget { count: 3, forgiven_after: Duration::from_secs(10) };
    const NOW: Millis = 1_000_000;

    #[test]
    fn each_failure_is_forgiven_in_its_time() {
        let mut failures = Failures::default();
        let counted = [0, 1, 2].map(|_| failures.fail(NOW, BUDGET));
        assert_eq!(counted, [1, 2, 3]);
        let left = [0, 1, 10_000, 10_001, 29_999, 30_000].map(|later| failures.count(NOW + later, BUDGET));
        assert_eq!(left, [3, 3, 2, 2, 1, 0]);
    }

    #[test]
    fn an_attempt_is_admitted_after_the_time_that_its_refusal_names() {
        let mut failures = Failures::default();
        for _ in 0..3 {
            failures.fail(NOW, BUDGET);
        }
        let wait = failures.enter(NOW + 4_000, BUDGET).unwrap();
        assert_eq!(wait, Duration::from_secs(6));
        assert!(failures.enter(NOW + 9_999, BUDGET).is_some());
        assert_eq!(failures.enter(NOW + 10_000, BUDGET), None);
    }

    #[test]
    fn a_clock_that_is_set_back_refuses_for_at_most_twice_the_budget() {
        let mut failures = Failures::default();
        for _ in 0..3 {
            failures.fail(NOW * 1000, BUDGET);
        }
        assert!(failures.enter(NOW, BUDGET).unwrap() <= Duration::from_secs(60));
        failures.fail(NOW, BUDGET);
        assert_eq!(failures.enter(NOW + 70_000, BUDGET), None);
    }
}
