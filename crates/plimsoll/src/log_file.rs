//! The destination of a request or transfer log, and the threads' access to it.
//!
//! It neither formats lines (the protocol does), nor writes them ([`crate::line_writer`] does). Invariant:
//! lost lines are counted.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use anyhow::Context as _;
use plimsoll_proto::http::{Counters, LogSink};

use crate::line_writer::{LineWriter, Lines, Open};

/// An open log.
pub(crate) struct Log {
    pub(crate) name: &'static str,
    pub(crate) writer: LineWriter,
}

/// The destination of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Destination {
    Off,
    Stdout,
    File(PathBuf),
}

impl FromStr for Destination {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Destination, Self::Err> {
        Ok(match text {
            "off" => Destination::Off,
            "-" => Destination::Stdout,
            path => Destination::File(path.into()),
        })
    }
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Destination::Off => f.write_str("off"),
            Destination::Stdout => f.write_str("on standard output"),
            Destination::File(path) => path.display().fmt(f),
        }
    }
}

impl Destination {
    /// Checks that the destination can be written, without creating a file.
    fn check(&self) -> io::Result<()> {
        match self {
            Destination::File(path) if path.exists() => OpenOptions::new().append(true).open(path).map(drop),
            Destination::File(path) => {
                let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
                std::fs::read_dir(folder.unwrap_or(Path::new("."))).map(drop)
            }
            Destination::Off | Destination::Stdout => Ok(()),
        }
    }

    /// Like [`Destination::check`]; the error names the log.
    pub(crate) fn check_as(&self, name: &str) -> anyhow::Result<()> {
        self.check().with_context(|| self.cannot_write(name))
    }

    /// Like [`Destination::open`]; the result and the error name the log.
    pub(crate) fn open_as(&self, name: &'static str) -> anyhow::Result<Option<Log>> {
        let opened = self.open(name).with_context(|| self.cannot_write(name))?;
        Ok(opened.map(|writer| Log { name, writer }))
    }

    fn cannot_write(&self, name: &str) -> String {
        format!("cannot write the {} {self}", name.replace('-', " "))
    }

    /// Opens the destination and starts its writer thread, called `name`. Returns `None` if the log is off.
    fn open(&self, name: &'static str) -> io::Result<Option<LineWriter>> {
        let open: Open = match self.clone() {
            Destination::Off => return Ok(None),
            Destination::Stdout => Box::new(|| Ok(Box::new(io::stdout()))),
            Destination::File(path) => Box::new(move || Ok(Box::new(open(&path)?))),
        };
        let failed = move |error: &io::Error| {
            tracing::error!(%error, log = name, "a log cannot be written; serving goes on without it");
        };
        LineWriter::start(name, open, Box::new(failed)).map(Some)
    }
}

impl Log {
    /// Writes the queued lines and ends the thread.
    pub(crate) fn finish(self) {
        if !self.writer.finish() {
            tracing::warn!(log = self.name, "a log's destination accepts nothing; its last lines are lost");
        }
    }
}

/// Opens or creates a log. A new file has mode 0600, because a log shows the names of accounts and their
/// files.
fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).mode(0o600).open(path)
}

/// The sink of the access log, for all threads of the server.
pub(crate) struct Sink {
    pub(crate) lines: Lines,
    pub(crate) counters: Arc<Counters>,
}

impl LogSink for Sink {
    fn take(&self, lines: Vec<u8>) {
        if let Err(lost) = self.lines.hand_over(lines) {
            let count = lost.iter().filter(|&&byte| byte == b'\n').count();
            self.counters.drop_log_lines(count as u64);
        }
    }
}
