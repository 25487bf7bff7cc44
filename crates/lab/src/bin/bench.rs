//! The command line of the benchmark; `make bench` and `cargo xtask bench` call it.
//!
//! It measures nothing itself. Invariant: Ctrl-C ends a run early, restores the machine's settings, and
//! reports the results so far.

#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "it talks to whoever typed it")]

use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::{Context as _, Result, ensure};
use clap::Parser;
use plimsoll_lab::bench::report;
use plimsoll_lab::bench::{
    Bench, Case, Programs, Progress, Settings, all_cases, named_cases, now, quick_cases, seconds_within,
};
use plimsoll_lab::contender::{Contender, read_all};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

/// Time budget of a whole run in minutes, startup and report included.
const MINUTES: f64 = 28.0;
const MINUTES_QUICK: f64 = 4.5;
const ROUNDS: u32 = 5;
const ROUNDS_QUICK: u32 = 3;

/// Measure plimsoll beside other servers, all in one run
#[derive(Parser)]
struct Options {
    /// The program of ours that is measured
    #[arg(long, value_name = "PROGRAM")]
    plimsoll: PathBuf,
    /// The generator, if it is not that program too
    #[arg(long, value_name = "PROGRAM")]
    generator: Option<PathBuf>,
    /// The folder with the contenders' files
    #[arg(long, value_name = "DIR")]
    contenders: PathBuf,
    /// Where results go [default: bench/results/ and the time]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Fewer cases, contenders and rounds
    #[arg(long)]
    quick: bool,
    /// Cases: names (10K-kept), sizes (1M), kept, new
    #[arg(long, value_delimiter = ',', value_name = "CASE")]
    cases: Vec<String>,
    /// Contenders, by name
    #[arg(long, value_delimiter = ',', value_name = "NAME")]
    only: Vec<String>,
    /// Congestion controls to run under; `now` is what the machine has
    #[arg(long, value_delimiter = ',', value_name = "NAME", default_value = "cubic,bbr")]
    congestion: Vec<String>,
    /// Rounds, in each of which every contender has its turn [default: 5, quick: 3]
    #[arg(long)]
    rounds: Option<u32>,
    /// How long a trial is measured, in seconds; of 10 MB, four times as long [default: as long as the
    /// minutes allow]
    #[arg(long)]
    seconds: Option<f64>,
    /// How long a trial runs before, in seconds
    #[arg(long, default_value_t = 0.2)]
    warm_up: f64,
    /// How long idle cores are waited for before a trial, in seconds
    #[arg(long, default_value_t = 3.0)]
    settle: f64,
    /// How long all may take, in minutes [default: 28, quick: 4.5]
    #[arg(long)]
    minutes: Option<f64>,
    /// Connections
    #[arg(long, default_value_t = 64)]
    users: u32,
    /// Decides the order of contenders
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Whether every server logs requests
    #[arg(long, value_name = "on|off", default_value = "off", value_parser = ["on", "off"])]
    logs: String,
    /// Count system calls too, by strace
    #[arg(long)]
    syscalls: bool,
    /// Make tables and plots again from the results in this folder, and measure nothing
    #[arg(long, value_name = "DIR")]
    again: Option<PathBuf>,
}

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<ExitCode> {
    if let Some(folder) = &options.again {
        let results = report::read(folder)?;
        write_report(&results, folder)?;
        return Ok(ExitCode::SUCCESS);
    }
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&stop))?;
    }
    let bench = planned(options, &stop)?;
    let about = bench.settings.seconds;
    eprintln!(
        "bench: at most {} trials of {about:.2} s, of the largest files longer; Ctrl-C ends it and tells \
         what there is",
        bench.trials()
    );
    let results = bench.run(&mut show)?;
    let folder = options.out.clone().unwrap_or_else(|| Path::new("bench/results").join(now()));
    write_report(&results, &folder)?;
    let failed = results.trials.iter().any(|trial| trial.fault.is_some());
    Ok(if results.stopped || failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn planned<'a>(options: &Options, stop: &'a AtomicBool) -> Result<Bench<'a>> {
    let cases = cases(options)?;
    let contenders = contenders(options)?;
    let programs = Programs {
        plimsoll: absolute(&options.plimsoll)?,
        generator: absolute(options.generator.as_ref().unwrap_or(&options.plimsoll))?,
    };
    let mut bench = Bench { settings: settings(options), contenders, cases, programs, stop };
    let minutes = options.minutes.unwrap_or(if options.quick { MINUTES_QUICK } else { MINUTES });
    bench.settings.budget_seconds = minutes * 60.0;
    let within = seconds_within(minutes * 60.0, bench.trials(), bench.longer());
    bench.settings.seconds = options.seconds.unwrap_or(within);
    Ok(bench)
}

fn settings(options: &Options) -> Settings {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    // With a single core there is no choice.
    let core = |core: usize| (cores > 1).then_some(core);
    Settings {
        users: options.users,
        rounds: options.rounds.unwrap_or(if options.quick { ROUNDS_QUICK } else { ROUNDS }),
        seconds: 0.0,
        warm_up_seconds: options.warm_up,
        settle_seconds: options.settle,
        budget_seconds: 0.0,
        seed: options.seed,
        logs: options.logs == "on",
        syscalls: options.syscalls,
        server_core: core(0),
        generator_core: core(1),
        congestion: options.congestion.iter().filter(|name| *name != "now").cloned().collect(),
    }
}

fn cases(options: &Options) -> Result<Vec<Case>> {
    match (options.cases.is_empty(), options.quick) {
        (false, _) => named_cases(&options.cases),
        (true, true) => Ok(quick_cases()),
        (true, false) => Ok(all_cases()),
    }
}

fn contenders(options: &Options) -> Result<Vec<Contender>> {
    let all = read_all(&options.contenders)?;
    let names: Vec<&str> = all.iter().map(|one| one.name.as_str()).collect();
    let unknown = options.only.iter().find(|name| !names.contains(&name.as_str()));
    ensure!(unknown.is_none(), "no contender is called {unknown:?}; there are {}", names.join(", "));
    let is_in = |one: &Contender| match options.only.is_empty() {
        true => one.quick || !options.quick,
        false => options.only.contains(&one.name),
    };
    Ok(all.into_iter().filter(is_in).collect())
}

fn absolute(program: &Path) -> Result<PathBuf> {
    program.canonicalize().with_context(|| format!("{}", program.display()))
}

/// Shows the progress: one line that is overwritten on a terminal, otherwise one line per round.
fn show(progress: &Progress<'_>) {
    let Progress { done, total, next: [case, congestion, contender], round, left, begins_round } = progress;
    let (minutes, seconds) = (left.as_secs() / 60, left.as_secs() % 60);
    let at = format!("{done}/{total}  {case} {congestion} round {round}");
    let left = if *done > 0 { format!("{minutes}:{seconds:02} left") } else { String::new() };
    if std::io::stderr().is_terminal() {
        eprint!("\r\x1b[K{at}  {contender:16} {left}");
    } else if *begins_round {
        eprintln!("{at}  {left}");
    }
}

fn write_report(results: &plimsoll_lab::bench::Results, folder: &Path) -> Result<()> {
    report::write(results, folder)?;
    if std::io::stderr().is_terminal() {
        eprintln!("\r\x1b[K");
    }
    println!("{}", report::summary(results, &report::cells(results)));
    println!("The whole report, every trial and the plots are in {}", folder.display());
    Ok(())
}
