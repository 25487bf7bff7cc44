//! What a person types: one file per command; its doc comments are its help.
//!
//! It is not where commands do their work. What must hold: every command has an example in its help, and
//! every error a next step.

mod account;
mod alone;
mod auth;
mod check;
mod completions;
mod doctor;
mod greeting;
mod load;
mod man;
mod person;
mod serve;
mod store;

use std::io::Write as _;
use std::process::ExitCode;

use clap::{Command, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

/// A file server that knows its load line.
#[derive(Parser)]
#[command(name = "plimsoll", version, propagate_version = true, arg_required_else_help = true)]
#[command(after_help = "Examples:
  plimsoll signup alice
  plimsoll login alice
  plimsoll put report.pdf
  plimsoll ls
  plimsoll serve --site /=./public
  plimsoll doctor
  plimsoll load http://127.0.0.1:8080/index.html -u 64 -d 10s

Each command has more, with examples, in its --help.")]
pub(crate) struct Plimsoll {
    #[command(subcommand)]
    order: Order,
}

#[derive(Subcommand)]
enum Order {
    Serve(serve::Serve),
    Auth(auth::AuthServer),
    Store(store::StoreServer),
    Account(account::Account),
    Doctor(doctor::Doctor),
    Load(load::Load),
    Completions(completions::Completions),
    Man(man::Man),
    #[command(flatten)]
    Person(person::Person),
}

impl Plimsoll {
    /// What was typed; the program ends here if it cannot be understood.
    pub(crate) fn typed() -> Plimsoll {
        let mut command = Plimsoll::command();
        command.build();
        let matches = with_plain_usage(command).get_matches();
        Plimsoll::from_arg_matches(&matches).unwrap_or_else(|error| error.exit())
    }

    /// Does what was typed.
    pub(crate) fn run(self) -> anyhow::Result<()> {
        match self.order {
            Order::Serve(serve) => serve.run(),
            Order::Auth(auth) => auth.run(),
            Order::Store(store) => store.run(),
            Order::Account(account) => account.run(),
            Order::Doctor(doctor) => doctor.run(),
            Order::Load(load) => load.run(),
            Order::Completions(completions) => completions.run(),
            Order::Man(man) => man.run(),
            Order::Person(person) => person.run(),
        }
    }
}

/// Says how each command is used as its help does. Else an error would show what the environment sets as if
/// it had to be typed.
fn with_plain_usage(command: Command) -> Command {
    command.mut_subcommands(|mut command| {
        let usage = command.render_usage().to_string();
        with_plain_usage(command.override_usage(usage.trim_start_matches("Usage: ").to_owned()))
    })
}

/// What was typed cannot be meant, though each argument by itself could.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct WrongUsage(pub(crate) String);

/// What went wrong was said when it did.
#[derive(Debug, thiserror::Error)]
#[error("told already")]
pub(crate) struct AlreadyTold;

/// How the program exits after `error`.
pub(crate) fn exit_code(error: &anyhow::Error) -> ExitCode {
    if error.is::<WrongUsage>() || error.is::<clap::Error>() { ExitCode::from(2) } else { ExitCode::FAILURE }
}

/// Says an error and its causes on standard error.
pub(crate) fn complain(error: &anyhow::Error) {
    if error.is::<AlreadyTold>() {
        return;
    }
    // If even standard error is gone, there is nobody left to tell.
    let _ = writeln!(std::io::stderr(), "plimsoll: {error:#}");
}
