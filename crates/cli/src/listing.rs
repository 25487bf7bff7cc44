//! The contents of the server: the status of a name, and the entries of a folder.
//!
//! It prints nothing. Invariant: a name from a server is a single file name, and cannot escape from its
//! folder.

use std::time::Duration;

use plimsoll_client::http::{Request, Response};
use plimsoll_wire::http::mtime::parse_mtime;
use plimsoll_wire::http::status::Status;
use plimsoll_wire::http::target::decode_path;
use serde::{Deserialize, Serialize};

use crate::api_client::ApiClient;
use crate::failure::{Failure, Refusal};
use crate::output;
use crate::remote_path::RemotePath;

/// A file or a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum EntryKind {
    File,
    Folder,
}

impl EntryKind {
    /// Returns the word for it, and the end of its printed name.
    pub(crate) fn word_and_slash(self) -> (&'static str, &'static str) {
        match self {
            EntryKind::File => ("file", ""),
            EntryKind::Folder => ("folder", "/"),
        }
    }
}

/// The status of a file or folder.
#[derive(Clone, Debug)]
pub(crate) struct RemoteStat {
    pub(crate) kind: EntryKind,
    /// Length in bytes; 0 for a folder.
    pub(crate) size: u64,
    /// The entity tag.
    pub(crate) etag: Option<String>,
}

/// An entry of a folder, as the server sends it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Entry {
    pub(crate) name: String,
    pub(crate) kind: EntryKind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) size: Option<u64>,
    #[serde(default)]
    pub(crate) modified: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) mtime: String,
    #[serde(default)]
    pub(crate) etag: String,
    pub(crate) href: String,
}

/// A folder, as the server sends it.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Listing {
    pub(crate) path: String,
    pub(crate) entries: Vec<Entry>,
}

impl Entry {
    /// Returns the exact bytes of the name.
    pub(crate) fn bytes(&self) -> Result<Vec<u8>, Failure> {
        let bad = || Failure::Unexpected(format!("{:?} is no name", output::text(self.href.as_bytes())));
        let mut path = Vec::new();
        let encoded = format!("/{}", self.href.trim_end_matches('/'));
        decode_path(encoded.as_bytes(), &mut path).map_err(|_| bad())?;
        let name = path.split_off(1);
        plimsoll_io::check_name(&name).map_err(|_| bad())?;
        Ok(name)
    }
}

impl Entry {
    /// Returns the time of modification since 1970, if the server sends it in nanoseconds.
    pub(crate) fn modified_at(&self) -> Option<Duration> {
        parse_mtime(self.mtime.as_bytes())
    }
}

impl ApiClient {
    /// Returns the status of the file or folder at a place; `None` if it is missing.
    pub(crate) async fn stat(&mut self, place: &RemotePath) -> Result<Option<RemoteStat>, Failure> {
        let target = place.target();
        let account = self.account();
        let response = self.send(Request::new("HEAD", &target)).await?;
        let status = response.status();
        match status {
            Status::OK => Ok(Some(RemoteStat {
                kind: EntryKind::File,
                // A response to HEAD has the length of the body that GET would return.
                size: response.field("Content-Length").and_then(|value| value.parse().ok()).unwrap_or(0),
                etag: response.field("ETag").map(str::to_owned),
            })),
            Status::MOVED_PERMANENTLY | Status::PERMANENT_REDIRECT if leads_to_folder(&response) => {
                Ok(Some(RemoteStat { kind: EntryKind::Folder, size: 0, etag: None }))
            }
            Status::NOT_FOUND => Ok(None),
            _ => Err(Failure::Refused(Refusal::of(response, account.as_deref()).await)),
        }
    }

    /// Returns the entries of a folder.
    pub(crate) async fn list(&mut self, place: &RemotePath) -> Result<Listing, Failure> {
        self.get(&place.folder_target()).await
    }
}

/// Returns whether a redirection leads from a folder's name to the same with a slash.
fn leads_to_folder(response: &Response<'_>) -> bool {
    response.field("Location").is_some_and(|location| location.ends_with('/'))
}

/// Returns the error for a missing file or folder.
pub(crate) fn not_found(place: &RemotePath) -> Failure {
    Failure::Local(match &place.owner {
        Some(owner) if place.is_home() => {
            format!(
                "{} shares nothing with you. See who does: plimsoll shared",
                output::text(owner.as_bytes())
            )
        }
        Some(_) => {
            "There is no such file or folder that is shared with you. See what is: plimsoll shared".to_owned()
        }
        None => "There is no such file or folder. See what is there: plimsoll ls".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(href: &str) -> Entry {
        let text = String::new();
        Entry {
            name: text.clone(),
            kind: EntryKind::File,
            size: None,
            modified: text.clone(),
            mtime: text.clone(),
            etag: text,
            href: href.to_owned(),
        }
    }

    #[test]
    fn a_name_is_exact_to_the_byte() {
        assert_eq!(entry("caf%E9%20%3A").bytes().unwrap(), b"caf\xe9 :");
        assert_eq!(entry("folder/").bytes().unwrap(), b"folder");
    }

    #[test]
    fn a_name_from_a_server_leads_nowhere_else() {
        for href in ["", "/", "..", "../a", "a/b", "%2e%2e", "a%2fb", "/etc/passwd", ".", "a%00b"] {
            assert!(entry(href).bytes().is_err(), "{href}");
        }
    }
}
