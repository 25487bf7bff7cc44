//! A rate limit for warnings about a lasting error, so that it is not logged ten times a second.
//!
//! It is not the log, and does not distinguish errors. Invariant: the first warning is logged at once.

use std::time::Instant;

use crate::limits::TOLD_ONCE_TIME;

/// The time of the latest warning.
#[derive(Default)]
pub(super) struct Told(Option<Instant>);

impl Told {
    /// Returns whether to log a warning now, and records its time if so.
    pub(super) fn is_new(&mut self) -> bool {
        self.is_new_at(Instant::now())
    }

    fn is_new_at(&mut self, now: Instant) -> bool {
        let is_new = self.0.is_none_or(|told| told + TOLD_ONCE_TIME <= now);
        if is_new {
            self.0 = Some(now);
        }
        is_new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trouble_that_lasts_is_told_of_at_once_and_then_once_in_a_while() {
        let (mut told, begin) = (Told::default(), Instant::now());
        assert!(told.is_new_at(begin));
        assert!(!told.is_new_at(begin) && !told.is_new_at(begin + TOLD_ONCE_TIME / 2));
        assert!(told.is_new_at(begin + TOLD_ONCE_TIME));
        assert!(!told.is_new_at(begin + TOLD_ONCE_TIME));
    }
}
