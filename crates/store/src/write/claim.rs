//! The claim of an upload on its home: space for its bytes, and the exclusive right to write to it.
//!
//! It is not the final check of the quota, which is the commit's. Invariants: dropping a claim anywhere
//! releases it. Uploads in progress never reserve more space than the quota.

use std::collections::hash_map::Entry;
use std::sync::Weak;

use plimsoll_io::{File, Fs, Stat};

use super::commit::Terms;
use super::id::UploadId;
use super::upload::SharedUpload;
use crate::error::{Error, Result};
use crate::home::{ByPath, LocalHome, State, UploadEntry, weight};
use crate::limits::{BEGUN_BYTES, UPLOADS_PER_HOME_MAX};
use crate::usage::{Quota, Usage};

/// An upload's reservation in its home, while the upload is written to.
pub(crate) struct Claim {
    pub(super) home: LocalHome,
    pub(super) id: UploadId,
    /// The folder in which its files are staged.
    pub(crate) staging: File,
    /// Whether the upload stays when the claim ends.
    kept: bool,
}

/// The size of an upload, as far as it is known when it begins.
#[derive(Clone, Copy)]
pub(super) struct ClaimedSize {
    /// Bytes to reserve.
    reserved: u64,
    /// Bytes that the file will have at least. The quota must allow them.
    least: u64,
}

impl ClaimedSize {
    /// The size of an upload of `bytes`.
    pub(super) fn of(bytes: u64) -> ClaimedSize {
        ClaimedSize { reserved: bytes, least: bytes }
    }

    /// The size of an upload of unknown length that begins with `bytes`.
    pub(super) fn above(bytes: u64) -> ClaimedSize {
        ClaimedSize { reserved: bytes, least: bytes + BEGUN_BYTES }
    }
}

impl Claim {
    /// Reserves space for a new upload, if conditions and quota now allow the upload.
    pub(super) fn new(
        fs: &dyn Fs,
        home: &LocalHome,
        id: UploadId,
        terms: &Terms,
        size: ClaimedSize,
    ) -> Result<Claim> {
        home.clear_abandoned(fs);
        home.open_volume(fs, &terms.to)?;
        Claim::admit(fs, home, &mut home.lock(), id, terms, size).map(|(claim, _)| claim)
    }

    /// As [`Claim::new`], without blocking; also returns the entry now at the path. None if the path is not
    /// cached, if cleanup may be due, or if the upload is refused. The caller then takes the blocking path,
    /// which also reports the error.
    pub(super) fn try_new(
        fs: &dyn Fs,
        home: &LocalHome,
        state: &mut State,
        id: UploadId,
        terms: &Terms,
        size: ClaimedSize,
    ) -> Option<(Claim, Option<Stat>)> {
        if home.has_abandoned() || state.uploads.values().any(|entry| !entry.in_use) {
            return None;
        }
        Claim::admit(fs, home, state, id, terms, size).ok()
    }

    fn admit(
        fs: &dyn Fs,
        home: &LocalHome,
        state: &mut State,
        id: UploadId,
        terms: &Terms,
        size: ClaimedSize,
    ) -> Result<(Claim, Option<Stat>)> {
        let (place, before) = home.replaceable(fs, terms)?;
        let staging = home.staging_for(fs, &place.folder)?;
        let less = before.as_ref().map_or_else(Usage::default, weight);
        // The commit drops entries of the trash, if the quota needs their space.
        let _needed = home.allows(fs, state, terms.quota, less, Usage::file(size.least))?;
        Ok((Claim::reserve(home, state, (id, staging), terms.quota, size.reserved)?, before))
    }

    /// Reserves space for a new entry of `bytes`, of any kind, which is staged in the folder `staging`.
    pub(crate) fn reserve(
        home: &LocalHome,
        state: &mut State,
        (id, staging): (UploadId, File),
        quota: Quota,
        bytes: u64,
    ) -> Result<Claim> {
        if state.uploads.len() >= UPLOADS_PER_HOME_MAX {
            return Err(Error::TooManyUploads);
        }
        has_room(state, quota, bytes)?;
        state.uploads.insert(id, UploadEntry::new(bytes, true));
        Ok(Claim { home: home.clone(), id, staging, kept: false })
    }

    /// Claims a resumable upload.
    pub(super) fn resume(home: &LocalHome, id: UploadId) -> Result<Claim> {
        match home.lock().uploads.get_mut(&id) {
            None => Err(Error::NotFound),
            Some(entry) if entry.in_use => Err(Error::InUse),
            Some(entry) => {
                entry.in_use = true;
                Ok(Claim { home: home.clone(), id, staging: home.staging_of(id), kept: true })
            }
        }
    }

    /// Makes the upload stay when the claim ends.
    pub(super) fn keep(&mut self) {
        self.kept = true;
    }

    /// Makes the upload go when the claim ends.
    pub(super) fn forget(&mut self) {
        self.kept = false;
    }

    /// Registers the upload, so that another connection can take it over, and the path that identifies it.
    pub(super) fn register(&self, state: &mut State, shared: Weak<SharedUpload>, by_path: Option<ByPath>) {
        if let Some(entry) = state.uploads.get_mut(&self.id) {
            (entry.shared, entry.by_path) = (shared, by_path);
        }
    }

    /// Releases the reserved space beyond `bytes`.
    pub(super) fn cut(&self, bytes: u64) {
        if let Some(entry) = self.home.lock().uploads.get_mut(&self.id) {
            entry.bytes = entry.bytes.min(bytes);
        }
    }

    /// The reserved bytes.
    pub(super) fn reserved(&self) -> u64 {
        self.home.lock().uploads.get(&self.id).map_or(0, |entry| entry.bytes)
    }

    /// Reserves `bytes` in all, as an upload of unannounced length grows.
    pub(crate) fn grow(&self, quota: Quota, bytes: u64) -> Result<()> {
        let mut state = self.home.lock();
        let Some(before) = state.uploads.get(&self.id).map(|entry| entry.bytes) else { return Ok(()) };
        if bytes <= before {
            return Ok(());
        }
        has_room(&state, quota, bytes - before)?;
        if let Entry::Occupied(mut entry) = state.uploads.entry(self.id) {
            entry.get_mut().bytes = bytes;
        }
        Ok(())
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        let mut state = self.home.lock();
        if !self.kept {
            state.uploads.remove(&self.id);
        } else if let Some(entry) = state.uploads.get_mut(&self.id) {
            entry.in_use = false;
        }
    }
}

/// Checks whether uploads may reserve `more` bytes. They may reserve as much as the quota, in addition to
/// the home's files: a file that is replaced needs space for both versions.
fn has_room(state: &State, quota: Quota, more: u64) -> Result<()> {
    let Some(most) = quota.bytes else { return Ok(()) };
    let taken = state.uploads.values().map(|entry| entry.bytes).fold(0, u64::saturating_add);
    if taken.saturating_add(more) <= most { Ok(()) } else { Err(Error::Quota) }
}
