//! The file of an upload, as far as it is written: the closures of an upload work on it.
//!
//! It waits for nothing but the disk. Invariant: bytes are recorded only after they are synced.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use plimsoll_io::{File, Fs, Instant, Pipe};
use sha2::{Digest as _, Sha256};

use super::claim::Claim;
use super::commit::{CommitGuard, Committed, TakeBack, Terms, Whole};
use super::digest::{Algorithm, Digests, check_whole};
use super::held::{Held, Piece};
use super::id::UploadId;
use super::record::{About, Record};
use super::recording::Recording;
use super::upload::Slot;
use crate::error::{Error, Result};
use crate::home::{ByPath, Home, State};
use crate::known_digests::RunningDigest;

/// The file of an upload, and the state of its bytes.
pub(crate) struct Written {
    claim: Claim,
    /// None until it is needed.
    file: Option<File>,
    pub(super) at: u64,
    /// The offset up to which all of it is synced, if it was prepared for its commit.
    prepared: Option<u64>,
    /// Digests of the bytes received since the upload began or was resumed.
    digests: Digests,
    /// The offset at which those begin.
    digests_from: u64,
    /// The modification time that the file gets; none leaves that of its last write.
    modified: Option<Duration>,
    /// The digest of all bytes so far, if the sender has announced a check of the whole file.
    running: Option<RunningDigest>,
    stay: Stay,
    trouble: Trouble,
    /// Received bytes that are not written.
    held: Held,
}

/// Whether an interrupted upload stays.
pub(super) enum Stay {
    /// It is removed.
    No,
    /// It is resumable; while it is new, it has no record.
    Unrecorded(About),
    /// It is resumable, as its record states.
    Recorded(Kept),
}

/// The state of a resumable upload, in addition to its file.
pub(super) struct Kept {
    /// Locked by a writer until its write is synced. Lock order: the upload, then this.
    record: Arc<Mutex<Record>>,
    /// The offset that is synced and recorded.
    synced: u64,
    /// Whether the names of the file and of the record are synced.
    is_named: bool,
    /// Whether this part counts only once its digest was checked.
    checked: bool,
    /// Whether its path alone identifies it.
    by_path: bool,
}

/// The worst error so far.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Trouble {
    None,
    /// The bytes cannot be taken: no space for them, or no such folder.
    Refused,
    /// The disk failed: bytes written since the last sync may be lost, and another sync proves nothing.
    Disk,
}

/// The result of a commit.
pub(super) enum Outcome {
    Committed(Committed),
    /// The guard refused: the upload is unchanged.
    Refused(Box<Written>),
}

/// The offset at which a resumable upload is to continue.
#[derive(Clone, Copy)]
pub(super) enum Offset {
    /// Its present offset, which must be this.
    Exactly(u64),
    /// This one, which it must have reached: bytes beyond are cut off.
    Cut(u64),
}

/// The expected digests of the whole file.
type Expectation = [(Algorithm, Vec<u8>)];

impl Written {
    /// Creates an upload without bytes.
    pub(super) fn new(claim: Claim, digests: &[(Algorithm, Vec<u8>)], stay: Stay) -> Written {
        let digests = Digests::new(digests);
        let held = Held::new(claim.home.held_together(), !digests.are_none());
        Written {
            claim,
            file: None,
            at: 0,
            prepared: None,
            digests,
            digests_from: 0,
            modified: None,
            running: None,
            stay,
            trouble: Trouble::None,
            held,
        }
    }

    /// Opens a resumable upload, to continue at `offset`.
    pub(super) fn open(
        fs: &dyn Fs,
        home: &Home,
        id: UploadId,
        offset: Offset,
        digests: &[(Algorithm, Vec<u8>)],
        now: SystemTime,
    ) -> Result<(Written, About)> {
        let mut claim = Claim::again(home, id)?;
        let (mut record, about, stands_at) = Record::open(fs, home, id, now)?;
        let synced = match offset {
            Offset::Exactly(at) if at == stands_at || at == about.told(stands_at) => at,
            Offset::Cut(at) if at <= stands_at => at,
            _ => return Err(Error::Offset(about.told(stands_at))),
        };
        if synced < stands_at
            && let Err(error) = record.cut_to(fs, home, synced)
        {
            // The offset that its record now yields is unknown.
            claim.forget();
            home.remove_upload(fs, id);
            return Err(error);
        }
        let file = fs.open_to_write(home.pending(), &id.data_name())?;
        // Bytes that were written and not synced may differ from those that were sent.
        fs.set_len(&file, synced)?;
        if about.bytes.is_none() {
            claim.cut(synced);
        }
        let (digests, by_path) = (Digests::new(digests), about.by_path().is_some());
        let checked = !digests.are_none();
        let record = Arc::new(Mutex::new(record));
        let stay = Stay::Recorded(Kept { record, synced, is_named: true, checked, by_path });
        let held = Held::new(claim.home.held_together(), checked);
        // In any case, so that a digest of other bytes is never found by a later part.
        let running = home.running_digests().take(id, synced);
        let written = Written {
            claim,
            file: Some(file),
            at: synced,
            prepared: None,
            digests,
            digests_from: synced,
            modified: None,
            running,
            stay,
            trouble: Trouble::None,
            held,
        };
        Ok((written, about))
    }

    /// Starts to hash all bytes as they are written, so that a digest of the whole is checked without
    /// reading the file. Call it before any bytes. Does nothing for a resumed upload with earlier bytes
    /// that were not hashed: the file is read then.
    pub(super) fn start_running_digest(&mut self) {
        if self.at == 0 {
            self.running = Some(RunningDigest { sha256: Sha256::new(), at: 0 });
        }
        if self.running.is_some() {
            self.held.receive_into_memory();
        }
    }

    /// Makes the file have this time of modification, since 1970, when it is committed.
    pub(super) fn set_modified(&mut self, modified: Duration) {
        self.modified = Some(modified);
    }

    /// Stores the digest of all bytes so far for the next part.
    fn keep_running_digest(&mut self) {
        if let Some(running) = self.running.take().filter(|running| running.at == self.at) {
            self.claim.home.running_digests().put(self.claim.id, running);
        }
    }

    /// Registers the file where another connection finds it, and can take it over.
    pub(super) fn shown(self, state: &mut State, by_path: Option<ByPath>) -> (Slot, Held) {
        let (slot, held) = self.in_slot();
        if let Some(written) = &*slot.lock().unwrap_or_else(PoisonError::into_inner) {
            written.claim.show(state, Arc::downgrade(&slot), by_path);
        }
        (slot, held)
    }

    /// Returns the slot of the file, and its buffer for the receiver.
    pub(super) fn in_slot(self) -> (Slot, Held) {
        let held = self.held.clone();
        (Arc::new(Mutex::new(Some(self))), held)
    }

    /// When the last bytes were received; none before the first.
    pub(super) fn received_at(&self) -> Option<Instant> {
        self.held.received_at()
    }

    /// Begins with the first `bytes` of another file.
    pub(super) fn copy_begin(&mut self, fs: &dyn Fs, source: &File, bytes: u64) -> Result<()> {
        let file = self.file(fs)?;
        self.at = fs.copy(source, &file, bytes)?;
        // Another program has truncated the file.
        if self.at == bytes { Ok(()) } else { Err(Error::Precondition) }
    }

    /// Writes the buffer.
    pub(super) fn write(&mut self, fs: &dyn Fs) -> Result<()> {
        let written = self.write_held(fs);
        self.note(written)
    }

    fn write_held(&mut self, fs: &dyn Fs) -> Result<()> {
        self.check_disk()?;
        let batch = self.held.take();
        self.claim.grow(batch.quota, self.at + batch.bytes())?;
        let file = self.file(fs)?;
        for piece in &batch.pieces {
            match piece {
                Piece::Lease(lease) => {
                    write_all(fs, &file, lease, self.at)?;
                    self.digests.update(lease);
                    if let Some(running) = self.running.as_mut().filter(|running| running.at == self.at) {
                        running.sha256.update(&lease[..]);
                        running.at += lease.len() as u64;
                    }
                }
                Piece::Piped(pipe, bytes) => write_all_from(fs, &file, pipe, *bytes, self.at)?,
            }
            self.at += piece.len();
        }
        Ok(())
    }

    /// Writes the buffer and syncs the file, so that the commit has little to wait for.
    pub(super) fn prepare(&mut self, fs: &dyn Fs) -> Result<()> {
        let prepared = self.write_held(fs).and_then(|()| self.file(fs));
        let prepared = prepared.and_then(|file| self.claim.home.sync(fs, &[&file]));
        self.prepared = prepared.is_ok().then_some(self.at);
        self.note(prepared)
    }

    /// Notes the error of a result.
    fn note<T>(&mut self, done: Result<T>) -> Result<T> {
        let trouble = match &done {
            Ok(_) | Err(Error::TakenBack) => Trouble::None,
            Err(Error::Failed(_)) => Trouble::Disk,
            Err(_) => Trouble::Refused,
        };
        self.trouble = self.trouble.max(trouble);
        done
    }

    /// Returns an error if a sync has failed, also one for a lookup: earlier writes may be lost then.
    fn check_disk(&self) -> Result<()> {
        match self.trouble {
            Trouble::Disk => Err(Error::Failed(io::Error::other("a sync of the upload has failed before"))),
            Trouble::None | Trouble::Refused => Ok(()),
        }
    }

    /// Checks that all received `bytes` are in the file.
    fn check_whole(&self, bytes: u64) -> Result<()> {
        let missing = || io::Error::other(format!("{} of {bytes} bytes of the upload were written", self.at));
        if self.at == bytes { Ok(()) } else { Err(Error::Failed(missing())) }
    }

    /// Writes the rest of an upload that has received this many bytes. After an error, it is settled.
    pub(super) fn write_last(mut self, fs: &dyn Fs, bytes: u64) -> Result<Written> {
        match self.write_held(fs).and_then(|()| self.check_whole(bytes)) {
            Ok(()) => Ok(self),
            Err(error) => Err(self.settle_after(fs, error)),
        }
    }

    /// Commits the upload, if the digests of the whole file are these, and unless it is cancelled or its
    /// guard refuses. After an error, it is settled.
    pub(super) fn commit(
        mut self,
        fs: &dyn Fs,
        terms: &Terms,
        (take_back, guard): (Option<&TakeBack>, Option<&CommitGuard>),
        whole: &Expectation,
    ) -> Result<Outcome> {
        let received = match self.take_digests().check() {
            Ok(sha256) => sha256.filter(|_| self.digests_from == 0),
            Err(error) => return Err(self.settle_after(fs, error)),
        };
        self.is_checked();
        let guards = (take_back, guard);
        match self.file(fs).and_then(|file| self.commit_checked(fs, &file, terms, guards, (received, whole)))
        {
            Ok(Some(committed)) => {
                self.claim.forget();
                self.remove_record(fs);
                Ok(Outcome::Committed(committed))
            }
            Ok(None) => {
                self.prepared = Some(self.at);
                Ok(Outcome::Refused(Box::new(self)))
            }
            Err(error) if matches!(error, Error::Digest) => {
                self.remove(fs);
                Err(error)
            }
            Err(error) => Err(self.settle_after(fs, error)),
        }
    }

    fn commit_checked(
        &self,
        fs: &dyn Fs,
        file: &File,
        terms: &Terms,
        (take_back, guard): (Option<&TakeBack>, Option<&CommitGuard>),
        (received, whole): (Option<[u8; 32]>, &Expectation),
    ) -> Result<Option<Committed>> {
        let running = self.running.as_ref().and_then(|running| running.sha256_at(self.at));
        let sha256 = check_whole(fs, file, running, whole)?.or(received);
        let is_synced = self.prepared == Some(self.at);
        let (id, bytes, modified) = (self.claim.id, self.at, self.modified);
        let whole = Whole { id, file, bytes, is_synced, modified, take_back, guard };
        let committed = self.claim.home.commit(fs, &whole, terms)?;
        if let (Some(sha256), Some(committed)) = (sha256, &committed) {
            self.claim.home.known_digests().note(&committed.stat, sha256);
        }
        Ok(committed)
    }

    /// Ends a part, to be continued later. Returns the upload's offset.
    pub(super) fn pause(mut self, fs: &dyn Fs) -> Result<u64> {
        if let Err(error) = self.take_digests().check() {
            return Err(self.settle_after(fs, error));
        }
        self.is_checked();
        if let Err(error) = self.record(fs) {
            return Err(self.settle_after(fs, error));
        }
        self.keep_running_digest();
        Ok(self.at)
    }

    /// Notes that the part's digests are checked, if it had any: all its bytes count now.
    fn is_checked(&mut self) {
        if let Stay::Recorded(kept) = &mut self.stay {
            kept.checked = false;
        }
    }

    /// Settles the upload after an error, which it returns.
    fn settle_after(mut self, fs: &dyn Fs, error: Error) -> Error {
        let noted = self.note::<()>(Err(error));
        self.settle(fs);
        noted.err().unwrap_or(Error::InUse)
    }

    /// Settles the upload when its client is gone.
    pub(super) fn give_up(mut self, fs: &dyn Fs) {
        if let Err(error) = self.write_kept(fs) {
            let id = self.claim.id;
            tracing::info!(upload = %id, %error, "the last bytes of an upload were not written");
        }
        self.settle(fs);
    }

    /// Writes the buffer of a resumable upload, unless its part counts only as a whole.
    ///
    /// # Errors
    /// The buffered bytes are lost then: the upload cannot continue.
    pub(super) fn write_kept(&mut self, fs: &dyn Fs) -> Result<()> {
        let is_worth_it = match &self.stay {
            Stay::No => false,
            Stay::Unrecorded(_) => true,
            Stay::Recorded(kept) => !kept.checked,
        };
        if !is_worth_it || self.trouble != Trouble::None || self.held.bytes() == 0 {
            return Ok(());
        }
        let written = self.write_held(fs);
        self.note(written)
    }

    /// Ends the upload where nothing may block: a resumable one stays as it was last recorded.
    pub(super) fn abandon(self) {
        if !matches!(self.stay, Stay::Recorded(_)) && self.file.is_some() {
            self.claim.home.abandon(self.claim.id);
        }
    }

    /// Keeps the upload if it may stay, and removes it otherwise.
    pub(super) fn settle(mut self, fs: &dyn Fs) {
        if self.goes() {
            return self.remove(fs);
        }
        if let (Stay::Recorded(kept), Some(file)) = (&self.stay, &self.file)
            && kept.checked
        {
            // The recorded offset is reported in any case: this only frees the space.
            let _ = fs.set_len(file, kept.synced);
        } else if self.trouble != Trouble::Disk
            && let Err(error) = self.record(fs)
        {
            tracing::warn!(upload = %self.claim.id, %error, "a kept upload could not be synced");
            // Earlier records stay, if there are any.
            self.trouble = Trouble::Disk;
            if self.goes() {
                self.remove(fs);
            }
        } else {
            self.keep_running_digest();
        }
    }

    /// Whether nothing of it stays. An upload that its path identifies goes too when it was refused: its
    /// owner may know no other way to free its space.
    fn goes(&self) -> bool {
        match &self.stay {
            Stay::No => true,
            Stay::Unrecorded(_) => self.at == 0 || self.trouble != Trouble::None,
            Stay::Recorded(kept) if self.trouble == Trouble::Disk => kept.by_path && kept.synced == 0,
            Stay::Recorded(kept) => kept.by_path && self.trouble == Trouble::Refused,
        }
    }

    /// Syncs and records the received bytes of a resumable upload, while its part continues.
    pub(super) fn record_so_far(&mut self, fs: &dyn Fs) -> Result<()> {
        if self.is_recordable() { self.record(fs) } else { Ok(()) }
    }

    /// Whether the upload has bytes that may be recorded.
    fn is_recordable(&self) -> bool {
        let is_worth_it = match &self.stay {
            Stay::No => false,
            Stay::Unrecorded(_) => self.at > 0,
            Stay::Recorded(kept) => !kept.checked,
        };
        is_worth_it && self.trouble == Trouble::None
    }

    /// Makes the sender's next call fail with `error`.
    pub(super) fn fail(&self, error: Error) {
        self.held.fail(error);
    }

    /// Returns the bytes to be synced and recorded; none if no bytes were written since the last recording.
    pub(super) fn recording(&mut self, fs: &dyn Fs) -> Result<Option<Recording>> {
        if !self.is_recordable() || self.synced() == self.at {
            return Ok(None);
        }
        let (home, at, Some(file)) = (self.claim.home.clone(), self.at, self.file.clone()) else {
            return Ok(None);
        };
        let kept = self.kept(fs)?;
        Ok(kept.map(|kept| {
            let (record, is_named) = (Arc::clone(&kept.record), kept.is_named);
            Recording { home, file, is_named, at, record }
        }))
    }

    /// The offset that is synced and recorded.
    pub(super) fn synced(&self) -> u64 {
        if let Stay::Recorded(kept) = &self.stay { kept.synced } else { 0 }
    }

    /// Notes that the offset `at` is recorded and the names of the files are synced, or the error.
    pub(super) fn end_recording(&mut self, at: u64, recorded: Result<()>) {
        match (self.note(recorded), &mut self.stay) {
            (Ok(()), Stay::Recorded(kept)) => {
                (kept.synced, kept.is_named) = (kept.synced.max(at), true);
            }
            (Err(error), _) => {
                tracing::warn!(upload = %self.claim.id, %error, "a resumable upload could not be synced");
            }
            _ => {}
        }
    }

    /// Returns the record and its state, and creates the record if it does not exist yet; none if the upload
    /// is not resumable.
    fn kept(&mut self, fs: &dyn Fs) -> Result<Option<&mut Kept>> {
        if let Stay::Unrecorded(about) = &self.stay {
            let record = match Record::create(fs, &self.claim.home, self.claim.id, about) {
                Ok(record) => Arc::new(Mutex::new(record)),
                Err(error) => {
                    // A partial record would make every later attempt fail.
                    let _ = fs.remove_file(self.claim.home.pending(), &self.claim.id.record_name());
                    return Err(error);
                }
            };
            let (synced, is_named, checked, by_path) = (0, false, false, true);
            self.stay = Stay::Recorded(Kept { record, synced, is_named, checked, by_path });
            self.claim.keep();
        }
        Ok(if let Stay::Recorded(kept) = &mut self.stay { Some(kept) } else { None })
    }

    /// Syncs the written bytes, and then records their offset.
    fn record(&mut self, fs: &dyn Fs) -> Result<()> {
        let recorded = self.record_synced(fs);
        self.note(recorded)
    }

    fn record_synced(&mut self, fs: &dyn Fs) -> Result<()> {
        let (home, at, Some(file)) = (self.claim.home.clone(), self.at, self.file.clone()) else {
            return Ok(());
        };
        let Some(kept) = self.kept(fs)? else { return Ok(()) };
        if !kept.is_named {
            home.sync(fs, &[home.pending()])?;
            kept.is_named = true;
        }
        if kept.synced != at {
            home.sync(fs, &[&file])?;
            let mut record = kept.record.lock().unwrap_or_else(PoisonError::into_inner);
            record.write_offset(fs, at)?;
            home.sync(fs, &[record.file()])?;
            kept.synced = at;
        }
        Ok(())
    }

    pub(super) fn file(&mut self, fs: &dyn Fs) -> Result<File> {
        if let Some(file) = &self.file {
            return Ok(file.clone());
        }
        let file = fs.create(self.claim.home.pending(), &self.claim.id.data_name())?;
        self.file = Some(file.clone());
        Ok(file)
    }

    fn take_digests(&mut self) -> Digests {
        std::mem::replace(&mut self.digests, Digests::new(&[]))
    }

    fn remove(mut self, fs: &dyn Fs) {
        self.claim.forget();
        if self.file.is_some() {
            self.claim.home.remove_upload(fs, self.claim.id);
        }
    }

    fn remove_record(&self, fs: &dyn Fs) {
        if matches!(self.stay, Stay::Recorded(_))
            && let Err(error) = fs.remove_file(self.claim.home.pending(), &self.claim.id.record_name())
        {
            tracing::warn!(upload = %self.claim.id, %error, "the record of an upload could not be removed");
        }
    }
}

fn write_all_from(fs: &dyn Fs, file: &File, pipe: &Pipe, bytes: u64, at: u64) -> Result<()> {
    let mut done = 0;
    while done < bytes {
        match fs.write_from(file, pipe, bytes - done, at + done)? {
            0 => return Err(Error::Full),
            count => done += count,
        }
    }
    Ok(())
}

pub(crate) fn write_all(fs: &dyn Fs, file: &File, bytes: &[u8], at: u64) -> Result<()> {
    let mut done = 0;
    while done < bytes.len() {
        match fs.write_at(file, &bytes[done..], at + done as u64)? {
            0 => return Err(Error::Full),
            count => done += count,
        }
    }
    Ok(())
}
