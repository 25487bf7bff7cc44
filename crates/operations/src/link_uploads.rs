//! Uploads in progress by public links for uploads, and the room that each link has left.
//!
//! It stores nothing and counts no completed upload (the directory does). Invariants: an upload begins only
//! if the link, as it is now, has room for it; those in progress never have more bytes than the link had left
//! when the last of them began. Dropping an upload anywhere frees its place.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use plimsoll_auth::{Error as AuthError, Link};
use plimsoll_store::Error as StoreError;

use crate::Operations;
use crate::caller::Caller;
use crate::error::Error;
use crate::limits::UPLOADS_PER_LINK_MAX;

/// The uploads in progress in this process, by the id of their link. Links without any have no entry.
#[derive(Default)]
pub(crate) struct LinkUploads(Mutex<HashMap<String, InProgress>>);

#[derive(Default)]
struct InProgress {
    uploads: usize,
    /// The bytes that they announced or have received.
    bytes: u64,
}

/// The place of an upload among those of its link.
pub(crate) struct LinkUpload {
    operations: Operations,
    link: String,
    /// The bytes that it counts with.
    bytes: u64,
    /// The bytes that the link still had when the upload began.
    room: Option<u64>,
}

impl LinkUploads {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, InProgress>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Operations {
    /// Returns the caller's public link as it is now; `None` if the caller is no visitor of one.
    ///
    /// # Errors
    /// The reason why the link has ended.
    pub async fn present_link(&self, caller: &Caller) -> Result<Option<Link>, Error> {
        if caller.identity.link().is_none() {
            return Ok(None);
        }
        Ok(Some(self.0.auth.present_link(caller.io(), &caller.identity).await?))
    }

    /// Admits an upload of so many bytes, as far as they are known, if the caller is a visitor of a link.
    pub(crate) async fn begin_link_upload(
        &self,
        caller: &Caller,
        bytes: u64,
    ) -> Result<Option<LinkUpload>, Error> {
        let Some(link) = self.present_link(caller).await? else { return Ok(None) };
        let room = link.bytes_max.map(|max| max.saturating_sub(link.bytes));
        if link.is_used_up() || room.is_some_and(|room| bytes > room) {
            return Err(AuthError::LinkUsedUp.into());
        }
        let mut by_link = self.0.link_uploads.lock();
        let entry = by_link.entry(link.id.clone()).or_default();
        let all = entry.bytes.saturating_add(bytes);
        if entry.uploads >= UPLOADS_PER_LINK_MAX || room.is_some_and(|room| all > room) {
            return Err(StoreError::TooManyUploads.into());
        }
        *entry = InProgress { uploads: entry.uploads + 1, bytes: all };
        drop(by_link);
        Ok(Some(LinkUpload { operations: self.clone(), link: link.id, bytes, room }))
    }
}

impl LinkUpload {
    /// Counts `bytes` in all, as an upload of unannounced length grows.
    pub(crate) fn grow(&mut self, bytes: u64) -> Result<(), Error> {
        if bytes <= self.bytes {
            return Ok(());
        }
        if self.room.is_some_and(|room| bytes > room) {
            return Err(AuthError::LinkUsedUp.into());
        }
        let mut by_link = self.operations.0.link_uploads.lock();
        let Some(entry) = by_link.get_mut(&self.link) else { return Ok(()) };
        let all = entry.bytes.saturating_add(bytes - self.bytes);
        if self.room.is_some_and(|room| all > room) {
            return Err(StoreError::TooManyUploads.into());
        }
        (entry.bytes, self.bytes) = (all, bytes);
        Ok(())
    }
}

impl Drop for LinkUpload {
    fn drop(&mut self) {
        let mut by_link = self.operations.0.link_uploads.lock();
        let Some(entry) = by_link.get_mut(&self.link) else { return };
        entry.uploads = entry.uploads.saturating_sub(1);
        entry.bytes = entry.bytes.saturating_sub(self.bytes);
        if entry.uploads == 0 {
            by_link.remove(&self.link);
        }
    }
}
