//! The properties of files and folders over WebDAV: of one, or of a folder's entries while it is read.
//!
//! The XML is in `plimsoll_wire`. Invariants: the properties of a file are those of the response to a GET of
//! it; the same entries are shown as in every other listing.

use std::collections::HashMap;

use plimsoll_io::{Entry, EntryWriter, FileKind, Stat};
use plimsoll_store::Location;
use plimsoll_wire::http::dav::lock::DavLock;
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
    /// `None` if the server has no locks.
    locks: Option<FolderLocks>,
}

/// The locks of a file or folder, and of the entries of a folder.
#[derive(Default)]
struct FolderLocks {
    of_self: Vec<EntryLock>,
    /// Those on an entry alone, or on it and all below, by its name.
    of_entries: HashMap<Vec<u8>, Vec<EntryLock>>,
}

impl FolderLocks {
    /// Returns the locks on an entry of the folder, or without a name on the file or folder itself.
    fn of(&self, entry: Option<&[u8]>) -> Vec<DavLock<'_>> {
        let Some(name) = entry else { return self.of_self.iter().map(EntryLock::described).collect() };
        let inherited = self.of_self.iter().filter(|lock| lock.is_deep);
        let own = self.of_entries.get(name).into_iter().flatten();
        inherited.chain(own).map(EntryLock::described).collect()
    }
}

/// A lock in a home.
pub struct EntryLock {
    /// The path of its resource in the home.
    pub path: Vec<u8>,
    /// The same in URLs, percent-encoded.
    pub root: Vec<u8>,
    /// Its token, a URI.
    pub token: String,
    /// Whether it is shared.
    pub is_shared: bool,
    /// Whether it covers everything below its path, too.
    pub is_deep: bool,
    /// The element `owner` of the LOCK request, as XML.
    pub about: String,
    /// How long it still holds, in seconds.
    pub seconds: u64,
}

impl EntryLock {
    /// Returns its description for clients.
    pub fn described(&self) -> DavLock<'_> {
        let EntryLock { root, token, is_shared, is_deep, about, seconds, .. } = self;
        DavLock { root, token, is_shared: *is_shared, is_deep: *is_deep, about, seconds: *seconds }
    }

    fn covers(&self, path: &[u8]) -> bool {
        self.path == path || (self.is_deep && below(&self.path, path).is_some())
    }
}

/// Returns the rest of a path below a folder.
fn below<'a>(folder: &[u8], path: &'a [u8]) -> Option<&'a [u8]> {
    if folder.is_empty() { Some(path) } else { path.strip_prefix(folder)?.strip_prefix(b"/") }
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
        PropertyWriter { selection, location, href, only, quota, locks: None }
    }

    /// Adds the path in the home, and the locks in that home.
    #[must_use]
    pub fn with_locks(self, path: &[u8], locks: Vec<EntryLock>) -> PropertyWriter {
        let mut found = FolderLocks::default();
        for lock in locks {
            if lock.covers(path) {
                found.of_self.push(lock);
            } else if let Some(name) = below(path, &lock.path).filter(|rest| !rest.contains(&b'/')) {
                found.of_entries.entry(name.to_vec()).or_default().push(lock);
            }
        }
        PropertyWriter { locks: Some(found), ..self }
    }

    /// Appends the properties of the file or folder itself, which has this decoded name.
    pub fn write_self(&self, name: &[u8], stat: &Stat, out: &mut Vec<u8>) {
        self.push((&self.href, None), name, stat, out);
    }

    fn push(&self, (href, entry): (&[u8], Option<&[u8]>), name: &[u8], stat: &Stat, out: &mut Vec<u8>) {
        let (is_file, text) = (stat.kind == FileKind::File, String::from_utf8_lossy(name));
        let etag = if is_file { etag(stat) } else { String::new() };
        let wants_digest = is_file && self.selection.has(LiveProperty::Checksums);
        let file = DavFile {
            length: stat.size,
            media: media_type(name),
            etag: &etag,
            sha256: wants_digest.then(|| self.location.known_sha256(stat)).flatten(),
        };
        let locks = self.locks.as_ref().map(|locks| locks.of(entry));
        let resource = DavResource {
            href,
            name: &text,
            modified: Some(stat.modified),
            file: is_file.then_some(file),
            quota: self.quota,
            locks: locks.as_deref(),
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
        self.push((&href, Some(&entry.name)), &entry.name, &entry.stat, out);
    }
}
