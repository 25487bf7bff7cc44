//! The identifier of an entry of the trash, which is its name there: the time of its removal, and 80 random
//! bits.
//!
//! It is no secret that gives access: an entry is only found in its owner's home. Invariant: identifiers are
//! ordered by time.

use std::fmt;
use std::time::{Duration, SystemTime};

use plimsoll_io::{FileKind, Io};
use serde::{Deserialize, Serialize};

use crate::sweep::tree_name;
use crate::write::UploadId;

/// Identifies an entry of the trash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TrashId(UploadId);

impl TrashId {
    /// Draws an identifier for an entry that is removed now.
    pub(super) fn draw(io: &Io) -> TrashId {
        let since = io.wall().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let millis = u64::try_from(since.as_millis()).unwrap_or(u64::MAX);
        TrashId(UploadId::draw(io).with_start(millis))
    }

    /// Parses the output of [`fmt::Display`], and nothing else.
    pub fn parse(text: &[u8]) -> Option<TrashId> {
        UploadId::parse(text).map(TrashId)
    }

    /// When the entry was removed, to the millisecond.
    pub fn removed(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_millis(self.0.start())
    }

    /// The name of the entry in the trash.
    pub(super) fn entry_name(&self) -> Vec<u8> {
        self.0.data_name()
    }

    /// The name of the entry's record.
    pub(super) fn record_name(&self) -> Vec<u8> {
        self.0.record_name()
    }

    /// The entry's name in the staging folder, after it was dropped: a sweep deletes it there.
    pub(super) fn name_in_staging(&self, kind: FileKind) -> Vec<u8> {
        if kind == FileKind::Folder { tree_name(self.0) } else { self.0.data_name() }
    }
}

impl fmt::Display for TrashId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
