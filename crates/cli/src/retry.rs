//! The retry policy: when to try again, and when to give up.
//!
//! It does not know the operation. Invariants: a server that has never answered is not retried. Attempts
//! without progress are bounded, and each waits longer than the one before.

use crate::api_client::ApiClient;
use crate::failure::Failure;
use crate::limits::{TRIES_MAX, WAIT_TIME_MAX, WAIT_TIME_MIN};

/// The number of consecutive attempts without progress.
#[derive(Default)]
pub(crate) struct RetryPolicy {
    tries: u32,
}

impl RetryPolicy {
    /// Resets the count, after progress.
    pub(crate) fn reset(&mut self) {
        self.tries = 0;
    }

    /// Counts an attempt without progress that can be repeated at once.
    pub(crate) fn count_attempt(&mut self, failure: Failure) -> Result<(), Failure> {
        self.tries += 1;
        if self.tries > TRIES_MAX { Err(failure) } else { Ok(()) }
    }

    /// Waits after a temporary failure, with exponential backoff. Returns any other failure.
    pub(crate) async fn wait_before_retry(
        &mut self,
        server: &ApiClient,
        failure: Failure,
    ) -> Result<(), Failure> {
        if !failure.is_temporary() || !server.has_answered || self.tries >= TRIES_MAX {
            return Err(failure);
        }
        let asked = match &failure {
            Failure::Refused(refusal) => refusal.retry_after.unwrap_or_default(),
            _ => std::time::Duration::ZERO,
        };
        let own = WAIT_TIME_MIN * 2u32.saturating_pow(self.tries);
        self.tries += 1;
        server.io.sleep(own.max(asked).min(WAIT_TIME_MAX)).await;
        Ok(())
    }
}
