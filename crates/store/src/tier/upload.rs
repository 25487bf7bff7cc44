//! An upload in progress, to a store in this process or to a remote one.
//!
//! Invariant: the result of a commit comes only from the store that has the file.

use std::pin::Pin;
use std::time::Duration;

use plimsoll_io::{EndProbe, Lease};

use crate::error::Result;
use crate::remote;
use crate::write::{self, Algorithm, CancelHandle, CommitGuard, Committed, ReceivePipe, ReceivedBytes};

/// An upload in progress. Dropping it aborts it; a resumable one is kept, to be resumed.
pub struct Upload(Backend);

enum Backend {
    Local(write::Upload),
    Remote(remote::Upload),
}

impl Upload {
    pub(super) fn local(upload: write::Upload) -> Upload {
        Upload(Backend::Local(upload))
    }

    pub(super) fn remote(upload: remote::Upload) -> Upload {
        Upload(Backend::Remote(upload))
    }

    /// The offset at which it began: the bytes it had before this connection sent any.
    pub fn start_offset(&self) -> u64 {
        match &self.0 {
            Backend::Local(upload) => upload.start_offset(),
            Backend::Remote(upload) => upload.start_offset(),
        }
    }

    /// Bytes received so far, including those that it began with.
    pub fn bytes(&self) -> u64 {
        match &self.0 {
            Backend::Local(upload) => upload.bytes(),
            Backend::Remote(upload) => upload.bytes(),
        }
    }

    /// The path that it is to have.
    pub fn to(&self) -> &crate::Path {
        match &self.0 {
            Backend::Local(upload) => upload.to(),
            Backend::Remote(upload) => upload.to(),
        }
    }

    /// Returns a handle that cancels the upload during its commit, unless it is too late. A cancelled
    /// commit returns [`crate::Error::Cancelled`], and the upload is as if it had been aborted. The end of
    /// the connection `client`, if one is given, cancels it likewise. For a remote store, it is too late once
    /// the request to commit is sent. A later handle replaces this one.
    pub fn cancel_handle(&mut self, client: Option<EndProbe>) -> CancelHandle {
        match &mut self.0 {
            Backend::Local(upload) => upload.cancel_handle(client),
            Backend::Remote(upload) => upload.cancel_handle(client),
        }
    }

    /// The announced length in bytes, if any.
    pub fn announced(&self) -> Option<u64> {
        match &self.0 {
            Backend::Local(upload) => upload.announced(),
            Backend::Remote(upload) => upload.announced(),
        }
    }

    /// Computes the SHA-256 of the whole file as it is written, for a client that will have it checked at
    /// the end. Call it before any bytes. A remote store reads the file instead.
    pub fn start_running_digest(&self) {
        if let Backend::Local(upload) = &self.0 {
            upload.start_running_digest();
        }
    }

    /// Sets the modification time, since 1970, that the file gets at its commit.
    pub fn set_modified(&mut self, modified: Duration) {
        match &mut self.0 {
            Backend::Local(upload) => upload.set_modified(modified),
            Backend::Remote(upload) => upload.set_modified(modified),
        }
    }

    /// As [`Upload::write_received`], for bytes in memory.
    ///
    /// # Errors
    /// As [`Upload::write_received`].
    pub async fn write(&mut self, piece: Lease) -> Result<()> {
        self.write_received(ReceivedBytes::Memory(vec![piece])).await
    }

    /// Takes the next bytes. If the future is dropped, they are written all the same.
    ///
    /// # Errors
    /// [`crate::Error::Length`], [`crate::Error::Quota`], [`crate::Error::Full`], [`crate::Error::Failed`],
    /// [`crate::Error::Away`]; the upload cannot continue then.
    pub async fn write_received(&mut self, received: ReceivedBytes) -> Result<()> {
        match (&mut self.0, received) {
            (Backend::Local(upload), ReceivedBytes::Memory(pieces)) => upload.write_all(pieces).await,
            (Backend::Local(upload), ReceivedBytes::Piped(pipe, bytes)) => {
                upload.write_piped(pipe, bytes).await
            }
            (Backend::Remote(upload), ReceivedBytes::Memory(pieces)) => {
                upload.write_all(pieces.into_iter().map(Lease::detach)).await
            }
            // It has no pipe to receive into.
            (Backend::Remote(_), ReceivedBytes::Piped(..)) => Err(crate::Error::Away),
        }
    }

    /// Returns the pipe that the next bytes are to be received into, if they are many; none if they are to
    /// be received into memory.
    pub fn receive_pipe(&self) -> Option<ReceivePipe> {
        match &self.0 {
            Backend::Local(upload) => upload.receive_pipe(),
            Backend::Remote(_) => None,
        }
    }

    /// Waits for `next`. If that takes long, writes the buffer meanwhile.
    ///
    /// # Errors
    /// As [`Upload::write`].
    pub async fn meanwhile<F: Future>(&mut self, next: Pin<&mut F>) -> Result<F::Output> {
        match &mut self.0 {
            Backend::Local(upload) => upload.meanwhile(next).await,
            Backend::Remote(_) => Ok(next.await),
        }
    }

    /// Waits for `next`. Returns none after a moment if buffered bytes are to be
    /// [written](Upload::write_buffer) then, or when a recording is due. The caller waits again afterwards.
    pub async fn soon<F: Future>(&self, next: Pin<&mut F>) -> Option<F::Output> {
        match &self.0 {
            Backend::Local(upload) => upload.soon(next).await,
            Backend::Remote(_) => Some(next.await),
        }
    }

    /// Writes the buffer, and starts a recording if one is due.
    ///
    /// # Errors
    /// As [`Upload::write`].
    pub async fn write_buffer(&self) -> Result<()> {
        match &self.0 {
            Backend::Local(upload) => upload.write_buffer().await,
            Backend::Remote(_) => Ok(()),
        }
    }

    /// Writes and syncs the received bytes, so that a commit has little to wait for. The commit writes and
    /// syncs later bytes. If nothing is ever synced and other uploads are active, it does nothing. A remote
    /// store gets a request, and the response is not waited for.
    ///
    /// # Errors
    /// As [`Upload::write`].
    pub async fn prepare(&mut self) -> Result<()> {
        match &mut self.0 {
            Backend::Local(upload) => upload.prepare().await,
            Backend::Remote(upload) => upload.prepare().await,
        }
    }

    /// Commits the upload: its path then has the new file.
    ///
    /// # Errors
    /// Any error that prevents the commit; the path is unchanged then. Only after [`crate::Error::Failed`]
    /// and [`crate::Error::Away`] the outcome is unknown. If the future is dropped, the commit is made all
    /// the same; at a remote store it may be made or not.
    pub async fn commit(self) -> Result<Committed> {
        self.commit_whole(Vec::new()).await
    }

    /// As [`Upload::commit`], if the digests of all its bytes, including earlier parts, are these. A
    /// resumable upload with other digests is discarded: no further bytes could correct it.
    ///
    /// # Errors
    /// As [`Upload::commit`], and [`crate::Error::Digest`].
    pub async fn commit_whole(mut self, digests: Vec<(Algorithm, Vec<u8>)>) -> Result<Committed> {
        // Without a guard, the commit is never refused.
        self.try_commit(digests, None).await?.ok_or(crate::Error::Busy)
    }

    /// As [`Upload::commit_whole`], unless `guard` refuses: then `None`, and the upload can be committed
    /// later. The guard runs right before the file gets its name. For a remote store, it runs right before
    /// the request to commit.
    ///
    /// # Errors
    /// As [`Upload::commit_whole`]; the upload cannot continue then.
    pub async fn try_commit(
        &mut self,
        digests: Vec<(Algorithm, Vec<u8>)>,
        guard: Option<CommitGuard>,
    ) -> Result<Option<Committed>> {
        match &mut self.0 {
            Backend::Local(upload) => upload.try_commit(digests, guard).await,
            Backend::Remote(upload) => upload.try_commit(digests, guard).await,
        }
    }

    /// Ends a part of a resumable upload. Returns the upload's offset, which is synced.
    ///
    /// # Errors
    /// [`crate::Error::Digest`] if a digest of the part does not match: the part does not count then.
    pub async fn pause(self) -> Result<u64> {
        match self.0 {
            Backend::Local(upload) => upload.pause().await,
            Backend::Remote(upload) => upload.pause().await,
        }
    }

    /// Aborts the upload and waits until it is settled, so that a later lookup reports all received bytes.
    pub async fn abort(self) {
        match self.0 {
            Backend::Local(upload) => upload.abort().await,
            Backend::Remote(upload) => upload.abort().await,
        }
    }
}
