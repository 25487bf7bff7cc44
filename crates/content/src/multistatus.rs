//! The properties of files and folders over WebDAV: of one, or of a folder's entries while it is read.
//!
//! The XML is in `plimsoll_wire`. Invariants: the properties of a file are those of the response to a GET of
//! it; the same entries are shown as in every other listing.

use plimsoll_io::{Entry, EntryWriter, FileKind, Stat};
use plimsoll_store::Location;
use plimsoll_wire::http::dav::multistatus::{DavFile, DavQuota, DavResource, PropertySelection};
use plimsoll_wire::http::dav::property::LiveProperty;
use plimsoll_wire::http::target::encode_path;

use crate::listing::is_shown;
use crate::media::media_type;
use crate::{Visibility, etag};

/// Writes the properties of a file or folder, and of the entries of a folder.
pub struct PropertyWriter {
    selection: PropertySelection,
    location: Location,
    /// The path in URLs, percent-encoded. That of a folder ends with a slash.
    href: Vec<u8>,
    only: Option<Vec<Vec<u8>>>,
    quota: Option<DavQuota>,
}

impl PropertyWriter {
    /// Creates a writer for the file or folder at `location`, with this decoded path in URLs. Of a folder,
    /// only the entries of the names in `only` are written, if there are such.
    pub fn new(
        selection: PropertySelection,
        location: Location,
        path: &[u8],
        only: Option<Vec<Vec<u8>>>,
        quota: Option<DavQuota>,
    ) -> PropertyWriter {
        let mut href = Vec::new();
        encode_path(path, &mut href);
        PropertyWriter { selection, location, href, only, quota }
    }

    /// Appends the properties of the file or folder itself, which has this decoded name.
    pub fn write_self(&self, name: &[u8], stat: &Stat, out: &mut Vec<u8>) {
        self.push(&self.href, name, stat, out);
    }

    fn push(&self, href: &[u8], name: &[u8], stat: &Stat, out: &mut Vec<u8>) {
        let (is_file, text) = (stat.kind == FileKind::File, String::from_utf8_lossy(name));
        let etag = if is_file { etag(stat) } else { String::new() };
        let wants_digest = is_file && self.selection.has(LiveProperty::Checksums);
        let file = DavFile {
            length: stat.size,
            media: media_type(name),
            etag: &etag,
            sha256: wants_digest.then(|| self.location.known_sha256(stat)).flatten(),
        };
        let resource = DavResource {
            href,
            name: &text,
            modified: Some(stat.modified),
            file: is_file.then_some(file),
            quota: self.quota,
        };
        self.selection.write(&resource, out);
    }
}

impl EntryWriter for PropertyWriter {
    fn write(&mut self, entry: Entry, out: &mut Vec<u8>) {
        let is_selected = self.only.as_ref().is_none_or(|only| only.contains(&entry.name));
        if !is_selected || !is_shown(&entry, Visibility::Private) {
            return;
        }
        let mut href = self.href.clone();
        encode_path(&entry.name, &mut href);
        if entry.stat.kind == FileKind::Folder {
            href.push(b'/');
        }
        self.push(&href, &entry.name, &entry.stat, out);
    }
}
