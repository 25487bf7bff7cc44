//! Writes log lines to a destination that may be slow or stuck, on its own thread behind a bounded queue.
//!
//! It does not interpret the lines. Invariants: handing lines over never blocks. Lines that do not fit are
//! returned to the caller. The end waits for a bounded time. A failed reopening leaves the open destination
//! in use.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::time::Duration;

use tracing_subscriber::fmt::MakeWriter;

use crate::bounded_thread::BoundedThread;
use crate::limits::{GATHERED_BYTES_MAX, QUEUED_PIECES_MAX};

/// How long the thread sleeps after the first line, so that more lines gather. No wakeup is needed while it
/// sleeps: a wakeup and a write for each line cost a busy event loop more than many requests do.
const GATHER_TIME: Duration = Duration::from_millis(1);
/// How long `finish` waits for the last lines.
const FINISH_TIME: Duration = Duration::from_secs(2);

/// Orders to the writer thread. Each is followed by an empty piece in the queue, which wakes the thread; if
/// the queue is full, the thread is awake.
#[derive(Default)]
struct Orders {
    reopen: AtomicBool,
    end: AtomicBool,
}

/// Opens the destination, also again after log rotation (logrotate) has renamed the file.
pub(crate) type Open = Box<dyn Fn() -> io::Result<Box<dyn Write + Send>> + Send>;

/// Receives the error when lines could not be written.
pub(crate) type Failed = Box<dyn Fn(&io::Error) + Send>;

/// The handle of the writer thread.
pub(crate) struct LineWriter {
    queue: SyncSender<Vec<u8>>,
    orders: Arc<Orders>,
    thread: BoundedThread<()>,
}

/// A sender of lines to the writer thread.
#[derive(Clone)]
pub(crate) struct Lines(SyncSender<Vec<u8>>);

/// A handle that orders the thread to open its destination again.
#[derive(Clone)]
pub(crate) struct Reopen {
    orders: Arc<Orders>,
    queue: SyncSender<Vec<u8>>,
}

impl Reopen {
    /// Has all later lines written to a newly opened destination of the same name.
    pub(crate) fn order(&self) {
        self.orders.reopen.store(true, Ordering::SeqCst);
        let _ = self.queue.try_send(Vec::new());
    }
}

impl LineWriter {
    /// Starts a thread that writes to the destination of `open`. It calls `failed` for the first of
    /// consecutive errors.
    pub(crate) fn start(name: &str, open: Open, failed: Failed) -> io::Result<LineWriter> {
        let (queue, pieces) = sync_channel(QUEUED_PIECES_MAX);
        let orders = Arc::<Orders>::default();
        let destination = Destination { out: open()?, open, orders: Arc::clone(&orders), failed };
        let thread = BoundedThread::spawn(name, move || destination.write_all(&pieces))?;
        Ok(LineWriter { queue, orders, thread })
    }

    pub(crate) fn reopen(&self) -> Reopen {
        Reopen { orders: Arc::clone(&self.orders), queue: self.queue.clone() }
    }

    pub(crate) fn lines(&self) -> Lines {
        Lines(self.queue.clone())
    }

    /// Writes the queued lines and ends the thread. Returns false on a timeout, which loses the last lines.
    pub(crate) fn finish(self) -> bool {
        self.orders.end.store(true, Ordering::SeqCst);
        let _ = self.queue.try_send(Vec::new());
        self.thread.join_within(FINISH_TIME).is_some()
    }
}

impl Lines {
    /// Queues whole lines, or returns them if the queue is full.
    pub(crate) fn hand_over(&self, lines: Vec<u8>) -> Result<(), Vec<u8>> {
        self.0.try_send(lines).map_err(|error| match error {
            TrySendError::Full(lines) | TrySendError::Disconnected(lines) => lines,
        })
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
struct Destination {
    out: Box<dyn Write + Send>,
    open: Open,
    orders: Arc<Orders>,
    failed: Failed,
}

impl Destination {
    fn write_all(mut self, pieces: &Receiver<Vec<u8>>) {
        let (mut failing, mut is_ending) = (false, false);
        loop {
            let next = if is_ending { pieces.try_recv().ok() } else { pieces.recv().ok() };
            let Some(mut lines) = next else { return };
            std::thread::sleep(GATHER_TIME);
            gather(pieces, &mut lines);
            // Read after the queue: an order that found the queue full precedes the pieces' removal.
            is_ending = self.orders.end.load(Ordering::SeqCst);
            if self.orders.reopen.swap(false, Ordering::SeqCst) {
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

/// Appends the pieces that are queued already.
fn gather(pieces: &Receiver<Vec<u8>>, lines: &mut Vec<u8>) {
    while lines.len() < GATHERED_BYTES_MAX
        && let Ok(more) = pieces.try_recv()
    {
        lines.extend_from_slice(&more);
    }
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
        let taken =
            (0..2 * QUEUED_PIECES_MAX).filter(|_| lines.hand_over(b"line\n".to_vec()).is_ok()).count();
        assert_eq!(taken, QUEUED_PIECES_MAX);
        assert_eq!(lines.hand_over(b"one more\n".to_vec()), Err(b"one more\n".to_vec()));
        assert!(!writer.finish());
        drop(held);
    }

    #[test]
    fn the_order_to_end_is_obeyed_if_the_queue_was_full_when_it_came() {
        let (held, waiting) = channel();
        let (begun, has_begun) = channel();
        let stuck = Mutex::new(Some(Stuck(begun, waiting)));
        let open: Open = Box::new(move || match stuck.lock().unwrap().take() {
            Some(stuck) => Ok(Box::new(stuck)),
            None => Err(io::ErrorKind::NotFound.into()),
        });
        let writer = LineWriter::start("full", open, Box::new(|_| {})).unwrap();
        let lines = writer.lines();
        lines.hand_over(b"line\n".to_vec()).unwrap();
        has_begun.recv().unwrap();
        while lines.hand_over(b"line\n".to_vec()).is_ok() {}
        let orders = Arc::clone(&writer.orders);
        let ending = std::thread::spawn(move || writer.finish());
        while !orders.end.load(Ordering::SeqCst) {
            std::thread::yield_now();
        }
        drop(held);
        assert!(ending.join().unwrap());
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
    fn lines_handed_over_are_written_before_the_end() {
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
