//! `plimsoll account quota`: limits the storage of an account.
//!
//! It removes no files: an account above its new quota can only delete. Invariant: a limit that is not
//! given does not change.

use clap::Args;
use plimsoll_cli::WrongUsage;

use super::directory_args::{DirectoryArgs, refused};
use super::output::{bounds, print_done};
use crate::config::AtMost;

/// Set what an account may store
#[derive(Args)]
#[command(after_help = "Examples:
  plimsoll account quota alice --bytes 10GiB
  plimsoll account quota alice --bytes none --files 100000

A limit that is not given stays as it is. JSON: as of plimsoll account add")]
pub(crate) struct Quota {
    /// The name of the account
    name: String,
    /// Bytes of all its files together, such as 10GiB, or none for no bound
    #[arg(long, value_name = "SIZE")]
    bytes: Option<AtMost>,
    /// Count of its files, or none for no bound
    #[arg(long, value_name = "COUNT")]
    files: Option<AtMost>,
    #[command(flatten)]
    at: DirectoryArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Quota {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let (name, bytes, files) = (self.name, self.bytes, self.files);
        if bytes.is_none() && files.is_none() {
            let text = "nothing is to be changed: give --bytes SIZE, --files COUNT or both; none is no bound";
            return Err(WrongUsage(text.to_owned()).into());
        }
        let account = self.at.run(async move |at| {
            let before = at.auth.account(&at.io, &name).await.map_err(refused(&name))?.quota;
            let quota = plimsoll_auth::Quota {
                bytes: bytes.map_or(before.bytes, |bound| bound.0),
                files: files.map_or(before.files, |bound| bound.0),
            };
            at.auth.set_quota(&at.io, &name, quota).await.map_err(refused(&name))
        })?;
        let text = format!("{} may store: {}.", account.name, bounds(account.quota));
        print_done(self.json, &account, &text)
    }
}
