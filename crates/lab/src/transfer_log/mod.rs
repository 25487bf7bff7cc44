//! Document 001's results, from the transfer log of a server alone.
//!
//! The log is plimsoll's own or xferlog(5) (wu-ftpd, vsftpd and others). The names of the files carry the
//! experiments ([`ExperimentName`]), so that any client can run them. [`read`] sums a log up, and
//! [`tables()`] computes the document's tables.
//!
//! It runs no experiment. Invariants: only complete downloads count; lines that do not count are reported;
//! memory is bounded by the number of repetitions, however long the log is.

mod entry;
mod format;
pub mod limits;
mod name;
mod tables;

use std::collections::BTreeMap;
use std::io::{BufRead, Read as _};

use anyhow::Context as _;

pub use entry::LogFormat;
pub use name::{ExperimentName, TransferType};
pub use tables::{Cell, Repetition, Share, Table, TableRow, TableValue, Tables, tables};

use entry::Entry;
use limits::{LOG_LINE_BYTES_MAX, LOG_REPETITIONS_MAX};

/// A transfer log, summed up.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TransferLog {
    /// The format; `None` of a log without a whole line.
    pub format: Option<LogFormat>,
    /// The number of whole lines.
    pub lines: u64,
    /// Whether the last line had no end, and was ignored.
    pub is_cut: bool,
    /// Lines of operations other than downloads.
    pub other_operations: u64,
    /// Downloads whose name carries no experiment.
    pub unnamed: u64,
    /// Downloads of an experiment that failed.
    pub failed: u64,
    /// Downloads of an experiment that end before they start, because the clock was set back.
    pub reversed: u64,
    /// Complete downloads whose length is not that of the name.
    pub other_sizes: u64,
    /// The repetitions of each experiment.
    experiments: BTreeMap<Experiment, BTreeMap<u32, Transfers>>,
    /// The number of repetitions of all experiments.
    repetitions: usize,
}

impl TransferLog {
    /// Refuses a log without a whole line, which an empty or another file is.
    ///
    /// # Errors
    /// No transfer is in it.
    pub fn check(&self) -> anyhow::Result<()> {
        anyhow::ensure!(
            self.lines > 0,
            "no transfer is in it: give the transfer log of a server that has sent files"
        );
        Ok(())
    }
}

/// A line that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {expected}")]
pub struct BadLine {
    /// The line, from 1.
    pub line: u64,
    /// The expectation that it does not meet.
    pub expected: String,
}

/// The parameters of an experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Experiment {
    size: u64,
    transfer_type: TransferType,
    connections: u32,
}

/// The complete downloads of a repetition. Times are in microseconds since 1970.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Transfers {
    count: u64,
    bytes: u64,
    first_start: u64,
    last_start: u64,
    last_end: u64,
    /// The sum of the rates of all connections, in bytes a second.
    rates: f64,
}

impl Transfers {
    fn add(&mut self, entry: &Entry<'_>, resolution: u64) {
        if self.count == 0 {
            self.first_start = entry.start;
        }
        self.count += 1;
        self.bytes = self.bytes.saturating_add(entry.bytes);
        self.first_start = self.first_start.min(entry.start);
        self.last_start = self.last_start.max(entry.start);
        self.last_end = self.last_end.max(entry.end);
        self.rates += rate(entry.bytes, entry.end - entry.start, resolution);
    }
}

/// Returns a rate in bytes a second. No transfer took less time than the log can express.
fn rate(bytes: u64, microseconds: u64, resolution: u64) -> f64 {
    bytes as f64 * 1e6 / microseconds.max(resolution) as f64
}

impl TransferLog {
    /// Counts a line without its line end.
    fn add(&mut self, line: &[u8]) -> Result<(), String> {
        let format = match self.format {
            Some(format) => format,
            None => LogFormat::detect(line)?,
        };
        let entry = format.parse(line)?;
        self.format = Some(format);
        if !entry.is_download {
            self.other_operations += 1;
            return Ok(());
        }
        match ExperimentName::parse(&entry.path) {
            Some(name) => self.add_download(&entry, name, format.resolution()),
            None => {
                self.unnamed += 1;
                Ok(())
            }
        }
    }

    fn add_download(
        &mut self,
        entry: &Entry<'_>,
        name: ExperimentName,
        resolution: u64,
    ) -> Result<(), String> {
        let ExperimentName { size, transfer_type, connections, repetition, .. } = name;
        let experiment = Experiment { size, transfer_type, connections };
        let repetitions = self.experiments.entry(experiment).or_default();
        if !repetitions.contains_key(&repetition) {
            if self.repetitions == LOG_REPETITIONS_MAX {
                return Err(format!("expected at most {LOG_REPETITIONS_MAX} repetitions; divide the log"));
            }
            self.repetitions += 1;
        }
        // A repetition without a complete download is incomplete, not absent.
        let transfers = repetitions.entry(repetition).or_default();
        if !entry.is_complete {
            self.failed += 1;
        } else if entry.end < entry.start {
            self.reversed += 1;
        } else {
            self.other_sizes += u64::from(entry.bytes != size);
            transfers.add(entry, resolution);
        }
        Ok(())
    }
}

/// Reads a transfer log. The first line decides about the format.
///
/// # Errors
/// [`BadLine`] for the first line that does not have the format, or an error of the reader.
pub fn read(mut reader: impl BufRead) -> anyhow::Result<TransferLog> {
    let (mut log, mut line) = (TransferLog::default(), Vec::new());
    loop {
        line.clear();
        let mut bounded = reader.by_ref().take(LOG_LINE_BYTES_MAX + 1);
        bounded.read_until(b'\n', &mut line).context("cannot read the transfer log")?;
        let bad = |expected| BadLine { line: log.lines + 1, expected };
        if line.pop_if(|last| *last == b'\n').is_none() {
            if line.len() as u64 > LOG_LINE_BYTES_MAX {
                return Err(bad(format!("expected at most {LOG_LINE_BYTES_MAX} bytes")).into());
            }
            log.is_cut = !line.is_empty();
            return Ok(log);
        }
        let number = log.lines + 1;
        let text = line.strip_suffix(b"\r").unwrap_or(&line);
        log.add(text).map_err(|expected| BadLine { line: number, expected })?;
        log.lines = number;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_without_a_whole_line_is_refused_because_no_transfer_is_in_it() {
        for text in ["", "\n{\"time\""] {
            let refused = read(text.as_bytes()).unwrap_or_default().check().unwrap_err();
            assert!(refused.to_string().starts_with("no transfer is in it"), "{refused}");
        }
        let logs = TransferLog { lines: 1, ..TransferLog::default() };
        logs.check().unwrap();
    }
}
