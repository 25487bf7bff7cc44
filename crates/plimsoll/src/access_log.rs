//! Writes the access log, on a thread of its own.
//!
//! It does not format lines (the protocol does). What must hold: a slow disk fills a bounded queue and then
//! loses lines, which are counted; it never makes a connection wait.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use plimsoll_proto::http::{Counters, LogSink};

/// Chunks of lines that wait to be written; each is 32 KiB or a fifth of a second of a thread.
const CHUNKS_MAX: usize = 1024;

/// How long the end of the server waits for the last lines to be written, and how often it looks.
const FINISH_TIME: Duration = Duration::from_secs(2);
const FINISH_STEP: Duration = Duration::from_millis(5);

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

/// Lines to be written, or the end.
enum Chunk {
    Lines(Vec<u8>),
    End,
}

/// The thread that writes, and the way to it.
pub(crate) struct LogWriter {
    queue: SyncSender<Chunk>,
    thread: JoinHandle<()>,
    counters: Arc<Counters>,
}

/// A thread's way to the writer.
pub(crate) struct Sink {
    queue: SyncSender<Chunk>,
    counters: Arc<Counters>,
}

impl LogWriter {
    /// Opens the destination and starts the thread; none if the log is off.
    pub(crate) fn start(to: &Destination, counters: &Arc<Counters>) -> io::Result<Option<LogWriter>> {
        let out: Box<dyn Write + Send> = match to {
            Destination::Off => return Ok(None),
            Destination::Stdout => Box::new(io::stdout()),
            Destination::File(path) => Box::new(open(path)?),
        };
        let (queue, chunks) = sync_channel(CHUNKS_MAX);
        let thread =
            std::thread::Builder::new().name("access-log".to_owned()).spawn(move || write(&chunks, out))?;
        Ok(Some(LogWriter { queue, thread, counters: Arc::clone(counters) }))
    }

    pub(crate) fn sink(&self) -> Arc<Sink> {
        Arc::new(Sink { queue: self.queue.clone(), counters: Arc::clone(&self.counters) })
    }

    /// Writes what waits, and ends; gives up on a destination that takes nothing.
    pub(crate) fn finish(self) {
        let tries = FINISH_TIME.as_millis() / FINISH_STEP.as_millis();
        let mut told = false;
        for _ in 0..tries {
            told = told || !matches!(self.queue.try_send(Chunk::End), Err(TrySendError::Full(_)));
            if self.thread.is_finished() {
                return;
            }
            std::thread::sleep(FINISH_STEP);
        }
        tracing::warn!("the access log's destination takes nothing; its last lines are lost");
    }
}

fn open(path: &PathBuf) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).open(path)
}

fn write(chunks: &Receiver<Chunk>, mut out: Box<dyn Write + Send>) {
    let mut failing = false;
    while let Ok(Chunk::Lines(lines)) = chunks.recv() {
        let written = out.write_all(&lines).and_then(|()| out.flush());
        if let Err(error) = &written
            && !failing
        {
            tracing::error!(%error, "the access log cannot be written; serving goes on without it");
        }
        failing = written.is_err();
    }
}

impl LogSink for Sink {
    fn take(&self, lines: Vec<u8>) {
        if let Err(
            TrySendError::Full(Chunk::Lines(lines)) | TrySendError::Disconnected(Chunk::Lines(lines)),
        ) = self.queue.try_send(Chunk::Lines(lines))
        {
            let count = lines.iter().filter(|&&byte| byte == b'\n').count();
            self.counters.drop_log_lines(count as u64);
        }
    }
}
