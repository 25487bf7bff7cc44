//! A histogram of latencies with three significant digits, in constant memory.
//!
//! Not here: the measurement. Invariants: every latency is counted, however long; mean and maximum are
//! exact.

use std::io;
use std::time::Duration;

use hdrhistogram::Histogram;

use crate::limits::LATENCY_MICROSECONDS_MAX;

/// Significant digits.
const DIGITS: u8 = 3;

/// A histogram of latencies.
#[derive(Clone, Debug)]
pub(crate) struct Latencies {
    microseconds: Histogram<u64>,
    sum: Duration,
    max: Duration,
}

impl Latencies {
    /// Creates an empty histogram.
    ///
    /// # Errors
    /// None in practice: the constant bounds are valid.
    pub(crate) fn new() -> io::Result<Latencies> {
        let histogram = Histogram::new_with_bounds(1, LATENCY_MICROSECONDS_MAX, DIGITS);
        let microseconds = histogram.map_err(io::Error::other)?;
        Ok(Latencies { microseconds, sum: Duration::ZERO, max: Duration::ZERO })
    }

    /// Records a latency.
    pub(crate) fn record(&mut self, latency: Duration) {
        let microseconds = u64::try_from(latency.as_micros()).unwrap_or(u64::MAX);
        // A latency above the histogram's range counts as its maximum.
        self.microseconds.saturating_record(microseconds.max(1));
        self.sum += latency;
        self.max = self.max.max(latency);
    }

    /// Adds the latencies of `other`.
    pub(crate) fn add(&mut self, other: &Latencies) {
        // Both have the same bounds, so none is out of range.
        let _ = self.microseconds.add(&other.microseconds);
        self.sum += other.sum;
        self.max = self.max.max(other.max);
    }

    /// Returns the number of latencies.
    pub(crate) fn count(&self) -> u64 {
        self.microseconds.len()
    }

    /// Returns the mean, or zero without latencies.
    pub(crate) fn mean(&self) -> Duration {
        match self.count() {
            0 => Duration::ZERO,
            count => Duration::from_secs_f64(self.sum.as_secs_f64() / count as f64),
        }
    }

    /// Returns the exact maximum.
    pub(crate) fn max(&self) -> Duration {
        self.max
    }

    /// Returns the quantile `share` (0 to 1), at most the maximum.
    pub(crate) fn quantile(&self, share: f64) -> Duration {
        Duration::from_micros(self.microseconds.value_at_quantile(share)).min(self.max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_right_to_three_digits_and_mean_and_longest_exact() {
        let mut latencies = Latencies::new().unwrap();
        for microseconds in (1..=100_000_u64).rev() {
            latencies.record(Duration::from_micros(microseconds));
        }
        assert_eq!(latencies.count(), 100_000);
        for (share, expected) in [(0.5, 50_000.0), (0.9, 90_000.0), (0.99, 99_000.0), (0.999, 99_900.0)] {
            let found = latencies.quantile(share).as_secs_f64() * 1e6;
            assert!((found / expected - 1.0).abs() < 0.002, "{share}: {found}");
        }
        assert_eq!(latencies.max(), Duration::from_micros(100_000));
        assert!((latencies.mean().as_secs_f64() * 1e6 - 50_000.5).abs() < 0.01);
    }

    #[test]
    fn nothing_is_too_short_or_too_long_to_be_counted() {
        let mut latencies = Latencies::new().unwrap();
        latencies.record(Duration::ZERO);
        latencies.record(Duration::from_secs(1_000_000));
        assert_eq!(latencies.count(), 2);
        assert_eq!(latencies.max(), Duration::from_secs(1_000_000));
        assert!(latencies.quantile(1.0) >= Duration::from_secs(3599));
    }

    #[test]
    fn of_none_everything_is_zero_and_two_add_up() {
        let (mut one, mut two) = (Latencies::new().unwrap(), Latencies::new().unwrap());
        assert_eq!((one.mean(), one.quantile(0.99), one.max()), Default::default());
        one.record(Duration::from_millis(1));
        two.record(Duration::from_millis(3));
        one.add(&two);
        assert_eq!(
            (one.count(), one.mean(), one.max()),
            (2, Duration::from_millis(2), Duration::from_millis(3))
        );
    }
}
