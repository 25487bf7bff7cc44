//! The live line of a running trial, and signals that end it early.
//!
//! It computes none of the final figures. Invariants: the line is on standard error, and only on a
//! terminal. The first signal ends the trial, a second one the program.

use std::io::{IsTerminal as _, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use plimsoll_io::Stop;
use plimsoll_load::{Progress, ProgressReporter, size};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag::register_conditional_shutdown;
use signal_hook::iterator::Signals;

/// Ends trials by a signal: the present one, and all that would follow.
pub(super) struct EndBySignal {
    is_ordered: Arc<AtomicBool>,
    present: Arc<Mutex<Stop>>,
}

impl EndBySignal {
    /// Watches for signals from now on.
    pub(super) fn watch() -> std::io::Result<EndBySignal> {
        let (is_ordered, present) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(Stop::new())));
        for signal in [SIGTERM, SIGINT] {
            register_conditional_shutdown(signal, 128 + signal, Arc::clone(&is_ordered))?;
        }
        let mut signals = Signals::new([SIGTERM, SIGINT])?;
        let watched = EndBySignal { is_ordered: Arc::clone(&is_ordered), present: Arc::clone(&present) };
        std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
            for _ in signals.forever() {
                is_ordered.store(true, Ordering::SeqCst);
                present.lock().unwrap_or_else(PoisonError::into_inner).order();
            }
        })?;
        Ok(watched)
    }

    /// Returns the stop signal of the next trial; `None` after a signal.
    pub(super) fn next_trial(&self) -> Option<Stop> {
        let mut present = self.present.lock().unwrap_or_else(PoisonError::into_inner);
        if self.is_ordered.load(Ordering::SeqCst) {
            return None;
        }
        *present = Stop::new();
        Some(present.clone())
    }
}

/// The live line on standard error.
pub(super) struct ProgressLine {
    is_shown: bool,
}

impl ProgressLine {
    /// Creates the line, which is shown only on a terminal.
    pub(super) fn new(quiet: bool) -> ProgressLine {
        ProgressLine { is_shown: !quiet && std::io::stderr().is_terminal() }
    }

    /// Returns the callback by which a trial updates the line.
    pub(super) fn progress(&self) -> ProgressReporter {
        match self.is_shown {
            true => ProgressReporter::watched(Box::new(|look| write(&line(look)))),
            false => ProgressReporter::default(),
        }
    }

    /// Clears the line.
    pub(super) fn end(&self) {
        if self.is_shown {
            write("");
        }
    }
}

fn line(look: Progress) -> String {
    if !look.is_measured {
        return "warming up".to_owned();
    }
    let seconds = look.time.as_secs_f64().max(f64::MIN_POSITIVE);
    let (rate, bytes) = (look.requests as f64 / seconds, size(look.bytes as f64 / seconds));
    format!(
        "{seconds:6.1} s  {:>11} requests  {rate:>11.0}/s  {bytes:>10}/s  {} errors",
        look.requests, look.errors
    )
}

/// Overwrites the current line.
fn write(line: &str) {
    // Standard error may be closed.
    let _ = std::io::stderr().write_all(format!("\r\x1b[2K{line}").as_bytes());
}
