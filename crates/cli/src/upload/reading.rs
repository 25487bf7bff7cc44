//! Reads files on threads that may block, and computes their digests.
//!
//! It sends nothing. Invariant: a file that has become shorter is an error, not an end of file.

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::sync::Arc;

use plimsoll_io::{Io, Work};
use plimsoll_wire::http::digest::sha256_digest;
use plimsoll_wire::http::mtime::{nearest_mtime, write_mtime};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::LocalFile;
use crate::failure::Failure;
use crate::limits::READ_BYTES;

/// Identifies the contents of a file without reading it, by inode, length and time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Version {
    pub(super) bytes: u64,
    inode: u64,
    modified: (i64, i64),
}

impl Version {
    pub(super) fn of(file: &File) -> io::Result<Version> {
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no file"));
        }
        let modified = (metadata.mtime(), metadata.mtime_nsec());
        Ok(Version { bytes: metadata.len(), inode: metadata.ino(), modified })
    }
}

impl Version {
    /// Returns the time of modification as a request field, as [`crate::local::modified`] compares it.
    pub(super) fn mtime(&self) -> String {
        let (seconds, nanoseconds) = self.modified;
        write_mtime(nearest_mtime(seconds, u32::try_from(nanoseconds).unwrap_or(0)))
    }
}

impl LocalFile<'_> {
    /// Checks that the file is unchanged since it was opened.
    pub(super) fn check_unchanged(&self) -> Result<(), Failure> {
        if Version::of(&self.file).is_ok_and(|now| now == self.version) {
            return Ok(());
        }
        Err(Failure::Local("The file was changed while it was sent. Put it again.".to_owned()))
    }

    /// Adds the bytes from `from` to `to` to a digest.
    pub(super) async fn digest(&self, io: &Io, hash: Sha256, from: u64, to: u64) -> Result<Sha256, Failure> {
        let file = Arc::clone(&self.file);
        let hashed = io.offload(Work::Listings, move |_| hash_range(&file, hash, from, to)).await;
        let hashed = hashed.map_err(io::Error::from).and_then(|hashed| hashed);
        hashed.map_err(|error| Failure::local("cannot be read", &error))
    }
}

fn hash_range(file: &File, mut hash: Sha256, mut from: u64, to: u64) -> io::Result<Sha256> {
    while from < to {
        let piece = read_piece(file, from, to - from)?;
        from += piece.len() as u64;
        hash.update(&piece);
    }
    Ok(hash)
}

/// Reads the next bytes at an offset: at least one, at most `left`.
pub(super) fn read_piece(file: &File, at: u64, left: u64) -> io::Result<Vec<u8>> {
    let mut piece = vec![0; usize::try_from(left).map_or(READ_BYTES, |left| left.min(READ_BYTES))];
    let bytes = file.read_at(&mut piece, at)?;
    if bytes == 0 {
        return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "it is shorter than it was"));
    }
    piece.truncate(bytes);
    Ok(piece)
}

/// Returns the value of a Repr-Digest field.
pub(crate) fn repr_digest(hash: Sha256) -> String {
    String::from_utf8_lossy(&sha256_digest(&hash.finalize().into())).into_owned()
}
