//! A rate limit for warnings about a lasting error, so that it is not logged ten times a second.
//!
//! It is not the log, and does not distinguish errors. Invariant: the first warning is logged at once.

use std::time::Instant;

use crate::limits::LOG_REPEAT_PAUSE;

/// The time of the latest warning.
#[derive(Default)]
pub(super) struct LogThrottle(Option<Instant>);

impl LogThrottle {
    /// Returns whether to log a warning now, and records its time if so.
    pub(super) fn may_log(&mut self) -> bool {
        self.may_log_at(Instant::now())
    }

    fn may_log_at(&mut self, now: Instant) -> bool {
        let may_log = self.0.is_none_or(|latest| latest + LOG_REPEAT_PAUSE <= now);
        if may_log {
            self.0 = Some(now);
        }
        may_log
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lasting_error_is_logged_at_once_and_then_once_in_each_pause() {
        let (mut throttle, begin) = (LogThrottle::default(), Instant::now());
        assert!(throttle.may_log_at(begin));
        assert!(!throttle.may_log_at(begin) && !throttle.may_log_at(begin + LOG_REPEAT_PAUSE / 2));
        assert!(throttle.may_log_at(begin + LOG_REPEAT_PAUSE));
        assert!(!throttle.may_log_at(begin + LOG_REPEAT_PAUSE));
    }
}
