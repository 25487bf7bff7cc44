//! From a name to what is there: one question to the file system, asked where it may wait.
//!
//! It sends nothing. What must hold: everything that an answer says of a file comes from one descriptor, so
//! that a file replaced meanwhile cannot mix two files in one answer; the hot set is asked for nothing that
//! was not found to be permitted.

use std::io;
use std::sync::Arc;

use plimsoll_io::{File, FileKind, Fs, Io, Stat};
use plimsoll_wire::http::head::Field;

use super::encoding::{Encoding, Encodings};
use super::hot::{Before, Wanted};
use super::media::media_type;
use super::said::Said;
use super::{Manner, Root, Site};
use crate::http::limits::{COPIED_BODY_BYTES_MAX, HOT_BODY_BYTES_MAX, NOT_FOUND_PAGE_BYTES_MAX};
use crate::http::request::Request;

/// What a name stands for.
pub enum Found {
    /// A file to be sent.
    File(FoundFile),
    /// A folder without an index page.
    Folder,
    /// A folder that was asked for as if it were a file: links in it would lead astray.
    FolderWithoutSlash,
}

/// A file to be sent.
pub struct FoundFile {
    /// What is known of it.
    pub stat: Stat,
    pub(super) media: &'static str,
    pub(super) source: Source,
    /// What answers say of it.
    pub(super) said: Arc<Said>,
}

/// Where the bytes of a file are.
pub(super) enum Source {
    /// In the file, which is open.
    File(File),
    /// In memory, all of them. The file is open too, unless they were kept there.
    Bytes { contents: Arc<[u8]>, file: Option<File> },
}

impl FoundFile {
    /// The file, if it is open; it is unless it came from the hot set.
    pub fn file(&self) -> Option<&File> {
        match &self.source {
            Source::File(file) => Some(file),
            Source::Bytes { file, .. } => file.as_ref(),
        }
    }
}

/// What a lookup is about.
pub(super) struct Lookup<'a> {
    pub(super) fs: &'a dyn Fs,
    pub(super) root: &'a File,
    pub(super) manner: Manner,
    pub(super) encodings: Encodings,
    /// Whether it was found before and is asked for again.
    pub(super) is_known: bool,
    /// Whether it is to fill the hot set, which then has the only copy in memory.
    pub(super) is_prefetch: bool,
}

pub(super) const INDEX: &[u8] = b"index.html";

/// What `name` stands for below `root`; a slash at its end says that a folder is meant.
///
/// # Errors
/// What the system says; [`io::ErrorKind::NotFound`] also for what is not of the kind that is meant.
pub async fn look_up(request: &Request<'_>, root: &Root, name: &[u8], manner: Manner) -> io::Result<Found> {
    let encodings = accepted(request, manner);
    let Some(edition) = root.edition.filter(|_| request.hot.is_on()) else {
        return ask(request.io, root, name, manner, encodings, false).await;
    };
    let wanted = Wanted::new(edition, name, manner, encodings);
    if let Some(found) = request.hot.good(&wanted, edition, request.io) {
        return Ok(Found::File(found));
    }
    let (is_known, before) = (request.hot.misses(&wanted), Before::new(edition, request.io));
    let found = ask(request.io, root, name, manner, encodings, is_known).await;
    match &found {
        Ok(Found::File(file)) => request.hot.keep(&wanted, &before, file),
        _ if is_known => request.hot.forget(&wanted),
        _ => {}
    }
    found
}

/// The file of this name below `root`, if it is kept ready.
pub fn at_hand(request: &Request<'_>, root: &Root, name: &[u8], manner: Manner) -> Option<FoundFile> {
    let edition = root.edition?;
    let wanted = Wanted::new(edition, name, manner, accepted(request, manner));
    request.hot.good(&wanted, edition, request.io)
}

/// The encodings that may be sent.
fn accepted(request: &Request<'_>, manner: Manner) -> Encodings {
    Encodings::accepted(request.field(Field::AcceptEncoding).filter(|_| manner.is_site()))
}

async fn ask(
    io: &Io,
    root: &Root,
    name: &[u8],
    manner: Manner,
    encodings: Encodings,
    is_known: bool,
) -> io::Result<Found> {
    let (root, name) = (root.folder.clone(), name.to_vec());
    let find = move |fs: &dyn Fs| {
        Lookup { fs, root: &root, manner, encodings, is_known, is_prefetch: false }.find(&name)
    };
    io.files(find).await
}

impl Lookup<'_> {
    pub(super) fn find(&self, name: &[u8]) -> io::Result<Found> {
        let wants_folder = name.is_empty() || name.ends_with(b"/");
        let file = self.fs.open_beneath(self.root, name)?;
        let stat = self.fs.stat(&file)?;
        match (stat.kind, wants_folder) {
            (FileKind::File, false) => self.with_encoding(name, file, stat),
            (FileKind::Folder, false) => Ok(Found::FolderWithoutSlash),
            (FileKind::Folder, true) if self.manner.is_site() => self.in_folder(name),
            (FileKind::Folder, true) => Ok(Found::Folder),
            (FileKind::File, true) | (FileKind::Other, _) => Err(io::ErrorKind::NotFound.into()),
        }
    }

    /// A site's folder: its index page, or what is in it.
    fn in_folder(&self, name: &[u8]) -> io::Result<Found> {
        let index = [name, INDEX].concat();
        match open_file(self.fs, self.root, &index) {
            Ok((file, stat)) => self.with_encoding(&index, file, stat),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Found::Folder),
            Err(error) => Err(error),
        }
    }

    /// The file, or a precompressed sibling of it that the client takes and that is not older.
    fn with_encoding(&self, name: &[u8], plain: File, plain_stat: Stat) -> io::Result<Found> {
        for encoding in self.encodings.in_order() {
            let sibling = [name, encoding.suffix()].concat();
            match open_file(self.fs, self.root, &sibling) {
                Ok((file, stat)) if stat.modified >= plain_stat.modified => {
                    return self.found(name, file, stat, Some(encoding));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Err(error),
                // Older than what it was made from, or not there: the file itself is what is right.
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
        let said = Arc::new(Said::new(&stat, encoding, self.manner));
        Ok(Found::File(FoundFile { stat, media: media_type(name), source, said }))
    }

    /// The bytes of a small file; none if it is larger, or not as long as it was.
    fn contents(&self, file: &File, stat: &Stat) -> io::Result<Option<Arc<[u8]>>> {
        // What has been asked for before is worth more memory.
        let is_hot = self.is_known || self.is_prefetch;
        let most = if is_hot { HOT_BODY_BYTES_MAX } else { COPIED_BODY_BYTES_MAX };
        match usize::try_from(stat.size) {
            Ok(size) if size <= most => self.read_whole(file, size),
            _ => Ok(None),
        }
    }

    /// All `size` bytes of a file, or none if it has fewer.
    fn read_whole(&self, file: &File, size: usize) -> io::Result<Option<Arc<[u8]>>> {
        let mut contents: Arc<[u8]> = std::iter::repeat_n(0, size).collect();
        // Nobody else has it yet.
        let Some(bytes) = Arc::get_mut(&mut contents) else { return Ok(None) };
        let filled = fill(bytes, |into, offset| match self.is_prefetch {
            true => self.fs.read_uncached(file, into, offset),
            false => self.fs.read_at(file, into, offset),
        })?;
        Ok(Some(contents).filter(|_| filled == size))
    }
}

/// Reads from the start of a file until `bytes` are full or the file ends; returns how many.
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

/// The site's own page for what is not there: `404.html` in its root.
pub(super) async fn not_found_page(site: &Site, io: &Io) -> Option<Vec<u8>> {
    let root = site.root.folder.clone();
    let page = io.files(move |fs| {
        let (file, stat) = open_file(fs, &root, b"404.html")?;
        let size = stat.size.min(NOT_FOUND_PAGE_BYTES_MAX);
        read_up_to(fs, &file, usize::try_from(size).unwrap_or(0))
    });
    page.await.ok()
}
