//! `plimsoll shared`: lists the shares that other accounts give.
//!
//! It changes nothing. Invariant: each printed path can be given to `get` and `ls`.

use clap::Args;

use super::at::At;
use super::shares::{all, print_told};
use crate::person::shown::print_json;

/// List what others share with you
#[derive(Args)]
#[command(after_help = "Examples:
  plimsoll shared
  plimsoll shared --json

To read one: plimsoll get OWNER:PATH, or plimsoll ls OWNER:PATH for a folder.
JSON: as of plimsoll shares")]
pub(crate) struct Shared {
    #[command(flatten)]
    at: At,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Shared {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let all = self.at.run(async |mut server| all(&mut server, "/api/shared").await)?;
        if self.json { print_json(&all) } else { print_told(&all.told()?, "owner") }
    }
}
