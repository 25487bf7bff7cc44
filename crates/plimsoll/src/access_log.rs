//! The access log's destination, and the way of a server's threads to it.
//!
//! It does not format lines (the protocol does), nor write them ([`crate::line_writer`] does). What must
//! hold: lines that are lost are counted.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use plimsoll_proto::http::{Counters, LogSink};

use crate::line_writer::{LineWriter, Lines};

/// Where the access log goes.
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
    pub(crate) fn check(&self) -> io::Result<()> {
        match self {
            Destination::File(path) if path.exists() => OpenOptions::new().append(true).open(path).map(drop),
            Destination::File(path) => {
                let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
                std::fs::read_dir(folder.unwrap_or(Path::new("."))).map(drop)
            }
            Destination::Off | Destination::Stdout => Ok(()),
        }
    }

    /// Opens it and starts what writes to it; none if the log is off.
    pub(crate) fn open(&self) -> io::Result<Option<LineWriter>> {
        let out: Box<dyn Write + Send> = match self {
            Destination::Off => return Ok(None),
            Destination::Stdout => Box::new(io::stdout()),
            Destination::File(path) => Box::new(open(path)?),
        };
        let failed = |error: &io::Error| {
            tracing::error!(%error, "the access log cannot be written; serving goes on without it");
        };
        LineWriter::start("access-log", out, failed).map(Some)
    }
}

fn open(path: &PathBuf) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).open(path)
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
