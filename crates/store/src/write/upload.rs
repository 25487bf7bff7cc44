//! An upload in progress: receives bytes, and has them written where that may block.
//!
//! It does not read from a connection. Invariants: bytes are written in the order of their arrival. When an
//! upload is dropped, a running closure ends first, and then the upload is settled.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use plimsoll_io::{Deadline, Detached, File, Fs, Io, Pipe, Work};

use super::claim::Claim;
use super::commit::{CommitGuard, Committed, TakeBack, Terms};
use super::digest::{Algorithm, Expected};
use super::held::{Filling, Held};
use super::id::UploadId;
use super::recording::RecordingSchedule;
use super::written::{Offset, Outcome, Stay, Written};
use crate::error::{Error, Result};
use crate::finished::Completed;
use crate::home::Home;
use crate::limits::{COPIED_AT_ONCE_BYTES_MAX, GATHERED_BYTES, HELD_TIME, PIPED_FROM_BYTES};

/// An upload in progress. Dropping it aborts it; a resumable one is kept, to be resumed.
pub(crate) struct Upload {
    io: Io,
    terms: Terms,
    /// The announced length in bytes; none if it was not announced.
    announced: Option<u64>,
    /// The offset at which it began.
    begun_at: u64,
    /// Bytes received so far, including those that it began with.
    bytes: u64,
    held: Held,
    /// The deadline of a wait for more bytes, after which buffered bytes are written, or a recording
    /// starts.
    pause: Deadline,
    schedule: RecordingSchedule,
    /// Whether its commit waits for the disk.
    is_synced: bool,
    slot: Slot,
    /// None until a handle was requested.
    take_back: Option<TakeBack>,
    /// The home and identifier to be remembered after the commit, for a resumable upload of announced
    /// length.
    told: Option<(Home, UploadId)>,
    /// The kind of work that settles it if it is dropped now. It waits for work in progress, so it is of
    /// the same kind.
    settles: Work,
}

/// The slot of the upload's file. A thread that works on the file holds the lock. None once the file is
/// committed, settled or taken over.
pub(super) type Slot = Arc<Mutex<Option<Written>>>;

impl Home {
    /// Begins an upload, which is not resumable if it is interrupted.
    ///
    /// # Errors
    /// Errors that are known before the first byte: [`Error::NoFolder`], [`Error::IsFolder`],
    /// [`Error::Precondition`], [`Error::Quota`], [`Error::TooManyUploads`].
    pub(crate) async fn upload(&self, io: &Io, terms: Terms, expected: Expected) -> Result<Upload> {
        self.usage(io).await?;
        let (home, id, announced) = (self.clone(), UploadId::draw(io), expected.bytes);
        let (bytes, asked, now) = (announced.unwrap_or(0), terms.clone(), io.wall());
        let at_hand = io.at_hand(|fs| {
            let mut state = self.try_lock()?;
            Claim::at_hand(fs, self, &mut state, id, &terms, bytes)
        });
        let claim = match at_hand {
            Some((claim, _)) => claim,
            None => {
                let claim = io.offload(Work::Writes, move |fs| {
                    // Expired uploads hold reserved space.
                    home.remove_expired(fs, now)?;
                    Claim::new(fs, &home, id, &asked, bytes)
                });
                claim.await??
            }
        };
        let written = Written::new(claim, &expected.digests, Stay::No);
        Ok(Upload::over(self, io, terms, announced, 0, written.in_slot()))
    }

    /// Resumes an upload, if that is at `offset`. With `digests` of the part that is now sent, the part
    /// counts only as a whole. `terms` gets the upload's path, and the condition that it began with.
    ///
    /// Another connection that wrote to the upload can write no more. Most often it is a broken connection
    /// of the same client.
    ///
    /// # Errors
    /// [`Error::NotFound`]; [`Error::Offset`] with the offset at which the upload is.
    pub(crate) async fn go_on(
        &self,
        io: &Io,
        id: UploadId,
        offset: u64,
        digests: Vec<(Algorithm, Vec<u8>)>,
        terms: impl FnOnce(crate::Path, &str) -> Terms,
    ) -> Result<Upload> {
        self.usage(io).await?;
        let (home, now) = (self.clone(), io.wall());
        let opened = io.offload(Work::Writes, move |fs| {
            // Before the takeover, so that a wrong offset does not end another connection's upload.
            home.check_offset(fs, id, offset, now)?;
            home.take_over(fs, id);
            let (written, about) = Written::open(fs, &home, id, Offset::Exactly(offset), &digests, now)?;
            let shown = written.shown(&mut home.lock(), about.by_path());
            Ok::<_, Error>((shown, about))
        });
        let (slot, about) = opened.await??;
        let mut upload = Upload::over(self, io, terms(about.to, &about.condition), about.bytes, offset, slot);
        upload.told = about.bytes.map(|_| (self.clone(), id));
        upload.record_as_it_comes(self);
        Ok(upload)
    }
}

impl Upload {
    pub(super) fn over(
        home: &Home,
        io: &Io,
        terms: Terms,
        announced: Option<u64>,
        begun_at: u64,
        (slot, held): (Slot, Held),
    ) -> Upload {
        let (io, pause, is_synced) = (io.clone(), io.deadline(), home.is_synced());
        let (bytes, take_back, told, settles) = (begun_at, None, None, Work::Writes);
        Upload {
            io,
            terms,
            announced,
            begun_at,
            bytes,
            held,
            pause,
            schedule: RecordingSchedule::none(),
            is_synced,
            slot,
            take_back,
            told,
            settles,
        }
    }

    /// Makes the upload's offset be recorded periodically, because the upload is resumable.
    pub(super) fn record_as_it_comes(&mut self, home: &Home) {
        self.schedule = RecordingSchedule::of(home);
    }

    /// Computes the SHA-256 of the whole file as it is written, for a client that will have it checked at
    /// the end. Call it before any bytes.
    pub(crate) fn start_running_digest(&self) {
        if let Some(written) = &mut *self.slot.lock().unwrap_or_else(PoisonError::into_inner) {
            written.start_running_digest();
        }
    }

    /// Sets the modification time, since 1970, that the file gets at its commit. Call it before any bytes.
    pub(crate) fn set_modified(&self, modified: Duration) {
        if let Some(written) = &mut *self.slot.lock().unwrap_or_else(PoisonError::into_inner) {
            written.set_modified(modified);
        }
    }

    /// Copies the first bytes of a file, up to the offset that the upload begins at. Call it before any
    /// bytes.
    pub(super) async fn copy_begin(&mut self, home: &Home, source: File) -> Result<()> {
        let (bytes, mut copying) = (self.begun_at, None);
        if bytes > COPIED_AT_ONCE_BYTES_MAX {
            (self.settles, copying) = (Work::Chores, Some(home.begin_copy()?));
        }
        let copied = self.work(self.settles, move |fs, slot| {
            let _until_done = copying;
            slot.as_mut().ok_or(Error::InUse)?.copy_begin(fs, &source, bytes)
        });
        copied.await?;
        self.settles = Work::Writes;
        Ok(())
    }

    /// Counts bytes that were appended without the receive buffer.
    pub(super) fn has_appended(&mut self, bytes: u64) {
        self.bytes += bytes;
    }

    /// Sets the kind of work that settles the upload if it is dropped.
    pub(super) fn settle_by(&mut self, work: Work) {
        self.settles = work;
    }

    /// The offset at which it began: the bytes it had before this connection sent any.
    pub(crate) fn begun_at(&self) -> u64 {
        self.begun_at
    }

    /// Bytes received so far, including those that it began with.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The path that it is to have.
    pub(crate) fn to(&self) -> &crate::Path {
        &self.terms.to
    }

    /// Whether its commit waits for the disk.
    pub(crate) fn is_synced(&self) -> bool {
        self.is_synced
    }

    /// Returns a handle that cancels the upload during its commit.
    pub(crate) fn take_back(&mut self) -> TakeBack {
        self.take_back.get_or_insert_default().clone()
    }

    /// The announced length in bytes, if any.
    pub(crate) fn announced(&self) -> Option<u64> {
        self.announced
    }

    /// Takes the next bytes. If the future is dropped, they are written all the same.
    ///
    /// # Errors
    /// [`Error::Length`], [`Error::Quota`], [`Error::Full`], [`Error::Failed`]; the upload cannot continue
    /// then.
    pub(crate) async fn write_all(&mut self, pieces: impl IntoIterator<Item = Detached>) -> Result<()> {
        let (now, quota, mut is_due) = (self.io.now(), self.terms.quota, false);
        for piece in pieces {
            self.bytes += piece.len() as u64;
            if self.announced.is_some_and(|most| self.bytes > most) {
                return Err(Error::Length);
            }
            is_due = self.held.push(piece, now, quota);
        }
        self.write_if(is_due).await
    }

    /// Returns the pipe that the next bytes are to be received into. None until some bytes were received:
    /// few are not worth a pipe.
    pub(crate) fn filling(&self) -> Option<Filling> {
        (self.bytes - self.begun_at >= PIPED_FROM_BYTES).then(|| Filling::of(&self.held))
    }

    /// Takes the next bytes that went into the pipe; none means that the pipe is full. If the future is
    /// dropped, they are written all the same.
    pub(crate) async fn write_piped(&mut self, pipe: Arc<Pipe>, bytes: u64) -> Result<()> {
        self.bytes += bytes;
        if self.announced.is_some_and(|most| self.bytes > most) {
            return Err(Error::Length);
        }
        let is_due = self.held.push_piped(&pipe, bytes, self.io.now(), self.terms.quota) || bytes == 0;
        // The writer is left with the last reference: it returns the emptied pipe for reuse.
        drop(pipe);
        self.write_if(is_due).await
    }

    /// Writes the buffer if it `is_due`. Otherwise, if no other upload is active, has it written while more
    /// is received, so that the commit has less to wait for. Another thread does that, unless this one
    /// serves a single connection.
    async fn write_if(&self, is_due: bool) -> Result<()> {
        self.schedule.received(self.io.now());
        if is_due {
            return self.write_held().await;
        }
        self.schedule.record_if_due(&self.io, &self.slot);
        if self.held.goes_ahead() {
            let (slot, held) = (Arc::clone(&self.slot), self.held.clone());
            let handed = self.io.hand_off(Work::Writes, move |fs| {
                let mut slot = slot.lock().unwrap_or_else(PoisonError::into_inner);
                // The slot stays empty after a panic, so the upload fails: the buffered bytes are lost.
                let Some(mut written) = slot.take() else { return };
                let done = written.write(fs);
                match &done {
                    Ok(()) => *slot = Some(written),
                    Err(_) => written.settle(fs),
                }
                held.went_ahead(done);
            });
            if handed.is_err() {
                self.held.went_ahead(Ok(()));
            }
        }
        Ok(())
    }

    /// Waits for `next`. If that takes long, writes the buffer meanwhile: a client that stalls takes no
    /// memory, and the bytes that it sent are in the file.
    pub(crate) async fn meanwhile<F: Future>(&mut self, mut next: Pin<&mut F>) -> Result<F::Output> {
        loop {
            if let Some(come) = self.soon(next.as_mut()).await {
                return Ok(come);
            }
            self.write_held().await?;
        }
    }

    /// Waits for `next`, but returns none after a moment if buffered bytes are to be written then, or when a
    /// recording is due.
    pub(crate) async fn soon<F: Future>(&self, next: Pin<&mut F>) -> Option<F::Output> {
        let is_much = self.held.bytes() >= GATHERED_BYTES;
        let recorded_in = self.schedule.due_in(self.io.now());
        let Some(time) = recorded_in.into_iter().chain(is_much.then_some(HELD_TIME)).min() else {
            return Some(next.await);
        };
        self.pause.after(time);
        self.pause.within(next).await.ok()
    }

    /// Writes buffered bytes, and starts a recording if one is due.
    ///
    /// # Errors
    /// As [`Upload::write_all`].
    pub(crate) async fn write_held(&self) -> Result<()> {
        if self.held.bytes() > 0 {
            self.work(Work::Writes, move |fs, slot| slot.as_mut().ok_or(Error::InUse)?.write(fs)).await?;
        }
        self.schedule.record_if_due(&self.io, &self.slot);
        Ok(())
    }

    /// Writes and syncs the received bytes, so that a commit has little to wait for. The commit writes and
    /// syncs later bytes. If nothing is ever synced and other uploads are active, it does nothing.
    pub(crate) async fn prepare(&mut self) -> Result<()> {
        if !self.is_synced && !self.held.is_alone() {
            // There is no sync to wait for, only a busy thread: the commit writes the rest.
            return Ok(());
        }
        let prepared =
            self.work(Work::Writes, move |fs, slot| slot.as_mut().ok_or(Error::InUse)?.prepare(fs));
        prepared.await
    }

    /// Commits the upload, if the digests of all its bytes, including earlier parts, are these. A resumable
    /// upload with other digests is discarded: no further bytes could correct it. `None` if the `guard`
    /// refuses: the upload can be committed later.
    ///
    /// # Errors
    /// Any error that prevents the commit; the path is unchanged then. Only after [`Error::Failed`] the
    /// outcome is unknown. If the future is dropped, the commit is made all the same.
    pub(crate) async fn try_commit(
        &mut self,
        digests: Vec<(Algorithm, Vec<u8>)>,
        guard: Option<CommitGuard>,
    ) -> Result<Option<Committed>> {
        if self.announced.is_some_and(|most| self.bytes != most) {
            return Err(Error::Length);
        }
        let terms = self.terms.clone();
        let (told, bytes, now) = (self.told.clone(), self.bytes, self.io.wall());
        let take_back = self.take_back.clone();
        let committed = self.work(Work::Writes, move |fs, slot| {
            let written = slot.take().ok_or(Error::InUse)?;
            let written = written.write_last(fs, bytes)?;
            if take_back.is_some() {
                // A thread that would cancel this upload may be waiting for this core, or a local client
                // that is being killed.
                fs.let_others_go();
            }
            match written.commit(fs, &terms, (take_back.as_ref(), guard.as_ref()), &digests)? {
                Outcome::Committed(committed) => {
                    if let Some((home, id)) = told {
                        home.note_completed(id, now, Completed { to: terms.to, bytes, whole: digests });
                    }
                    Ok(Some(committed))
                }
                Outcome::Refused(written) => {
                    *slot = Some(*written);
                    Ok(None)
                }
            }
        });
        committed.await
    }

    /// Ends a part of a resumable upload. Returns the upload's offset, which is synced.
    ///
    /// # Errors
    /// [`Error::Digest`] if a digest of the part does not match: the part does not count then.
    pub(crate) async fn pause(self) -> Result<u64> {
        let bytes = self.bytes;
        let paused = self.work(Work::Writes, move |fs, slot| {
            slot.take().ok_or(Error::InUse)?.write_last(fs, bytes)?.pause(fs)
        });
        paused.await
    }

    /// Aborts the upload and waits until it is settled, so that a later lookup reports all received bytes.
    pub(crate) async fn give_up(self) {
        let settled = self.work(self.settles, move |fs, slot| {
            slot.take().into_iter().for_each(|written| written.give_up(fs));
            Ok(())
        });
        if let Err(error) = settled.await {
            tracing::info!(%error, "an aborted upload is settled later");
        }
    }

    pub(super) async fn work<T: Send + 'static>(
        &self,
        kind: Work,
        work: impl FnOnce(&dyn Fs, &mut Option<Written>) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let slot = Arc::clone(&self.slot);
        let done = self
            .io
            .offload(kind, move |fs| work(fs, &mut slot.lock().unwrap_or_else(PoisonError::into_inner)));
        done.await?.map_err(|error| match error {
            Error::InUse => self.held.failure().unwrap_or(error),
            error => error,
        })
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        // If no closure is running, this is the only reference to the slot. An upload that is settled needs
        // no closure.
        if let Some(slot) = Arc::get_mut(&mut self.slot)
            && slot.get_mut().unwrap_or_else(PoisonError::into_inner).is_none()
        {
            return;
        }
        let slot = Arc::clone(&self.slot);
        let settled = self.io.hand_off(self.settles, move |fs| {
            // Locked until it is settled: a lookup or takeover waits meanwhile.
            let mut slot = slot.lock().unwrap_or_else(PoisonError::into_inner);
            slot.take().into_iter().for_each(|written| written.give_up(fs));
        });
        if settled.is_err() {
            let mut slot = self.slot.lock().unwrap_or_else(PoisonError::into_inner);
            slot.take().into_iter().for_each(|written| written.abandon());
        }
    }
}
