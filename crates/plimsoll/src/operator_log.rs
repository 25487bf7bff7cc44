//! The operator's log: what the server says of itself, on standard error.
//!
//! It is neither the access log nor the log of transfers. What must hold: whoever reads standard error slowly
//! holds up nobody; in JSON every event is one line with one object.

use std::io::{self, IsTerminal as _};

use tracing::level_filters::LevelFilter;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{Registry, fmt, reload};

use crate::config::{LogFormat, LogLevel};
use crate::line_writer::{LineWriter, Lines};

/// The log, and the thread that writes it.
pub(crate) struct OperatorLog {
    writer: LineWriter,
    level: Level,
}

/// Says that settings for a laboratory are on, if any are: `on` has their keys.
pub(crate) fn warn_of_lab(on: &[&str]) {
    if !on.is_empty() {
        tracing::warn!(settings = on.join(", "), "settings for a laboratory are on");
    }
}

/// A way to change what the log has.
#[derive(Clone)]
pub(crate) struct Level(reload::Handle<LevelFilter, Registry>);

impl Level {
    /// From now on the log has events of `level` and graver ones.
    pub(crate) fn set(&self, level: LogLevel) {
        // It fails when the log is gone: then there is nothing to be changed.
        let _ = self.0.reload(LevelFilter::from_level(level.0));
    }
}

/// Has what this process says of itself written by `to`.
pub(crate) fn start_with<W>(format: LogFormat, level: LogLevel, to: W) -> Level
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let (filter, level) = reload::Layer::new(LevelFilter::from_level(level.0));
    let log = tracing_subscriber::registry().with(filter);
    let lines = fmt::layer().with_writer(to).with_target(false);
    match format {
        // Colours are for eyes: a file or a journal takes them for text.
        LogFormat::Text => log.with(lines.with_ansi(io::stderr().is_terminal())).init(),
        LogFormat::Json => {
            let objects = lines.json().flatten_event(true);
            log.with(objects.with_current_span(false).with_span_list(false)).init();
        }
    }
    Level(level)
}

impl OperatorLog {
    /// Starts the log of this process.
    pub(crate) fn start(format: LogFormat, level: LogLevel) -> io::Result<OperatorLog> {
        // There is nowhere to tell that standard error fails.
        let writer = LineWriter::start("log", Box::new(|| Ok(Box::new(io::stderr()))), Box::new(|_| {}))?;
        let level = start_with(format, level, writer.lines());
        Ok(OperatorLog { writer, level })
    }

    /// The way of lines to it that are written already.
    pub(crate) fn lines(&self) -> Lines {
        self.writer.lines()
    }

    pub(crate) fn level(&self) -> Level {
        self.level.clone()
    }

    /// Writes what waits, and ends.
    pub(crate) fn finish(self) {
        // Nobody is left to tell that standard error takes nothing.
        let _ = self.writer.finish();
    }
}
