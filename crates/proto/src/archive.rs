//! A folder as a zip archive, generated while it is sent.
//!
//! It checks no permission and sends nothing. Invariants: an archive is complete or it ends with an error,
//! after which the connection is reset: a file that vanishes, cannot be read or changes its size would be a
//! silent gap. Memory is bounded, whatever the folder has: a chunk, a page of a listing, and the directory
//! of the archive up to [`ARCHIVE_DIRECTORY_BYTES_MAX`].

use std::io;

use plimsoll_content::{LocalSource, Source, Walk, WalkEntry, open};
use plimsoll_io::{File, FileKind, Io};
use plimsoll_store::Error;
use plimsoll_store::backend::RemoteFile;
use plimsoll_wire::zip::{ZipDirectory, ZipError, ZipWriter};

use crate::body_stream::{BodyStream, PendingChunk};
use crate::file_parts::{patiently, read_patiently};
use crate::limits::{ARCHIVE_CHUNK_BYTES, ARCHIVE_DIRECTORY_BYTES_MAX};

/// An archive in progress.
pub struct Archive {
    io: Io,
    walk: Walk,
    state: State,
}

enum State {
    /// Between two entries, or within a file.
    Entries(ZipWriter, Option<Contents>),
    Directory(ZipDirectory),
    End,
}

/// The rest of a file.
struct Contents {
    source: Contained,
    offset: u64,
    size: u64,
}

enum Contained {
    Local(File),
    Remote(Box<RemoteFile>),
}

impl BodyStream for Archive {
    fn next(&mut self) -> PendingChunk<'_> {
        Box::pin(self.next_chunk())
    }

    /// Returns the bytes of the directory.
    fn memory_bytes(&self) -> u64 {
        match &self.state {
            State::Entries(zip, _) => zip.directory_bytes(),
            State::Directory(directory) => directory.memory_bytes(),
            State::End => 0,
        }
    }
}

impl Archive {
    /// Begins the archive of the entries that `walk` visits, on behalf of the owner of `io`.
    #[must_use]
    pub fn new(io: Io, walk: Walk) -> Archive {
        Archive { io, walk, state: State::Entries(ZipWriter::new(), None) }
    }

    async fn next_chunk(&mut self) -> Result<Option<Vec<u8>>, Error> {
        let mut out = Vec::with_capacity(ARCHIVE_CHUNK_BYTES);
        let next = loop {
            if out.len() >= ARCHIVE_CHUNK_BYTES / 2 {
                break Ok(());
            }
            match &mut self.state {
                State::End => break Ok(()),
                State::Directory(directory) => {
                    if directory.write(ARCHIVE_CHUNK_BYTES, &mut out) {
                        self.state = State::End;
                    }
                }
                State::Entries(..) => {
                    if let Err(error) = self.advance(&mut out).await {
                        break Err(error);
                    }
                }
            }
        };
        if let Err(error) = next {
            tracing::warn!(%error, "an archive was cut short, because an entry could not be read");
            return Err(error);
        }
        Ok(Some(out).filter(|out| !out.is_empty()))
    }

    /// Adds a chunk of the present file, or the head of the next entry.
    async fn advance(&mut self, out: &mut Vec<u8>) -> Result<(), Error> {
        let State::Entries(zip, contents) = &mut self.state else { return Ok(()) };
        if let Some(file) = contents {
            if file.offset == file.size {
                *contents = None;
                return zip.end_file(out).map_err(failed);
            }
            let chunk = file.next(&self.io).await?;
            zip.contents(&chunk);
            out.extend_from_slice(&chunk);
            return Ok(());
        }
        if zip.directory_bytes() > ARCHIVE_DIRECTORY_BYTES_MAX {
            return Err(Error::TooManyEntries);
        }
        let walk = &mut self.walk;
        match patiently(&self.io, async || walk.next().await).await? {
            Some(WalkEntry { path, location, stat }) if stat.kind == FileKind::Folder => {
                location?;
                zip.add_folder(&path, stat.modified, out).map_err(failed)
            }
            Some(WalkEntry { path, location, .. }) => {
                let location = location?;
                let (stat, source) = patiently(&self.io, async || open(&self.io, &location, 0).await).await?;
                zip.begin_file(&path, stat.size, stat.modified, out).map_err(failed)?;
                *contents = Some(Contents { source: Contained::of(source)?, offset: 0, size: stat.size });
                Ok(())
            }
            None => {
                if let State::Entries(zip, _) = std::mem::replace(&mut self.state, State::End) {
                    self.state = State::Directory(zip.finish().map_err(failed)?);
                }
                Ok(())
            }
        }
    }
}

impl Contained {
    fn of(source: Source) -> Result<Contained, Error> {
        match source {
            Source::Local(LocalSource::File(file)) => Ok(Contained::Local(file)),
            Source::Remote(file) => Ok(Contained::Remote(file)),
            // From the hot cache, which `open` does not use.
            Source::Local(LocalSource::Bytes { .. }) => Err(Error::NotFound),
        }
    }
}

impl Contents {
    /// Reads the next chunk, if there is one.
    async fn next(&mut self, io: &Io) -> Result<Vec<u8>, Error> {
        let chunk = match &mut self.source {
            Contained::Local(file) => read(io, file.clone(), self.offset, self.size).await?,
            Contained::Remote(file) => {
                let lease = file.next().await.map_err(|_| Error::Away)?;
                lease.map(|lease| lease.to_vec()).unwrap_or_default()
            }
        };
        self.offset += chunk.len() as u64;
        if chunk.is_empty() || self.offset > self.size { Err(failed(ZipError::Size)) } else { Ok(chunk) }
    }
}

/// Reads a chunk of a file. The last one only if the file still has `size` bytes.
async fn read(io: &Io, file: File, offset: u64, size: u64) -> Result<Vec<u8>, Error> {
    let left = usize::try_from(size - offset).unwrap_or(usize::MAX).min(ARCHIVE_CHUNK_BYTES);
    let read = read_patiently(io, move |fs| {
        let mut chunk = vec![0; left];
        let count = fs.read_at(&file, &mut chunk, offset)?;
        chunk.truncate(count);
        let is_last = offset + count as u64 == size;
        if is_last && fs.stat(&file)?.size != size {
            return Err(io::Error::other(ZipError::Size));
        }
        Ok(chunk)
    });
    Ok(read.await?)
}

fn failed(error: ZipError) -> Error {
    Error::Failed(io::Error::other(error))
}
