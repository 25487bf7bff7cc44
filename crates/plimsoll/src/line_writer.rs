//! Lines to a place that may be slow or stuck: a thread of its own behind a bounded queue.
//!
//! It does not know what the lines are. What must hold: handing lines over never waits; what does not fit
//! is given back, to be counted or forgotten; the end waits for a bounded time.

use std::io::{self, Write};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use tracing_subscriber::fmt::MakeWriter;

/// Pieces that wait to be written, each of one line or many.
const PIECES_MAX: usize = 1024;
/// How long the end waits for the last lines to be written, and how often it looks.
const FINISH_TIME: Duration = Duration::from_secs(2);
const FINISH_STEP: Duration = Duration::from_millis(2);

/// Lines to be written, or the end.
enum Piece {
    Lines(Vec<u8>),
    End,
}

/// The thread that writes.
pub(crate) struct LineWriter {
    queue: SyncSender<Piece>,
    thread: JoinHandle<()>,
}

/// A way to the thread.
#[derive(Clone)]
pub(crate) struct Lines(SyncSender<Piece>);

impl LineWriter {
    /// Starts the thread; it calls `failed` at the first error of a row.
    pub(crate) fn start(
        name: &str,
        out: Box<dyn Write + Send>,
        failed: fn(&io::Error),
    ) -> io::Result<LineWriter> {
        let (queue, pieces) = sync_channel(PIECES_MAX);
        let named = std::thread::Builder::new().name(name.to_owned());
        let thread = named.spawn(move || write_all(&pieces, out, failed))?;
        Ok(LineWriter { queue, thread })
    }

    pub(crate) fn lines(&self) -> Lines {
        Lines(self.queue.clone())
    }

    /// Writes what waits, and ends; false if the place takes nothing and the last lines are lost.
    pub(crate) fn finish(self) -> bool {
        let mut told = false;
        for _ in 0..FINISH_TIME.as_millis() / FINISH_STEP.as_millis() {
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
    /// Hands whole lines over, or gives them back.
    pub(crate) fn hand_over(&self, lines: Vec<u8>) -> Result<(), Vec<u8>> {
        match self.0.try_send(Piece::Lines(lines)) {
            Err(
                TrySendError::Full(Piece::Lines(lines)) | TrySendError::Disconnected(Piece::Lines(lines)),
            ) => Err(lines),
            _ => Ok(()),
        }
    }
}

/// For the operator's log: each of its events is one write. What does not fit is lost.
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

fn write_all(pieces: &Receiver<Piece>, mut out: Box<dyn Write + Send>, failed: fn(&io::Error)) {
    let mut failing = false;
    while let Ok(Piece::Lines(lines)) = pieces.recv() {
        let written = out.write_all(&lines).and_then(|()| out.flush());
        if let Err(error) = &written
            && !failing
        {
            failed(error);
        }
        failing = written.is_err();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    /// Takes nothing until its other end is dropped.
    struct Stuck(Receiver<()>);

    impl Write for Stuck {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let _ = self.0.recv();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_stuck_place_gives_lines_back_and_does_not_hold_up_the_end() {
        let (held, waiting) = channel();
        let writer = LineWriter::start("stuck", Box::new(Stuck(waiting)), |_| {}).unwrap();
        let lines = writer.lines();
        let taken = (0..2 * PIECES_MAX).filter(|_| lines.hand_over(b"line\n".to_vec()).is_ok()).count();
        assert!((PIECES_MAX..=PIECES_MAX + 1).contains(&taken), "{taken}");
        assert_eq!(lines.hand_over(b"one more\n".to_vec()), Err(b"one more\n".to_vec()));
        assert!(!writer.finish());
        drop(held);
    }

    #[test]
    fn what_was_handed_over_is_written_before_the_end() {
        let folder = std::env::temp_dir().join(format!("plimsoll-lines-{}", std::process::id()));
        let file = std::fs::File::create(&folder).unwrap();
        let writer = LineWriter::start("file", Box::new(file), |_| {}).unwrap();
        let lines = writer.lines();
        (0..100).for_each(|number| lines.hand_over(format!("{number}\n").into_bytes()).unwrap());
        assert!(writer.finish());
        let written = std::fs::read_to_string(&folder).unwrap();
        std::fs::remove_file(&folder).unwrap();
        assert_eq!(written, (0..100).map(|number| format!("{number}\n")).collect::<String>());
    }
}
