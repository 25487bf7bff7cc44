//! `plimsoll account`: the operator's commands for accounts, on the directory itself.
//!
//! They send no request to a server: a running server notices a change within a second. Invariants: only
//! the commands that create accounts create a directory. A password is never an argument.

mod add;
mod adopt;
mod directory_args;
mod disable;
mod enable;
mod export;
mod import;
mod list;
mod output;
mod passwd;
mod permit;
mod quarantine;
mod quota;
mod rm;
mod show;

use clap::{Args, Subcommand};

pub(super) use directory_args::DirectoryArgs;

/// Add, show, change and remove accounts, where a server keeps them
#[derive(Args)]
#[command(after_help = "Examples:
  plimsoll account add alice --quota-bytes 10GiB
  plimsoll account list
  plimsoll account list --data /srv/plimsoll

They change the data itself, whether or not a server runs: a user who may write there is the
operator. As root, they act as the user that owns the data folder. A running server applies each
change within a second. Each command has --help, with examples.")]
pub(crate) struct Account {
    #[command(subcommand)]
    order: Order,
}

#[derive(Subcommand)]
enum Order {
    Add(add::Add),
    List(list::List),
    Show(show::Show),
    Passwd(passwd::Passwd),
    Quota(quota::Quota),
    Permit(permit::Permit),
    Disable(disable::Disable),
    Enable(enable::Enable),
    Rm(rm::Rm),
    Adopt(adopt::Adopt),
    Export(export::Export),
    Import(import::Import),
}

impl Account {
    /// Runs the command.
    pub(crate) fn run(self) -> anyhow::Result<()> {
        match self.order {
            Order::Add(add) => add.run(),
            Order::List(list) => list.run(),
            Order::Show(show) => show.run(),
            Order::Passwd(passwd) => passwd.run(),
            Order::Quota(quota) => quota.run(),
            Order::Permit(permit) => permit.run(),
            Order::Disable(disable) => disable.run(),
            Order::Enable(enable) => enable.run(),
            Order::Rm(rm) => rm.run(),
            Order::Adopt(adopt) => adopt.run(),
            Order::Export(export) => export.run(),
            Order::Import(import) => import.run(),
        }
    }
}
