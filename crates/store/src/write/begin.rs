//! Where an upload begins: at the start, at an offset, or at the end of the existing bytes.
//!
//! It serves protocols that identify an upload by its path alone, such as FTP. Resuming by identifier is in
//! [`super::upload`].
//!
//! Invariant: a file never gets the beginning of one upload and the end of another. A client that resumes
//! knows an offset, but not the bytes before it. So an upload continues a file, or an interrupted upload,
//! only if the client can mean nothing else. Otherwise it is refused, with an error that lets the client
//! choose how to continue.

use serde::{Deserialize, Serialize};
use std::io;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use plimsoll_io::{File, FileKind, Fs, Instant, Io, Stat, Work};

use super::claim::{Claim, ClaimedSize};
use super::commit::Terms;
use super::id::UploadId;
use super::record::UploadDescription;
use super::resumable::ResumableUpload;
use super::staging::{Offset, Retention, StagingFile};
use super::state::{Paused, Receiving};
use super::upload::{LocalUpload, SharedUpload};
use crate::error::{Error, NotResumable, Result};
use crate::home::{LocalHome, State, weight};
use crate::path::Path;
use crate::usage::{Quota, Usage};

/// Where an upload begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Begin {
    /// At the start. Discards resumable uploads to the same path that no connection is writing to.
    Start,
    /// After this many bytes of an existing resumable upload or file; zero is the same as `Start`. If both
    /// exist, the offset must be the upload's and not also the file's size, and the upload must be newer.
    Offset(u64),
    /// At the end of the existing file; without one, as `Start`. Refused if the path has a resumable
    /// upload.
    End,
    /// At the end of an existing resumable upload or file, but not of both. The end must be at this offset,
    /// which was reported to the client.
    EndAt(u64),
}

/// A request to begin an upload, and its time.
struct BeginRequest {
    id: UploadId,
    terms: Terms,
    from: Begin,
    keep: bool,
    now: SystemTime,
    /// The same time on the engine's clock.
    instant: Instant,
}

/// A file that an upload may begin with.
struct Source {
    file: File,
    stat: Stat,
}

/// The bytes that an upload begins with.
enum Base {
    Nothing,
    Kept(UploadId, u64),
    File(Source, u64),
}

/// An upload that has begun.
struct Begun {
    shared: Arc<SharedUpload>,
    terms: Terms,
    at: u64,
    /// The file whose first bytes are to be copied.
    source: Option<File>,
}

impl LocalHome {
    /// As [`crate::Home::upload_from`].
    pub(crate) async fn upload_from(
        &self,
        io: &Io,
        terms: Terms,
        from: Begin,
        keep: bool,
    ) -> Result<LocalUpload> {
        self.usage(io).await?;
        let (now, instant) = (io.wall(), io.now());
        let asked = BeginRequest { id: UploadId::draw(io), terms, from, keep, now, instant };
        let (home, nonblocking) =
            (self.clone(), self.try_without_blocking(io, |fs| self.try_begin(fs, &asked)));
        let begun = match nonblocking {
            Some(begun) => begun,
            None => io.offload(Work::Writes, move |fs| home.begin(fs, asked)).await??,
        };
        let mut upload = LocalUpload::over(self, io, begun.terms, None, begun.at, begun.shared);
        if keep && begun.source.is_none() {
            upload.record_as_it_comes(self);
        }
        if let Some(source) = begun.source {
            upload.copy_start(self, source).await?;
        }
        Ok(upload)
    }

    /// Returns the offset at which such an upload would now begin at the end.
    pub(crate) async fn end_of(&self, io: &Io, path: &Path, keep: bool) -> Result<u64> {
        let (home, now, instant, id) = (self.clone(), io.wall(), io.now(), UploadId::draw(io));
        let terms = Terms::any(path.clone(), Quota::default());
        let asked = BeginRequest { id, terms, from: Begin::End, keep, now, instant };
        let found = io.offload(Work::Writes, move |fs| {
            Ok(match home.base(fs, &asked)? {
                Base::Nothing => 0,
                Base::Kept(_, at) | Base::File(_, at) => at,
            })
        });
        found.await?
    }

    fn begin(&self, fs: &dyn Fs, asked: BeginRequest) -> Result<Begun> {
        // Expired uploads hold reserved space.
        self.remove_expired(fs, asked.now)?;
        let before = {
            let _state = self.lock();
            self.replaceable(fs, &asked.terms)?.1
        };
        let base = self.base(fs, &asked)?;
        if let Base::Kept(_, at) = &base {
            let less = before.as_ref().map_or_else(Usage::default, weight);
            let more = Usage::file(*at);
            let _needed = self.allows(fs, &self.lock(), asked.terms.quota, less, more)?;
        }
        match base {
            Base::Nothing => self.begin_empty(fs, &asked, before),
            Base::Kept(id, at) => self.begin_again(fs, asked, id, at),
            Base::File(source, at) => self.begin_with(fs, asked, source, at),
        }
    }

    /// Returns the existing bytes that the upload begins with.
    ///
    /// # Errors
    /// [`Error::NotResumable`], [`Error::Offset`], [`Error::InUse`].
    fn base(&self, fs: &dyn Fs, asked: &BeginRequest) -> Result<Base> {
        if asked.begins_empty() {
            return Ok(Base::Nothing);
        }
        let kept = if asked.keep { self.kept_at(fs, &asked.terms.to, asked.now)? } else { Vec::new() };
        let (source, kept) = match (self.source(fs, asked)?, kept.as_slice()) {
            (source, []) => (source, None),
            (None, [kept]) if asked.from == Begin::End => {
                return Err(Error::NotResumable(NotResumable::Unannounced(kept.offset)));
            }
            (None, [kept]) => (None, Some(kept.clone())),
            (Some(source), [kept]) if asked.means(kept, &source) => (None, Some(kept.clone())),
            (Some(source), [kept]) => return Err(both(kept, &source)),
            _ => return Err(Error::NotResumable(NotResumable::SeveralUploads)),
        };
        let end = kept
            .as_ref()
            .map_or_else(|| source.as_ref().map_or(0, |source| source.stat.size), |kept| kept.offset);
        let at = asked.offset_within(end)?;
        Ok(match (source, kept) {
            (_, Some(kept)) if self.is_sent(kept.id, asked.instant) => return Err(Error::InUse),
            (_, Some(kept)) => Base::Kept(kept.id, at),
            (Some(source), None) => Base::File(source, at),
            (None, None) => Base::Nothing,
        })
    }

    /// The file that a reader of the path finds, if it is one.
    fn source(&self, fs: &dyn Fs, asked: &BeginRequest) -> Result<Option<Source>> {
        let file = match fs.open_beneath(self.files(), &asked.terms.to.to_open()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened?,
        };
        let stat = fs.stat(&file)?;
        Ok((stat.kind == FileKind::File).then_some(Source { file, stat }))
    }

    fn begin_empty(&self, fs: &dyn Fs, asked: &BeginRequest, before: Option<Stat>) -> Result<Begun> {
        if asked.keep {
            self.discard_idle_at(fs, &asked.terms.to);
        }
        let claim = Claim::new(fs, self, asked.id, &asked.terms, ClaimedSize::above(0))?;
        Ok(asked.begun_with(claim, &mut self.lock(), before))
    }

    /// As [`LocalHome::begin`], for an upload that begins empty, if it need not block.
    fn try_begin(&self, fs: &dyn Fs, asked: &BeginRequest) -> Option<Begun> {
        if !asked.begins_empty() {
            return None;
        }
        let mut state = self.try_lock()?;
        let size = ClaimedSize::above(0);
        let (claim, before) = Claim::try_new(fs, self, &mut state, asked.id, &asked.terms, size)?;
        Some(asked.begun_with(claim, &mut state, before))
    }

    fn begin_again(&self, fs: &dyn Fs, asked: BeginRequest, id: UploadId, at: u64) -> Result<Begun> {
        self.take_over(fs, id);
        let (receiving, description) = Paused::of(self, id).resume(fs, Offset::Cut(at), &[], asked.now)?;
        let shared = SharedUpload::registered(receiving, &mut self.lock(), &description);
        Ok(Begun { shared, terms: asked.terms, at, source: None })
    }

    fn begin_with(&self, fs: &dyn Fs, asked: BeginRequest, source: Source, at: u64) -> Result<Begun> {
        let terms = unchanged(asked.terms, source.stat);
        let claim = Claim::new(fs, self, asked.id, &terms, ClaimedSize::above(at))?;
        let staging = StagingFile::new(claim, &[], Retention::Removed);
        let shared = SharedUpload::new(Receiving::new(staging));
        Ok(Begun { shared, terms, at, source: Some(source.file) })
    }
}

impl BeginRequest {
    fn begins_empty(&self) -> bool {
        matches!(self.from, Begin::Start | Begin::Offset(0))
    }

    /// Whether the offset shows that the client means `kept` and not the existing file: a client that knows
    /// the file's size would resume there.
    fn means(&self, kept: &ResumableUpload, file: &Source) -> bool {
        self.from == Begin::Offset(kept.offset) && is_resumable_over(kept, file)
    }

    /// Returns the offset at which the upload begins, if the existing bytes end at `end`.
    fn offset_within(&self, end: u64) -> Result<u64> {
        match self.from {
            Begin::Start => Ok(0),
            Begin::End => Ok(end),
            Begin::EndAt(identity) if identity != end => Err(Error::NotResumable(NotResumable::Changed(end))),
            Begin::EndAt(identity) => Ok(identity),
            Begin::Offset(offset) if offset > end => Err(Error::Offset(end)),
            Begin::Offset(offset) => Ok(offset),
        }
    }

    /// Begins an empty upload; `before` is the entry now at the path.
    fn begun_with(&self, claim: Claim, state: &mut State, before: Option<Stat>) -> Begun {
        let shared = if self.keep {
            let description = UploadDescription::new_by_path(self.terms.to.clone(), later(self.now, before));
            let retention = Retention::Unrecorded(description.clone());
            let receiving = Receiving::new(StagingFile::new(claim, &[], retention));
            SharedUpload::registered(receiving, state, &description)
        } else {
            SharedUpload::new(Receiving::new(StagingFile::new(claim, &[], Retention::Removed)))
        };
        Begun { shared, terms: self.terms.clone(), at: 0, source: None }
    }
}

/// Whether a client can identify `kept` by its offset although a file exists: the upload began after the
/// file's last change, and their sizes differ.
fn is_resumable_over(kept: &ResumableUpload, file: &Source) -> bool {
    kept.created >= SystemTime::UNIX_EPOCH + file.stat.changed && kept.offset != file.stat.size
}

fn both(kept: &ResumableUpload, file: &Source) -> Error {
    let upload = is_resumable_over(kept, file).then_some(kept.offset);
    Error::NotResumable(NotResumable::FileAndUpload { file: file.stat.size, upload })
}

/// Adds a condition to the terms: the path must still have the same file at the commit.
fn unchanged(terms: Terms, file: Stat) -> Terms {
    let is_same = move |now: &Stat| {
        let identity = |stat: &Stat| (stat.device, stat.inode, stat.size, stat.changed);
        identity(now) == identity(&file)
    };
    Terms { condition: terms.condition.and(move |now| now.is_some_and(is_same)), ..terms }
}

/// Returns the start time of an upload that is to replace `before`: later than that was changed, even if
/// clocks disagree. It is later by a microsecond at least, the resolution of a record.
fn later(now: SystemTime, before: Option<Stat>) -> SystemTime {
    let changed = before.map_or(Duration::ZERO, |stat| stat.changed);
    now.max(SystemTime::UNIX_EPOCH + changed + Duration::from_micros(1))
}
