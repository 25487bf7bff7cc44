//! The command line: one file for each command, whose doc comments are its help.
//!
//! The work of the commands is not done here. Invariants: the help of every command has an example. Every
//! error names a next step.

mod account;
mod alone;
mod auth;
mod backup;
mod check;
mod completions;
mod directory;
mod doctor;
mod greeting;
mod lab;
mod load;
mod man;
mod proxy;
mod restore;
mod serve;
mod store;
mod tier_tls;

use std::io::Write as _;
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue};
use clap::{ArgMatches, Command, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

use plimsoll_cli::output::{has_printed_json, print_json};
use plimsoll_cli::{AlreadyReported, ClientCommand, Runtime, WrongUsage};
use plimsoll_engine::{EngineKind, block_on};
use plimsoll_wire::nearest::nearest;

use crate::{open_files, resolve};

/// The version, the commit and the features of this build.
const BUILD_VERSION: &str = env!("BUILD_VERSION");

/// A file server that knows its load line.
#[derive(Parser)]
#[command(name = "plimsoll", version = BUILD_VERSION, propagate_version = true)]
#[command(arg_required_else_help = true)]
#[command(after_help = "Examples:
  plimsoll signup alice
  plimsoll login alice
  plimsoll put report.pdf
  plimsoll ls
  plimsoll serve --site /=./public
  plimsoll doctor
  plimsoll load http://127.0.0.1:8080/index.html -u 64 -d 10s
  plimsoll lab run saturation-http

Each command has more, with examples, in its --help.")]
pub(crate) struct Plimsoll {
    #[command(subcommand)]
    order: Order,
    /// Whether `--json` was given to the command.
    #[arg(skip)]
    json: bool,
}

#[derive(Subcommand)]
enum Order {
    Serve(serve::Serve),
    Auth(auth::AuthServer),
    Store(store::StoreServer),
    Proxy(proxy::ProxyServer),
    Account(account::Account),
    Directory(directory::Directory),
    Backup(backup::Backup),
    Restore(restore::Restore),
    Doctor(doctor::Doctor),
    Load(load::Load),
    Lab(lab::Lab),
    Completions(completions::Completions),
    Man(man::Man),
    #[command(flatten)]
    Client(ClientCommand),
}

impl Plimsoll {
    /// Parses the command line. Ends the program if it is invalid.
    pub(crate) fn typed() -> Plimsoll {
        let mut command = Plimsoll::command();
        command.build();
        let matches = with_plain_usage(command).try_get_matches().unwrap_or_else(|mut error| {
            keep_near_suggestion(&mut error);
            if error.use_stderr() && std::env::args_os().any(|argument| argument == "--json") {
                report_in_json(&error.render().to_string());
            }
            error.exit()
        });
        let json = wants_json(&matches);
        let order = Order::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
        Plimsoll { order, json }
    }

    /// Returns whether the command prints JSON.
    pub(crate) fn prints_json(&self) -> bool {
        self.json
    }

    /// Runs the command.
    pub(crate) fn run(self) -> anyhow::Result<()> {
        match self.order {
            Order::Serve(serve) => serve.run(),
            Order::Auth(auth) => auth.run(),
            Order::Store(store) => store.run(),
            Order::Proxy(proxy) => proxy.run(),
            Order::Account(account) => account.run(),
            Order::Directory(directory) => directory.run(),
            Order::Backup(backup) => backup.run(),
            Order::Restore(restore) => restore.run(),
            Order::Doctor(doctor) => doctor.run(),
            Order::Load(load) => load.run(),
            Order::Lab(lab) => lab.run(),
            Order::Completions(completions) => completions.run(),
            Order::Man(man) => man.run(),
            Order::Client(command) => command.run(runtime()),
        }
    }
}

/// Removes the suggestion of a command that does not resemble the typed one, such as `auth` for `cat`.
fn keep_near_suggestion(error: &mut clap::Error) {
    let typed = match error.get(ContextKind::InvalidSubcommand) {
        Some(ContextValue::String(typed)) => typed.clone(),
        _ => return,
    };
    let Some(ContextValue::Strings(known)) = error.remove(ContextKind::SuggestedSubcommand) else { return };
    if let Some(near) = nearest(&typed, known.iter().map(String::as_str)) {
        error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(vec![near.to_owned()]));
    }
}

/// Returns what the client commands need of this program.
fn runtime() -> Runtime {
    Runtime {
        block_on: |main| block_on(EngineKind::Epoll, main),
        resolve: resolve::resolve,
        raise_open_files: open_files::raise,
    }
}

/// Returns whether the selected command has a flag `--json` that is given.
fn wants_json(matches: &ArgMatches) -> bool {
    matches.try_get_one::<bool>("json").ok().flatten().copied().unwrap_or(false)
        || matches.subcommand().is_some_and(|(_, matches)| wants_json(matches))
}

/// Makes each error show the same usage line as the help. Otherwise, the line would include arguments that
/// the environment sets already.
fn with_plain_usage(command: Command) -> Command {
    command.mut_subcommands(|mut command| {
        let usage = command.render_usage().to_string();
        with_plain_usage(command.override_usage(usage.trim_start_matches("Usage: ").to_owned()))
    })
}

/// Returns the program's exit code after `error`.
pub(crate) fn exit_code(error: &anyhow::Error) -> ExitCode {
    if error.is::<WrongUsage>() || error.is::<clap::Error>() { ExitCode::from(2) } else { ExitCode::FAILURE }
}

/// Reports an error and its causes on standard error; with `json`, also on standard output,
/// unless the command has printed its own document.
pub(crate) fn complain(error: &anyhow::Error, json: bool) {
    if error.is::<AlreadyReported>() {
        return;
    }
    // If standard error is closed, only the exit code remains.
    let _ = writeln!(std::io::stderr(), "plimsoll: {error:#}");
    if json && !has_printed_json() {
        report_in_json(&format!("{error:#}"));
    }
}

fn report_in_json(error: &str) {
    // If standard output is closed, standard error has the same message.
    let _ = print_json(&serde_json::json!({"error": error.trim_end()}));
}
