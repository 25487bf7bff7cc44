//! The operator's log: events of the server itself, on standard error.
//!
//! It is neither the access log nor the transfer log. Invariants: a slow reader of standard error delays no
//! connection. In JSON, each event is one line with one object.

use std::io::{self, IsTerminal as _};

use tracing::level_filters::LevelFilter;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{Registry, fmt, reload};

use crate::config::{LogFormat, LogLevel};
use crate::line_writer::{LineWriter, Lines};

/// The log, and its writer thread.
pub(crate) struct OperatorLog {
    writer: LineWriter,
    level: Level,
}

/// Warns that laboratory settings are on, if any are. `on` has their keys.
pub(crate) fn warn_of_lab(on: &[&str]) {
    if !on.is_empty() {
        tracing::warn!(settings = on.join(", "), "settings for a laboratory are on");
    }
}

/// A handle to change the level of the log.
#[derive(Clone)]
pub(crate) struct Level(reload::Handle<LevelFilter, Registry>);

impl Level {
    /// Sets the level: events below `level` are dropped.
    pub(crate) fn set(&self, level: LogLevel) {
        // Fails only when the log is gone, and then the level does not matter.
        let _ = self.0.reload(LevelFilter::from_level(level.0));
    }
}

/// Installs the log of this process, written through `to`.
pub(crate) fn start_with<W>(format: LogFormat, level: LogLevel, to: W) -> Level
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let (filter, level) = reload::Layer::new(LevelFilter::from_level(level.0));
    let log = tracing_subscriber::registry().with(filter);
    let lines = fmt::layer().with_writer(to).with_target(false);
    match format {
        // A file or the systemd journal would take colour codes for text.
        LogFormat::Text => log.with(lines.with_ansi(io::stderr().is_terminal())).init(),
        LogFormat::Json => {
            let objects = lines.json().flatten_event(true);
            log.with(objects.with_current_span(false).with_span_list(false)).init();
        }
    }
    Level(level)
}

impl OperatorLog {
    /// Starts the log of this process, on standard error.
    pub(crate) fn start(format: LogFormat, level: LogLevel) -> io::Result<OperatorLog> {
        // An error of standard error cannot be reported anywhere.
        let writer = LineWriter::start("log", Box::new(|| Ok(Box::new(io::stderr()))), Box::new(|_| {}))?;
        let level = start_with(format, level, writer.lines());
        Ok(OperatorLog { writer, level })
    }

    /// Returns a sender for lines that are formatted already.
    pub(crate) fn lines(&self) -> Lines {
        self.writer.lines()
    }

    pub(crate) fn level(&self) -> Level {
        self.level.clone()
    }

    /// Writes the queued events and ends the thread.
    pub(crate) fn finish(self) {
        // A timeout of standard error cannot be reported anywhere.
        let _ = self.writer.finish();
    }
}
