//! A histogram of latencies in Prometheus' text format.
//!
//! It is not the metrics page. Invariant: counting neither locks nor allocates.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Upper bounds of the buckets: their values in microseconds, and their texts in seconds.
const BOUNDS: [(u64, &str); 16] = [
    (50, "0.00005"),
    (100, "0.0001"),
    (250, "0.00025"),
    (500, "0.0005"),
    (1_000, "0.001"),
    (2_500, "0.0025"),
    (5_000, "0.005"),
    (10_000, "0.01"),
    (25_000, "0.025"),
    (50_000, "0.05"),
    (100_000, "0.1"),
    (250_000, "0.25"),
    (500_000, "0.5"),
    (1_000_000, "1"),
    (5_000_000, "5"),
    (25_000_000, "25"),
];

/// Counts of latencies by bucket. The last bucket has no upper bound.
#[derive(Debug, Default)]
pub(crate) struct Histogram {
    buckets: [AtomicU64; BOUNDS.len() + 1],
    micros: AtomicU64,
}

impl Histogram {
    /// Counts one latency.
    pub(crate) fn count(&self, time: Duration) {
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let bucket = BOUNDS.partition_point(|(bound, _)| *bound < micros);
        if let Some(bucket) = self.buckets.get(bucket) {
            bucket.fetch_add(1, Ordering::Relaxed);
        }
        self.micros.fetch_add(micros, Ordering::Relaxed);
    }

    /// Writes the buckets, the sum and the count, with these labels.
    pub(crate) fn write(&self, name: &str, labels: &str, text: &mut String) {
        let mut below = 0;
        for (bucket, counted) in self.buckets.iter().enumerate() {
            below += counted.load(Ordering::Relaxed);
            let bound = BOUNDS.get(bucket).map_or("+Inf", |(_, bound)| *bound);
            // Writing to a string does not fail.
            let _ = writeln!(text, "{name}_bucket{{{labels},le=\"{bound}\"}} {below}");
        }
        let micros = self.micros.load(Ordering::Relaxed);
        let _ = writeln!(text, "{name}_sum{{{labels}}} {}.{:06}", micros / 1_000_000, micros % 1_000_000);
        let _ = writeln!(text, "{name}_count{{{labels}}} {below}");
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
        histogram.write("x", "a=\"b\"", &mut text);
        assert!(text.contains("x_bucket{a=\"b\",le=\"0.00005\"} 1\n"), "{text}");
        assert!(text.contains("x_bucket{a=\"b\",le=\"0.0001\"} 2\n"), "{text}");
        assert!(text.contains("x_bucket{a=\"b\",le=\"5\"} 3\n"), "{text}");
        assert!(text.contains("x_bucket{a=\"b\",le=\"+Inf\"} 4\n"), "{text}");
        assert!(
            text.contains("x_sum{a=\"b\"} 92.000101\n") && text.ends_with("x_count{a=\"b\"} 4\n"),
            "{text}"
        );
    }
}
