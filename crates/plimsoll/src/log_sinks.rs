//! The request and operation logs, and the threads' access to them.
//!
//! It is not the operator's log. Invariants: a log is opened only if this server has events for it.
//! Lost lines are counted.

use std::sync::Arc;

use plimsoll_operations::{AuditLog, LineSink, Meter};
use plimsoll_proto::http::{Counters, LogSink};

use crate::config::Fixed;
use crate::line_writer::{Lines, Reopen};
use crate::log_file::{self, Log};

/// The logs that are on.
#[derive(Default)]
pub(crate) struct Logs {
    pub(crate) requests: Option<Log>,
    pub(crate) transfers: Option<Log>,
    pub(crate) xferlog: Option<Log>,
}

/// The sinks of the logs.
pub(crate) struct Sinks {
    /// The sink of HTTP requests.
    pub(crate) requests: Option<Arc<dyn LogSink>>,
    /// The audit log of operations over all protocols.
    pub(crate) audit_log: AuditLog,
}

/// The sink of an operation log, for all threads of the server.
struct Sink {
    lines: Lines,
    counters: Arc<Counters>,
}

impl Logs {
    /// Opens the logs that are on; those of operations only if the configuration has operations.
    pub(crate) fn open(fixed: &Fixed) -> anyhow::Result<Logs> {
        let (transfers, xferlog) = match fixed.has_operations() {
            true => (fixed.transfer_log.open_as("transfer-log")?, fixed.xferlog.open_as("xferlog")?),
            false => (None, None),
        };
        Ok(Logs { requests: fixed.access_log.open_as("access-log")?, transfers, xferlog })
    }

    /// Returns the sinks of these logs.
    pub(crate) fn sinks(&self, counters: &Arc<Counters>) -> Sinks {
        let of_requests = |log: &Log| {
            let sink = log_file::Sink { lines: log.writer.lines(), counters: Arc::clone(counters) };
            Arc::new(sink) as Arc<dyn LogSink>
        };
        let of_operations = |log: &Log| {
            Arc::new(Sink { lines: log.writer.lines(), counters: Arc::clone(counters) }) as Arc<dyn LineSink>
        };
        let (transfers, xferlog) =
            (self.transfers.as_ref().map(of_operations), self.xferlog.as_ref().map(of_operations));
        Sinks {
            requests: self.requests.as_ref().map(of_requests),
            audit_log: AuditLog::new(Arc::<Meter>::default(), transfers, xferlog),
        }
    }

    /// Returns the handles that order the logs to be opened again.
    pub(crate) fn reopen(&self) -> Vec<Reopen> {
        let all = [&self.requests, &self.transfers, &self.xferlog];
        all.into_iter().flatten().map(|log| log.writer.reopen()).collect()
    }

    /// Writes the queued lines and ends the threads.
    pub(crate) fn finish(self) {
        [self.requests, self.transfers, self.xferlog].into_iter().flatten().for_each(Log::finish);
    }
}

impl LineSink for Sink {
    fn take(&self, line: Vec<u8>) {
        if self.lines.hand_over(line).is_err() {
            self.counters.drop_log_lines(1);
        }
    }
}
