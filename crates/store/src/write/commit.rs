//! The commit: an upload's file becomes what its path stands for.
//!
//! Not here: how its bytes came. What must hold: condition, quota and rename are one step for everybody else;
//! before it the file is synced, after it the folder, and only then is it confirmed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use plimsoll_io::{Existing, File, FileKind, Fs, Stat};
use serde::{Deserialize, Serialize};

use super::id::UploadId;
use crate::apart::SaidStat;
use crate::condition::Condition;
use crate::error::{Error, Result};
use crate::home::{Home, Place, State, weight};
use crate::limits::FREED_LATER_BYTES;
use crate::path::Path;
use crate::usage::{Quota, Usage};

/// Where an upload goes, and under which terms.
#[derive(Clone)]
pub struct Terms {
    /// The path that it gets.
    pub to: Path,
    /// What must be true of what is there.
    pub condition: Condition,
    /// What the home may hold.
    pub quota: Quota,
}

/// What became of an upload.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Committed {
    /// Whether nothing had the name before.
    pub created: bool,
    /// The file as it is now.
    #[serde(with = "SaidStat")]
    pub stat: Stat,
}

/// By which an upload that is being put in its place is taken back. Clones are the same.
#[derive(Clone, Default)]
pub struct TakeBack(Arc<AtomicBool>);

/// Says, with the home locked and right before an upload gets its name, whether the right to that still
/// holds. It must not block. Clones are the same.
#[derive(Clone)]
pub struct CommitGuard(Arc<dyn Fn() -> bool + Send + Sync>);

impl CommitGuard {
    /// A guard that asks `holds`.
    pub fn new(holds: impl Fn() -> bool + Send + Sync + 'static) -> CommitGuard {
        CommitGuard(Arc::new(holds))
    }

    pub(crate) fn holds(&self) -> bool {
        (self.0)()
    }
}

/// An upload whose bytes are all there.
pub(crate) struct Whole<'a> {
    pub(crate) id: UploadId,
    pub(crate) file: &'a File,
    pub(crate) bytes: u64,
    /// Whether the file has been synced since its last byte.
    pub(crate) is_synced: bool,
    /// The time of modification that it gets, since 1970, if that is not when it was written.
    pub(crate) modified: Option<Duration>,
    /// Looked at last, as is the guard.
    pub(crate) take_back: Option<&'a TakeBack>,
    pub(crate) guard: Option<&'a CommitGuard>,
}

impl TakeBack {
    /// Takes the upload back, if it is not too late: what its commit comes to tells.
    pub fn take(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// Whether it was taken back.
    pub(crate) fn is_taken(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

impl Terms {
    /// Puts it at `to`, whatever is there.
    pub fn any(to: Path, quota: Quota) -> Terms {
        Terms { to, condition: Condition::none(), quota }
    }
}

impl Home {
    /// Puts an upload in its place. `None` if its guard refuses: then the file is synced, and nothing else
    /// has changed.
    pub(crate) fn commit(&self, fs: &dyn Fs, whole: &Whole<'_>, terms: &Terms) -> Result<Option<Committed>> {
        if let Some(modified) = whole.modified {
            fs.set_modified(whole.file, modified)?;
        }
        if !whole.is_synced || whole.modified.is_some() {
            self.sync(fs, &[whole.file])?;
        }
        let Some((folder, committed)) = self.put_in_place(fs, &self.change(), whole, terms)? else {
            return Ok(None);
        };
        self.sync(fs, &[&folder])?;
        Ok(Some(committed))
    }

    /// With the state locked.
    fn put_in_place(
        &self,
        fs: &dyn Fs,
        state: &State,
        whole: &Whole<'_>,
        terms: &Terms,
    ) -> Result<Option<(File, Committed)>> {
        let (place, before) = self.replaceable(fs, terms)?;
        let less = before.as_ref().map_or_else(Usage::default, weight);
        let more = Usage::file(whole.bytes);
        self.allows(fs, state, terms.quota, less, more)?;
        let Place { folder, name } = place;
        if whole.take_back.is_some_and(TakeBack::is_taken) {
            return Err(Error::TakenBack);
        }
        if !whole.guard.is_none_or(CommitGuard::holds) {
            return Ok(None);
        }
        if before.as_ref().is_some_and(|stat| stat.kind == FileKind::File && stat.size >= FREED_LATER_BYTES) {
            fs.free_later(&folder, name);
        }
        fs.rename(self.pending(), &whole.id.data_name(), &folder, name, Existing::Replaced)?;
        self.replaces(state, less, more);
        Ok(Some((folder, Committed { created: before.is_none(), stat: fs.stat(whole.file)? })))
    }

    /// Where an upload would go, and what is there now, if that may be replaced.
    pub(super) fn replaceable<'a>(&self, fs: &dyn Fs, terms: &'a Terms) -> Result<(Place<'a>, Option<Stat>)> {
        let place = self.place(fs, &terms.to)?;
        let before = place.stat(fs)?;
        if before.is_some_and(|stat| stat.kind == FileKind::Folder) {
            return Err(Error::IsFolder);
        }
        // A condition is about what readers see: behind a link, that is another file.
        let seen = match before {
            Some(stat) if stat.kind == FileKind::Other => self.seen(fs, &terms.to)?,
            other => other,
        };
        if terms.condition.holds(seen.as_ref()) { Ok((place, before)) } else { Err(Error::Precondition) }
    }
}
