//! An upload under way, wherever it goes.
//!
//! What must hold: what is answered to a commit is what the store says that has the file.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_io::{Detached, Pipe};

use crate::apart;
use crate::error::Result;
use crate::write::{self, Algorithm, CommitGuard, Committed, Filling, TakeBack};

/// An upload under way. Dropping it gives it up, or, if it is a kept one, leaves it for later.
pub struct Upload(Way);

enum Way {
    Here(write::Upload),
    Apart(apart::Upload),
}

impl Upload {
    pub(super) fn here(upload: write::Upload) -> Upload {
        Upload(Way::Here(upload))
    }

    pub(super) fn apart(upload: apart::Upload) -> Upload {
        Upload(Way::Apart(upload))
    }

    /// The offset that it began at: how many bytes it had before the first that came this time.
    pub fn begun_at(&self) -> u64 {
        match &self.0 {
            Way::Here(upload) => upload.begun_at(),
            Way::Apart(upload) => upload.begun_at(),
        }
    }

    /// Bytes that came so far, with those that it began with.
    pub fn bytes(&self) -> u64 {
        match &self.0 {
            Way::Here(upload) => upload.bytes(),
            Way::Apart(upload) => upload.bytes(),
        }
    }

    /// The path that it is to have.
    pub fn to(&self) -> &crate::Path {
        match &self.0 {
            Way::Here(upload) => upload.to(),
            Way::Apart(upload) => upload.to(),
        }
    }

    /// Whether its commit waits for the disk, as far as is known here.
    pub fn is_synced(&self) -> bool {
        match &self.0 {
            Way::Here(upload) => upload.is_synced(),
            Way::Apart(_) => true,
        }
    }

    /// By which it may be taken back while it is being committed: [`crate::Error::TakenBack`] then, and it is
    /// as if it had been given up; or it is too late. At a store elsewhere it is too late once that
    /// was told, and for one that waited here until it was whole.
    pub fn take_back(&mut self) -> TakeBack {
        match &mut self.0 {
            Way::Here(upload) => upload.take_back(),
            Way::Apart(upload) => upload.take_back(),
        }
    }

    /// How many there will be, if that was announced.
    pub fn announced(&self) -> Option<u64> {
        match &self.0 {
            Way::Here(upload) => upload.announced(),
            Way::Apart(upload) => upload.announced(),
        }
    }

    /// Computes the SHA-256 of the whole as it is written: for a client that will have it checked at the end.
    /// Before any bytes come. A remote store reads the file instead.
    pub fn start_running_digest(&self) {
        if let Way::Here(upload) = &self.0 {
            upload.start_running_digest();
        }
    }

    /// Makes the file have this time of modification, since 1970, when it is committed. Before any bytes
    /// come.
    pub fn set_modified(&mut self, modified: Duration) {
        match &mut self.0 {
            Way::Here(upload) => upload.set_modified(modified),
            Way::Apart(upload) => upload.set_modified(modified),
        }
    }

    /// Takes the next bytes. If the future is dropped, they are written all the same.
    ///
    /// # Errors
    /// [`crate::Error::Length`], [`crate::Error::Quota`], [`crate::Error::Full`], [`crate::Error::Failed`],
    /// [`crate::Error::Away`]; the upload cannot go on then.
    pub async fn write(&mut self, piece: Detached) -> Result<()> {
        self.write_all([piece]).await
    }

    /// As [`Upload::write`], for several pieces at once: they are written together.
    ///
    /// # Errors
    /// As [`Upload::write`].
    pub async fn write_all(&mut self, pieces: impl IntoIterator<Item = Detached>) -> Result<()> {
        match &mut self.0 {
            Way::Here(upload) => upload.write_all(pieces).await,
            Way::Apart(upload) => upload.write_all(pieces).await,
        }
    }

    /// What the next bytes are to be received into, if they are many; else into memory.
    pub fn filling(&self) -> Option<Filling> {
        match &self.0 {
            Way::Here(upload) => upload.filling(),
            Way::Apart(_) => None,
        }
    }

    /// As [`Upload::write`], for so many bytes, the next that went into the pipe; none, if that is full.
    ///
    /// # Errors
    /// As [`Upload::write`].
    pub async fn write_piped(&mut self, pipe: Arc<Pipe>, bytes: u64) -> Result<()> {
        match &mut self.0 {
            Way::Here(upload) => upload.write_piped(pipe, bytes).await,
            Way::Apart(_) => Err(crate::Error::Away),
        }
    }

    /// Waits for what comes next, and has what has come written if that takes long.
    ///
    /// # Errors
    /// As [`Upload::write`].
    pub async fn meanwhile<F: Future>(&mut self, next: Pin<&mut F>) -> Result<F::Output> {
        match &mut self.0 {
            Way::Here(upload) => upload.meanwhile(next).await,
            Way::Apart(_) => Ok(next.await),
        }
    }

    /// Waits for what comes next; for no more than a moment while something is held: then it is to be
    /// [written](Upload::write_held), and to be waited for again.
    pub async fn soon<F: Future>(&self, next: Pin<&mut F>) -> Option<F::Output> {
        match &self.0 {
            Way::Here(upload) => upload.soon(next).await,
            Way::Apart(_) => Some(next.await),
        }
    }

    /// Writes what is held.
    ///
    /// # Errors
    /// As [`Upload::write`].
    pub async fn write_held(&self) -> Result<()> {
        match &self.0 {
            Way::Here(upload) => upload.write_held().await,
            Way::Apart(_) => Ok(()),
        }
    }

    /// Writes and syncs what has come, so that a commit has little to wait for. What comes after it is
    /// written and synced by the commit; where nothing is synced and others upload, too, so is all of it. A
    /// store elsewhere is told to, and not waited for.
    ///
    /// # Errors
    /// As [`Upload::write`].
    pub async fn prepare(&mut self) -> Result<()> {
        match &mut self.0 {
            Way::Here(upload) => upload.prepare().await,
            Way::Apart(upload) => upload.prepare().await,
        }
    }

    /// Ends the upload: its path stands for it from now on.
    ///
    /// # Errors
    /// Whatever keeps it from being so; the path stands for what it did before. [`crate::Error::Failed`] and
    /// [`crate::Error::Away`] alone leave open which. If the future is dropped, it is done all the same, or,
    /// at a store elsewhere, done or not.
    pub async fn commit(self) -> Result<Committed> {
        self.commit_whole(Vec::new()).await
    }

    /// As [`Upload::commit`], if the digests of all its bytes, also those of earlier times, are these. A kept
    /// upload for which they are not is thrown away: nothing that could still come would mend it.
    ///
    /// # Errors
    /// As [`Upload::commit`], and [`crate::Error::Digest`].
    pub async fn commit_whole(mut self, digests: Vec<(Algorithm, Vec<u8>)>) -> Result<Committed> {
        // Without a guard, nothing refuses.
        self.try_commit(digests, None).await?.ok_or(crate::Error::Busy)
    }

    /// As [`Upload::commit_whole`], unless `guard` refuses: then `None`, and the upload can be committed
    /// later. The guard runs right before the file gets its name. For a remote store, it runs right before
    /// the request to commit.
    ///
    /// # Errors
    /// As [`Upload::commit_whole`]; the upload cannot go on then.
    pub async fn try_commit(
        &mut self,
        digests: Vec<(Algorithm, Vec<u8>)>,
        guard: Option<CommitGuard>,
    ) -> Result<Option<Committed>> {
        match &mut self.0 {
            Way::Here(upload) => upload.try_commit(digests, guard).await,
            Way::Apart(upload) => upload.try_commit(digests, guard).await,
        }
    }

    /// Leaves a kept upload for later: the offset that it stands at, which is synced.
    ///
    /// # Errors
    /// [`crate::Error::Digest`] if the part is not what it should be; it does not count then.
    pub async fn pause(self) -> Result<u64> {
        match self.0 {
            Way::Here(upload) => upload.pause().await,
            Way::Apart(upload) => upload.pause().await,
        }
    }

    /// As dropping it, and waits until it is settled: whoever asks after that is told of all that has come.
    pub async fn give_up(self) {
        match self.0 {
            Way::Here(upload) => upload.give_up().await,
            Way::Apart(upload) => upload.give_up().await,
        }
    }
}
