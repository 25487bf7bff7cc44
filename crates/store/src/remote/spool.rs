//! The bytes of an upload on a front's own disk, until all of them are received and sent on.
//!
//! It is not resumable, and nothing of it is synced. Invariant: the file is unlinked right after its
//! creation. So nothing is left of it when the upload ends, the process is killed, or the power is cut.

use plimsoll_io::{Detached, File, Io, Work};

use crate::error::Result;
use crate::limits::BUFFERED_BYTES_MAX;
use crate::write::UploadId;
use crate::write::staging::write_all;

/// An unlinked file, and its size in bytes.
pub(super) struct Spool {
    io: Io,
    file: File,
    bytes: u64,
}

impl Spool {
    pub(super) async fn new(io: &Io, folder: &File) -> Result<Spool> {
        let (folder, name) = (folder.clone(), UploadId::draw(io).data_name());
        let made = io.offload(Work::Writes, move |fs| {
            let file = fs.create(&folder, &name)?;
            fs.remove_file(&folder, &name).map(|()| file)
        });
        Ok(Spool { io: io.clone(), file: made.await??, bytes: 0 })
    }

    pub(super) async fn write_all(&mut self, pieces: Vec<Detached>) -> Result<()> {
        let (file, mut at) = (self.file.clone(), self.bytes);
        self.bytes += pieces.iter().map(|piece| piece.len() as u64).sum::<u64>();
        let written = self.io.offload(Work::Writes, move |fs| {
            for piece in pieces {
                write_all(fs, &file, &piece, at)?;
                at += piece.len() as u64;
            }
            Ok(())
        });
        written.await?
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Reads at an offset, at most as many bytes as are sent at a time; none at the end.
    pub(super) async fn read(&self, at: u64) -> Result<Vec<u8>> {
        let file = self.file.clone();
        let read = self.io.ask(Work::Files, move |fs| {
            let mut bytes = vec![0; BUFFERED_BYTES_MAX];
            let count = fs.read_at(&file, &mut bytes, at)?;
            bytes.truncate(count);
            Ok(bytes)
        });
        Ok(read.await?)
    }
}
