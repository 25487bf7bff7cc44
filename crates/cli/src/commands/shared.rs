//! `plimsoll shared`: lists the shares that other accounts give.
//!
//! It changes nothing. Invariant: each printed path can be given to `get` and `ls`.

use clap::Args;

use super::server_args::SessionArgs;
use super::shares::{fetch_shares, print_shares};
use crate::Runtime;
use crate::output::print_json;

/// List what others share with you
#[derive(Args)]
#[command(after_help = "Examples:
  plimsoll shared
  plimsoll shared --json

To read one: plimsoll get OWNER:PATH, or plimsoll ls OWNER:PATH for a folder.
JSON: as of plimsoll shares")]
pub struct Shared {
    #[command(flatten)]
    session: SessionArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Shared {
    pub(super) fn run(self, runtime: Runtime) -> anyhow::Result<()> {
        let shares =
            self.session.run(runtime, async |mut server| fetch_shares(&mut server, "/api/shared").await)?;
        if self.json { print_json(&shares) } else { print_shares(&shares.parsed()?, "owner") }
    }
}
