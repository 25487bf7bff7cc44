//! `plimsoll shares`: lists the shares that the account gives.
//!
//! It changes nothing. Invariant: each printed share has the id that `unshare` needs.

use clap::Args;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::server_args::SessionArgs;
use crate::output::{columns, print, print_json, text, time};
use crate::{ApiClient, RemotePath, Runtime};

/// List what you share with others
#[derive(Args)]
#[command(after_help = "Examples:
  plimsoll shares
  plimsoll shares --json

JSON: {\"shares\":[{\"id\":\"...\",\"owner\":\"alice\",\"path\":\"/report.pdf\",\"with\":\"bob\",
       \"permission\":\"read\",\"created\":\"...\",\"expires\":null,\"url\":\"/shared/alice/report.pdf\"}]}")]
pub struct Shares {
    #[command(flatten)]
    session: SessionArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// A share, as the server sends it.
#[derive(Deserialize)]
pub(super) struct ShareInfo {
    pub(super) id: String,
    pub(super) owner: String,
    pub(super) path: String,
    pub(super) with: String,
    pub(super) permission: String,
    pub(super) expires: Option<String>,
    pub(super) url: String,
}

/// All shares, as the server sends them.
#[derive(Default, Serialize)]
pub(super) struct ShareList {
    pub(super) shares: Vec<Value>,
}

/// A page of shares, and the id for requesting the next page.
#[derive(Deserialize)]
struct Page {
    shares: Vec<Value>,
    next: Option<String>,
}

impl Shares {
    pub(super) fn run(self, runtime: Runtime) -> anyhow::Result<()> {
        let shares =
            self.session.run(runtime, async |mut server| fetch_shares(&mut server, "/api/shares").await)?;
        if self.json { print_json(&shares) } else { print_shares(&shares.parsed()?, "with") }
    }
}

/// Requests all shares, page by page, and sorts them by owner, path and grantee.
pub(super) async fn fetch_shares(server: &mut ApiClient, target: &str) -> anyhow::Result<ShareList> {
    let mut all = ShareList::default();
    let mut page: Page = server.get(target).await?;
    loop {
        all.shares.append(&mut page.shares);
        let is_id = |next: &String| next.bytes().all(|byte| byte.is_ascii_alphanumeric());
        let Some(next) = page.next.filter(is_id) else { break };
        page = server.get(&format!("{target}?after={next}")).await?;
    }
    let text = |share: &Value, member: &str| share[member].as_str().unwrap_or_default().to_owned();
    all.shares.sort_by_cached_key(|share| ["owner", "path", "with"].map(|member| text(share, member)));
    Ok(all)
}

impl ShareList {
    /// Returns the shares in parsed form.
    pub(super) fn parsed(&self) -> anyhow::Result<Vec<ShareInfo>> {
        self.shares.iter().cloned().map(ShareInfo::from_json).collect()
    }
}

impl ShareInfo {
    /// Returns the shared path, percent-encoded: URLs represent every name exactly.
    fn encoded_path(&self) -> &str {
        let path = self.url.strip_prefix("/shared/").and_then(|rest| rest.split_once('/'));
        path.map_or("", |(_, path)| path.trim_end_matches('/'))
    }

    /// Returns whether it is of a place in the own home.
    pub(super) fn is_at(&self, place: &RemotePath) -> bool {
        place.owner.is_none() && self.encoded_path() == encoded(place)
    }

    /// Returns whether it is of a folder that contains a place in the own home.
    pub(super) fn is_above(&self, place: &RemotePath) -> bool {
        place.owner.is_none() && is_below(&encoded(place), self.encoded_path())
    }

    /// Returns whether it is of anything in a folder of the own home.
    pub(super) fn is_below(&self, place: &RemotePath) -> bool {
        place.owner.is_none() && is_below(self.encoded_path(), &encoded(place))
    }

    /// Parses a share.
    pub(super) fn from_json(value: Value) -> anyhow::Result<ShareInfo> {
        Ok(serde_json::from_value(value)?)
    }
}

/// Returns the path of a place in the own home, percent-encoded.
fn encoded(place: &RemotePath) -> String {
    place.target().split_off("/files".len()).trim_matches('/').to_owned()
}

/// Returns whether a path is in a folder.
fn is_below(path: &str, folder: &str) -> bool {
    match folder {
        "" => !path.is_empty(),
        folder => path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/')),
    }
}

/// Prints shares for people. `other` selects the account to print: `with` for the grantee, else the owner.
pub(super) fn print_shares(shares: &[ShareInfo], other: &str) -> anyhow::Result<()> {
    let clean = |untrusted: &str| text(untrusted.as_bytes());
    let row = |share: &ShareInfo| {
        let (counterpart, place) = match other {
            "with" => (format!("with {}", clean(&share.with)), clean(&share.path)),
            _ => (
                format!("from {}", clean(&share.owner)),
                clean(&format!("{}:{}", share.owner, share.path.trim_start_matches('/'))),
            ),
        };
        let ends =
            share.expires.as_deref().map_or_else(|| "no end".to_owned(), |at| format!("until {}", time(at)));
        vec![clean(&share.id), clean(&share.permission), counterpart, ends, place]
    };
    print(columns(&shares.iter().map(row).collect::<Vec<_>>(), &[]))
}
