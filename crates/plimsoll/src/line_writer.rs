//! Writes log lines to a destination that may be slow or stuck, on its own thread behind a bounded queue.
//!
//! It does not interpret the lines. Invariants: handing lines over never blocks. Lines that do not fit are
//! returned to the caller. The end waits for a bounded time. A failed reopening leaves the open destination
//! in use.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tracing_subscriber::fmt::MakeWriter;

/// The capacity of the queue, in pieces. A piece has one line or several.
const PIECES_MAX: usize = 1024;
/// How long the thread sleeps after the first line, so that more lines gather. No wakeup is needed while it
/// sleeps: a wakeup and a write for each line cost a busy event loop more than many requests do.
const GATHER_TIME: Duration = Duration::from_millis(1);
/// A write takes more pieces from the queue until it has this many bytes.
const GATHERED_BYTES_MAX: usize = 64 * 1024;
/// How long `finish` waits for the last lines, and how often it checks.
const FINISH_TIME: Duration = Duration::from_secs(2);
const FINISH_STEP: Duration = Duration::from_millis(2);

/// Whole lines to write, or the end of the log.
enum Piece {
    Lines(Vec<u8>),
    End,
}

/// Opens the destination, also again after log rotation (logrotate) has renamed the file.
pub(crate) type Open = Box<dyn Fn() -> io::Result<Box<dyn Write + Send>> + Send>;

/// Receives the error when lines could not be written.
pub(crate) type Failed = Box<dyn Fn(&io::Error) + Send>;

/// The handle of the writer thread.
pub(crate) struct LineWriter {
    queue: SyncSender<Piece>,
    reopen: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

/// A sender of lines to the writer thread.
#[derive(Clone)]
pub(crate) struct Lines(SyncSender<Piece>);

/// A handle that orders the thread to open its destination again.
#[derive(Clone)]
pub(crate) struct Reopen {
    wanted: Arc<AtomicBool>,
    queue: SyncSender<Piece>,
}

impl Reopen {
    /// Has all later lines written to a newly opened destination of the same name.
    pub(crate) fn order(&self) {
        self.wanted.store(true, Ordering::SeqCst);
        // Wakes the thread; if the queue is full, it is awake.
        let _ = self.queue.try_send(Piece::Lines(Vec::new()));
    }
}

impl LineWriter {
    /// Starts a thread that writes to the destination of `open`. It calls `failed` for the first of
    /// consecutive errors.
    pub(crate) fn start(name: &str, open: Open, failed: Failed) -> io::Result<LineWriter> {
        let (queue, pieces) = sync_channel(PIECES_MAX);
        let reopen = Arc::<AtomicBool>::default();
        let place = Place { out: open()?, open, reopen: Arc::clone(&reopen), failed };
        let named = std::thread::Builder::new().name(name.to_owned());
        let thread = named.spawn(move || place.write_all(&pieces))?;
        Ok(LineWriter { queue, reopen, thread })
    }

    pub(crate) fn reopen(&self) -> Reopen {
        Reopen { wanted: Arc::clone(&self.reopen), queue: self.queue.clone() }
    }

    pub(crate) fn lines(&self) -> Lines {
        Lines(self.queue.clone())
    }

    /// Writes the queued lines and ends the thread. Returns false on a timeout, which loses the last lines.
    pub(crate) fn finish(self) -> bool {
        let (mut told, begun) = (false, Instant::now());
        // Measured by the clock: on a busy machine, each sleep takes several times its nominal length.
        while begun.elapsed() < FINISH_TIME {
            told = told || !matches!(self.queue.try_send(Piece::End), Err(TrySendError::Full(_)));
            if self.thread.is_finished() {
                return true;
            }
            std::thread::sleep(FINISH_STEP);
        }
        false
    }
}

impl Lines {
    /// Queues whole lines, or returns them if the queue is full.
    pub(crate) fn hand_over(&self, lines: Vec<u8>) -> Result<(), Vec<u8>> {
        match self.0.try_send(Piece::Lines(lines)) {
            Err(
                TrySendError::Full(Piece::Lines(lines)) | TrySendError::Disconnected(Piece::Lines(lines)),
            ) => Err(lines),
            _ => Ok(()),
        }
    }
}

/// For the operator's log, which writes each event in one call. Events that do not fit are lost.
impl Write for Lines {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let _ = self.hand_over(line.to_vec());
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Lines {
    type Writer = Lines;

    fn make_writer(&self) -> Lines {
        self.clone()
    }
}

/// The destination, as the writer thread owns it.
struct Place {
    out: Box<dyn Write + Send>,
    open: Open,
    reopen: Arc<AtomicBool>,
    failed: Failed,
}

impl Place {
    fn write_all(mut self, pieces: &Receiver<Piece>) {
        let (mut failing, mut is_over) = (false, false);
        while !is_over && let Ok(Piece::Lines(mut lines)) = pieces.recv() {
            std::thread::sleep(GATHER_TIME);
            is_over = gather(pieces, &mut lines);
            if self.reopen.swap(false, Ordering::SeqCst) {
                self.open_again();
            }
            let written = self.out.write_all(&lines).and_then(|()| self.out.flush());
            if let Err(error) = &written
                && !failing
            {
                (self.failed)(error);
            }
            failing = written.is_err();
        }
    }

    fn open_again(&mut self) {
        match (self.open)() {
            Ok(out) => self.out = out,
            Err(error) => (self.failed)(&error),
        }
    }
}

/// Appends the pieces that are queued already. Returns whether the end was among them.
fn gather(pieces: &Receiver<Piece>, lines: &mut Vec<u8>) -> bool {
    while lines.len() < GATHERED_BYTES_MAX {
        match pieces.try_recv() {
            Ok(Piece::Lines(more)) => lines.extend_from_slice(&more),
            Ok(Piece::End) => return true,
            Err(_) => return false,
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::path::{Path, PathBuf};
    use std::sync::Mutex;
    use std::sync::mpsc::{Sender, channel};

    use super::*;

    /// Signals the first channel at each write, and blocks until the second is closed.
    struct Stuck(Sender<()>, Receiver<()>);

    impl Write for Stuck {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let _ = self.0.send(());
            let _ = self.1.recv();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_stuck_place_gives_lines_back_and_does_not_hold_up_the_end() {
        let (held, waiting) = channel();
        let (begun, has_begun) = channel();
        let stuck = Mutex::new(Some(Stuck(begun, waiting)));
        let open: Open = Box::new(move || match stuck.lock().unwrap().take() {
            Some(stuck) => Ok(Box::new(stuck)),
            None => Err(io::ErrorKind::NotFound.into()),
        });
        let writer = LineWriter::start("stuck", open, Box::new(|_| {})).unwrap();
        let lines = writer.lines();
        lines.hand_over(b"line\n".to_vec()).unwrap();
        has_begun.recv().unwrap();
        let taken = (0..2 * PIECES_MAX).filter(|_| lines.hand_over(b"line\n".to_vec()).is_ok()).count();
        assert_eq!(taken, PIECES_MAX);
        assert_eq!(lines.hand_over(b"one more\n".to_vec()), Err(b"one more\n".to_vec()));
        assert!(!writer.finish());
        drop(held);
    }

    fn writer_to(path: &Path) -> LineWriter {
        let path = path.to_owned();
        let open: Open =
            Box::new(move || Ok(Box::new(File::options().create(true).append(true).open(&path)?)));
        LineWriter::start("file", open, Box::new(|_| {})).unwrap()
    }

    fn place(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("plimsoll-lines-{name}-{}", std::process::id()))
    }

    fn take(path: &Path) -> String {
        let text = std::fs::read_to_string(path).unwrap();
        std::fs::remove_file(path).unwrap();
        text
    }

    #[test]
    fn what_was_handed_over_is_written_before_the_end() {
        let path = place("end");
        let writer = writer_to(&path);
        let lines = writer.lines();
        (0..100).for_each(|number| lines.hand_over(format!("{number}\n").into_bytes()).unwrap());
        assert!(writer.finish());
        assert_eq!(take(&path), (0..100).map(|number| format!("{number}\n")).collect::<String>());
    }

    #[test]
    fn after_a_file_was_moved_away_and_the_order_what_follows_is_in_a_new_one() {
        let (path, moved) = (place("new"), place("moved"));
        let writer = writer_to(&path);
        writer.lines().hand_over(b"before\n".to_vec()).unwrap();
        while std::fs::read(&path).unwrap().is_empty() {}
        std::fs::rename(&path, &moved).unwrap();
        writer.reopen().order();
        writer.lines().hand_over(b"after\n".to_vec()).unwrap();
        assert!(writer.finish());
        assert_eq!((take(&moved).as_str(), take(&path).as_str()), ("before\n", "after\n"));
    }
}
