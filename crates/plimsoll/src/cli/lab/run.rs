//! `plimsoll lab run`: runs experiments and shows their progress.
//!
//! It computes no figure. Invariants: the progress is on standard error; Ctrl-C ends the run after what is
//! measured has been written, and the same command resumes it.

use std::io::{IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Context as _;
use clap::{Args, ValueEnum};
use plimsoll_cli::WrongUsage;
use plimsoll_cli::output::print;
use plimsoll_lab::profile::Profiler;
use plimsoll_lab::report;
use plimsoll_lab::results::Results;
use plimsoll_lab::run::{self, Ended, Options, Progress, quick};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use super::{VariationFlags, WORK, check_load, checked};

/// Run experiments, and write what they measure into a folder
#[derive(Args)]
#[command(after_help = "Examples:
  plimsoll lab run saturation-http --out results/http
  plimsoll lab run my.toml --quick
  plimsoll lab run my.toml --profile perf                which functions use the CPU time
  plimsoll lab run a.toml b.toml --work /mnt/disk        files and servers' data on another disk
  plimsoll lab run peers --only plimsoll-epoll,nginx-tuned --at files=1K,10K --set repetitions=20

The results folder has report.html, report.md, trials.csv, and trials.jsonl, a line for each trial. A trial
that fails is written down with its reason, and the run goes on. The same command resumes a
run that was ended, and repeats the trials that failed. A run does not start with what `lab check` finds.")]
pub(super) struct RunExperiments {
    /// Experiment files, or names of `plimsoll lab list`
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The results folder; of several experiments, the folder of all [default: lab-results/NAME]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// The folder for files that are served and for the servers' own data
    #[arg(long, value_name = "DIR", default_value = WORK)]
    work: PathBuf,
    #[command(flatten)]
    variation: VariationFlags,
    /// Every kind of trial once, for a fraction of a second: shows that the experiment works
    #[arg(long)]
    quick: bool,
    /// One more trial for each contender and case, behind a profiler: a table by function in the report
    #[arg(long, value_enum, value_name = "PROFILER")]
    profile: Option<ProfilerName>,
}

/// The name of a profiler.
#[derive(Clone, Copy, ValueEnum)]
enum ProfilerName {
    /// Valgrind's: counts instructions outside the kernel, and slows the server down many times
    Callgrind,
    /// Linux's: samples of the CPU time, with that in the kernel
    Perf,
}

impl From<ProfilerName> for Profiler {
    fn from(name: ProfilerName) -> Profiler {
        match name {
            ProfilerName::Callgrind => Profiler::Callgrind,
            ProfilerName::Perf => Profiler::Perf,
        }
    }
}

impl RunExperiments {
    pub(super) fn run(self) -> anyhow::Result<()> {
        let mut texts = Vec::new();
        // All files are checked before the first trial of any.
        for file in &self.files {
            let text = self.variation.of(file)?;
            let text = match self.quick {
                true => {
                    // A mistake is reported with its line in the file, not in the quick form.
                    checked(file, &text)?;
                    quick(&text)?
                }
                false => text,
            };
            let experiment = checked(file, &text)?;
            if let Some(profile) = self.profile {
                let checked = run::check_profiler(&experiment, profile.into());
                checked.map_err(|error| WrongUsage(format!("{}: {error:#}", file.display())))?;
            }
            texts.push((experiment.name, text));
        }
        let stop = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            signal_hook::flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&stop))?;
            signal_hook::flag::register(signal, Arc::clone(&stop))?;
        }
        let mut failed = 0;
        for (name, text) in &texts {
            let out = self.folder(name);
            let ended = self.run_one(text, &out, &stop)?;
            failed += ended.failed;
            anyhow::ensure!(
                ended.is_complete,
                "the run was ended; the same command resumes it in {}",
                out.display()
            );
            let results = Results::read(&out)?;
            report::write(&out, &results)?;
            print(format!(
                "{}\n{name}: report.html, report.md and trials.csv are in {}\n",
                report::summary(&results),
                out.display()
            ))?;
        }
        anyhow::ensure!(failed == 0, "trials without figures: {failed}; the report has their reasons");
        Ok(())
    }

    fn run_one(&self, text: &str, out: &Path, stop: &AtomicBool) -> anyhow::Result<Ended> {
        let program = std::env::current_exe().context("cannot find the path of plimsoll")?;
        let profiler = self.profile.map(Profiler::from);
        let options = Options { out, work: &self.work, program, stop, check_load: &check_load, profiler };
        let ended = run::run(text, &options, &mut print_progress);
        if std::io::stderr().is_terminal() {
            show_line("\r\x1b[K");
        }
        if stop.load(Ordering::Relaxed) && ended.is_err() {
            return Ok(Ended { is_complete: false, failed: 0 });
        }
        ended
    }

    fn folder(&self, name: &str) -> PathBuf {
        match (&self.out, self.files.len()) {
            (Some(out), 1) => out.clone(),
            (Some(out), _) => out.join(name),
            (None, _) => Path::new("lab-results").join(name),
        }
    }
}

/// Shows the next trial and the remaining time.
fn print_progress(progress: &Progress) {
    let Progress { done, total, next, left } = progress;
    let line = format!("{}/{total}  {next}  {} left", done + 1, clock(*left));
    if std::io::stderr().is_terminal() {
        show_line(&format!("\r\x1b[K{line}"));
    } else {
        show_line(&format!("{line}\n"));
    }
}

/// Writes to standard error. A closed one ends no run.
fn show_line(text: &str) {
    let _ = std::io::stderr().write_all(text.as_bytes());
}

/// Formats a time as `1:02:03` or `2:03`.
fn clock(time: Duration) -> String {
    let seconds = time.as_secs();
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    if hours > 0 { format!("{hours}:{minutes:02}:{seconds:02}") } else { format!("{minutes}:{seconds:02}") }
}
