//! Progress bars, one for the latest file and one for all, and the summary line.
//!
//! Nothing is drawn unless standard error is a terminal. Invariants: a line printed between bars stays
//! intact. No bar remains on the terminal when the command ends, not even after Ctrl-C.

use std::cell::{Cell, OnceCell};
use std::fmt;
use std::io::Write as _;
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use signal_hook::consts::SIGINT;
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;

use crate::limits::BARS_AFTER_TIME;
use crate::output;

/// The progress of a command, and its bars.
pub(crate) struct Progress {
    is_shown: bool,
    files: usize,
    /// Bytes of all files together; `None` if unknown.
    bytes: Option<u64>,
    started: Instant,
    /// Bytes transferred so far.
    transferred: Cell<u64>,
    /// The name and length of the latest file.
    latest: Cell<(String, Option<u64>)>,
    both: MultiProgress,
    bars: OnceCell<Bars>,
}

struct Bars {
    file: ProgressBar,
    total: ProgressBar,
}

/// The progress of one file.
pub(crate) struct FileProgress<'a> {
    progress: &'a Progress,
    at: Cell<u64>,
    /// Whether a position was recorded: bytes before the first one were transferred earlier.
    has_begun: Cell<bool>,
}

const FILE: &str = "{bar:20} {at:>10} of {of:>10}  {binary_bytes_per_sec:>12}  {eta:>4}  {wide_msg}";
const TOTAL: &str = "{bar:20} {at:>10} of {of:>10}  {binary_bytes_per_sec:>12}  {eta:>4}  total{msg}";
/// Without a length, no bar and no remaining time can be shown.
const STREAM: &str = "{spinner} {at:>10}  {binary_bytes_per_sec:>12}  {wide_msg}";

impl Progress {
    /// Returns a progress that draws nothing.
    pub(crate) fn none() -> Progress {
        Progress::new(true, 0, None)
    }

    /// Creates the progress of so many files with so many bytes together; `is_quiet` draws nothing.
    pub(crate) fn new(is_quiet: bool, files: usize, bytes: Option<u64>) -> Progress {
        Progress {
            is_shown: !is_quiet && std::io::IsTerminal::is_terminal(&std::io::stderr()),
            files,
            bytes,
            started: Instant::now(),
            transferred: Cell::new(0),
            latest: Cell::default(),
            both: MultiProgress::new(),
            bars: OnceCell::new(),
        }
    }

    /// On Ctrl-C, clears the bars, prints `line`, and ends the program as the signal does.
    pub(crate) fn on_interrupt(&self, line: &'static str) -> anyhow::Result<()> {
        let mut signals = Signals::new([SIGINT])?;
        let both = self.both.clone();
        std::thread::Builder::new().name("interrupt".to_owned()).spawn(move || {
            if signals.forever().next().is_some() {
                // A terminal that is gone needs neither.
                let _ = both.clear();
                let _ = writeln!(std::io::stderr(), "\n{line}");
                // Does not return: the signal ends the program.
                let _ = emulate_default_handler(SIGINT);
            }
        })?;
        Ok(())
    }

    /// Starts a file; `bytes` is its length, if known.
    pub(crate) fn begin(&self, name: &str, bytes: Option<u64>) -> FileProgress<'_> {
        if let Some(bars) = self.bars.get() {
            bars.describe(name, bytes);
            bars.file.reset();
        } else if self.is_shown {
            self.latest.set((name.to_owned(), bytes));
        }
        FileProgress { progress: self, at: Cell::new(0), has_begun: Cell::new(false) }
    }

    /// Returns the bars once the command has taken so long that they are worth drawing. New ones begin at the
    /// position `at` of the latest file: the speed is that of the bytes to come.
    fn bars(&self, at: u64) -> Option<&Bars> {
        if !self.is_shown || (self.bars.get().is_none() && self.started.elapsed() < BARS_AFTER_TIME) {
            return None;
        }
        Some(self.bars.get_or_init(|| {
            let (name, bytes) = self.latest.take();
            // Complete before it is added, which draws it.
            let file = bar(template(bytes), bytes, at).with_message(name);
            let total = bar(TOTAL, self.bytes, self.transferred.get());
            file.reset_eta();
            total.reset_eta();
            let file = self.both.add(file);
            let total = if self.files > 1 { self.both.add(total) } else { ProgressBar::hidden() };
            Bars { file, total }
        }))
    }

    /// Prints a line on standard error.
    pub(crate) fn print_line(&self, line: &str) {
        // If standard error is closed, the line is dropped.
        let say = || drop(writeln!(std::io::stderr(), "{line}"));
        self.both.suspend(say);
    }

    /// Prints what was done, where bars would be drawn: the name of the file, or the number of several, with
    /// their bytes and the time. `unchanged` files were skipped.
    pub(crate) fn summarise(&self, names: &[String], bytes: u64, unchanged: usize) {
        if !self.is_shown || (names.is_empty() && unchanged == 0) {
            return;
        }
        self.clear();
        let done = match names {
            [name] => name.clone(),
            names => output::files(names.len() as u64),
        };
        let skipped = if unchanged > 0 { format!("; {unchanged} unchanged") } else { String::new() };
        self.print_line(&format!(
            "{done}  {} in {}{skipped}",
            output::size(bytes),
            duration(self.started.elapsed())
        ));
    }

    fn clear(&self) {
        if let Some(bars) = self.bars.get() {
            bars.file.finish_and_clear();
            bars.total.finish_and_clear();
            // A closed terminal needs no clearing.
            let _ = self.both.clear();
        }
    }
}

impl Bars {
    fn describe(&self, name: &str, bytes: Option<u64>) {
        self.file.set_style(style(template(bytes)));
        self.file.set_length(bytes.unwrap_or(0));
        self.file.set_message(name.to_owned());
    }
}

impl FileProgress<'_> {
    /// Records that the file has been transferred as far as `bytes`.
    pub(crate) fn at(&self, bytes: u64) {
        let Progress { transferred, .. } = self.progress;
        let all = (transferred.get() + bytes).saturating_sub(self.at.replace(bytes));
        transferred.set(all);
        let is_first = !self.has_begun.replace(true);
        if let Some(bars) = self.progress.bars(bytes) {
            bars.file.set_position(bytes);
            bars.total.set_position(all);
            if is_first && bytes > 0 {
                // A resumed file: its speed is that of the bytes to come.
                bars.file.reset_eta();
                bars.total.reset_eta();
            }
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.clear();
    }
}

fn bar(template: &str, bytes: Option<u64>, at: u64) -> ProgressBar {
    ProgressBar::with_draw_target(Some(bytes.unwrap_or(0)), ProgressDrawTarget::hidden())
        .with_style(style(template))
        .with_position(at)
}

fn template(bytes: Option<u64>) -> &'static str {
    if bytes.is_some() { FILE } else { STREAM }
}

/// Returns the style of a template. Sizes are formatted as in the summary.
fn style(template: &str) -> ProgressStyle {
    let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    let at = |state: &ProgressState, to: &mut dyn fmt::Write| write_size(state.pos(), to);
    let of = |state: &ProgressState, to: &mut dyn fmt::Write| write_size(state.len().unwrap_or(0), to);
    style.with_key("at", at).with_key("of", of)
}

fn write_size(bytes: u64, to: &mut dyn fmt::Write) {
    // A frame that cannot be formatted is drawn without it.
    let _ = to.write_str(&output::size(bytes));
}

/// Formats a duration in tenths of a second, or in minutes: `3.1 s`, `4 min 05 s`.
fn duration(time: Duration) -> String {
    match time.as_secs() {
        0..60 => format!("{:.1} s", time.as_secs_f64()),
        seconds => format!("{} min {:02} s", seconds / 60, seconds % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_short() {
        assert_eq!(duration(Duration::from_millis(3140)), "3.1 s");
        assert_eq!(duration(Duration::from_secs(245)), "4 min 05 s");
    }

    #[test]
    fn the_total_counts_files_that_are_transferred_together() {
        let progress = Progress::none();
        let (one, other) = (progress.begin("one", Some(10)), progress.begin("other", None));
        one.at(4);
        other.at(5);
        // A transfer that starts again.
        one.at(0);
        one.at(10);
        assert_eq!(progress.transferred.get(), 15);
    }
}
