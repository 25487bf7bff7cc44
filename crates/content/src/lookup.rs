//! From a location to a file: one closure over the file system, which runs where it may block, or one
//! request to a remote store.
//!
//! It sends nothing. Invariants: metadata and bytes of a response come from one descriptor, so that a file
//! that is replaced meanwhile cannot mix two files in one response. The hot cache is asked only after the
//! permission check.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use plimsoll_io::{File, FileKind, Fs, Io, Stat};
use plimsoll_store::backend::{FileRequest, RemoteFile};
use plimsoll_store::{Error, Location, Opened};
use plimsoll_wire::http::head::{Field, Head, Method};

use crate::encoding::{Encoding, Encodings};
use crate::hot_cache::{CacheKey, HotCache, LookupStart};
use crate::limits::{HOT_BODY_BYTES_MAX, NOT_FOUND_PAGE_BYTES_MAX, SMALL_FILE_BYTES_MAX};
use crate::media::media_type;
use crate::{FileFields, Site, Visibility};

/// The result of a lookup.
pub enum Found<S = Source> {
    /// A file.
    File(Representation<S>),
    /// A folder without an index page.
    Folder,
    /// A folder that was requested without a trailing slash: relative links in it would be wrong.
    FolderWithoutSlash,
}

/// The selected representation of a file (RFC 9110, section 3.2): its metadata and its bytes.
pub struct Representation<S = Source> {
    /// The metadata.
    pub stat: Stat,
    /// The media type.
    pub media: &'static str,
    /// The bytes.
    pub source: S,
    /// The response fields.
    pub fields: Arc<FileFields>,
}

/// The bytes of a file.
pub enum Source {
    /// In this process, all of them.
    Local(LocalSource),
    /// Received from a remote store while they are sent: exactly those that the request selects.
    Remote(Box<RemoteFile>),
}

/// The bytes of a file in this process.
pub enum LocalSource {
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

impl<S> Representation<S> {
    /// Returns the same representation with its source converted.
    pub fn map_source<T>(self, convert: impl FnOnce(S) -> T) -> Representation<T> {
        let Representation { stat, media, source, fields } = self;
        Representation { stat, media, source: convert(source), fields }
    }
}

impl Representation {
    fn of_remote(file: Box<RemoteFile>, name: &[u8], visibility: Visibility) -> Representation {
        let stat = file.stat();
        let media = media_type(name);
        let fields = Arc::new(FileFields::new(&stat, media, None, visibility));
        Representation { stat, media, source: Source::Remote(file), fields }
    }

    /// Returns the SHA-256 of the whole file, if a remote store has sent it.
    pub fn sha256(&self) -> Option<[u8; 32]> {
        match &self.source {
            Source::Local(_) => None,
            Source::Remote(file) => file.sha256(),
        }
    }

    /// Returns the file, if it is open in this process: unless it comes from the hot cache or a remote store.
    pub fn file(&self) -> Option<&File> {
        match &self.source {
            Source::Local(LocalSource::File(file)) => Some(file),
            Source::Local(LocalSource::Bytes { file, .. }) => file.as_ref(),
            Source::Remote(_) => None,
        }
    }
}

impl From<Found<LocalSource>> for Found {
    fn from(found: Found<LocalSource>) -> Found {
        match found {
            Found::File(file) => Found::File(file.map_source(Source::Local)),
            Found::Folder => Found::Folder,
            Found::FolderWithoutSlash => Found::FolderWithoutSlash,
        }
    }
}

/// A lookup of a file or folder for a request.
pub struct Lookup<'a> {
    /// The engine.
    pub io: &'a Io,
    /// The cache.
    pub hot: &'a HotCache,
    /// The file or folder.
    pub location: &'a Location,
    /// The audience of the folder.
    pub visibility: Visibility,
    /// The head of the request, and the bytes that it is parsed from.
    pub head: (&'a Head, &'a [u8]),
    /// Whether a remote store sends the digest of the file, too, which takes as long as reading it.
    pub wants_digest: bool,
}

/// The request fields that select the bytes to be sent.
const SELECTING: [Field; 6] = [
    Field::IfMatch,
    Field::IfModifiedSince,
    Field::IfNoneMatch,
    Field::IfRange,
    Field::IfUnmodifiedSince,
    Field::Range,
];

impl Lookup<'_> {
    /// Returns the file or folder, from the hot cache, from the file system, or from a remote store.
    ///
    /// # Errors
    /// As [`Location::open`]; [`Error::NotFound`] also for an entry of another kind than requested.
    pub async fn run(&self) -> Result<Found, Error> {
        if let Some(found) = self.cached() {
            return Ok(Found::File(found));
        }
        let (encodings, visibility) = (self.encodings(), self.visibility);
        let caching = self.location.generation().filter(|_| self.hot.is_on()).map(|generation| {
            let key = CacheKey::new(generation, self.location.name(), visibility, encodings);
            (self.hot.miss(&key), LookupStart::new(generation, self.io), key)
        });
        let is_known = caching.as_ref().is_some_and(|(is_known, ..)| *is_known);
        let resolve = move |fs: &dyn Fs, root: &File, name: &[u8]| {
            Resolver { fs, root, visibility, encodings, is_known, is_prefetch: false }.resolve(name)
        };
        let opened = self.location.open(self.io, || self.request(), resolve).await;
        match (&opened, caching) {
            (Ok(Opened::Local(Found::File(file))), Some((_, before, key))) => {
                self.hot.insert(&key, &before, file)
            }
            (_, Some((true, _, key))) => self.hot.remove(&key),
            _ => {}
        }
        match opened {
            Ok(Opened::Local(found)) => Ok(found.into()),
            Ok(Opened::Remote(file)) => {
                Ok(Found::File(Representation::of_remote(file, self.location.name(), visibility)))
            }
            Err(Error::IsFolder) => Ok(Found::FolderWithoutSlash),
            Err(error) => Err(error),
        }
    }

    /// Returns the file, if it is in the hot cache.
    pub fn cached(&self) -> Option<Representation> {
        let generation = self.location.generation()?;
        let key = CacheKey::new(generation, self.location.name(), self.visibility, self.encodings());
        Some(self.hot.get(&key, generation, self.io)?.map_source(Source::Local))
    }

    fn encodings(&self) -> Encodings {
        let (head, block) = self.head;
        let accepted =
            if self.visibility.is_public() { head.field(block, Field::AcceptEncoding) } else { None };
        Encodings::accepted(accepted)
    }

    /// Returns the request for a remote store.
    fn request(&self) -> FileRequest {
        let (head, block) = self.head;
        let digest = self.wants_digest.then_some(Field::WantReprDigest);
        let mut fields = Vec::new();
        for field in SELECTING.into_iter().chain(digest) {
            let values = head.all(block, field);
            fields.extend(values.map(|value| (field.name(), String::from_utf8_lossy(value).into_owned())));
        }
        FileRequest { head_only: head.method() == Method::Head, fields, is_long: self.wants_digest }
    }
}

/// Returns a range of bytes in memory; nothing if it is out of bounds.
pub fn part_of<'a>(contents: &'a [u8], range: &Range<u64>) -> &'a [u8] {
    let index = |at: u64| usize::try_from(at).unwrap_or(usize::MAX);
    contents.get(index(range.start)..index(range.end)).unwrap_or_default()
}

/// The metadata of an open file, and its bytes.
pub type OpenFile = (Stat, Source);

/// Opens a file, to be read from `offset` on. A remote store sends nothing before the offset.
///
/// # Errors
/// As [`Location::open`]; [`Error::IsFolder`].
pub async fn open(io: &Io, location: &Location, offset: u64) -> Result<OpenFile, Error> {
    let request = || {
        let range = (offset > 0).then(|| ("Range", format!("bytes={offset}-")));
        FileRequest { fields: range.into_iter().collect(), ..FileRequest::default() }
    };
    let resolve = |fs: &dyn Fs, root: &File, name: &[u8]| {
        let file = fs.open_beneath(root, name)?;
        let stat = fs.stat(&file)?;
        Ok((file, stat))
    };
    match location.open(io, request, resolve).await? {
        Opened::Local((file, stat)) => match stat.kind {
            FileKind::File => Ok((stat, Source::Local(LocalSource::File(file)))),
            FileKind::Folder => Err(Error::IsFolder),
            FileKind::Other => Err(Error::NotFound),
        },
        Opened::Remote(file) => Ok((file.stat(), Source::Remote(file))),
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
    pub(crate) fn resolve(&self, name: &[u8]) -> io::Result<Found<LocalSource>> {
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
    fn index_of(&self, name: &[u8]) -> io::Result<Found<LocalSource>> {
        let index = [name, INDEX].concat();
        match open_file(self.fs, self.root, &index) {
            Ok((file, stat)) => self.with_encoding(&index, file, stat),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Found::Folder),
            Err(error) => Err(error),
        }
    }

    /// Returns the file, or a precompressed sibling that the client accepts and that is not older.
    fn with_encoding(&self, name: &[u8], plain: File, plain_stat: Stat) -> io::Result<Found<LocalSource>> {
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

    fn found(
        &self,
        name: &[u8],
        file: File,
        stat: Stat,
        encoding: Option<Encoding>,
    ) -> io::Result<Found<LocalSource>> {
        let source = match self.contents(&file, &stat)? {
            Some(contents) => LocalSource::Bytes { contents, file: Some(file) },
            None => LocalSource::File(file),
        };
        let media = media_type(name);
        let fields = Arc::new(FileFields::new(&stat, media, encoding, self.visibility));
        Ok(Found::File(Representation { stat, media, source, fields }))
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
    let root = site.folder().clone();
    let page = io.files(move |fs| {
        let (file, stat) = open_file(fs, &root, b"404.html")?;
        let size = stat.size.min(NOT_FOUND_PAGE_BYTES_MAX);
        read_up_to(fs, &file, usize::try_from(size).unwrap_or(0))
    });
    page.await.ok()
}
