//! `plimsoll load`: the arguments and the output.
//!
//! It sends no request itself (the laboratory does). Invariants: the exit code is 0 if every response was
//! right, 1 if one was not, 2 if the workload is invalid. An interrupted trial still prints its figures.

mod tests;
mod watching;
mod workload;

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::builder::{ArgPredicate, Resettable};
use clap::{Args, Command, FromArgMatches as _, ValueEnum};
use plimsoll_cli::PasswordFrom;
use plimsoll_cli::output::{print, print_json};
use plimsoll_engine::EngineKind;
use plimsoll_load::{CSV_HEAD, Files, Mix, Outcome, Trial, Workload, run};
use watching::EndBySignal;

use crate::config::{Size, Time, engine_name};

/// Put load on a file server, and report what it carries
#[derive(Args)]
#[command(after_help = "Examples:
  plimsoll load http://127.0.0.1:8080/index.html -u 64 -d 10s
  plimsoll load 'http://127.0.0.1:8080/1k/{}.bin' --files 0..1000 -u 64 -d 10s --warm-up 1s
  plimsoll load http://files.example/big.iso -u 4 -n 100 --connections new --verify all --json
  plimsoll load http://files.example/ --rate 500 -u 200 -d 1m       latencies at 500 a second
  plimsoll load http://127.0.0.1:8080/files/in/ -X PUT --size 10KiB --account alice -u 16 -n 1000
  plimsoll load 'ftp://127.0.0.1:2121/{}.bin' --files 1000 -u 64 -d 10s      as a guest
  plimsoll load https://127.0.0.1:8443/a.txt --ca ca.pem --connections new --tls-resume off -u 8 -d 10s
  plimsoll load ftpes://127.0.0.1:2121/a.txt --ca ca.pem -u 24 -d 10s       AUTH TLS; implicit: ftps://
  plimsoll load classic://127.0.0.1:9000/a.txt --account alice -u 64 -d 10s
  plimsoll load http://127.0.0.1:8080 --mix ten -u 16 -d 30s       sign up, log in, list, upload, ...
                                     (the server's configuration: [lab] no_attempt_limits = true)

Without --rate, each user sends the next request after the response: the server sets the pace. With
--rate, requests are planned at even intervals, and a latency counts from the planned start. All
users connect, and fetch the bodies to compare with, before the first one starts. The kernel
discards bodies that are not verified. Ctrl-C ends early, with the figures so far.
--json prints one object: url, users, loop, seconds, requests, bytes, errors, requests_per_second,
bytes_per_second, verified, latency_us, littles_law, generator, and more.")]
pub(crate) struct Load {
    /// The URL of the requests; {} stands for the number or name of a file
    url: String,

    /// Emulated users at the same time
    #[arg(short, long, value_name = "COUNT", default_value_t = 1)]
    users: usize,
    /// End after this time
    #[arg(
        short,
        long,
        value_name = "TIME",
        required_unless_present_any = ["requests", "requests_each", "xml"],
        conflicts_with = "requests"
    )]
    duration: Option<Time>,
    /// End after so many requests
    #[arg(short = 'n', long, value_name = "COUNT")]
    requests: Option<u64>,
    /// End after so many requests of each user; the time of each user is reported
    #[arg(
        long,
        value_name = "COUNT",
        conflicts_with_all = ["duration", "requests", "warm_up", "rate", "mix"]
    )]
    requests_each: Option<u64>,
    /// Time before the measurement begins
    #[arg(long, value_name = "TIME", default_value = "0s")]
    warm_up: Time,
    /// Time between a response and the user's next request
    #[arg(long, value_name = "TIME", default_value = "0s", conflicts_with = "rate")]
    think: Time,
    /// Requests a second of all users together, at planned times (open loop)
    #[arg(long, value_name = "COUNT")]
    rate: Option<f64>,
    /// Whether each user keeps a connection (a session of FTP), or opens one for each request
    #[arg(long, value_enum, default_value = "kept")]
    connections: ConnectionReuse,

    /// Numbers for {}: so many from 0 on, or a range such as 0..1000
    #[arg(long, value_name = "RANGE", conflicts_with = "list")]
    files: Option<Files>,
    /// A file with a name for {} on each line
    #[arg(long, value_name = "FILE")]
    list: Option<PathBuf>,
    /// The choice of a file for each request of a user
    #[arg(long, value_enum, default_value = "each")]
    pick: Picked,
    /// Files between the first ones of two users, with --pick each; default: spread evenly
    #[arg(long, value_name = "COUNT")]
    offset: Option<u64>,
    /// The seed of --pick random, --verify and the bytes of uploads
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,

    /// Download (GET, RETR), upload (PUT, STOR), or create accounts (NEW, over classic)
    #[arg(short = 'X', long, value_enum, default_value = "GET", ignore_case = true)]
    method: Method,
    /// Bytes of each upload
    #[arg(
        long,
        value_name = "SIZE",
        default_value = "1KiB",
        default_value_if("mix", ArgPredicate::IsPresent, "10KiB")
    )]
    size: Size,
    /// Ten: each of the ten requests once in a user's life; ten:download=9,list=3 has these more often
    #[arg(
        long,
        value_name = "MIX",
        conflicts_with_all = ["files", "list", "method", "account", "token_file", "against", "keep"]
    )]
    mix: Option<Mix>,

    /// Run the tests of this XML file (`Tests`, `simpleTest`) at the server or proxy of the URL
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = [
            "users", "duration", "requests", "requests_each", "warm_up", "think", "rate", "files", "list",
            "pick", "offset", "method", "size", "mix", "against", "keep",
        ]
    )]
    xml: Option<PathBuf>,

    /// The account of all users; without it, FTP logs in as a guest, and other protocols do not log in
    #[arg(long, visible_alias = "basic", value_name = "NAME", conflicts_with = "token_file")]
    account: Option<String>,
    #[command(flatten)]
    password: PasswordFrom,
    /// The file whose first line is a session's token
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,

    /// For https, ftps and ftpes: the certificate in PEM of the authority that signs the server's, or the
    /// server's own; default: the authorities that this system trusts
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
    /// Whether new connections over TLS may resume earlier sessions (on), or make full handshakes. Over FTP,
    /// a data connection resumes the session of its control connection
    #[arg(long, value_name = "on|off", value_enum, default_value = "on", hide_possible_values = true)]
    tls_resume: Switch,

    /// The share of bodies that are compared with the expected contents: all, none, or a share such as 1/64
    #[arg(long, value_name = "SHARE", default_value = "1/64")]
    verify: Share,
    /// A folder with the expected files; default: the bodies that are fetched before the start
    #[arg(long, value_name = "DIR")]
    against: Option<PathBuf>,
    /// Keep every body, in this folder
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
    /// How long a request may take
    #[arg(long, value_name = "TIME", default_value = "30s")]
    timeout: Time,

    /// Threads that the users are spread over
    #[arg(long, value_name = "COUNT", default_value_t = 1)]
    threads: usize,
    /// The engine that users run on: auto, thread, epoll or uring
    #[arg(long, value_name = "ENGINE", default_value = "auto")]
    #[arg(value_parser = engine_name(), hide_possible_values = true)]
    engine: EngineKind,
    /// The cores that these threads may run on, by number
    #[arg(long, value_name = "NUMBER", value_delimiter = ',')]
    cpu: Vec<usize>,

    /// Append a line with the figures to this file
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    /// Show nothing while it runs
    #[arg(long, short)]
    quiet: bool,
    /// Print JSON
    #[arg(long, help_heading = Resettable::Reset)]
    json: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum ConnectionReuse {
    Kept,
    New,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Switch {
    On,
    Off,
}

#[derive(Clone, Copy, ValueEnum)]
enum Picked {
    /// The same for all users at a time
    Same,
    /// Another for each user and each request, as far as there are enough
    Each,
    /// At random, by --seed
    Random,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "UPPER")]
enum Method {
    Get,
    Put,
    New,
}

/// The share of verified bodies: one in this number; 0 verifies none.
#[derive(Clone, Copy)]
struct Share(u64);

impl std::str::FromStr for Share {
    type Err = String;

    fn from_str(text: &str) -> Result<Share, String> {
        let many = match text {
            "all" => Some(1),
            "none" => Some(0),
            _ => text.strip_prefix("1/").and_then(|many| many.parse().ok()).filter(|many| *many > 0),
        };
        many.map(Share).ok_or_else(|| "write all, none, or a share such as 1/64".to_owned())
    }
}

impl Load {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        if let Some(path) = &self.xml {
            return self.run_tests(path);
        }
        let workload = self.to_workload()?;
        if let Some(folder) = &self.keep {
            std::fs::create_dir_all(folder)
                .with_context(|| format!("cannot make the folder {}", folder.display()))?;
        }
        let signals = EndBySignal::watch().context("cannot watch for signals")?;
        let outcome = self.trial(&workload, &signals)?.context(NOT_STARTED)?;
        if self.json {
            print_json(&outcome.json())?
        } else {
            print(outcome.text())?
        }
        self.add_to_csv(&outcome)?;
        check(&outcome)
    }

    /// Runs the tests of a test file of document 003's client.
    fn run_tests(&self, path: &Path) -> anyhow::Result<()> {
        let tests = self.tests(path)?;
        let signals = EndBySignal::watch().context("cannot watch for signals")?;
        let mut outcomes = Vec::new();
        for (number, test) in (1..).zip(&tests) {
            let workload = self.workload_of(test)?;
            let Some(outcome) = self.trial(&workload, &signals)? else { break };
            if !self.json {
                print(tests::text(number, tests.len(), test, &outcome))?;
            }
            self.add_to_csv(&outcome)?;
            outcomes.push(outcome);
        }
        anyhow::ensure!(!outcomes.is_empty(), NOT_STARTED);
        if self.json {
            let outcomes: Vec<_> = outcomes.iter().map(Outcome::json).collect();
            print_json(&serde_json::json!({ "tests": outcomes }))?;
        }
        let (run, planned) = (outcomes.len(), tests.len());
        anyhow::ensure!(run == planned, "it was ended after {run} of {planned} tests");
        outcomes.iter().try_for_each(check)
    }

    /// Runs one trial; returns `None` if it was ended before the start.
    fn trial(&self, workload: &Workload, signals: &EndBySignal) -> anyhow::Result<Option<Outcome>> {
        let Some(stop) = signals.next_trial() else { return Ok(None) };
        let line = watching::ProgressLine::new(self.quiet);
        let outcome = run(workload, Trial { engine: self.engine, stop, progress: line.progress() });
        line.end();
        Ok(Some(outcome?).filter(|outcome| !outcome.time.is_zero()))
    }

    fn add_to_csv(&self, outcome: &Outcome) -> anyhow::Result<()> {
        match &self.csv {
            Some(path) => add_line(path, outcome).with_context(|| format!("cannot write {}", path.display())),
            None => Ok(()),
        }
    }
}

/// Refuses arguments of `plimsoll load` that it would refuse itself.
///
/// # Errors
/// The message that it would print, without the usage.
pub(crate) fn check_arguments(arguments: &[String]) -> anyhow::Result<()> {
    let command = Load::augment_args(Command::new("load").no_binary_name(true));
    let parsed = command.try_get_matches_from(arguments).and_then(|found| Load::from_arg_matches(&found));
    match parsed {
        Ok(load) => Ok(load.check()?),
        Err(error) => {
            let text = error.to_string();
            let message = text.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned();
            anyhow::bail!("the load generator refuses `load`: {message}")
        }
    }
}

const NOT_STARTED: &str = "it was ended before the start; there are no figures";

/// Fails if a request had no whole and right answer.
fn check(outcome: &Outcome) -> anyhow::Result<()> {
    let errors: u64 = outcome.errors.values().sum();
    anyhow::ensure!(outcome.is_clean(), "{errors} requests had no whole and right answer");
    Ok(())
}

/// Appends a line to a CSV table. An empty file gets the names of the columns first.
fn add_line(path: &Path, outcome: &Outcome) -> std::io::Result<()> {
    let mut file = OpenOptions::new().create(true).append(true).open(path)?;
    let head = if file.metadata()?.len() == 0 { format!("{CSV_HEAD}\n") } else { String::new() };
    file.write_all(format!("{head}{}\n", outcome.csv()).as_bytes())
}
