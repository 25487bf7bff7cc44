//! Progress bars: one for the file under way, one for all.
//!
//! They are for people: where standard error is no terminal, nothing is drawn. What must hold: a line that
//! is said in between stands whole.

use std::io::Write as _;

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};

/// The bars of a command.
pub(crate) struct Progress {
    bars: Option<Bars>,
}

struct Bars {
    both: MultiProgress,
    file: ProgressBar,
    total: ProgressBar,
    /// Where the file under way begins in the total.
    before: std::cell::Cell<u64>,
}

const FILE: &str =
    "{bar:20} {bytes:>10} of {total_bytes:>10}  {binary_bytes_per_sec:>12}  {eta:>4}  {wide_msg}";
const TOTAL: &str =
    "{bar:20} {bytes:>10} of {total_bytes:>10}  {binary_bytes_per_sec:>12}  {eta:>4}  total{msg}";

impl Progress {
    /// No bars.
    pub(crate) fn none() -> Progress {
        Progress { bars: None }
    }

    /// Bars for so many files with so many bytes together, unless they are not wanted.
    pub(crate) fn new(is_quiet: bool, files: usize, bytes: u64) -> Progress {
        if is_quiet || !std::io::IsTerminal::is_terminal(&std::io::stderr()) {
            return Progress::none();
        }
        let both = MultiProgress::new();
        let bar = |template| {
            let style = ProgressStyle::with_template(template);
            ProgressBar::new(0).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
        };
        let (file, total) = (both.add(bar(FILE)), bar(TOTAL));
        total.set_length(bytes);
        let total = if files > 1 { both.add(total) } else { ProgressBar::hidden() };
        Progress { bars: Some(Bars { both, file, total, before: 0.into() }) }
    }

    /// A file begins; `bytes` is its length, if that is known.
    pub(crate) fn begin(&self, name: &str, bytes: Option<u64>) {
        if let Some(bars) = &self.bars {
            bars.before.set(bars.total.position());
            bars.file.reset();
            bars.file.set_message(name.to_owned());
            bars.file.set_length(bytes.unwrap_or(0));
        }
    }

    /// The file under way has come so far.
    pub(crate) fn at(&self, bytes: u64) {
        if let Some(bars) = &self.bars {
            bars.file.set_position(bytes);
            bars.total.set_position(bars.before.get() + bytes);
        }
    }

    /// Says a line on standard error.
    pub(crate) fn say(&self, line: &str) {
        // If standard error is gone, there is nobody left to tell.
        let say = || drop(writeln!(std::io::stderr(), "{line}"));
        match &self.bars {
            Some(bars) => bars.both.suspend(say),
            None => say(),
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bars) = &self.bars {
            bars.file.finish_and_clear();
            bars.total.finish_and_clear();
        }
    }
}
