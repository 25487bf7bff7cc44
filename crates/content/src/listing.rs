//! The entries of a folder's listing: which are shown, in which order, and their JSON.
//!
//! Not here: the HTML (`page`), and reading the folder. Invariants: a link leads to exactly the name that it
//! is for, whatever its bytes; a name that no request can have is not shown.

mod order;
mod paging;
mod writer;

#[cfg(test)]
mod tests;

use std::time::Duration;

use plimsoll_io::{Entry, FileKind, Stat};
use plimsoll_store::is_name;
use plimsoll_wire::calendar::format_rfc3339;
use plimsoll_wire::http::mtime::write_mtime;
use plimsoll_wire::http::target::encoded_path;
use plimsoll_wire::text::is_unsafe_to_show;
use serde::Serialize;

use crate::Visibility;

pub use order::Order;
pub(crate) use order::{Column, Sequence};
pub use paging::{BadPage, page_of};
pub(crate) use writer::Summary;
pub use writer::{ListingForm, ListingView, ListingWriter};

/// One entry of a listing.
pub struct ListingRow {
    /// The name, not always UTF-8.
    pub(crate) name: Vec<u8>,
    /// A file or a folder.
    pub(crate) kind: FileKind,
    /// Length in bytes; meaningless for a folder.
    pub(crate) size: u64,
    /// Last change, as time since 1970.
    pub(crate) modified: Duration,
    /// The tag that the response to a GET would have.
    pub(crate) etag: String,
}

impl ListingRow {
    pub(super) fn new(Entry { name, stat }: Entry, etag: fn(&Stat) -> String) -> ListingRow {
        ListingRow { name, kind: stat.kind, size: stat.size, modified: stat.modified, etag: etag(&stat) }
    }

    /// Whether it is a folder.
    pub fn is_folder(&self) -> bool {
        self.kind == FileKind::Folder
    }

    /// Returns the name for display: bytes that are not UTF-8 are replaced.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.name).into_owned()
    }

    /// Returns the name for a page: characters that change how a name reads are replaced, too.
    pub fn page_text(&self) -> String {
        self.text().replace(is_unsafe_to_show, "\u{fffd}")
    }

    /// Returns the name as a link from the folder's own page, exact to the byte.
    ///
    /// A colon is encoded too, so no name reads as the scheme of a URL (RFC 3986, section 4.2).
    pub fn href(&self) -> String {
        let mut href = encoded_path(&self.name);
        href.extend(self.is_folder().then_some('/'));
        href
    }
}

/// Whether an entry is shown. Not shown are hidden names of a public folder, entries that are neither files
/// nor folders, and names that no path can have.
pub(super) fn is_shown(entry: &Entry, visibility: Visibility) -> bool {
    let is_hidden = visibility.is_public() && entry.name.starts_with(b".");
    !is_hidden && is_name(&entry.name) && entry.stat.kind != FileKind::Other
}

#[derive(Serialize)]
pub(super) struct RowJson<'a> {
    name: String,
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<u64>,
    modified: String,
    /// The modification time to the nanosecond, in seconds since 1970.
    mtime: String,
    etag: &'a str,
    href: String,
}

impl<'a> RowJson<'a> {
    pub(super) fn new(row: &'a ListingRow) -> RowJson<'a> {
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
