//! The commit: an upload's file is renamed to its path.
//!
//! Receiving the bytes is not here. Invariants: the checks of condition and quota, and the rename, are one
//! atomic step under the home's lock. The file is synced before it, the folder after it, and only then is
//! the upload confirmed.

use std::io::ErrorKind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use plimsoll_io::{EndProbe, Existing, File, FileKind, Fs, Stat};
use serde::{Deserialize, Serialize};

use super::digest::Algorithm;
use super::id::UploadId;
use super::parts::JoinedParts;
use crate::condition::Condition;
use crate::error::{Error, Result};
use crate::home::{LocalHome, ParentFolder, State, weight};
use crate::json::StatFields;
use crate::limits::FREED_LATER_BYTES;
use crate::path::{Path, is_name};
use crate::trash::DiskNeed;
use crate::usage::{Quota, Usage};

/// The path of an upload, and the terms of its commit.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Terms {
    /// The path that it gets.
    pub to: Path,
    /// The condition on the entry that the path has before.
    pub condition: Condition,
    /// The home's quota.
    pub quota: Quota,
}

/// The result of a commit.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Committed {
    /// Whether the path had no entry before.
    pub created: bool,
    /// Whether it has the name of [`crate::Upload::set_spare_name`], because its own was taken.
    #[serde(default)]
    pub has_spare_name: bool,
    /// The metadata of the committed file.
    #[serde(with = "StatFields")]
    pub stat: Stat,
}

/// A handle that cancels an upload during its commit. Clones share the state.
#[derive(Clone, Default)]
pub struct CancelHandle {
    is_cancelled: Arc<AtomicBool>,
    /// The connection whose end cancels the upload, too. The step that renames looks at it, because its
    /// thread may be the one that would call [`CancelHandle::cancel`].
    client: Option<EndProbe>,
}

/// Checks, with the home locked and right before an upload gets its name, whether the permission for it
/// still holds. It must not block. Clones share the check.
#[derive(Clone)]
pub struct CommitGuard(Arc<dyn Fn() -> bool + Send + Sync>);

impl CommitGuard {
    /// Creates a guard from the check `holds`.
    pub fn new(holds: impl Fn() -> bool + Send + Sync + 'static) -> CommitGuard {
        CommitGuard(Arc::new(holds))
    }

    pub(crate) fn holds(&self) -> bool {
        (self.0)()
    }
}

/// A request to commit an upload.
#[derive(Clone)]
pub(crate) struct CommitRequest {
    pub(crate) terms: Terms,
    /// The expected digests of the whole file.
    pub(crate) digests: Vec<(Algorithm, Vec<u8>)>,
    /// The modification time that the file gets, since 1970; none leaves that of its last write.
    pub(crate) modified: Option<Duration>,
    /// As [`crate::Upload::set_spare_name`].
    pub(crate) spare_name: Option<Vec<u8>>,
    /// Checked last, as is the guard.
    pub(crate) cancel: Option<CancelHandle>,
    pub(crate) guard: Option<CommitGuard>,
    /// The partial uploads that the file is joined from: they end with the commit.
    pub(crate) parts: Option<JoinedParts>,
}

/// A staging file with all bytes of its upload, synced.
pub(crate) struct StagedFile<'a> {
    pub(crate) id: UploadId,
    /// The folder that it is in.
    pub(crate) staging: &'a File,
    pub(crate) file: &'a File,
    pub(crate) bytes: u64,
}

impl CancelHandle {
    /// Creates a handle. With a `client`, the end of that connection cancels the upload, too.
    pub(crate) fn new(client: Option<EndProbe>) -> CancelHandle {
        CancelHandle { client, ..CancelHandle::default() }
    }

    /// Cancels the upload, if it is not too late: the result of its commit tells which.
    pub fn cancel(&self) {
        self.is_cancelled.store(true, Ordering::Release);
    }

    /// Whether the upload was cancelled, or its client has gone.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.is_cancelled.load(Ordering::Acquire) || self.client.as_ref().is_some_and(EndProbe::has_ended)
    }
}

impl Terms {
    /// Returns terms without a condition: the upload replaces any file at `to`.
    pub fn any(to: Path, quota: Quota) -> Terms {
        Terms { to, condition: Condition::none(), quota }
    }
}

impl LocalHome {
    /// Commits an upload. `None` if its guard refuses: nothing has changed then.
    pub(crate) fn commit(
        &self,
        fs: &dyn Fs,
        staged: &StagedFile<'_>,
        request: &CommitRequest,
    ) -> Result<Option<Committed>> {
        let need = DiskNeed::small(staged.staging, request.terms.quota.keeps_trash);
        let placed =
            self.with_disk_room(fs, need, || self.put_in_place(fs, &self.change(), staged, request))?;
        let Some((folder, committed)) = placed else { return Ok(None) };
        self.sync(fs, &[&folder])?;
        Ok(Some(committed))
    }

    /// Makes the final checks and renames the file. Call it with the state locked.
    fn put_in_place(
        &self,
        fs: &dyn Fs,
        state: &State,
        staged: &StagedFile<'_>,
        request: &CommitRequest,
    ) -> Result<Option<(File, Committed)>> {
        let (place, before) = self.named_place(fs, request)?;
        let has_spare_name = request.spare_name.as_deref() == Some(place.name);
        let less = before.as_ref().map_or_else(Usage::default, weight);
        let more = Usage::file(staged.bytes);
        let needed = self.allows(fs, state, request.terms.quota, less, more)?;
        let ParentFolder { folder, name } = place;
        if request.cancel.as_ref().is_some_and(CancelHandle::is_cancelled) {
            return Err(Error::Cancelled);
        }
        if !request.guard.as_ref().is_none_or(CommitGuard::holds) {
            return Ok(None);
        }
        if before.as_ref().is_some_and(|stat| stat.kind == FileKind::File && stat.size >= FREED_LATER_BYTES) {
            fs.free_later(&folder, name);
        }
        // Another program may have created the entry since it was looked up.
        let only_new = request.terms.condition.text().only_new && before.is_none();
        let existing = if only_new { Existing::Kept } else { Existing::Replaced };
        match fs.rename(staged.staging, &staged.id.data_name(), &folder, name, existing) {
            Err(error) if only_new && error.kind() == ErrorKind::AlreadyExists => {
                return Err(Error::Precondition);
            }
            renamed => renamed?,
        }
        self.replaces(fs, state, needed, less, more);
        Ok(Some((
            folder,
            Committed { created: before.is_none(), has_spare_name, stat: fs.stat(staged.file)? },
        )))
    }

    /// As [`LocalHome::replaceable`]; with the spare name, if another entry has the name of the path.
    fn named_place<'a>(
        &self,
        fs: &dyn Fs,
        request: &'a CommitRequest,
    ) -> Result<(ParentFolder<'a>, Option<Stat>)> {
        let found = self.replaceable(fs, &request.terms);
        let (Err(Error::Precondition | Error::IsFolder), Some(name)) = (&found, &request.spare_name) else {
            return found;
        };
        // It must not lead out of the folder, which must be a part of what is shared.
        if !is_name(name) || name.is_empty() || name.contains(&b'/') || request.terms.to.is_top() {
            return found;
        }
        let place = ParentFolder { folder: self.place(fs, &request.terms.to)?.folder, name };
        place.check_new(None)?;
        if place.stat(fs)?.is_some() { found } else { Ok((place, None)) }
    }

    /// Returns the place of an upload and the entry now there, if that may be replaced.
    pub(super) fn replaceable<'a>(
        &self,
        fs: &dyn Fs,
        terms: &'a Terms,
    ) -> Result<(ParentFolder<'a>, Option<Stat>)> {
        let place = self.place(fs, &terms.to)?;
        let before = place.stat(fs)?;
        place.check_new(before.as_ref())?;
        if before.is_some_and(|stat| stat.kind == FileKind::Folder) {
            return Err(Error::IsFolder);
        }
        // Also a symbolic link that leads nowhere, or out of what the reader may see.
        if !terms.condition.permits_entry(before.as_ref()) {
            return Err(Error::Precondition);
        }
        // A condition is about the file that readers see: behind a link, that is another one.
        let seen = match before {
            Some(stat) if stat.kind == FileKind::Other => self.metadata_at(fs, &terms.to)?,
            other => other,
        };
        if terms.condition.holds(seen.as_ref()) { Ok((place, before)) } else { Err(Error::Precondition) }
    }
}
