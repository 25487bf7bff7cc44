//! The entries of a home's trash, in memory.
//!
//! With it, a check of the quota needs no disk, and the oldest entry is found at once. Invariant: the sum is
//! that of the usage of the entries.

use std::collections::BTreeMap;

use plimsoll_io::{FileKind, Volume};

use super::TrashId;
use crate::usage::Usage;

/// An entry of the trash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TrashItem {
    /// Its type; that of a link is [`FileKind::Other`].
    pub(super) kind: FileKind,
    /// Its usage, with all that is in it.
    pub(super) usage: Usage,
    /// The file system that it is on.
    pub(super) volume: Volume,
}

/// The entries of a home's trash that no operation is moving. They may be dropped to make room.
#[derive(Debug, Default)]
pub(crate) struct TrashIndex {
    items: BTreeMap<TrashId, TrashItem>,
    usage: Usage,
}

impl TrashIndex {
    /// The usage of all entries.
    pub(crate) fn usage(&self) -> Usage {
        self.usage
    }

    /// The bytes of the entries on a volume.
    pub(super) fn bytes_on(&self, volume: Volume) -> u64 {
        let there = self.items.values().filter(|item| item.volume == volume);
        there.map(|item| item.usage.bytes).fold(0, u64::saturating_add)
    }

    pub(super) fn len(&self) -> usize {
        self.items.len()
    }

    pub(super) fn get(&self, id: TrashId) -> Option<TrashItem> {
        self.items.get(&id).copied()
    }

    /// Adds an entry, or replaces what is known of it.
    pub(super) fn insert(&mut self, id: TrashId, item: TrashItem) {
        self.take(id);
        self.usage = self.usage.plus(item.usage);
        self.items.insert(id, item);
    }

    pub(super) fn take(&mut self, id: TrashId) -> Option<TrashItem> {
        let item = self.items.remove(&id)?;
        self.usage = self.usage.minus(item.usage);
        Some(item)
    }

    /// Takes the oldest entry that `is_wanted`.
    pub(super) fn take_oldest(
        &mut self,
        is_wanted: impl Fn(TrashId, &TrashItem) -> bool,
    ) -> Option<(TrashId, TrashItem)> {
        let id = self.items.iter().find(|(id, item)| is_wanted(**id, item)).map(|(id, _)| *id)?;
        Some((id, self.take(id)?))
    }

    /// Returns the newest entries, those after `after` in this order, and at most `limit`.
    pub(super) fn newest(&self, after: Option<TrashId>, limit: usize) -> Vec<(TrashId, TrashItem)> {
        let older = self.items.iter().rev().filter(|(id, _)| after.is_none_or(|after| **id < after));
        older.take(limit).map(|(id, item)| (*id, *item)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: u8) -> TrashId {
        TrashId::parse(format!("{number:032x}").as_bytes()).unwrap()
    }

    fn item(bytes: u64) -> TrashItem {
        let volume = Volume { device: 1, mount: 0 };
        TrashItem { kind: FileKind::File, usage: Usage::file(bytes), volume }
    }

    #[test]
    fn the_sum_follows_the_entries_and_the_oldest_wanted_entry_is_taken() {
        let mut index = TrashIndex::default();
        for (number, bytes) in [(3, 30), (1, 10), (2, 20), (2, 25)] {
            index.insert(id(number), item(bytes));
        }
        assert_eq!((index.len(), index.usage().bytes, index.usage().files), (3, 65, 3));
        let newest: Vec<TrashId> = index.newest(Some(id(3)), 1).into_iter().map(|(id, _)| id).collect();
        assert_eq!(newest, [id(2)]);
        let (oldest, taken) = index.take_oldest(|_, item| item.usage.bytes > 10).unwrap();
        assert_eq!((oldest, taken.usage.bytes, index.usage().bytes), (id(2), 25, 40));
        assert!(index.take(id(2)).is_none() && index.get(id(1)).is_some());
    }
}
