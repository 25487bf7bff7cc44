//! The claim of an upload on its home: room for its bytes, and that nobody else writes to it.
//!
//! It is not the quota's last word, which is the commit's. What must hold: a claim that is dropped, wherever
//! that happens, is given back; uploads under way never take more room than the quota has.

use std::collections::hash_map::Entry;
use std::sync::{Mutex, Weak};

use plimsoll_io::{Fs, Stat};

use super::commit::Terms;
use super::id::UploadId;
use super::written::Written;
use crate::error::{Error, Result};
use crate::home::{ByPath, Home, State, Upcoming, weight};
use crate::limits::UPLOADS_PER_HOME_MAX;
use crate::usage::{Quota, Usage};

/// An upload's place among those of its home, while it is written to.
pub(crate) struct Claim {
    pub(super) home: Home,
    pub(super) id: UploadId,
    /// Whether the upload stays when the claim ends.
    kept: bool,
}

impl Claim {
    /// Claims room for a new upload of `bytes`, if it would be let in as things stand.
    pub(super) fn new(fs: &dyn Fs, home: &Home, id: UploadId, terms: &Terms, bytes: u64) -> Result<Claim> {
        home.clear_abandoned(fs);
        Claim::let_in(fs, home, &mut home.lock(), id, terms, bytes).map(|(claim, _)| claim)
    }

    /// As [`Claim::new`], with what is there now, if nothing is to be waited for: what the path stands for is
    /// known, and nothing is to be cleared away first. Else nothing, and whoever asks goes the long way, also
    /// to be told why not.
    pub(super) fn at_hand(
        fs: &dyn Fs,
        home: &Home,
        state: &mut State,
        id: UploadId,
        terms: &Terms,
        bytes: u64,
    ) -> Option<(Claim, Option<Stat>)> {
        if home.has_abandoned() || state.uploads.values().any(|upcoming| !upcoming.in_use) {
            return None;
        }
        Claim::let_in(fs, home, state, id, terms, bytes).ok()
    }

    fn let_in(
        fs: &dyn Fs,
        home: &Home,
        state: &mut State,
        id: UploadId,
        terms: &Terms,
        bytes: u64,
    ) -> Result<(Claim, Option<Stat>)> {
        let (_, before) = home.replaceable(fs, terms)?;
        let less = before.as_ref().map_or_else(Usage::default, weight);
        home.allows(fs, state, terms.quota, less, Usage::file(bytes))?;
        Ok((Claim::room(home, state, id, terms.quota, bytes)?, before))
    }

    /// Claims room for something new of `bytes`, whatever it is.
    pub(crate) fn room(
        home: &Home,
        state: &mut State,
        id: UploadId,
        quota: Quota,
        bytes: u64,
    ) -> Result<Claim> {
        if state.uploads.len() >= UPLOADS_PER_HOME_MAX {
            return Err(Error::TooManyUploads);
        }
        has_room(state, quota, bytes)?;
        state.uploads.insert(id, Upcoming::new(bytes, true));
        Ok(Claim { home: home.clone(), id, kept: false })
    }

    /// Claims an upload that was kept.
    pub(super) fn again(home: &Home, id: UploadId) -> Result<Claim> {
        match home.lock().uploads.get_mut(&id) {
            None => Err(Error::NotFound),
            Some(upcoming) if upcoming.in_use => Err(Error::InUse),
            Some(upcoming) => {
                upcoming.in_use = true;
                Ok(Claim { home: home.clone(), id, kept: true })
            }
        }
    }

    /// The upload stays when the claim ends.
    pub(super) fn keep(&mut self) {
        self.kept = true;
    }

    /// The upload does not stay.
    pub(super) fn forget(&mut self) {
        self.kept = false;
    }

    /// The upload is found by its path, and the file that is written to by `slot`.
    pub(super) fn show(
        &self,
        state: &mut State,
        slot: Weak<Mutex<Option<Written>>>,
        by_path: Option<ByPath>,
    ) {
        if let Some(upcoming) = state.uploads.get_mut(&self.id) {
            (upcoming.slot, upcoming.by_path) = (slot, by_path);
        }
    }

    /// Gives back the room beyond `bytes`.
    pub(super) fn cut(&self, bytes: u64) {
        if let Some(upcoming) = self.home.lock().uploads.get_mut(&self.id) {
            upcoming.bytes = upcoming.bytes.min(bytes);
        }
    }

    /// Makes room for `bytes` in all, as an upload grows that nobody announced the length of.
    pub(super) fn grow(&self, quota: Quota, bytes: u64) -> Result<()> {
        let mut state = self.home.lock();
        let Some(before) = state.uploads.get(&self.id).map(|upcoming| upcoming.bytes) else { return Ok(()) };
        if bytes <= before {
            return Ok(());
        }
        has_room(&state, quota, bytes - before)?;
        if let Entry::Occupied(mut upcoming) = state.uploads.entry(self.id) {
            upcoming.get_mut().bytes = bytes;
        }
        Ok(())
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        let mut state = self.home.lock();
        if !self.kept {
            state.uploads.remove(&self.id);
        } else if let Some(upcoming) = state.uploads.get_mut(&self.id) {
            upcoming.in_use = false;
        }
    }
}

/// Whether uploads may take `more` bytes than they do. They may take as much as the quota has, beside what is
/// in the home: a file that is replaced needs room for both.
fn has_room(state: &State, quota: Quota, more: u64) -> Result<()> {
    let Some(most) = quota.bytes else { return Ok(()) };
    let taken = state.uploads.values().map(|upcoming| upcoming.bytes).fold(0, u64::saturating_add);
    if taken.saturating_add(more) <= most { Ok(()) } else { Err(Error::Quota) }
}
