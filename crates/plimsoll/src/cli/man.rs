//! `plimsoll man`: the manual pages, one for each command.
//!
//! It installs nothing. What must hold: they are made from the commands as they are.

use std::path::PathBuf;

use anyhow::Context as _;
use clap::{Args, CommandFactory as _};

use super::Plimsoll;

/// Write the manual pages into a folder
#[derive(Args)]
#[command(after_help = "Examples:
  plimsoll man ~/.local/share/man/man1
  plimsoll man ./man && man ./man/plimsoll-serve.1")]
pub(crate) struct Man {
    /// The folder; it is made if it is not there
    folder: PathBuf,
}

impl Man {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let told = self.folder.display();
        std::fs::create_dir_all(&self.folder).with_context(|| format!("cannot make the folder {told}"))?;
        clap_mangen::generate_to(Plimsoll::command(), &self.folder)
            .with_context(|| format!("cannot write the manual pages into {told}"))
    }
}
