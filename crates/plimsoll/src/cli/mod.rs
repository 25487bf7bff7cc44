//! What a person types: one file per command; its doc comments are its help.
//!
//! It is not where commands do their work. What must hold: every command has an example in its help, and
//! every error a next step.

mod greeting;
mod serve;

pub(crate) use serve::SiteFlag;

use std::io::Write as _;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// A file server that knows its load line.
#[derive(Parser)]
#[command(name = "plimsoll", version, propagate_version = true, arg_required_else_help = true)]
#[command(after_help = "Examples:
  plimsoll serve --site /=./public
  plimsoll serve --help")]
pub(crate) struct Plimsoll {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Serve(serve::Serve),
}

impl Plimsoll {
    /// Does what was typed.
    pub(crate) fn run(self) -> anyhow::Result<()> {
        match self.command {
            Command::Serve(serve) => serve.run(),
        }
    }
}

/// What was typed cannot be meant, though each argument by itself could.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct WrongUsage(pub(crate) String);

/// How the program exits after `error`.
pub(crate) fn exit_code(error: &anyhow::Error) -> ExitCode {
    if error.is::<WrongUsage>() { ExitCode::from(2) } else { ExitCode::FAILURE }
}

/// Says an error and its causes on standard error.
pub(crate) fn complain(error: &anyhow::Error) {
    // If even standard error is gone, there is nobody left to tell.
    let _ = writeln!(std::io::stderr(), "plimsoll: {error:#}");
}
