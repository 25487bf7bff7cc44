//! Counts of a directory's requests: waits, times and errors, for `/metrics`.
//!
//! Invariant: counting neither locks nor allocates.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use plimsoll_io::Cells;
use plimsoll_wire::metrics::Metric;

use super::DirectoryError;

/// The cells, by index. The errors of each kind follow the last.
const ASKED: usize = 0;
const BEGUN: usize = 1;
const ENDED: usize = 2;
const WAITED_MICROS: usize = 3;
const ANSWERED_MICROS: usize = 4;
const CONNECTIONS: usize = 5;
const ERRORS: usize = 6;

/// The counters since the start.
#[derive(Debug)]
pub struct DirectoryMeter {
    cells: Cells,
}

impl DirectoryMeter {
    /// The number of cells.
    pub const CELLS: usize = ERRORS + DirectoryError::KINDS.len();

    /// Counts in `cells`, of which there must be [`DirectoryMeter::CELLS`].
    pub fn in_cells(cells: Cells) -> Arc<DirectoryMeter> {
        Arc::new(DirectoryMeter { cells })
    }

    fn add(&self, cell: usize, value: u64) {
        self.cells[cell].fetch_add(value, Ordering::Relaxed);
    }

    fn add_time(&self, cell: usize, time: Duration) {
        self.add(cell, u64::try_from(time.as_micros()).unwrap_or(u64::MAX));
    }

    /// Counts a connection that was opened.
    #[cfg(any(feature = "database", test))]
    pub(super) fn count_connection(&self) {
        self.add(CONNECTIONS, 1);
    }

    /// Returns all metrics in Prometheus' text format. Nothing, if there was no request: the server has no
    /// directory.
    pub fn text(&self) -> String {
        let cell = |cell: usize| self.cells[cell].load(Ordering::Relaxed);
        let [asked, begun, ended] = [ASKED, BEGUN, ENDED].map(cell);
        let mut text = String::new();
        if asked == 0 {
            return text;
        }
        for (name, kind, help, value) in [
            (
                "requests_waiting",
                "gauge",
                "Requests that wait for a connection.",
                asked.saturating_sub(begun),
            ),
            ("requests_active", "gauge", "Requests in progress.", begun.saturating_sub(ended)),
            (
                "connections_total",
                "counter",
                "Connections to a database that were opened.",
                cell(CONNECTIONS),
            ),
        ] {
            Metric::new(&mut text, format!("plimsoll_directory_{name}"), kind, help).value(value);
        }
        for (name, help, count, micros) in [
            ("wait", "Time that requests waited for a connection.", begun, cell(WAITED_MICROS)),
            ("request", "Time of requests, with what they wait to connect.", ended, cell(ANSWERED_MICROS)),
        ] {
            let name = format!("plimsoll_directory_{name}_seconds");
            Metric::new(&mut text, name, "summary", help).summary(&[], count, micros);
        }
        let help = "Requests that failed, by the kind of error.";
        let mut errors = Metric::new(&mut text, "plimsoll_directory_errors_total", "counter", help);
        for (number, kind) in DirectoryError::KINDS.iter().enumerate() {
            errors.series(&[("kind", kind)], cell(ERRORS + number));
        }
        text
    }
}

/// A request, which is counted when it begins and when it is dropped.
pub(super) struct Measured<'a> {
    meter: Option<&'a DirectoryMeter>,
    since: Instant,
    has_begun: bool,
}

impl<'a> Measured<'a> {
    /// Counts a request that waits for a connection.
    pub(super) fn new(meter: Option<&'a DirectoryMeter>) -> Measured<'a> {
        if let Some(meter) = meter {
            meter.add(ASKED, 1);
        }
        Measured { meter, since: Instant::now(), has_begun: false }
    }

    /// Notes that the request has a connection.
    pub(super) fn begin(&mut self) {
        let now = Instant::now();
        if let Some(meter) = self.meter {
            meter.add(BEGUN, 1);
            meter.add_time(WAITED_MICROS, now - self.since);
        }
        (self.since, self.has_begun) = (now, true);
    }

    /// Counts the request's error, if it has one.
    pub(super) fn note<T>(&self, done: &Result<T, DirectoryError>) {
        if let (Some(meter), Err(error)) = (self.meter, done) {
            meter.add(ERRORS + error.kind(), 1);
        }
    }
}

impl Drop for Measured<'_> {
    fn drop(&mut self) {
        if let Some(meter) = self.meter
            && self.has_begun
        {
            meter.add_time(ANSWERED_MICROS, self.since.elapsed());
            meter.add(ENDED, 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::directory::Fault;

    #[test]
    fn requests_are_counted_by_their_state_and_errors_by_their_kind() {
        let meter = DirectoryMeter::in_cells(Cells::own(DirectoryMeter::CELLS));
        assert_eq!(meter.text(), "");
        let [_waiting, mut active, mut failed] = [(); 3].map(|()| Measured::new(Some(&*meter)));
        active.begin();
        failed.begin();
        let closed = DirectoryError::Unavailable(Fault::Closed, "it closed the connection".to_owned());
        failed.note::<()>(&Err(closed));
        failed.note(&Ok(7));
        drop(failed);
        meter.count_connection();
        let text = meter.text();
        for line in [
            "plimsoll_directory_requests_waiting 1",
            "plimsoll_directory_requests_active 1",
            "plimsoll_directory_connections_total 1",
            "plimsoll_directory_wait_seconds_count 2",
            "plimsoll_directory_request_seconds_count 1",
            "plimsoll_directory_errors_total{kind=\"closed\"} 1",
            "plimsoll_directory_errors_total{kind=\"other\"} 0",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}: {text}");
        }
    }
}
