//! An upload to a storage server whose bytes are on the front's own disk until all of them are received.
//!
//! It is not resumable, and nothing of it is synced. Invariants: the file is unlinked right after its
//! creation. So nothing is left of it when the upload ends, the process is killed, or the power is cut. The
//! server has none of the bytes before all are received.

use plimsoll_io::{Detached, File, Io, Lease, Work, write_all};

use super::home::ServerHome;
use super::upload::ServerUpload;
use crate::backend::{Ended, Ending, Pending, UploadBackend, UploadStart};
use crate::error::{Error, Result};
use crate::limits::BUFFERED_BYTES_MAX;
use crate::write::{Expected, Terms, UploadId};

/// A spooled upload.
pub(super) struct SpooledUpload {
    home: ServerHome,
    io: Io,
    start: (Terms, Expected),
    /// An unlinked file.
    file: File,
    bytes: u64,
    /// The upload to the server, once all bytes are received.
    sent: Option<ServerUpload>,
}

impl SpooledUpload {
    /// Begins an upload that is spooled in the local `folder`.
    pub(super) async fn begin(
        home: &ServerHome,
        io: &Io,
        start: (Terms, Expected),
        folder: &File,
    ) -> Result<SpooledUpload> {
        // Begun and aborted at once, to report errors before the first byte. The commit makes the same
        // checks again.
        let mut probe = begin_at_server(home, io, start.clone()).await?;
        probe.end(Ending::Abort).await?;
        let (folder, name) = (folder.clone(), UploadId::draw(io).data_name());
        let created = io.offload(Work::Writes, move |fs| {
            let file = fs.create(&folder, &name)?;
            fs.remove_file(&folder, &name).map(|()| file)
        });
        let file = created.await??;
        Ok(SpooledUpload { home: home.clone(), io: io.clone(), start, file, bytes: 0, sent: None })
    }

    /// Spools bytes, and fails above the home's quota: the server checks that too, but only once the upload
    /// is complete.
    async fn spool(&mut self, pieces: Vec<Detached>) -> Result<()> {
        let (file, mut at) = (self.file.clone(), self.bytes);
        self.bytes += pieces.iter().map(|piece| piece.len() as u64).sum::<u64>();
        let written = self.io.offload(Work::Writes, move |fs| {
            for piece in pieces {
                write_all(fs, &file, &piece, at)?;
                at += piece.len() as u64;
            }
            Ok::<_, Error>(())
        });
        written.await??;
        if self.start.0.quota.bytes.is_some_and(|most| self.bytes > most) {
            Err(Error::Quota)
        } else {
            Ok(())
        }
    }

    /// Sends the spooled bytes to the server, once.
    async fn send(&mut self) -> Result<()> {
        if self.sent.is_some() {
            return Ok(());
        }
        let mut upload = begin_at_server(&self.home, &self.io, self.start.clone()).await?;
        let mut at = 0;
        while at < self.bytes {
            let part = self.read(at).await?;
            if part.is_empty() {
                return Err(Error::Failed(std::io::ErrorKind::UnexpectedEof.into()));
            }
            at += part.len() as u64;
            upload.write(vec![Lease::owned(part).detach()]).await?;
        }
        self.sent = Some(upload);
        Ok(())
    }

    /// Reads at an offset, at most as many bytes as are sent at a time; none at the end.
    async fn read(&self, at: u64) -> Result<Vec<u8>> {
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

async fn begin_at_server(
    home: &ServerHome,
    io: &Io,
    (terms, expected): (Terms, Expected),
) -> Result<ServerUpload> {
    ServerUpload::begin(home, io, UploadStart::Whole(terms, expected)).await
}

impl UploadBackend for SpooledUpload {
    fn write(&mut self, pieces: Vec<Detached>) -> Pending<'_, ()> {
        Box::pin(self.spool(pieces))
    }

    fn flush(&mut self) -> Pending<'_, ()> {
        Box::pin(self.send())
    }

    fn end(&mut self, ending: Ending) -> Pending<'_, Ended> {
        match (&mut self.sent, ending) {
            (Some(upload), ending) => upload.end(ending),
            // The server does not know of it.
            (None, Ending::Abort) => Box::pin(async { Ok(Ended::Aborted) }),
            (None, _) => Box::pin(async { Err(Error::InUse) }),
        }
    }
}
