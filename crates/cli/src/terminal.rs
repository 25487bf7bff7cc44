//! The terminal: reading an answer, with or without echo.
//!
//! It does not draw progress bars. Invariant: the terminal echoes again afterwards, even if a signal ends
//! the program in between. A killed program (SIGKILL) cannot restore it.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;

use crate::limits::PASSWORD_BYTES_MAX;

/// Opens the terminal of this process, if it has one.
pub(crate) fn open() -> Option<File> {
    OpenOptions::new().read(true).write(true).open("/dev/tty").ok()
}

/// Asks a question on the terminal, and reads a line without echo.
pub(crate) fn read_hidden_line(terminal: &File, question: &str) -> io::Result<Vec<u8>> {
    let mut out = terminal;
    let hidden = Hidden::begin(terminal.try_clone()?)?;
    let read = read_line(terminal, question);
    hidden.end();
    out.write_all(b"\n")?;
    read
}

/// Asks a question on the terminal, and reads a line.
pub(crate) fn read_line(terminal: &File, question: &str) -> io::Result<Vec<u8>> {
    let (mut out, mut line) = (terminal, Vec::new());
    out.write_all(question.as_bytes())?;
    BufReader::new(terminal.take(PASSWORD_BYTES_MAX)).read_until(b'\n', &mut line)?;
    if line.pop_if(|byte| *byte == b'\n').is_none() {
        return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "nothing was typed"));
    }
    Ok(line)
}

/// A terminal with echo off, and its settings before.
#[derive(Clone)]
struct Hidden(Arc<Mutex<Option<(File, Termios)>>>);

impl Hidden {
    fn begin(terminal: File) -> io::Result<Hidden> {
        let before = tcgetattr(&terminal)?;
        let mut unseen = before.clone();
        unseen.local_modes.remove(LocalModes::ECHO);
        let hidden = Hidden(Arc::new(Mutex::new(Some((terminal, before)))));
        hidden.watch()?;
        let saved = hidden.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((terminal, _)) = &*saved {
            tcsetattr(terminal, OptionalActions::Flush, &unseen)?;
        }
        drop(saved);
        Ok(hidden)
    }

    /// Restores the terminal on a signal, then ends the program by the signal's default action.
    fn watch(&self) -> io::Result<()> {
        let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
        let hidden = self.clone();
        std::thread::Builder::new().name("terminal".to_owned()).spawn(move || {
            for signal in signals.forever() {
                hidden.end();
                // Does not return: these signals end the program.
                let _ = emulate_default_handler(signal);
            }
        })?;
        Ok(())
    }

    /// Restores the terminal's settings.
    fn end(&self) {
        let before = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some((terminal, before)) = before {
            // A terminal that is gone needs no settings.
            let _ = tcsetattr(&terminal, OptionalActions::Flush, &before);
        }
    }
}
