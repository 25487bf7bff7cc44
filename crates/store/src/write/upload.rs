//! An upload under way: bytes come in, and are written where that may block.
//!
//! It does not read from a connection. What must hold: bytes are written in the order they came; when it is
//! dropped, a closure that is under way ends first, and then the upload is settled.

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

/// An upload under way. Dropping it gives it up, or, if it is a kept one, leaves it for later.
pub(crate) struct Upload {
    io: Io,
    terms: Terms,
    /// How many bytes it may come to; none if nobody said.
    announced: Option<u64>,
    /// Where it began.
    begun_at: u64,
    /// Bytes that came so far, with those that it began with.
    bytes: u64,
    held: Held,
    /// When a wait for more is one in which buffered bytes are written, or a recording starts.
    pause: Deadline,
    schedule: RecordingSchedule,
    /// Whether its commit waits for the disk.
    is_synced: bool,
    slot: Slot,
    /// None if nobody asked for it.
    take_back: Option<TakeBack>,
    /// Which it is, to be remembered once it is in its place: a kept one whose length was announced.
    told: Option<(Home, UploadId)>,
    /// Who settles it if it is dropped now: that waits for whatever is under way.
    settles: Work,
}

/// Where the file is. Whoever works on it holds the lock; none once it is committed or settled, or taken
/// over.
pub(super) type Slot = Arc<Mutex<Option<Written>>>;

impl Home {
    /// Begins an upload. It is not kept if it is broken off.
    ///
    /// # Errors
    /// Whatever can be told before the first byte: that its folder is not there, that a folder has its name,
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
                    // They hold room that is nobody's any more.
                    home.remove_expired(fs, now)?;
                    Claim::new(fs, &home, id, &asked, bytes)
                });
                claim.await??
            }
        };
        let written = Written::new(claim, &expected.digests, Stay::No);
        Ok(Upload::over(self, io, terms, announced, 0, written.in_slot()))
    }

    /// Goes on with a kept upload, if that stands at `offset`. With `digests` of the part that comes now, the
    /// part counts only as a whole. `terms` is given its path, and the condition that it was begun with.
    ///
    /// Whoever wrote to it until now does so no more: that is most often the same client, whose connection
    /// broke without a word.
    ///
    /// # Errors
    /// [`Error::NotFound`]; [`Error::Offset`] with the offset that it does stand at.
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
            // Who is wrong about the offset ends nobody's upload.
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

    /// Computes the SHA-256 of the whole as it is written: for a client that will have it checked at the end.
    /// Before any bytes come.
    pub(crate) fn start_running_digest(&self) {
        if let Some(written) = &mut *self.slot.lock().unwrap_or_else(PoisonError::into_inner) {
            written.start_running_digest();
        }
    }

    /// Makes the file have this time of modification, since 1970, when it is committed. Before any bytes
    /// come.
    pub(crate) fn set_modified(&self, modified: Duration) {
        if let Some(written) = &mut *self.slot.lock().unwrap_or_else(PoisonError::into_inner) {
            written.set_modified(modified);
        }
    }

    /// Copies the first bytes of a file, as many as it begins at, before any others come.
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

    /// Counts bytes that were appended past the queue of received ones.
    pub(super) fn has_appended(&mut self, bytes: u64) {
        self.bytes += bytes;
    }

    /// Has the upload settled by work of this kind if it is dropped.
    pub(super) fn settle_by(&mut self, work: Work) {
        self.settles = work;
    }

    /// The offset that it began at: how many bytes it had before the first that came this time.
    pub(crate) fn begun_at(&self) -> u64 {
        self.begun_at
    }

    /// Bytes that came so far, with those that it began with.
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

    /// By which it may be taken back while it is being committed.
    pub(crate) fn take_back(&mut self) -> TakeBack {
        self.take_back.get_or_insert_default().clone()
    }

    /// How many there will be, if that was announced.
    pub(crate) fn announced(&self) -> Option<u64> {
        self.announced
    }

    /// Takes the next bytes. If the future is dropped, they are written all the same.
    ///
    /// # Errors
    /// [`Error::Length`], [`Error::Quota`], [`Error::Full`], [`Error::Failed`]; the upload cannot go on then.
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

    /// What the next bytes are to be received into. Few are not worth it: nothing, before some have come.
    pub(crate) fn filling(&self) -> Option<Filling> {
        (self.bytes - self.begun_at >= PIPED_FROM_BYTES).then(|| Filling::of(&self.held))
    }

    /// Takes so many bytes, the next that went into the pipe. None are a pipe that is full. If the future is
    /// dropped, they are written all the same.
    ///
    /// # Errors
    /// As [`Upload::write_all`].
    pub(crate) async fn write_piped(&mut self, pipe: Arc<Pipe>, bytes: u64) -> Result<()> {
        self.bytes += bytes;
        if self.announced.is_some_and(|most| self.bytes > most) {
            return Err(Error::Length);
        }
        let is_due = self.held.push_piped(&pipe, bytes, self.io.now(), self.terms.quota) || bytes == 0;
        // Who empties it gives it back to be used again.
        drop(pipe);
        self.write_if(is_due).await
    }

    /// Writes what is held if it `is_due`. Else, where nobody else uploads, it is written while more comes,
    /// so that there is less to wait for at the end: by another thread, unless this one serves nobody else.
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
                // Nobody goes on with it after a panic: what was held then is nowhere.
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

    /// Waits for what comes next. If it is long in coming, what is held is written meanwhile: a sender who
    /// stops takes no memory, and what they have sent is in the file.
    ///
    /// # Errors
    /// As [`Upload::write_all`].
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

    /// Writes and syncs what has come, so that a commit has little to wait for. What comes after it is
    /// written and synced by the commit; where nothing is synced and others upload, too, so is all of it.
    ///
    /// # Errors
    /// As [`Upload::write_all`].
    pub(crate) async fn prepare(&mut self) -> Result<()> {
        if !self.is_synced && !self.held.is_alone() {
            // Nothing is waited for but a thread that has enough to do: the commit writes what is left.
            return Ok(());
        }
        let prepared =
            self.work(Work::Writes, move |fs, slot| slot.as_mut().ok_or(Error::InUse)?.prepare(fs));
        prepared.await
    }

    /// Ends the upload, if the digests of all its bytes, also those of earlier times, are these: its path
    /// stands for it from now on. A kept upload for which they are not is thrown away: nothing that could
    /// still come would mend it. `None` if the `guard` refuses: the upload can be committed later.
    ///
    /// # Errors
    /// Whatever keeps it from being so; the path stands for what it did before. [`Error::Failed`] alone
    /// leaves open which. If the future is dropped, it is done all the same.
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
                // Whoever is to hear of it, or is being killed, may be waiting for this core.
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

    /// Leaves a kept upload for later: the offset that it stands at, which is synced.
    ///
    /// # Errors
    /// [`Error::Digest`] if the part is not what it should be; it does not count then.
    pub(crate) async fn pause(self) -> Result<u64> {
        let bytes = self.bytes;
        let paused = self.work(Work::Writes, move |fs, slot| {
            slot.take().ok_or(Error::InUse)?.write_last(fs, bytes)?.pause(fs)
        });
        paused.await
    }

    /// As dropping it, and waits until it is settled: whoever asks after that is told of all that has come.
    pub(crate) async fn give_up(self) {
        let settled = self.work(self.settles, move |fs, slot| {
            slot.take().into_iter().for_each(|written| written.give_up(fs));
            Ok(())
        });
        if let Err(error) = settled.await {
            tracing::info!(%error, "an upload that was given up is settled later");
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
        // Nobody else has the slot if no closure is under way; then what is settled already needs no closure.
        if let Some(slot) = Arc::get_mut(&mut self.slot)
            && slot.get_mut().unwrap_or_else(PoisonError::into_inner).is_none()
        {
            return;
        }
        let slot = Arc::clone(&self.slot);
        let settled = self.io.hand_off(self.settles, move |fs| {
            // Held until it is settled: whoever looks at it or takes it over meanwhile waits.
            let mut slot = slot.lock().unwrap_or_else(PoisonError::into_inner);
            slot.take().into_iter().for_each(|written| written.give_up(fs));
        });
        if settled.is_err() {
            let mut slot = self.slot.lock().unwrap_or_else(PoisonError::into_inner);
            slot.take().into_iter().for_each(|written| written.abandon());
        }
    }
}
