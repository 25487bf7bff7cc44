//! SHA-256 digests of stored files that were computed already: by an upload, or for an earlier request.
//!
//! A cache in memory, shared by all homes of a store. It reads no file. Invariants: it is bounded; a digest
//! is found only for a file with the identity, size and times of the hashed one, as an ETag promises.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use plimsoll_io::Stat;
use sha2::{Digest as _, Sha256};

use crate::limits::{KNOWN_DIGEST_BYTES_MIN, KNOWN_DIGESTS_MAX, RUNNING_DIGESTS_MAX};
use crate::write::UploadId;

/// Identifies one state of a file: device, inode, size, times of modification and of change.
type FileState = (u64, u64, u64, Duration, Duration);

/// Digests by file state. Clones share the cache.
#[derive(Clone, Default)]
pub(crate) struct KnownDigests(Arc<Mutex<DigestTable>>);

#[derive(Default)]
struct DigestTable {
    digests: HashMap<FileState, [u8; 32]>,
    /// The keys of `digests`, the oldest first.
    order: VecDeque<FileState>,
}

fn state_of(stat: &Stat) -> FileState {
    (stat.device, stat.inode, stat.size, stat.modified, stat.changed)
}

impl KnownDigests {
    /// Returns the digest of the file that `stat` describes, if it is known.
    pub(crate) fn get(&self, stat: &Stat) -> Option<[u8; 32]> {
        self.lock().digests.get(&state_of(stat)).copied()
    }

    /// Remembers the digest of the file that `stat` describes; `stat` must be no newer than the hashed
    /// bytes. Evicts the oldest entry of a full cache. Ignores small files, which are hashed quickly: one
    /// could be written twice within a tick of the file system's clock.
    pub(crate) fn note(&self, stat: &Stat, digest: [u8; 32]) {
        if stat.size < KNOWN_DIGEST_BYTES_MIN {
            return;
        }
        let (state, mut known) = (state_of(stat), self.lock());
        if known.digests.insert(state, digest).is_none() {
            known.order.push_back(state);
        }
        if known.order.len() > KNOWN_DIGESTS_MAX
            && let Some(oldest) = known.order.pop_front()
        {
            known.digests.remove(&oldest);
        }
    }

    fn lock(&self) -> MutexGuard<'_, DigestTable> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A digest of everything that an upload has up to an offset.
#[derive(Clone)]
pub(crate) struct RunningDigest {
    pub(crate) sha256: Sha256,
    pub(crate) at: u64,
}

impl RunningDigest {
    /// The SHA-256 of everything up to `at`, if that is where it ends.
    pub(crate) fn sha256_at(&self, at: u64) -> Option<[u8; 32]> {
        (self.at == at).then(|| self.sha256.clone().finalize().into())
    }
}

/// The running digests of resumable uploads between two of their parts, so that the last part need not read
/// the file again.
#[derive(Default)]
pub(crate) struct RunningDigests(Mutex<VecDeque<(UploadId, RunningDigest)>>);

impl RunningDigests {
    /// Stores the digest of an upload whose part has ended. Evicts the oldest of too many.
    pub(crate) fn put(&self, id: UploadId, digest: RunningDigest) {
        let mut running = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        running.retain(|(other, _)| *other != id);
        if running.len() >= RUNNING_DIGESTS_MAX {
            running.pop_front();
        }
        running.push_back((id, digest));
    }

    /// Removes and returns the digest of an upload, if it ends at the offset `at`.
    pub(crate) fn take(&self, id: UploadId, at: u64) -> Option<RunningDigest> {
        let mut running = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let index = running.iter().position(|(other, _)| *other == id)?;
        running.remove(index).map(|(_, digest)| digest).filter(|digest| digest.at == at)
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_io::FileKind;

    use super::*;

    fn stat(inode: u64, changed: u64) -> Stat {
        let time = Duration::from_nanos(changed);
        let size = KNOWN_DIGEST_BYTES_MIN;
        Stat { kind: FileKind::File, size, device: 1, inode, modified: time, changed: time, links: 1 }
    }

    #[test]
    fn a_digest_is_known_until_the_file_changes() {
        let known = KnownDigests::default();
        known.note(&stat(1, 10), [7; 32]);
        assert_eq!(known.get(&stat(1, 10)), Some([7; 32]));
        assert_eq!(known.get(&stat(1, 11)), None);
        assert_eq!(known.get(&stat(2, 10)), None);
        let small = Stat { size: KNOWN_DIGEST_BYTES_MIN - 1, ..stat(3, 10) };
        known.note(&small, [7; 32]);
        assert_eq!(known.get(&small), None);
    }

    #[test]
    fn the_oldest_digest_is_evicted_from_a_full_cache() {
        let known = KnownDigests::default();
        for inode in 0..=KNOWN_DIGESTS_MAX as u64 {
            known.note(&stat(inode, 10), [1; 32]);
        }
        assert_eq!(known.get(&stat(0, 10)), None);
        assert!(known.get(&stat(1, 10)).is_some());
        assert_eq!(known.lock().digests.len(), KNOWN_DIGESTS_MAX);
    }
}
