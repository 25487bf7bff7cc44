//! Where a log of requests or of transfers goes, and the way of a server's threads to it.
//!
//! It does not format lines (the protocol does), nor write them ([`crate::line_writer`] does). What must
//! hold: lines that are lost are counted.

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

/// A log that is on.
pub(crate) struct Log {
    pub(crate) name: &'static str,
    pub(crate) writer: LineWriter,
}

/// Where a log goes.
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
    /// Whether it can be written, as far as that is known without making anything.
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

    /// As [`Destination::check`], saying which log it is of.
    pub(crate) fn check_as(&self, name: &str) -> anyhow::Result<()> {
        self.check().with_context(|| self.cannot_write(name))
    }

    /// As [`Destination::open`], with the log's name, and saying which it is where it cannot be opened.
    pub(crate) fn open_as(&self, name: &'static str) -> anyhow::Result<Option<Log>> {
        let opened = self.open(name).with_context(|| self.cannot_write(name))?;
        Ok(opened.map(|writer| Log { name, writer }))
    }

    fn cannot_write(&self, name: &str) -> String {
        format!("cannot write the {} {self}", name.replace('-', " "))
    }

    /// Opens it and starts what writes to it, a thread called `name`; none if the log is off.
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
    /// Writes what waits, and ends.
    pub(crate) fn finish(self) {
        if !self.writer.finish() {
            tracing::warn!(log = self.name, "a log's destination takes nothing; its last lines are lost");
        }
    }
}

/// Whoever reads a log knows who has which files: a new one is for its owner alone.
fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).mode(0o600).open(path)
}

/// A server's way to its access log.
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
