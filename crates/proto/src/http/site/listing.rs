//! What a folder of a site shows: which entries, in which order, and the same as JSON.
//!
//! Not here: the HTML (`page`), and reading the folder. What must hold: a link leads to exactly the name that
//! it stands for, whatever bytes that has; what cannot be asked for is not shown.

mod order;
mod paging;
mod writer;

#[cfg(test)]
mod tests;

use std::time::Duration;

use plimsoll_io::{Entry, FileKind, Stat};
use plimsoll_wire::calendar::format_rfc3339;
use plimsoll_wire::http::mtime::write_mtime;
use plimsoll_wire::http::target::encode_path;
use serde::Serialize;

use super::Manner;

pub(crate) use order::{Column, Order, Sequence};
pub use paging::BadPage;
pub(crate) use paging::page_of;
pub(crate) use writer::{ListingWriter, Summary, View};

/// One entry of a listing.
pub(crate) struct Row {
    /// Its name, not always UTF-8.
    pub(crate) name: Vec<u8>,
    /// A file or a folder.
    pub(crate) kind: FileKind,
    /// Length in bytes; of a folder, nothing that means anything.
    pub(crate) size: u64,
    /// Last change, as time since 1970.
    pub(crate) modified: Duration,
    /// The tag that a GET of it would answer with.
    pub(crate) etag: String,
}

impl Row {
    pub(super) fn new(Entry { name, stat }: Entry, etag: fn(&Stat) -> String) -> Row {
        Row { name, kind: stat.kind, size: stat.size, modified: stat.modified, etag: etag(&stat) }
    }

    pub(crate) fn is_folder(&self) -> bool {
        self.kind == FileKind::Folder
    }

    /// The name for people: what is not UTF-8 is replaced.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.name).into_owned()
    }

    /// The name as a link from the folder's own page, exact to the byte.
    ///
    /// A colon is encoded too, so no name reads as the scheme of a URL (RFC 3986, section 4.2).
    pub(crate) fn href(&self) -> String {
        let mut href = Vec::with_capacity(self.name.len() + 1);
        encode_path(&self.name, &mut href);
        href.extend(self.is_folder().then_some(b'/'));
        String::from_utf8_lossy(&href).into_owned()
    }
}

/// Left out are a site's hidden names, what is no file or folder, and names with control characters: no
/// request can have one in its path, so the link would be dead.
pub(super) fn is_shown(entry: &Entry, manner: Manner) -> bool {
    let is_hidden = manner.is_site() && entry.name.starts_with(b".");
    let is_named = !entry.name.iter().any(u8::is_ascii_control);
    !is_hidden && is_named && entry.stat.kind != FileKind::Other
}

#[derive(Serialize)]
pub(super) struct RowJson<'a> {
    name: String,
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<u64>,
    modified: String,
    /// The same to the nanosecond, in seconds since 1970.
    mtime: String,
    etag: &'a str,
    href: String,
}

impl<'a> RowJson<'a> {
    pub(super) fn new(row: &'a Row) -> RowJson<'a> {
        RowJson {
            name: row.text(),
            kind: if row.is_folder() { "folder" } else { "file" },
            size: (!row.is_folder()).then_some(row.size),
            modified: format_rfc3339(row.modified),
            mtime: write_mtime(row.modified),
            etag: &row.etag,
            href: row.href(),
        }
    }
}
