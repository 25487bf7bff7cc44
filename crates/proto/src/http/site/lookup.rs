//! From a name to what is there: one question to the file system, asked where it may wait.
//!
//! It sends nothing. What must hold: everything that an answer says of a file comes from one descriptor, so
//! that a file replaced meanwhile cannot mix two files in one answer.

use std::io;

use plimsoll_io::{File, FileKind, Fs, Io, Stat};
use plimsoll_wire::http::head::Field;

use super::encoding::{Encoding, Encodings};
use super::media::media_type;
use super::{Manner, Site};
use crate::http::limits::{COPIED_BODY_BYTES_MAX, NOT_FOUND_PAGE_BYTES_MAX};
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
    /// The file, open.
    pub file: File,
    /// What is known of it.
    pub stat: Stat,
    pub(super) media: &'static str,
    /// How its bytes are encoded, if a precompressed sibling was taken.
    pub(super) encoding: Option<Encoding>,
    /// All of its bytes, if it is small: then head and body go in one send.
    pub(super) contents: Option<Vec<u8>>,
    /// How it is served.
    pub(super) manner: Manner,
}

const INDEX: &[u8] = b"index.html";

/// What `name` stands for below `root`; a slash at its end says that a folder is meant.
///
/// # Errors
/// What the system says; [`io::ErrorKind::NotFound`] also for what is not of the kind that is meant.
pub async fn look_up(request: &Request<'_>, root: &File, name: Vec<u8>, manner: Manner) -> io::Result<Found> {
    let root = root.clone();
    let encodings = Encodings::accepted(request.field(Field::AcceptEncoding).filter(|_| manner.is_site()));
    request.io.files(move |fs| find(fs, &root, &name, manner, encodings)).await
}

fn find(fs: &dyn Fs, root: &File, name: &[u8], manner: Manner, encodings: Encodings) -> io::Result<Found> {
    let wants_folder = name.is_empty() || name.ends_with(b"/");
    let file = fs.open_beneath(root, name)?;
    let stat = fs.stat(&file)?;
    match (stat.kind, wants_folder) {
        (FileKind::File, false) => {
            let plain =
                FoundFile { file, stat, media: media_type(name), encoding: None, contents: None, manner };
            with_encoding(fs, root, name, encodings, plain)
        }
        (FileKind::Folder, false) => Ok(Found::FolderWithoutSlash),
        (FileKind::Folder, true) if manner.is_site() => in_folder(fs, root, name, encodings),
        (FileKind::Folder, true) => Ok(Found::Folder),
        (FileKind::File, true) | (FileKind::Other, _) => Err(io::ErrorKind::NotFound.into()),
    }
}

/// A site's folder: its index page, or what is in it.
fn in_folder(fs: &dyn Fs, root: &File, name: &[u8], encodings: Encodings) -> io::Result<Found> {
    let index = [name, INDEX].concat();
    match open_file(fs, root, &index) {
        Ok((file, stat)) => {
            let (media, manner) = (media_type(&index), Manner::Site);
            let plain = FoundFile { file, stat, media, encoding: None, contents: None, manner };
            with_encoding(fs, root, &index, encodings, plain)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Found::Folder),
        Err(error) => Err(error),
    }
}

/// The file, or a precompressed sibling of it that the client takes and that is not older.
fn with_encoding(
    fs: &dyn Fs,
    root: &File,
    name: &[u8],
    encodings: Encodings,
    plain: FoundFile,
) -> io::Result<Found> {
    for encoding in encodings.in_order() {
        let sibling = [name, encoding.suffix()].concat();
        match open_file(fs, root, &sibling) {
            Ok((file, stat)) if stat.modified >= plain.stat.modified => {
                return with_contents(fs, FoundFile { file, stat, encoding: Some(encoding), ..plain });
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Err(error),
            // Older than what it was made from, or not there: the file itself is what is right.
            _ => {}
        }
    }
    with_contents(fs, plain)
}

fn with_contents(fs: &dyn Fs, found: FoundFile) -> io::Result<Found> {
    let contents = small_contents(fs, &found.file, &found.stat)?;
    Ok(Found::File(FoundFile { contents, ..found }))
}

/// The bytes of a small file; none if it is larger, or not as long as it was.
fn small_contents(fs: &dyn Fs, file: &File, stat: &Stat) -> io::Result<Option<Vec<u8>>> {
    match usize::try_from(stat.size) {
        Ok(size) if size <= COPIED_BODY_BYTES_MAX => {
            let contents = read_up_to(fs, file, size)?;
            Ok(Some(contents).filter(|contents| contents.len() == size))
        }
        _ => Ok(None),
    }
}

fn read_up_to(fs: &dyn Fs, file: &File, size: usize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; size];
    let mut filled = 0;
    while filled < size {
        match fs.read_at(file, &mut bytes[filled..], filled as u64)? {
            0 => break,
            read => filled += read,
        }
    }
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
    let root = site.root.clone();
    let page = io.files(move |fs| {
        let (file, stat) = open_file(fs, &root, b"404.html")?;
        let size = stat.size.min(NOT_FOUND_PAGE_BYTES_MAX);
        read_up_to(fs, &file, usize::try_from(size).unwrap_or(0))
    });
    page.await.ok()
}
