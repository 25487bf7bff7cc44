//! `plimsoll completions`: a script that lets a shell complete commands.
//!
//! It installs nothing. Invariant: the script is generated from the commands themselves.

use clap::{Args, CommandFactory as _};
use clap_complete::Shell;
use plimsoll_cli::output::print;

use super::Plimsoll;

/// Print a script that lets a shell complete commands and flags
#[derive(Args)]
#[command(after_help = "Examples:
  plimsoll completions bash > ~/.local/share/bash-completion/completions/plimsoll
  plimsoll completions zsh > ~/.zfunc/_plimsoll
  plimsoll completions fish > ~/.config/fish/completions/plimsoll.fish")]
pub(crate) struct Completions {
    /// The shell of the script
    shell: Shell,
}

impl Completions {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Plimsoll::command(), "plimsoll", &mut script);
        print(script)
    }
}
