//! `plimsoll unshare`: revokes shares.
//!
//! It deletes no file. Invariant: a path and a name always end every share of that path with that account.

use std::ffi::OsString;
use std::io::Write as _;

use anyhow::bail;
use clap::Args;
use plimsoll_client::http::Request;
use serde_json::json;

use super::server_args::SessionArgs;
use super::shares::{ShareInfo, fetch_shares};
use crate::WrongUsage;
use crate::output::{print_json, text};
use crate::{ApiClient, RemotePath, Runtime};

/// Revoke a share; it ends at once
#[derive(Args)]
#[command(after_help = "Examples:
  plimsoll unshare report.pdf bob
  plimsoll unshare 5f3a...            the id that plimsoll shares shows

JSON: {\"ended\":[\"5f3a...\"]}")]
pub struct Unshare {
    /// The shared path, or the id of the share
    #[arg(value_name = "PATH|ID")]
    what: OsString,
    /// The account that it is shared with
    #[arg(value_name = "NAME")]
    with: Option<String>,
    #[command(flatten)]
    session: SessionArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Unshare {
    pub(super) fn run(self, runtime: Runtime) -> anyhow::Result<()> {
        let ended = match self.with {
            Some(with) => {
                let place = RemotePath::parse(&self.what)?;
                self.session
                    .run(runtime, async move |mut server| end_all(&mut server, &place, &with).await)?
            }
            None => {
                let id = self
                    .what
                    .into_string()
                    .ok()
                    .filter(|id| id.bytes().all(|byte| byte.is_ascii_alphanumeric()));
                let id = id.ok_or_else(|| {
                    WrongUsage("give PATH and NAME, or the id that plimsoll shares shows".to_owned())
                })?;
                self.session
                    .run(runtime, async move |mut server| end(&mut server, &id).await.map(|()| vec![id]))?
            }
        };
        if self.json { print_json(&json!({"ended": ended})) } else { Ok(()) }
    }
}

/// Ends every share of a path with an account. Returns their ids.
async fn end_all(server: &mut ApiClient, place: &RemotePath, with: &str) -> anyhow::Result<Vec<String>> {
    let shares = fetch_shares(server, "/api/shares").await?.parsed()?;
    let (matching, others): (Vec<ShareInfo>, Vec<ShareInfo>) =
        shares.into_iter().filter(|share| share.with == with).partition(|share| share.is_at(place));
    if matching.is_empty() {
        bail!("{place} is not shared with {with}. See what is shared: plimsoll shares");
    }
    let mut ended = Vec::new();
    for share in matching {
        end(server, &share.id).await?;
        ended.push(share.id);
    }
    for share in others.iter().filter(|share| share.is_above(place)) {
        let (with, above) = (text(with.as_bytes()), text(share.path.as_bytes()));
        // Standard error may be closed.
        let _ = writeln!(std::io::stderr(), "{with} still reaches it by the share of {above}");
    }
    Ok(ended)
}

async fn end(server: &mut ApiClient, id: &str) -> anyhow::Result<()> {
    let target = format!("/api/shares/{id}");
    let ended = server.send_and_discard(Request::new("DELETE", &target)).await;
    Ok(ended.map_err(|failure| failure.for_share(id))?)
}
