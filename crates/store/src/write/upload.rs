//! An upload in progress: receives bytes, and has them written where that may block.
//!
//! It does not read from a connection. Invariants: bytes are written in the order of their arrival. When an
//! upload is dropped, a running closure ends first, and then the upload ends.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

use plimsoll_io::{Deadline, File, Fs, Io, Lease, Pipe, Work};

use super::buffer::{Buffer, ReceivePipe};
use super::claim::{Claim, ClaimedSize};
use super::commit::{CommitGuard, CommitRequest, Committed, Terms};
use super::digest::{Algorithm, Expected};
use super::id::UploadId;
use super::parts::JoinedParts;
use super::progress::Progress;
use super::record::UploadDescription;
use super::recording::RecordingSchedule;
use super::staging::{Offset, Retention, StagingFile};
use super::state::{Paused, Receiving, UploadState};
use crate::backend::ResumeTerms;
use crate::error::{Error, Result};
use crate::finished::Completed;
use crate::home::{LocalHome, State};
use crate::limits::{
    BUFFERED_BYTES_MAX, BUFFERED_TIME, COPIED_AT_ONCE_BYTES_MAX, FINISHED_METADATA_BYTES_MAX, GATHERED_BYTES,
    PIPED_FROM_BYTES,
};

/// An upload in progress. Dropping it aborts it; a resumable one is kept, to be resumed.
pub(crate) struct LocalUpload {
    pub(crate) progress: Progress,
    io: Io,
    terms: Terms,
    /// The deadline of a wait for more bytes, after which buffered bytes are written, or a recording
    /// starts.
    pause: Deadline,
    schedule: RecordingSchedule,
    /// Whether its commit waits for the disk.
    is_synced: bool,
    home: LocalHome,
    shared: Arc<SharedUpload>,
    /// What is remembered after the commit of a resumable upload of announced length.
    completes: Option<Completes>,
    /// The partial uploads that it joins, which end with its commit.
    parts: Option<JoinedParts>,
    /// The kind of work that ends it if it is dropped now: that of the closure in progress, for which the
    /// end waits.
    ends_by: Work,
}

/// A resumable upload that is remembered after its commit.
#[derive(Clone)]
struct Completes {
    home: LocalHome,
    id: UploadId,
    metadata: String,
}

/// The buffer and the state of an upload, which has its file. The connection that receives the upload owns
/// it; its closures and a connection that takes the upload over share it.
///
/// Lock order: the state, then the buffer. A thread that works on the file holds the state, also while it
/// waits for the disk. The buffer is locked for moments only.
pub(crate) struct SharedUpload {
    pub(super) buffer: Buffer,
    state: Mutex<UploadState>,
}

impl Drop for SharedUpload {
    /// Abandons an upload that has not ended.
    fn drop(&mut self) {
        self.state.get_mut().unwrap_or_else(PoisonError::into_inner).abandon();
    }
}

impl SharedUpload {
    pub(super) fn new(receiving: Receiving) -> Arc<SharedUpload> {
        let buffer = receiving.staging().buffer();
        Arc::new(SharedUpload { buffer, state: Mutex::new(UploadState::Receiving(receiving)) })
    }

    /// As [`SharedUpload::new`], where another connection finds the upload, and can take it over.
    pub(super) fn registered(
        receiving: Receiving,
        home: &mut State,
        description: &UploadDescription,
    ) -> Arc<SharedUpload> {
        let shared = SharedUpload::new(receiving);
        if let Ok(staging) = shared.lock().staging() {
            staging.claim.register(home, Arc::downgrade(&shared), description.by_path());
        }
        shared
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, UploadState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// As [`SharedUpload::lock`], unless a thread works on the file.
    fn try_lock(&self) -> Option<MutexGuard<'_, UploadState>> {
        match self.state.try_lock() {
            Ok(state) => Some(state),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}

impl LocalHome {
    /// As [`crate::Home::upload`].
    pub(crate) async fn upload(&self, io: &Io, terms: Terms, expected: Expected) -> Result<LocalUpload> {
        self.usage(io).await?;
        let (home, id, announced) = (self.clone(), UploadId::draw(io), expected.bytes);
        let (size, asked, now) = (ClaimedSize::of(announced.unwrap_or(0)), terms.clone(), io.wall());
        let claimed = self.try_without_blocking(io, |fs| {
            let mut state = self.try_lock()?;
            Claim::try_new(fs, self, &mut state, id, &terms, size)
        });
        let claim = match claimed {
            Some((claim, _)) => claim,
            None => {
                let claim = io.offload(Work::Writes, move |fs| {
                    // Expired uploads hold reserved space.
                    home.remove_expired(fs, now)?;
                    Claim::new(fs, &home, id, &asked, size)
                });
                claim.await??
            }
        };
        let staging = StagingFile::new(claim, &expected.digests, Retention::Removed);
        let shared = SharedUpload::new(Receiving::new(staging));
        Ok(LocalUpload::over(self, io, terms, announced, 0, shared))
    }

    /// As [`crate::Home::resume_upload`].
    pub(crate) async fn resume_upload(
        &self,
        io: &Io,
        id: UploadId,
        offset: u64,
        digests: Vec<(Algorithm, Vec<u8>)>,
        terms: ResumeTerms,
    ) -> Result<LocalUpload> {
        self.usage(io).await?;
        let (home, now) = (self.clone(), io.wall());
        let opened = io.offload(Work::Writes, move |fs| {
            // Before the takeover, so that a wrong offset does not end another connection's upload.
            home.check_offset(fs, id, offset, now)?;
            home.take_over(fs, id);
            let paused = Paused::of(&home, id);
            let (receiving, description) = paused.resume(fs, Offset::Exactly(offset), &digests, now)?;
            let shared = SharedUpload::registered(receiving, &mut home.lock(), &description);
            Ok::<_, Error>((shared, description))
        });
        let (shared, description) = opened.await??;
        let UploadDescription { to, bytes, condition, metadata, .. } = description;
        let terms = terms.terms(to, &condition);
        let mut upload = LocalUpload::over(self, io, terms, bytes, offset, shared);
        let metadata = if metadata.len() > FINISHED_METADATA_BYTES_MAX { String::new() } else { metadata };
        upload.completes = bytes.map(|_| Completes { home: self.clone(), id, metadata });
        upload.record_as_it_comes(self);
        Ok(upload)
    }
}

impl LocalUpload {
    pub(super) fn over(
        home: &LocalHome,
        io: &Io,
        terms: Terms,
        announced: Option<u64>,
        start_offset: u64,
        shared: Arc<SharedUpload>,
    ) -> LocalUpload {
        LocalUpload {
            progress: Progress::new(terms.to.clone(), announced, start_offset),
            io: io.clone(),
            terms,
            pause: io.deadline(),
            schedule: RecordingSchedule::none(),
            is_synced: home.is_synced(),
            home: home.clone(),
            shared,
            completes: None,
            parts: None,
            ends_by: Work::Writes,
        }
    }

    /// Makes the upload's offset be recorded periodically, because the upload is resumable.
    pub(super) fn record_as_it_comes(&mut self, home: &LocalHome) {
        self.schedule = RecordingSchedule::of(home);
    }

    /// As [`crate::Upload::start_running_digest`].
    pub(crate) fn start_running_digest(&self) {
        self.shared.buffer.hash_bytes();
    }

    /// Copies the first bytes of a file, up to the offset that the upload begins at. Call it before any
    /// bytes.
    pub(super) async fn copy_start(&mut self, home: &LocalHome, source: File) -> Result<()> {
        let (bytes, mut copying) = (self.progress.start_offset, None);
        if bytes > COPIED_AT_ONCE_BYTES_MAX {
            (self.ends_by, copying) = (Work::Chores, Some(home.begin_copy()?));
        }
        let copied = self.work(self.ends_by, move |fs, state, _| {
            let _until_done = copying;
            state.append(fs, |staging| staging.copy_start(fs, &source, bytes))
        });
        copied.await?;
        self.ends_by = Work::Writes;
        Ok(())
    }

    /// Notes the partial uploads that it joins.
    pub(super) fn joins(&mut self, parts: JoinedParts) {
        self.parts = Some(parts);
    }

    /// Counts bytes that were appended without the receive buffer.
    pub(super) fn has_appended(&mut self, bytes: u64) {
        self.progress.bytes += bytes;
    }

    /// Sets the kind of work that ends the upload if it is dropped.
    pub(super) fn end_by(&mut self, work: Work) {
        self.ends_by = work;
    }

    /// As [`crate::Upload::write_received`].
    pub(crate) async fn write_all(&mut self, pieces: impl IntoIterator<Item = Lease>) -> Result<()> {
        let (now, quota, mut is_due) = (self.io.now(), self.terms.quota, false);
        for piece in pieces {
            self.progress.count(piece.len() as u64)?;
            is_due = self.shared.buffer.push(piece, now, quota);
        }
        self.write_if(is_due).await
    }

    /// Returns the pipe that the next bytes are to be received into. None until some bytes were received:
    /// few are not worth a pipe.
    pub(crate) fn receive_pipe(&self) -> Option<ReceivePipe> {
        let received = self.progress.bytes - self.progress.start_offset;
        (received >= PIPED_FROM_BYTES).then(|| ReceivePipe(Arc::clone(&self.shared)))
    }

    /// Takes the next bytes that went into the pipe; none means that the pipe is full. If the future is
    /// dropped, they are written all the same.
    pub(crate) async fn write_piped(&mut self, pipe: Arc<Pipe>, bytes: u64) -> Result<()> {
        self.progress.count(bytes)?;
        let is_due =
            self.shared.buffer.push_piped(&pipe, bytes, self.io.now(), self.terms.quota) || bytes == 0;
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
            return self.write_buffer().await;
        }
        self.schedule.record_if_due(&self.io, &self.shared);
        if self.shared.buffer.goes_ahead() {
            let shared = Arc::clone(&self.shared);
            let handed = self.io.hand_off(Work::Writes, move |fs| {
                let mut state = shared.lock();
                let written = state.write(fs, &shared.buffer);
                shared.buffer.went_ahead(written);
            });
            if handed.is_err() {
                self.shared.buffer.went_ahead(Ok(()));
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
            self.write_buffer().await?;
        }
    }

    /// As [`crate::Upload::soon`].
    pub(crate) async fn soon<F: Future>(&self, next: Pin<&mut F>) -> Option<F::Output> {
        let is_much = self.shared.buffer.bytes() >= GATHERED_BYTES;
        let recorded_in = self.schedule.due_in(self.io.now());
        let Some(time) = recorded_in.into_iter().chain(is_much.then_some(BUFFERED_TIME)).min() else {
            return Some(next.await);
        };
        self.pause.after(time);
        self.pause.within(next).await.ok()
    }

    /// As [`crate::Upload::write_buffer`].
    pub(crate) async fn write_buffer(&self) -> Result<()> {
        if self.shared.buffer.bytes() > 0 {
            self.work(Work::Writes, |fs, state, buffer| state.write(fs, buffer)).await?;
        }
        self.schedule.record_if_due(&self.io, &self.shared);
        Ok(())
    }

    /// As [`crate::Upload::prepare`].
    pub(crate) async fn prepare(&mut self) -> Result<()> {
        if !self.is_synced && !self.shared.buffer.is_alone() {
            // There is no sync to wait for, only a busy thread: the commit writes the rest.
            return Ok(());
        }
        self.work(Work::Writes, |fs, state, buffer| state.prepare(fs, buffer)).await
    }

    /// As [`crate::Upload::try_commit`].
    pub(crate) async fn try_commit(
        &mut self,
        digests: Vec<(Algorithm, Vec<u8>)>,
        guard: Option<CommitGuard>,
    ) -> Result<Option<Committed>> {
        self.progress.check_complete()?;
        let Progress { bytes, modified, ref spare_name, ref cancel, .. } = self.progress;
        let (terms, spare_name, cancel) = (self.terms.clone(), spare_name.clone(), cancel.clone());
        let parts = self.parts.clone();
        let request = CommitRequest { terms, digests, modified, spare_name, cancel, guard, parts };
        let (completes, now) = (self.completes.clone(), self.io.wall());
        let committed = self.work(Work::Writes, move |fs, state, buffer| {
            let committed = state.commit(fs, buffer, bytes, &request)?;
            if let (Some(_), Some(Completes { home, id, metadata })) = (&committed, completes) {
                let (to, whole) = (request.terms.to, request.digests);
                home.note_completed(id, now, Completed { to, bytes, whole, metadata });
            }
            Ok(committed)
        });
        let committed = committed.await;
        self.home.tidy_trash(&self.io);
        committed
    }

    /// As [`crate::Upload::pause`].
    pub(crate) async fn pause(self) -> Result<u64> {
        let bytes = self.progress.bytes;
        self.work(Work::Writes, move |fs, state, buffer| state.pause(fs, buffer, bytes)).await
    }

    /// As [`crate::Upload::abort`].
    pub(crate) async fn abort(self) {
        let aborted = self.work(self.ends_by, |fs, state, buffer| {
            state.abort(fs, buffer);
            Ok(())
        });
        if let Err(error) = aborted.await {
            tracing::info!(%error, "an aborted upload is settled later");
        }
    }

    /// Whether its work is done in place: it takes less time than two changes of threads. Entries of the
    /// trash that must make room could take longer.
    fn is_short(&self) -> bool {
        let (bytes, quota) = (self.progress.bytes, self.terms.quota);
        self.home.is_in_memory()
            && bytes <= BUFFERED_BYTES_MAX as u64
            && !self.io.in_memory(|fs| self.home.may_need_room(fs, quota, bytes))
    }

    pub(super) async fn work<T: Send + 'static>(
        &self,
        kind: Work,
        work: impl FnOnce(&dyn Fs, &mut UploadState, &Buffer) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let done = if self.is_short() && kind == Work::Writes {
            // A recording may hold the state. It ends soon: it waits for no disk either.
            self.io.in_memory(|fs| work(fs, &mut self.shared.lock(), &self.shared.buffer))
        } else {
            let shared = Arc::clone(&self.shared);
            let done = self.io.offload(kind, move |fs| work(fs, &mut shared.lock(), &shared.buffer));
            done.await?
        };
        done.map_err(|error| match error {
            Error::InUse => self.shared.buffer.failure().unwrap_or(error),
            error => error,
        })
    }
}

impl Drop for LocalUpload {
    fn drop(&mut self) {
        if self.shared.try_lock().is_some_and(|state| state.has_ended()) {
            return;
        }
        let shared = Arc::clone(&self.shared);
        let handed = self.io.hand_off(self.ends_by, move |fs| {
            // Locked until it has ended: a lookup or takeover waits meanwhile.
            shared.lock().abort(fs, &shared.buffer);
        });
        if let Err(error) = handed {
            // The last closure that has the upload abandons it.
            tracing::info!(?error, "an aborted upload is settled later");
        }
    }
}
