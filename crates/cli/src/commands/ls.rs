//! `plimsoll ls`: lists a folder.
//!
//! It does not list subfolders. Invariants: on a terminal, no name sends control sequences. For a program,
//! a name is exact to the byte.

use std::ffi::OsString;
use std::io::IsTerminal as _;

use anyhow::Context as _;
use clap::Args;
use serde_json::json;

use super::server_args::SessionArgs;
use crate::listing::{Entry, EntryKind, Listing, not_found};
use crate::output::{self, columns, print, print_json};
use crate::{ApiClient, RemotePath, Runtime};

/// List a folder
#[derive(Args)]
#[command(after_help = "Examples:
  plimsoll ls
  plimsoll ls -l photos/2026
  plimsoll ls bob:              the files that bob shares with you
  plimsoll ls --json photos

On a terminal, or with -l, it shows kind, size, time (UTC) and name. Otherwise it shows only
names, folders with a slash.
JSON: {\"path\":\"/photos/\",\"entries\":[{\"name\":\"a.jpg\",\"kind\":\"file\",\"size\":5120,
       \"modified\":\"2026-11-20T13:40:05Z\",\"etag\":\"...\",\"href\":\"a.jpg\"}]}")]
pub struct Ls {
    /// The folder or file, OWNER:PATH for another account's; default: the top of the home
    #[arg(value_name = "PATH")]
    path: Option<OsString>,
    /// Show kind, size and time even if standard output is no terminal
    #[arg(short)]
    long: bool,
    /// Show sizes in bytes
    #[arg(long)]
    bytes: bool,
    #[command(flatten)]
    session: SessionArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Ls {
    pub(super) fn run(self, runtime: Runtime) -> anyhow::Result<()> {
        let place = self.path.as_deref().map_or(Ok(RemotePath::home()), RemotePath::parse)?;
        let listing = self.session.run(runtime, async move |mut server| {
            list(&mut server, &place).await.context(place.to_string())
        })?;
        if self.json {
            return print_json(&listing);
        }
        if self.long || std::io::stdout().is_terminal() {
            let rows: Vec<Vec<String>> = listing.entries.iter().map(|entry| self.row(entry)).collect();
            return print(columns(&rows, &[1]));
        }
        let mut names = Vec::new();
        for entry in &listing.entries {
            names.append(&mut entry.bytes()?);
            names.extend((entry.kind == EntryKind::Folder).then_some(b'/'));
            names.push(b'\n');
        }
        print(names)
    }

    fn row(&self, entry: &Entry) -> Vec<String> {
        let size = |bytes: u64| if self.bytes { bytes.to_string() } else { output::size(bytes) };
        let (kind, slash) = entry.kind.word_and_slash();
        let name = entry.bytes().unwrap_or_else(|_| entry.name.clone().into_bytes());
        vec![
            kind.to_owned(),
            entry.size.map(size).unwrap_or_default(),
            output::time(&entry.modified),
            output::text(&name) + slash,
        ]
    }
}

/// Returns a folder's listing. A file's listing has one entry, as in the listing of its folder.
async fn list(server: &mut ApiClient, place: &RemotePath) -> anyhow::Result<Listing> {
    let metadata = server.stat(place).await?.ok_or_else(|| not_found(place))?;
    if metadata.kind == EntryKind::Folder {
        return Ok(server.list(place).await?);
    }
    let (folder, name) = (place.parent().unwrap_or_else(RemotePath::home), place.name().unwrap_or_default());
    let mut listing = server.list(&folder).await?;
    listing.entries.retain(|entry| entry.bytes().is_ok_and(|bytes| bytes == name));
    if listing.entries.is_empty() {
        // The listing of a folder above a share may omit readable files.
        listing.entries.push(serde_json::from_value(json!({
            "name": output::text(name),
            "kind": "file",
            "size": metadata.size,
            "etag": metadata.etag.unwrap_or_default(),
            "href": place.target().rsplit('/').next(),
        }))?);
    }
    Ok(listing)
}
