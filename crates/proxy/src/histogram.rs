//! A histogram of latencies.
//!
//! It is not the metrics page. Invariant: counting neither locks nor allocates.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use plimsoll_wire::metrics::Metric;

/// Upper bounds of the buckets, in microseconds.
const BOUNDS_MICROS: [u64; 16] = [
    50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000,
    5_000_000, 25_000_000,
];

/// Counts of latencies by bucket. The last bucket has no upper bound.
#[derive(Debug, Default)]
pub(crate) struct Histogram {
    buckets: [AtomicU64; BOUNDS_MICROS.len() + 1],
    micros: AtomicU64,
}

impl Histogram {
    /// Counts one latency.
    pub(crate) fn count(&self, time: Duration) {
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let bucket = BOUNDS_MICROS.partition_point(|bound| *bound < micros);
        if let Some(bucket) = self.buckets.get(bucket) {
            bucket.fetch_add(1, Ordering::Relaxed);
        }
        self.micros.fetch_add(micros, Ordering::Relaxed);
    }

    /// Writes the latencies of an origin.
    pub(crate) fn write(&self, metric: &mut Metric<'_>, origin: &str) {
        let counts = self.buckets.iter().map(|count| count.load(Ordering::Relaxed));
        let micros = self.micros.load(Ordering::Relaxed);
        metric.histogram(&[("origin", origin)], &BOUNDS_MICROS, counts, micros);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latencies_are_counted_cumulatively_with_their_sum() {
        let histogram = Histogram::default();
        for micros in [50, 51, 2_000_000, 90_000_000] {
            histogram.count(Duration::from_micros(micros));
        }
        let mut text = String::new();
        histogram.write(&mut Metric::new(&mut text, "x", "histogram", "Times."), "b");
        assert!(text.contains("x_bucket{origin=\"b\",le=\"0.00005\"} 1\n"), "{text}");
        assert!(text.contains("x_bucket{origin=\"b\",le=\"0.0001\"} 2\n"), "{text}");
        assert!(text.contains("x_bucket{origin=\"b\",le=\"5\"} 3\n"), "{text}");
        assert!(text.contains("x_bucket{origin=\"b\",le=\"+Inf\"} 4\n"), "{text}");
        assert!(
            text.contains("x_sum{origin=\"b\"} 92.000101\n") && text.ends_with("x_count{origin=\"b\"} 4\n"),
            "{text}"
        );
    }
}
