//! Counts and latencies, by protocol and operation, and the last failures.
//!
//! It is not the metrics page. Invariants: counting neither locks nor allocates.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use plimsoll_io::Cells;
use plimsoll_wire::metrics::Metric;

use crate::caller::Protocol;
use crate::failures::{Failure, FailureRing, RING_CELLS};
use crate::operation::Operation;

/// Upper bounds of the buckets, in microseconds: steps of 1, 2.5 and 5 from 50 microseconds to 50 s.
const BOUNDS_MICROS: [u64; 19] = [
    50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000,
    2_500_000, 5_000_000, 10_000_000, 25_000_000, 50_000_000,
];

const PROTOCOLS: usize = Protocol::ALL.len();
const OPERATIONS: usize = Operation::ALL.len();

/// The number of buckets. Each counts only the values above the previous bound; the last has no upper
/// bound.
const BUCKETS: usize = BOUNDS_MICROS.len() + 1;
/// The cells of an operation behind its buckets, by index.
const MICROS: usize = BUCKETS;
const FAILED: usize = BUCKETS + 1;
const BYTES: usize = BUCKETS + 2;
const EACH: usize = BUCKETS + 3;
/// The cells of all counts.
const COUNTS: usize = PROTOCOLS * OPERATIONS * EACH;

/// The percentages of operations whose time [`OperationFigures`] has.
const PERCENTILES: [u64; 3] = [50, 95, 99];

/// The figures of an operation since the start, over all protocols.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperationFigures {
    /// The operation.
    pub operation: Operation,
    /// How many have ended.
    pub count: u64,
    /// Those that were refused, failed or aborted.
    pub failed: u64,
    /// Bytes of file contents that they moved.
    pub bytes: u64,
    /// The times in which half of them, 95 % and 99 % ended. Interpolated within a bucket; times above the
    /// last bound count as the bound.
    pub percentiles: [Duration; 3],
}

/// The names of a protocol and an operation.
type Labels = [(&'static str, &'static str); 2];

/// The counters since the start.
#[derive(Debug)]
pub struct Meter {
    /// `EACH` cells for each operation of each protocol, and behind them the ring of failures.
    cells: Cells,
}

impl Default for Meter {
    fn default() -> Meter {
        Meter::counted_in(Cells::own(Meter::CELLS))
    }
}

impl Meter {
    /// The number of cells.
    pub const CELLS: usize = COUNTS + RING_CELLS;

    /// Counts in `cells`, of which there must be [`Meter::CELLS`].
    pub fn counted_in(cells: Cells) -> Meter {
        Meter { cells }
    }

    /// Returns the cells of one operation of one protocol.
    fn of(&self, protocol: Protocol, operation: Operation) -> &[AtomicU64] {
        let first = (protocol as usize * OPERATIONS + operation as usize) * EACH;
        &self.cells[first..first + EACH]
    }

    /// Counts bytes of an operation, which may not have ended.
    pub(crate) fn count_bytes(&self, protocol: Protocol, operation: Operation, bytes: u64) {
        self.of(protocol, operation)[BYTES].fetch_add(bytes, Ordering::Relaxed);
    }

    /// Counts an operation that has ended.
    pub(crate) fn count(&self, protocol: Protocol, operation: Operation, time: Duration, failed: bool) {
        let cells = self.of(protocol, operation);
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let bucket = BOUNDS_MICROS.partition_point(|bound| *bound < micros);
        cells[bucket].fetch_add(1, Ordering::Relaxed);
        cells[MICROS].fetch_add(micros, Ordering::Relaxed);
        if failed {
            cells[FAILED].fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Returns all metrics in Prometheus' text format.
    pub fn text(&self) -> String {
        let mut text = String::new();
        self.write_latencies(&mut text);
        self.write_sums(
            &mut text,
            "plimsoll_operation_failures_total",
            "Operations that were refused, failed or aborted.",
            FAILED,
        );
        self.write_sums(
            &mut text,
            "plimsoll_operation_bytes_total",
            "Bytes of file contents that operations moved.",
            BYTES,
        );
        text
    }

    /// Records an operation that has failed.
    pub(crate) fn record_failure(&self, failure: &Failure) {
        FailureRing(&self.cells[COUNTS..]).record(failure);
    }

    /// Returns the last operations that failed, the newest first:
    /// [`RECENT_FAILURES_MAX`](crate::limits::RECENT_FAILURES_MAX) at most.
    pub fn failures(&self) -> Vec<Failure> {
        FailureRing(&self.cells[COUNTS..]).read()
    }

    /// Returns the figures of the operations that have ended at least once.
    pub fn figures(&self) -> Vec<OperationFigures> {
        Operation::ALL.into_iter().filter_map(|operation| self.figures_of(operation)).collect()
    }

    fn figures_of(&self, operation: Operation) -> Option<OperationFigures> {
        let cell = |index: usize| -> u64 {
            let of = |protocol| self.of(protocol, operation)[index].load(Ordering::Relaxed);
            Protocol::ALL.into_iter().map(of).sum()
        };
        let buckets: [u64; BUCKETS] = std::array::from_fn(cell);
        let count: u64 = buckets.iter().sum();
        (count > 0).then(|| OperationFigures {
            operation,
            count,
            failed: cell(FAILED),
            bytes: cell(BYTES),
            percentiles: PERCENTILES.map(|percent| percentile(&buckets, percent)),
        })
    }

    fn each(&self) -> impl Iterator<Item = (Labels, &[AtomicU64])> {
        Protocol::ALL.into_iter().flat_map(move |protocol| {
            Operation::ALL.into_iter().map(move |operation| {
                let labels = [("protocol", protocol.name()), ("operation", operation.name())];
                (labels, self.of(protocol, operation))
            })
        })
    }

    fn write_latencies(&self, text: &mut String) {
        const HELP: &str = "Time from an operation's first request to the end of its answer.";
        let mut metric = Metric::new(text, "plimsoll_operation_duration_seconds", "histogram", HELP);
        for (labels, cells) in self.each() {
            let counts = cells[..BUCKETS].iter().map(|count| count.load(Ordering::Relaxed));
            metric.histogram(&labels, &BOUNDS_MICROS, counts, cells[MICROS].load(Ordering::Relaxed));
        }
    }

    fn write_sums(&self, text: &mut String, name: &str, help: &str, cell: usize) {
        let mut metric = Metric::new(text, name, "counter", help);
        for (labels, cells) in self.each() {
            metric.series(&labels, cells[cell].load(Ordering::Relaxed));
        }
    }
}

/// Returns the time in which `percent` of the operations in `buckets` ended. They are taken to be spread
/// evenly over their bucket.
fn percentile(buckets: &[u64; BUCKETS], percent: u64) -> Duration {
    let wanted = u128::from(buckets.iter().sum::<u64>()) * u128::from(percent);
    let (mut below, mut lower) = (0, 0);
    for (counted, upper) in buckets.iter().zip(BOUNDS_MICROS) {
        let (within, width) = (u128::from(*counted) * 100, u128::from(upper - lower));
        if within > 0 && below + within >= wanted {
            let micros = width * (wanted - below) / within;
            return Duration::from_micros(lower + u64::try_from(micros).unwrap_or(u64::MAX));
        }
        below += within;
        lower = upper;
    }
    Duration::from_micros(lower)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_add_up_and_bounds_belong_to_their_bucket() {
        let meter = Meter::default();
        for micros in [50, 51, 1_000_000, 60_000_000] {
            let time = Duration::from_micros(micros);
            meter.count(Protocol::Http, Operation::Upload, time, micros == 51);
            meter.count_bytes(Protocol::Http, Operation::Upload, 10);
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
    fn percentiles_are_interpolated_within_a_bucket_over_all_protocols() {
        let meter = Meter::default();
        assert!(meter.figures().is_empty());
        // 98 between 1 and 2.5 ms, one between 5 and 10 ms, and one above the last bound.
        for index in 0..100 {
            let micros = [2_000, 7_000, 90_000_000][usize::from(index > 97) + usize::from(index > 98)];
            let protocol = Protocol::ALL[usize::from(index % 2 == 0)];
            meter.count(protocol, Operation::Upload, Duration::from_micros(micros), index > 98);
        }
        meter.count_bytes(Protocol::Http, Operation::Upload, 10);
        let figures = meter.figures();
        let [of_uploads] = &*figures else { panic!("{figures:?}") };
        assert_eq!((of_uploads.operation, of_uploads.count), (Operation::Upload, 100));
        assert_eq!((of_uploads.failed, of_uploads.bytes), (1, 10));
        let micros = of_uploads.percentiles.map(|time| time.as_micros());
        assert_eq!(micros, [1_000 + 1_500 * 50 / 98, 1_000 + 1_500 * 95 / 98, 10_000]);
        meter.count(Protocol::Http, Operation::List, Duration::from_secs(100), false);
        assert_eq!(meter.figures()[0].percentiles, [Duration::from_secs(50); 3]);
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
