//! The change feed: the latest changes in order, for remote fronts.
//!
//! It does not know the fronts. Invariants: a reader that asks from a number on gets every later change,
//! or a notice to invalidate everything. The size is bounded.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use crate::changes::Topic;
use crate::limits::JOURNAL_CHANGES_MAX;

/// Changes by number, beginning with 1.
pub(crate) struct Journal(Mutex<Pages>);

struct Pages {
    /// The number of the latest change.
    last: u64,
    latest: VecDeque<Topic>,
    waiting: Vec<Waker>,
}

impl Journal {
    pub(crate) fn new() -> Journal {
        Journal(Mutex::new(Pages { last: 0, latest: VecDeque::new(), waiting: Vec::new() }))
    }

    /// Returns the number of the latest change.
    pub(crate) fn last(&self) -> u64 {
        self.pages().last
    }

    pub(crate) fn add(&self, topic: Topic) {
        let mut pages = self.pages();
        pages.last += 1;
        pages.latest.push_back(topic);
        if pages.latest.len() > JOURNAL_CHANGES_MAX {
            pages.latest.pop_front();
        }
        let waiting = std::mem::take(&mut pages.waiting);
        drop(pages);
        waiting.into_iter().for_each(Waker::wake);
    }

    /// Returns the number of the latest change, and the changes after `number`. If those are no longer
    /// stored, or the number is unknown, it is one change of everything.
    pub(crate) fn since(&self, number: Option<u64>) -> (u64, Vec<Topic>) {
        let pages = self.pages();
        let missed = number.and_then(|number| pages.last.checked_sub(number));
        let missed = missed.and_then(|missed| usize::try_from(missed).ok());
        let topics = match missed.and_then(|missed| pages.latest.len().checked_sub(missed)) {
            Some(known) => pages.latest.iter().skip(known).copied().collect(),
            None => vec![Topic::Everything],
        };
        (pages.last, topics)
    }

    /// Completes when there is a change after `number`.
    pub(crate) fn poll_since(&self, cx: &Context<'_>, number: u64) -> Poll<()> {
        let mut pages = self.pages();
        if pages.last > number {
            return Poll::Ready(());
        }
        if !pages.waiting.iter().any(|waker| waker.will_wake(cx.waker())) {
            pages.waiting.push(cx.waker().clone());
        }
        Poll::Pending
    }

    fn pages(&self) -> MutexGuard<'_, Pages> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_noted_after_a_number_is_told_in_order() {
        let journal = Journal::new();
        (1..=3).for_each(|id| journal.add(Topic::Account(id)));
        assert_eq!(journal.since(Some(1)), (3, vec![Topic::Account(2), Topic::Account(3)]));
        assert_eq!(journal.since(Some(3)), (3, vec![]));
    }

    #[test]
    fn who_knows_no_number_or_one_that_never_was_has_missed_everything() {
        let journal = Journal::new();
        journal.add(Topic::Account(1));
        assert_eq!(journal.since(None), (1, vec![Topic::Everything]));
        assert_eq!(journal.since(Some(2)), (1, vec![Topic::Everything]));
    }

    #[test]
    fn who_has_missed_more_than_is_kept_has_missed_everything() {
        let journal = Journal::new();
        (0..=JOURNAL_CHANGES_MAX as i64).for_each(|id| journal.add(Topic::Account(id)));
        assert_eq!(journal.since(Some(0)).1, vec![Topic::Everything]);
        assert_eq!(journal.since(Some(1)).1.len(), JOURNAL_CHANGES_MAX);
    }
}
