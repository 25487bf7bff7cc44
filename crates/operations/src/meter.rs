//! Counts and latencies of operations, by protocol and operation.
//!
//! It is not the metrics page. What must hold: counting takes no lock and no memory.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::caller::Protocol;
use crate::operation::Operation;

/// Upper bounds of the buckets, in microseconds: steps of 1, 2.5 and 5 from 50 microseconds to 50 s.
const BOUNDS_MICROS: [u64; 19] = [
    50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000,
    2_500_000, 5_000_000, 10_000_000, 25_000_000, 50_000_000,
];

const PROTOCOLS: usize = Protocol::ALL.len();
const OPERATIONS: usize = Operation::ALL.len();

/// Counts of one protocol's one operation.
#[derive(Debug, Default)]
struct Count {
    /// By bucket, each without those below it; the last is above all bounds.
    buckets: [AtomicU64; BOUNDS_MICROS.len() + 1],
    micros: AtomicU64,
    failed: AtomicU64,
    bytes: AtomicU64,
}

/// What was counted since the start.
#[derive(Debug, Default)]
pub struct Meter {
    counts: [[Count; OPERATIONS]; PROTOCOLS],
}

impl Meter {
    pub(crate) fn count(
        &self,
        protocol: Protocol,
        operation: Operation,
        time: Duration,
        bytes: u64,
        failed: bool,
    ) {
        let count = &self.counts[protocol as usize][operation as usize];
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let bucket = BOUNDS_MICROS.partition_point(|bound| *bound < micros);
        count.buckets[bucket].fetch_add(1, Ordering::Relaxed);
        count.micros.fetch_add(micros, Ordering::Relaxed);
        count.bytes.fetch_add(bytes, Ordering::Relaxed);
        if failed {
            count.failed.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// All of it in Prometheus' text format.
    pub fn text(&self) -> String {
        let mut text = String::new();
        self.write_latencies(&mut text);
        self.write_sums(
            &mut text,
            "plimsoll_operation_failures_total",
            "Operations that were refused, failed or broken off.",
            |count| &count.failed,
        );
        self.write_sums(
            &mut text,
            "plimsoll_operation_bytes_total",
            "Bytes of file contents that operations moved.",
            |count| &count.bytes,
        );
        text
    }

    fn each(&self) -> impl Iterator<Item = (String, &Count)> {
        Protocol::ALL.into_iter().flat_map(move |protocol| {
            Operation::ALL.into_iter().map(move |operation| {
                let labels = format!("protocol=\"{}\",operation=\"{}\"", protocol.name(), operation.name());
                (labels, &self.counts[protocol as usize][operation as usize])
            })
        })
    }

    fn write_latencies(&self, text: &mut String) {
        const NAME: &str = "plimsoll_operation_duration_seconds";
        let _ = writeln!(text, "# HELP {NAME} Time from the request to the end of its answer.");
        let _ = writeln!(text, "# TYPE {NAME} histogram");
        for (labels, count) in self.each() {
            let mut below = 0;
            for (bucket, counted) in count.buckets.iter().enumerate() {
                below += counted.load(Ordering::Relaxed);
                match BOUNDS_MICROS.get(bucket) {
                    Some(bound) => {
                        let _ =
                            writeln!(text, "{NAME}_bucket{{{labels},le=\"{}\"}} {below}", Seconds(*bound));
                    }
                    None => {
                        let _ = writeln!(text, "{NAME}_bucket{{{labels},le=\"+Inf\"}} {below}");
                    }
                }
            }
            let sum = Seconds(count.micros.load(Ordering::Relaxed));
            let _ = writeln!(text, "{NAME}_sum{{{labels}}} {sum}\n{NAME}_count{{{labels}}} {below}");
        }
    }

    fn write_sums(&self, text: &mut String, name: &str, help: &str, of: fn(&Count) -> &AtomicU64) {
        let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} counter");
        for (labels, count) in self.each() {
            let _ = writeln!(text, "{name}{{{labels}}} {}", of(count).load(Ordering::Relaxed));
        }
    }
}

/// Microseconds, written as seconds without zeros at the end.
struct Seconds(u64);

impl std::fmt::Display for Seconds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let text = format!("{}.{:06}", self.0 / 1_000_000, self.0 % 1_000_000);
        f.write_str(text.trim_end_matches('0').trim_end_matches('.'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_add_up_and_bounds_belong_to_their_bucket() {
        let meter = Meter::default();
        for micros in [50, 51, 1_000_000, 60_000_000] {
            let time = Duration::from_micros(micros);
            meter.count(Protocol::Http, Operation::Upload, time, 10, micros == 51);
        }
        let text = meter.text();
        let labels = "protocol=\"http\",operation=\"upload\"";
        for line in [
            format!("plimsoll_operation_duration_seconds_bucket{{{labels},le=\"0.00005\"}} 1"),
            format!("plimsoll_operation_duration_seconds_bucket{{{labels},le=\"0.0001\"}} 2"),
            format!("plimsoll_operation_duration_seconds_bucket{{{labels},le=\"1\"}} 3"),
            format!("plimsoll_operation_duration_seconds_bucket{{{labels},le=\"50\"}} 3"),
            format!("plimsoll_operation_duration_seconds_bucket{{{labels},le=\"+Inf\"}} 4"),
            format!("plimsoll_operation_duration_seconds_sum{{{labels}}} 61.000101"),
            format!("plimsoll_operation_duration_seconds_count{{{labels}}} 4"),
            format!("plimsoll_operation_failures_total{{{labels}}} 1"),
            format!("plimsoll_operation_bytes_total{{{labels}}} 40"),
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
    }

    #[test]
    fn operations_are_counted_apart() {
        for (index, operation) in Operation::ALL.into_iter().enumerate() {
            assert_eq!(operation as usize, index);
        }
        for (index, protocol) in Protocol::ALL.into_iter().enumerate() {
            assert_eq!(protocol as usize, index);
        }
    }
}
