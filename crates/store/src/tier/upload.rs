//! An upload in progress, to a store in this process or to another one.
//!
//! Invariants: the result of a commit comes only from the store that has the file. A local upload is called
//! directly: its chunks take no allocation.

use std::pin::Pin;
use std::time::Duration;

use plimsoll_io::{EndProbe, Lease};

use crate::backend::{BegunUpload, Ended, Ending, UploadBackend};
use crate::error::{Error, Result};
use crate::path::Path;
use crate::write::{
    Algorithm, CancelHandle, CommitGuard, Committed, LocalUpload, Progress, ReceivePipe, ReceivedBytes,
};

/// An upload in progress. Dropping it aborts it; a resumable one is kept, to be resumed.
pub struct Upload(Backend);

// Most uploads are local ones, so boxing them would gain nothing.
#[allow(clippy::large_enum_variant)]
enum Backend {
    Local(LocalUpload),
    Other(OtherUpload),
}

/// An upload to another store.
struct OtherUpload {
    progress: Progress,
    upload: Box<dyn UploadBackend>,
}

impl Upload {
    pub(super) fn local(upload: LocalUpload) -> Upload {
        Upload(Backend::Local(upload))
    }

    pub(super) fn other(begun: BegunUpload) -> Upload {
        let BegunUpload { to, announced, start_offset, upload } = begun;
        Upload(Backend::Other(OtherUpload { progress: Progress::new(to, announced, start_offset), upload }))
    }

    fn progress(&self) -> &Progress {
        match &self.0 {
            Backend::Local(upload) => &upload.progress,
            Backend::Other(upload) => &upload.progress,
        }
    }

    fn progress_mut(&mut self) -> &mut Progress {
        match &mut self.0 {
            Backend::Local(upload) => &mut upload.progress,
            Backend::Other(upload) => &mut upload.progress,
        }
    }

    /// The offset at which it began: the bytes it had before this connection sent any.
    pub fn start_offset(&self) -> u64 {
        self.progress().start_offset
    }

    /// Bytes received so far, including those that it began with.
    pub fn bytes(&self) -> u64 {
        self.progress().bytes
    }

    /// The path that it is to have.
    pub fn to(&self) -> &Path {
        &self.progress().to
    }

    /// The announced length in bytes, if any.
    pub fn announced(&self) -> Option<u64> {
        self.progress().announced
    }

    /// Returns a handle that cancels the upload during its commit, unless it is too late. A cancelled
    /// commit returns [`Error::Cancelled`], and the upload is as if it had been aborted. The end of the
    /// connection `client`, if one is given, cancels it likewise. For a remote store, it is too late once
    /// the request to commit is sent. A later handle replaces this one.
    pub fn cancel_handle(&mut self, client: Option<EndProbe>) -> CancelHandle {
        self.progress_mut().cancel.insert(CancelHandle::new(client)).clone()
    }

    /// Sets the modification time, since 1970, that the file gets at its commit.
    pub fn set_modified(&mut self, modified: Duration) {
        self.progress_mut().modified = Some(modified);
    }

    /// Sets the name that the file gets in the folder of its path, if another entry has its own name at the
    /// commit: one that was free when the upload began. [`Committed::has_spare_name`] tells.
    pub fn set_spare_name(&mut self, name: Vec<u8>) {
        self.progress_mut().spare_name = Some(name);
    }

    /// Returns that name.
    pub fn spare_name(&self) -> Option<&[u8]> {
        self.progress().spare_name.as_deref()
    }

    /// Computes the SHA-256 of the whole file as it is written, for a client that will have it checked at
    /// the end. Call it before any bytes. A remote store reads the file instead.
    pub fn start_running_digest(&self) {
        if let Backend::Local(upload) = &self.0 {
            upload.start_running_digest();
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
    /// [`Error::Length`], [`Error::Quota`], [`Error::Full`], [`Error::Failed`], [`Error::Away`]; the upload
    /// cannot continue then.
    pub async fn write_received(&mut self, received: ReceivedBytes) -> Result<()> {
        match (&mut self.0, received) {
            (Backend::Local(upload), ReceivedBytes::Memory(pieces)) => upload.write_all(pieces).await,
            (Backend::Local(upload), ReceivedBytes::Piped(pipe, bytes)) => {
                upload.write_piped(pipe, bytes).await
            }
            (Backend::Other(other), ReceivedBytes::Memory(pieces)) => {
                other.progress.count(pieces.iter().map(|piece| piece.len() as u64).sum())?;
                other.upload.write(pieces.into_iter().map(Lease::detach).collect()).await
            }
            // It has no pipe to receive into.
            (Backend::Other(_), ReceivedBytes::Piped(..)) => Err(Error::Away),
        }
    }

    /// Returns the pipe that the next bytes are to be received into, if they are many; none if they are to
    /// be received into memory.
    pub fn receive_pipe(&self) -> Option<ReceivePipe> {
        match &self.0 {
            Backend::Local(upload) => upload.receive_pipe(),
            Backend::Other(_) => None,
        }
    }

    /// Waits for `next`. If that takes long, writes the buffer meanwhile.
    ///
    /// # Errors
    /// As [`Upload::write`].
    pub async fn meanwhile<F: Future>(&mut self, next: Pin<&mut F>) -> Result<F::Output> {
        match &mut self.0 {
            Backend::Local(upload) => upload.meanwhile(next).await,
            Backend::Other(_) => Ok(next.await),
        }
    }

    /// Waits for `next`. Returns none after a moment if buffered bytes are to be
    /// [written](Upload::write_buffer) then, or when a recording is due. The caller waits again afterwards.
    pub async fn soon<F: Future>(&self, next: Pin<&mut F>) -> Option<F::Output> {
        match &self.0 {
            Backend::Local(upload) => upload.soon(next).await,
            Backend::Other(_) => Some(next.await),
        }
    }

    /// Writes the buffer, and starts a recording if one is due.
    ///
    /// # Errors
    /// As [`Upload::write`].
    pub async fn write_buffer(&self) -> Result<()> {
        match &self.0 {
            Backend::Local(upload) => upload.write_buffer().await,
            Backend::Other(_) => Ok(()),
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
            Backend::Other(other) => other.upload.prepare().await,
        }
    }

    /// Commits the upload: its path then has the new file.
    ///
    /// # Errors
    /// Any error that prevents the commit; the path is unchanged then. Only after [`Error::Failed`]
    /// and [`Error::Away`] the outcome is unknown. If the future is dropped, the commit is made all
    /// the same; at a remote store it may be made or not.
    pub async fn commit(self) -> Result<Committed> {
        self.commit_whole(Vec::new()).await
    }

    /// As [`Upload::commit`], if the digests of all its bytes, including earlier parts, are these. A
    /// resumable upload with other digests is discarded: no further bytes could correct it.
    ///
    /// # Errors
    /// As [`Upload::commit`], and [`Error::Digest`].
    pub async fn commit_whole(mut self, digests: Vec<(Algorithm, Vec<u8>)>) -> Result<Committed> {
        // Without a guard, the commit is never refused.
        self.try_commit(digests, None).await?.ok_or(Error::Busy)
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
            Backend::Other(other) => other.try_commit(digests, guard).await,
        }
    }

    /// Ends a part of a resumable upload. Returns the upload's offset, which is synced.
    ///
    /// # Errors
    /// [`Error::Digest`] if a digest of the part does not match: the part does not count then.
    pub async fn pause(self) -> Result<u64> {
        match self.0 {
            Backend::Local(upload) => upload.pause().await,
            Backend::Other(mut other) => match other.upload.end(Ending::Pause).await? {
                Ended::Paused(offset) => Ok(offset),
                _ => Err(Error::Away),
            },
        }
    }

    /// Aborts the upload and waits until it is settled, so that a later lookup reports all received bytes.
    pub async fn abort(self) {
        match self.0 {
            Backend::Local(upload) => upload.abort().await,
            Backend::Other(mut other) => other.abort().await,
        }
    }
}

impl OtherUpload {
    /// Runs the guard right before it sends the request to commit.
    async fn try_commit(
        &mut self,
        digests: Vec<(Algorithm, Vec<u8>)>,
        guard: Option<CommitGuard>,
    ) -> Result<Option<Committed>> {
        self.progress.check_complete()?;
        self.upload.flush().await?;
        if self.progress.cancel.as_ref().is_some_and(CancelHandle::is_cancelled) {
            self.abort().await;
            return Err(Error::Cancelled);
        }
        if !guard.as_ref().is_none_or(CommitGuard::holds) {
            return Ok(None);
        }
        let Progress { modified, ref spare_name, .. } = self.progress;
        let ending = Ending::Commit { digests, modified, spare_name: spare_name.clone() };
        match self.upload.end(ending).await? {
            Ended::Committed(committed) => Ok(Some(committed)),
            _ => Err(Error::Away),
        }
    }

    async fn abort(&mut self) {
        if let Err(error) = self.upload.end(Ending::Abort).await {
            tracing::info!(%error, "an aborted upload is settled later");
        }
    }
}
