//! `plimsoll find`: searches a folder and all below it by name.
//!
//! The server searches, for a few seconds at a time; the command requests the rest until all is visited.
//! Invariants: on a terminal, no name sends control sequences. For a program, a path is exact to the byte,
//! and can be typed after other commands.

use std::ffi::OsString;
use std::io::IsTerminal as _;
use std::os::unix::ffi::OsStrExt as _;

use anyhow::{Context as _, ensure};
use clap::Args;
use plimsoll_wire::http::form_urlencoded::encode;
use plimsoll_wire::http::target::decode_path;
use serde::{Deserialize, Serialize};

use super::server_args::SessionArgs;
use crate::failure::Failure;
use crate::limits::FOUND_ENTRIES_MAX;
use crate::listing::EntryKind;
use crate::output::{self, columns, print, print_json};
use crate::{ApiClient, RemotePath, Runtime};

/// Find files and folders by a part of their name
#[derive(Args)]
#[command(after_help = "Examples:
  plimsoll find report
  plimsoll find .jpg photos/2026
  plimsoll find report bob:docs         in a folder that bob shares with you
  plimsoll find .tmp work | xargs -d '\\n' plimsoll rm

Case does not matter, nor the Unicode form of accents. On a terminal, or with -l, it shows kind, size,
time (UTC) and path. Otherwise it shows only paths, folders with a slash.
JSON: {\"entries\":[{\"path\":\"/photos/a.jpg\",\"kind\":\"file\",\"size\":5120,
       \"modified\":\"2026-11-20T13:40:05Z\",\"etag\":\"...\",\"href\":\"/files/photos/a.jpg\"}]}")]
pub struct Find {
    /// A part of the name
    #[arg(value_name = "TEXT")]
    text: OsString,
    /// The folder to search, OWNER:PATH for another account's; default: the home
    #[arg(value_name = "FOLDER")]
    folder: Option<OsString>,
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

/// An entry, as the server sends it.
#[derive(Serialize, Deserialize)]
struct FoundEntry {
    path: String,
    kind: EntryKind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    size: Option<u64>,
    modified: String,
    etag: String,
    href: String,
}

/// All results.
#[derive(Default, Serialize)]
struct Results {
    entries: Vec<FoundEntry>,
}

/// A page of results, and the query of a request for the next page.
#[derive(Deserialize)]
struct Page {
    entries: Vec<FoundEntry>,
    next_href: Option<String>,
}

impl Find {
    pub(super) fn run(self, runtime: Runtime) -> anyhow::Result<()> {
        let folder = self.folder.as_deref().map_or(Ok(RemotePath::home()), RemotePath::parse)?;
        let (target, context) = (target(self.text.as_bytes(), &folder), folder.to_string());
        let found = self
            .session
            .run(runtime, async move |mut server| search(&mut server, target).await.context(context))?;
        if self.json {
            return print_json(&found);
        }
        if self.long || std::io::stdout().is_terminal() {
            let rows = found.entries.iter().map(|entry| self.row(entry, &folder));
            return print(columns(&rows.collect::<Result<Vec<_>, Failure>>()?, &[1]));
        }
        let mut paths = Vec::new();
        for entry in &found.entries {
            paths.append(&mut entry.place(&folder)?.typed());
            paths.extend(entry.kind.word_and_slash().1.bytes());
            paths.push(b'\n');
        }
        print(paths)
    }

    fn row(&self, entry: &FoundEntry, folder: &RemotePath) -> Result<Vec<String>, Failure> {
        let size = |bytes: u64| if self.bytes { bytes.to_string() } else { output::size(bytes) };
        let (kind, slash) = entry.kind.word_and_slash();
        Ok(vec![
            kind.to_owned(),
            entry.size.map(size).unwrap_or_default(),
            output::time(&entry.modified),
            format!("{}{slash}", entry.place(folder)?),
        ])
    }
}

impl Results {
    /// Adds a page. Returns the target of the next one.
    fn add(&mut self, page: Page) -> anyhow::Result<Option<String>> {
        self.entries.extend(page.entries);
        ensure!(
            self.entries.len() <= FOUND_ENTRIES_MAX,
            "more than {FOUND_ENTRIES_MAX} names have the text; search for a longer one"
        );
        let is_query =
            |next: &String| next.starts_with('?') && next.bytes().all(|byte| byte.is_ascii_graphic());
        Ok(page.next_href.filter(is_query).map(|next| format!("/api/search{next}")))
    }
}

impl FoundEntry {
    /// Returns its exact place.
    fn place(&self, folder: &RemotePath) -> Result<RemotePath, Failure> {
        let mut path = Vec::new();
        decode_path(self.href.as_bytes(), &mut path).ok().and_then(|()| folder.at_url_path(&path)).ok_or_else(
            || Failure::Unexpected(format!("{:?} is no path", output::text(self.href.as_bytes()))),
        )
    }
}

/// Returns the target of the first request.
fn target(text: &[u8], folder: &RemotePath) -> String {
    let owner = folder.owner.as_ref().map(|owner| ("owner", owner.as_bytes()));
    let mut target = "/api/search?".to_owned();
    for (name, value) in [("name", text), ("path", &*folder.path)].into_iter().chain(owner) {
        target.extend([name, "="]);
        encode(value, &mut target);
        target.push('&');
    }
    target.pop();
    target
}

/// Requests all results, page by page.
async fn search(server: &mut ApiClient, mut target: String) -> anyhow::Result<Results> {
    let mut all = Results::default();
    loop {
        match all.add(server.get(&target).await?)? {
            Some(next) => target = next,
            None => return Ok(all),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use super::*;

    #[test]
    fn a_search_is_of_any_bytes_in_a_folder_of_any_account() {
        let target_in = |folder| target(b"a b&\xe9", &RemotePath::parse(OsStr::new(folder)).unwrap());
        assert_eq!(target_in(""), "/api/search?name=a%20b%26%E9&path=");
        assert_eq!(target_in("bob:x/y/"), "/api/search?name=a%20b%26%E9&path=x%2Fy&owner=bob");
    }

    fn entry(href: &str) -> FoundEntry {
        FoundEntry {
            path: String::new(),
            kind: EntryKind::File,
            size: None,
            modified: String::new(),
            etag: String::new(),
            href: href.to_owned(),
        }
    }

    #[test]
    fn results_are_collected_up_to_a_limit() {
        let page = |entries, next: Option<&str>| Page {
            entries: std::iter::repeat_with(|| entry("/files/a")).take(entries).collect(),
            next_href: next.map(str::to_owned),
        };
        let mut all = Results::default();
        let next = all.add(page(FOUND_ENTRIES_MAX, Some("?name=a&after=b"))).unwrap();
        assert_eq!(next.as_deref(), Some("/api/search?name=a&after=b"));
        assert_eq!(all.add(page(0, None)).unwrap(), None);
        assert!(all.add(page(1, None)).unwrap_err().to_string().starts_with("more than 200000 names"));
    }

    #[test]
    fn the_rest_of_the_results_is_requested_from_no_other_address() {
        for next in ["", "x?name=a", "https://other/", "?a b", "?a\r\nb"] {
            let page = Page { entries: Vec::new(), next_href: Some(next.to_owned()) };
            assert_eq!(Results::default().add(page).unwrap(), None, "{next}");
        }
    }

    #[test]
    fn a_result_that_is_not_of_the_home_is_refused() {
        let bob = RemotePath::parse(OsStr::new("bob:")).unwrap();
        assert_eq!(entry("/shared/bob/caf%E9").place(&bob).unwrap().typed(), b"bob:caf\xe9");
        for href in ["", "caf", "/files/a", "/shared/bob/../x", "/shared/eve/x"] {
            assert!(entry(href).place(&bob).is_err(), "{href}");
        }
    }
}
