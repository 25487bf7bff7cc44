//! The logs of what people do, and the recorder that writes to them: the same for every protocol.
//!
//! It is neither the log of requests nor the operator's. What must hold: a log is opened only where something
//! can be recorded; lines that are lost are counted.

use std::sync::Arc;

use plimsoll_operations::{LineSink, Meter, Recorder};
use plimsoll_proto::http::Counters;

use crate::config::Fixed;
use crate::line_writer::{LineWriter, Lines};
use crate::log_file::{Destination, Log};

/// What records operations, and what writes that.
pub(crate) struct Records {
    pub(crate) recorder: Recorder,
    pub(crate) logs: Vec<Log>,
}

/// The way of a server's threads to such a log.
struct Sink {
    lines: Lines,
    counters: Arc<Counters>,
}

impl Records {
    /// Opens the logs that are on, where somebody does what has a line.
    pub(crate) fn open(fixed: &Fixed, counters: &Arc<Counters>) -> anyhow::Result<Records> {
        let mut logs = Vec::new();
        let mut open = |destination: &Destination, name: &'static str| -> anyhow::Result<_> {
            let log = destination.open_as(name)?;
            let sink = log.as_ref().map(|log| sink(&log.writer, counters));
            logs.extend(log);
            Ok(sink)
        };
        let (log, xferlog) = match fixed.has_operations() {
            true => (open(&fixed.transfer_log, "transfer-log")?, open(&fixed.xferlog, "xferlog")?),
            false => (None, None),
        };
        Ok(Records { recorder: Recorder::new(Arc::<Meter>::default(), log, xferlog), logs })
    }
}

fn sink(log: &LineWriter, counters: &Arc<Counters>) -> Arc<dyn LineSink> {
    Arc::new(Sink { lines: log.lines(), counters: Arc::clone(counters) })
}

impl LineSink for Sink {
    fn take(&self, line: Vec<u8>) {
        if self.lines.hand_over(line).is_err() {
            self.counters.drop_log_lines(1);
        }
    }
}
