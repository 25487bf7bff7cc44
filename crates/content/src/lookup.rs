//! From a name to a file: one closure over the file system, which runs where it may block.
//!
//! It sends nothing. Invariants: metadata and bytes of a response come from one descriptor, so that a file
//! that is replaced meanwhile cannot mix two files in one response. The hot cache is asked only after the
//! permission check.

use std::io;
use std::sync::Arc;

use plimsoll_io::{File, FileKind, Fs, Io, Stat};

use crate::encoding::{Encoding, Encodings};
use crate::hot_cache::{CacheKey, HotCache, LookupStart};
use crate::limits::{HOT_BODY_BYTES_MAX, NOT_FOUND_PAGE_BYTES_MAX, SMALL_FILE_BYTES_MAX};
use crate::media::media_type;
use crate::{FileFields, Root, Site, Visibility};

/// The result of a lookup.
pub enum Found {
    /// A file.
    File(Representation),
    /// A folder without an index page.
    Folder,
    /// A folder that was requested without a trailing slash: relative links in it would be wrong.
    FolderWithoutSlash,
}

/// The selected representation of a file (RFC 9110, section 3.2): its metadata and its bytes.
pub struct Representation {
    /// The metadata.
    pub stat: Stat,
    /// The media type.
    pub media: &'static str,
    /// The bytes.
    pub source: Source,
    /// The response fields.
    pub fields: Arc<FileFields>,
}

/// The bytes of a file.
pub enum Source {
    /// In an open file.
    File(File),
    /// In memory, all of them.
    Bytes {
        /// The bytes.
        contents: Arc<[u8]>,
        /// The open file; `None` for a hit of the hot cache.
        file: Option<File>,
    },
}

impl Representation {
    /// Returns the file, if it is open; it is unless it comes from the hot cache.
    pub fn file(&self) -> Option<&File> {
        match &self.source {
            Source::File(file) => Some(file),
            Source::Bytes { file, .. } => file.as_ref(),
        }
    }
}

/// A lookup of a name.
pub struct Lookup<'a> {
    /// The engine.
    pub io: &'a Io,
    /// The cache.
    pub hot: &'a HotCache,
    /// The folder that names begin at.
    pub root: &'a Root,
    /// The name. A trailing slash requests a folder.
    pub name: &'a [u8],
    /// The audience of the folder.
    pub visibility: Visibility,
    /// The value of Accept-Encoding.
    pub accept_encoding: Option<&'a [u8]>,
}

impl Lookup<'_> {
    /// Returns the file or folder, from the hot cache or from the file system.
    ///
    /// # Errors
    /// Any error of the file system; [`io::ErrorKind::NotFound`] also for an entry of another kind than
    /// requested.
    pub async fn run(&self) -> io::Result<Found> {
        let encodings = self.encodings();
        let Some(edition) = self.root.edition.filter(|_| self.hot.is_on()) else {
            return self.resolve(encodings, false).await;
        };
        let key = CacheKey::new(edition, self.name, self.visibility, encodings);
        if let Some(found) = self.hot.get(&key, edition, self.io) {
            return Ok(Found::File(found));
        }
        let (is_known, before) = (self.hot.miss(&key), LookupStart::new(edition, self.io));
        let found = self.resolve(encodings, is_known).await;
        match &found {
            Ok(Found::File(file)) => self.hot.insert(&key, &before, file),
            _ if is_known => self.hot.remove(&key),
            _ => {}
        }
        found
    }

    /// Returns the file, if it is in the hot cache.
    pub fn cached(&self) -> Option<Representation> {
        let edition = self.root.edition?;
        let key = CacheKey::new(edition, self.name, self.visibility, self.encodings());
        self.hot.get(&key, edition, self.io)
    }

    fn encodings(&self) -> Encodings {
        Encodings::accepted(self.accept_encoding.filter(|_| self.visibility.is_public()))
    }

    async fn resolve(&self, encodings: Encodings, is_known: bool) -> io::Result<Found> {
        let (root, name, visibility) = (self.root.folder.clone(), self.name.to_vec(), self.visibility);
        let resolve = move |fs: &dyn Fs| {
            Resolver { fs, root: &root, visibility, encodings, is_known, is_prefetch: false }.resolve(&name)
        };
        self.io.files(resolve).await
    }
}

/// Resolves names in the file system.
pub(crate) struct Resolver<'a> {
    pub(crate) fs: &'a dyn Fs,
    pub(crate) root: &'a File,
    pub(crate) visibility: Visibility,
    pub(crate) encodings: Encodings,
    /// Whether the name has an entry in the hot cache, which has expired.
    pub(crate) is_known: bool,
    /// Whether the file is read for the hot cache, which then has the only copy in memory.
    pub(crate) is_prefetch: bool,
}

pub(crate) const INDEX: &[u8] = b"index.html";

impl Resolver<'_> {
    pub(crate) fn resolve(&self, name: &[u8]) -> io::Result<Found> {
        let wants_folder = name.is_empty() || name.ends_with(b"/");
        let file = self.fs.open_beneath(self.root, name)?;
        let stat = self.fs.stat(&file)?;
        match (stat.kind, wants_folder) {
            (FileKind::File, false) => self.with_encoding(name, file, stat),
            (FileKind::Folder, false) => Ok(Found::FolderWithoutSlash),
            (FileKind::Folder, true) if self.visibility.is_public() => self.index_of(name),
            (FileKind::Folder, true) => Ok(Found::Folder),
            (FileKind::File, true) | (FileKind::Other, _) => Err(io::ErrorKind::NotFound.into()),
        }
    }

    /// Returns the index page of a public folder, or the folder.
    fn index_of(&self, name: &[u8]) -> io::Result<Found> {
        let index = [name, INDEX].concat();
        match open_file(self.fs, self.root, &index) {
            Ok((file, stat)) => self.with_encoding(&index, file, stat),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Found::Folder),
            Err(error) => Err(error),
        }
    }

    /// Returns the file, or a precompressed sibling that the client accepts and that is not older.
    fn with_encoding(&self, name: &[u8], plain: File, plain_stat: Stat) -> io::Result<Found> {
        for encoding in self.encodings.in_order() {
            let sibling = [name, encoding.suffix()].concat();
            match open_file(self.fs, self.root, &sibling) {
                Ok((file, stat)) if stat.modified >= plain_stat.modified => {
                    return self.found(name, file, stat, Some(encoding));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Err(error),
                // The sibling is outdated or missing, so the plain file is sent.
                _ => {}
            }
        }
        self.found(name, plain, plain_stat, None)
    }

    fn found(&self, name: &[u8], file: File, stat: Stat, encoding: Option<Encoding>) -> io::Result<Found> {
        let source = match self.contents(&file, &stat)? {
            Some(contents) => Source::Bytes { contents, file: Some(file) },
            None => Source::File(file),
        };
        let fields = Arc::new(FileFields::new(&stat, encoding, self.visibility));
        Ok(Found::File(Representation { stat, media: media_type(name), source, fields }))
    }

    /// Reads a small file. Returns `None` if it is larger, or shorter than its metadata says.
    fn contents(&self, file: &File, stat: &Stat) -> io::Result<Option<Arc<[u8]>>> {
        // A file that is requested repeatedly is worth more memory.
        let is_hot = self.is_known || self.is_prefetch;
        let most = if is_hot { HOT_BODY_BYTES_MAX } else { SMALL_FILE_BYTES_MAX };
        match usize::try_from(stat.size) {
            Ok(size) if size <= most => self.read_whole(file, size),
            _ => Ok(None),
        }
    }

    /// Reads all `size` bytes of a file. Returns `None` if it has fewer.
    fn read_whole(&self, file: &File, size: usize) -> io::Result<Option<Arc<[u8]>>> {
        let mut contents: Arc<[u8]> = std::iter::repeat_n(0, size).collect();
        // There is no other reference yet.
        let Some(bytes) = Arc::get_mut(&mut contents) else { return Ok(None) };
        let filled = fill(bytes, |into, offset| match self.is_prefetch {
            true => self.fs.read_uncached(file, into, offset),
            false => self.fs.read_at(file, into, offset),
        })?;
        Ok(Some(contents).filter(|_| filled == size))
    }
}

/// Reads from the start of a file until `bytes` are full or the file ends. Returns the number of bytes read.
fn fill(bytes: &mut [u8], read: impl Fn(&mut [u8], u64) -> io::Result<usize>) -> io::Result<usize> {
    let mut filled = 0;
    while filled < bytes.len() {
        match read(&mut bytes[filled..], filled as u64)? {
            0 => break,
            read => filled += read,
        }
    }
    Ok(filled)
}

fn read_up_to(fs: &dyn Fs, file: &File, size: usize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; size];
    let filled = fill(&mut bytes, |into, offset| fs.read_at(file, into, offset))?;
    bytes.truncate(filled);
    Ok(bytes)
}

fn open_file(fs: &dyn Fs, root: &File, name: &[u8]) -> io::Result<(File, Stat)> {
    let file = fs.open_beneath(root, name)?;
    let stat = fs.stat(&file)?;
    if stat.kind == FileKind::File { Ok((file, stat)) } else { Err(io::ErrorKind::NotFound.into()) }
}

/// Returns the site's own page for a path that is not found: `404.html` in its root.
pub async fn not_found_page(site: &Site, io: &Io) -> Option<Vec<u8>> {
    let root = site.root().folder.clone();
    let page = io.files(move |fs| {
        let (file, stat) = open_file(fs, &root, b"404.html")?;
        let size = stat.size.min(NOT_FOUND_PAGE_BYTES_MAX);
        read_up_to(fs, &file, usize::try_from(size).unwrap_or(0))
    });
    page.await.ok()
}
