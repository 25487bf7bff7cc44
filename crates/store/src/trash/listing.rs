//! Listing the trash, a page at a time, the newest entries first.
//!
//! It moves nothing. Invariant: an entry whose record was lost is listed too, and can be restored.

use std::time::{Duration, SystemTime};

use plimsoll_io::{FileKind, Fs, Io, Work};
use serde::{Deserialize, Serialize};

use super::index::TrashItem;
use super::{TrashFolder, TrashId, record};
use crate::error::{Error, Result};
use crate::home::LocalHome;
use crate::json::KindJson;
use crate::limits::TRASH_PAGE_MAX;
use crate::path::Path;
use crate::usage::Usage;

/// The state of a home's trash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrashInfo {
    /// Its usage, which is a part of the home's.
    pub usage: Usage,
    /// The time for which entries stay; zero if there is no trash.
    pub time: Duration,
}

/// The part of the trash that is listed.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct TrashPage {
    /// Only entries after this one, in the order of the listing.
    pub after: Option<TrashId>,
    /// The number of entries.
    pub limit: usize,
}

/// An entry of the trash.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrashedEntry {
    /// Its identifier, which has the time of its removal.
    pub id: TrashId,
    /// The path that it had.
    pub path: Path,
    /// Its type; that of a link is [`FileKind::Other`].
    #[serde(with = "KindJson")]
    pub kind: FileKind,
    /// Its usage, with all that is in it.
    pub usage: Usage,
    /// When it is dropped, as time since 1970.
    pub expires: Duration,
}

impl TrashId {
    /// The path of an entry without a record.
    pub(super) fn recovered_path(self) -> Result<Path> {
        Ok(Path::parse(format!("recovered-{self}").as_bytes())?)
    }
}

impl LocalHome {
    /// As [`crate::Home::trash_info`]. Counts the usage if needed.
    pub(crate) async fn trash_info(&self, io: &Io) -> Result<TrashInfo> {
        self.usage(io).await?;
        let usage = self.with_trash(|trash| trash.usage()).unwrap_or_default();
        Ok(TrashInfo { usage, time: self.common().trash_time() })
    }

    /// As [`crate::Home::trash`].
    pub(crate) async fn list_trash(&self, io: &Io, page: TrashPage) -> Result<Vec<TrashedEntry>> {
        self.usage(io).await?;
        let home = self.clone();
        io.offload(Work::Chores, move |fs| home.trash_page(fs, page)).await?
    }

    fn trash_page(&self, fs: &dyn Fs, page: TrashPage) -> Result<Vec<TrashedEntry>> {
        // One more tells a caller whether another page follows.
        let limit = page.limit.min(TRASH_PAGE_MAX + 1);
        let found = self.with_trash(|trash| trash.newest(page.after, limit)).unwrap_or_default();
        let (mut entries, mut folder) = (Vec::with_capacity(found.len()), None::<TrashFolder>);
        for (id, TrashItem { kind, usage, volume }) in found {
            let trash = match folder.take().filter(|folder| folder.volume == volume) {
                Some(trash) => trash,
                None => self.trash_on(fs, volume)?.ok_or(Error::NotFound)?,
            };
            let path = record::read(fs, &trash.folder, id)?.map(|record| record.path);
            let path = path.map_or_else(|| id.recovered_path(), Ok)?;
            let expires = id.removed() + self.common().trash_time();
            let expires = expires.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
            entries.push(TrashedEntry { id, path, kind, usage, expires });
            folder = Some(trash);
        }
        // Without those that were dropped or restored meanwhile.
        entries.retain(|entry| self.with_trash(|trash| trash.get(entry.id).is_some()).unwrap_or_default());
        Ok(entries)
    }
}
