//! Where an upload begins: at the start, at an offset, or at the end of what is there already.
//!
//! It is for protocols that know an upload by its path alone. Not here: going on with one that is known by
//! its name ([`super::upload`]). What must hold: what an upload begins with is what its client was told of:
//! the file that its path stands for, or what was kept of an upload that was begun after that file was
//! changed last.

use serde::{Deserialize, Serialize};
use std::io;
use std::time::{Duration, SystemTime};

use plimsoll_io::{File, FileKind, Fs, Io, Stat, Work};

use super::claim::Claim;
use super::commit::Terms;
use super::held::Held;
use super::id::UploadId;
use super::kept::KeptUpload;
use super::record::About;
use super::upload::{Slot, Upload};
use super::written::{Offset, Stay, Written};
use crate::error::{Error, Result};
use crate::home::{Home, State};
use crate::path::Path;
use crate::usage::Quota;

/// Where an upload begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Begin {
    /// At the start. Kept uploads to the same path that nobody is writing to are thrown away.
    Start,
    /// After so many bytes: of a kept upload, else of the file that is there. With none, as `Start`.
    Offset(u64),
    /// At the end of the file that is there, else of a kept upload; with neither, as `Start`.
    End,
}

/// What was asked for, and when.
struct Asked {
    id: UploadId,
    terms: Terms,
    from: Begin,
    keep: bool,
    now: SystemTime,
}

/// A file that an upload may begin with.
struct Source {
    file: File,
    stat: Stat,
}

/// What an upload begins with.
enum Base {
    Nothing,
    Kept(UploadId, u64),
    File(Source, u64),
}

/// An upload that has begun.
struct Begun {
    slot: (Slot, Held),
    terms: Terms,
    at: u64,
    /// The file whose first bytes are to be copied.
    source: Option<File>,
}

impl Home {
    /// Begins an upload of unknown length at `from`. With `keep`, which is for the home's own account, kept
    /// uploads to the path are looked at, and the upload is kept when it is broken off; not if nothing has
    /// come, not if it is refused, and not if it began with a file's bytes, since that is still there to
    /// begin with. Without, kept uploads are left alone.
    ///
    /// Whoever wrote to a kept upload until now does so no more. Bytes beyond an offset are cut off.
    ///
    /// One that begins with a file's bytes is committed only if that is still what its path stands for.
    ///
    /// # Errors
    /// As [`Home::upload`]; [`Error::Offset`] with the largest offset that there is, if that is too small;
    /// [`Error::InUse`] if somebody else goes on with the same upload at the same time; [`Error::Busy`] while
    /// many long copies to the home are under way.
    pub(crate) async fn upload_from(&self, io: &Io, terms: Terms, from: Begin, keep: bool) -> Result<Upload> {
        self.usage(io).await?;
        let asked = Asked { id: UploadId::draw(io), terms, from, keep, now: io.wall() };
        let (home, at_hand) = (self.clone(), io.at_hand(|fs| self.begin_at_hand(fs, &asked)));
        let begun = match at_hand {
            Some(begun) => begun,
            None => io.offload(Work::Writes, move |fs| home.begin(fs, asked)).await??,
        };
        let mut upload = Upload::over(self, io, begun.terms, None, begun.at, begun.slot);
        if let Some(source) = begun.source {
            upload.copy_begin(self, source).await?;
        }
        Ok(upload)
    }

    /// The offset at which such an upload would begin at the end, as things stand.
    pub(crate) async fn end_of(&self, io: &Io, path: &Path, keep: bool) -> Result<u64> {
        let (home, now, id) = (self.clone(), io.wall(), UploadId::draw(io));
        let terms = Terms::any(path.clone(), Quota::default());
        let asked = Asked { id, terms, from: Begin::End, keep, now };
        let found = io.offload(Work::Writes, move |fs| {
            Ok(match home.base(fs, &asked)? {
                Base::Nothing => 0,
                Base::Kept(_, at) | Base::File(_, at) => at,
            })
        });
        found.await?
    }

    fn begin(&self, fs: &dyn Fs, asked: Asked) -> Result<Begun> {
        // They hold room that is nobody's any more.
        self.remove_expired(fs, asked.now)?;
        let before = {
            let _state = self.lock();
            self.replaceable(fs, &asked.terms)?.1
        };
        match self.base(fs, &asked)? {
            Base::Nothing => self.begin_empty(fs, &asked, before),
            Base::Kept(id, at) => self.begin_again(fs, asked, id, at),
            Base::File(source, at) => self.begin_with(fs, asked, source, at),
        }
    }

    /// What there is to begin with.
    fn base(&self, fs: &dyn Fs, asked: &Asked) -> Result<Base> {
        if asked.begins_empty() {
            return Ok(Base::Nothing);
        }
        let source = self.source(fs, asked)?;
        let kept = self.kept_since(fs, asked, source.as_ref())?;
        let Begin::Offset(offset) = asked.from else {
            return Ok(match (source, kept.first()) {
                (Some(source), _) => {
                    let size = source.stat.size;
                    Base::File(source, size)
                }
                (None, Some(kept)) => Base::Kept(kept.id, kept.offset),
                (None, None) => Base::Nothing,
            });
        };
        if let Some(kept) = kept.iter().find(|kept| kept.offset >= offset) {
            return Ok(Base::Kept(kept.id, offset));
        }
        let most = kept.iter().map(|kept| kept.offset).max().unwrap_or(0);
        match source {
            Some(source) if source.stat.size >= offset => Ok(Base::File(source, offset)),
            Some(source) => Err(Error::Offset(most.max(source.stat.size))),
            None => Err(Error::Offset(most)),
        }
    }

    /// The file that a reader of the path finds, if it is one.
    fn source(&self, fs: &dyn Fs, asked: &Asked) -> Result<Option<Source>> {
        let file = match fs.open_beneath(self.files(), asked.terms.to.as_bytes()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened?,
        };
        let stat = fs.stat(&file)?;
        Ok((stat.kind == FileKind::File).then_some(Source { file, stat }))
    }

    /// The kept uploads to the path, the newest first. Those that were begun before the file there was
    /// changed are none: what a client was told since then is that file's.
    fn kept_since(&self, fs: &dyn Fs, asked: &Asked, file: Option<&Source>) -> Result<Vec<KeptUpload>> {
        if !asked.keep {
            return Ok(Vec::new());
        }
        let since = SystemTime::UNIX_EPOCH + file.map_or(Duration::ZERO, |file| file.stat.changed);
        let kept = self.kept_at(fs, &asked.terms.to, asked.now)?.into_iter();
        Ok(kept.filter(|kept| kept.created >= since).collect())
    }

    fn begin_empty(&self, fs: &dyn Fs, asked: &Asked, before: Option<Stat>) -> Result<Begun> {
        if asked.keep {
            self.discard_idle_at(fs, &asked.terms.to);
        }
        let claim = Claim::new(fs, self, asked.id, &asked.terms, 0)?;
        Ok(asked.begun_with(claim, &mut self.lock(), before))
    }

    /// As [`Home::begin`], of an upload that begins with nothing, if nothing is to be waited for.
    fn begin_at_hand(&self, fs: &dyn Fs, asked: &Asked) -> Option<Begun> {
        if !asked.begins_empty() {
            return None;
        }
        let mut state = self.try_lock()?;
        let (claim, before) = Claim::at_hand(fs, self, &mut state, asked.id, &asked.terms, 0)?;
        Some(asked.begun_with(claim, &mut state, before))
    }

    fn begin_again(&self, fs: &dyn Fs, asked: Asked, id: UploadId, at: u64) -> Result<Begun> {
        self.take_over(fs, id);
        let (written, about) = Written::open(fs, self, id, Offset::Cut(at), &[], asked.now)?;
        let slot = written.shown(&mut self.lock(), about.by_path());
        Ok(Begun { slot, terms: asked.terms, at, source: None })
    }

    fn begin_with(&self, fs: &dyn Fs, asked: Asked, source: Source, at: u64) -> Result<Begun> {
        let terms = unchanged(asked.terms, source.stat);
        let claim = Claim::new(fs, self, asked.id, &terms, at)?;
        let slot = Written::new(claim, &[], Stay::No).in_slot();
        Ok(Begun { slot, terms, at, source: Some(source.file) })
    }
}

impl Asked {
    fn begins_empty(&self) -> bool {
        matches!(self.from, Begin::Start | Begin::Offset(0))
    }

    /// Begins with nothing; `before` is there now.
    fn begun_with(&self, claim: Claim, state: &mut State, before: Option<Stat>) -> Begun {
        let slot = if self.keep {
            let created = later(self.now, before);
            let about = About::new(self.terms.to.clone(), None, String::new(), created);
            let by_path = about.by_path();
            Written::new(claim, &[], Stay::Unrecorded(about)).shown(state, by_path)
        } else {
            Written::new(claim, &[], Stay::No).in_slot()
        };
        Begun { slot, terms: self.terms.clone(), at: 0, source: None }
    }
}

/// The terms, if the path still stands for the same file then.
fn unchanged(terms: Terms, file: Stat) -> Terms {
    let is_same = move |now: &Stat| {
        let told = |stat: &Stat| (stat.device, stat.inode, stat.size, stat.changed);
        told(now) == told(&file)
    };
    Terms { condition: terms.condition.and(move |now| now.is_some_and(is_same)), ..terms }
}

/// When an upload is begun that is to replace what is there: to the microsecond, and later than that was
/// changed, whatever the clocks say.
fn later(now: SystemTime, before: Option<Stat>) -> SystemTime {
    let changed = before.map_or(Duration::ZERO, |stat| stat.changed);
    now.max(SystemTime::UNIX_EPOCH + changed + Duration::from_micros(1))
}
