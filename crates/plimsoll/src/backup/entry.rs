//! One entry of a backup: a file, a folder or a symbolic link, as a line of JSON.
//!
//! It reads no contents. Invariant: a written entry is read back, with any bytes in its name.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use plimsoll_wire::hex;
use serde::{Deserialize, Serialize};

/// The coarsest clock of a kernel's file times: two changes within it can have one time.
pub(super) const FILE_TIME_TICK: Duration = Duration::from_millis(20);

/// A path or the target of a link: text where it is UTF-8, else hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "WrittenPath", into = "WrittenPath")]
pub(super) struct EntryPath(pub(super) Vec<u8>);

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum WrittenPath {
    Text(String),
    Hex { hex: String },
}

impl From<EntryPath> for WrittenPath {
    fn from(EntryPath(bytes): EntryPath) -> WrittenPath {
        String::from_utf8(bytes)
            .map_or_else(|other| WrittenPath::Hex { hex: hex::encode(other.as_bytes()) }, WrittenPath::Text)
    }
}

impl TryFrom<WrittenPath> for EntryPath {
    type Error = &'static str;

    fn try_from(written: WrittenPath) -> Result<EntryPath, &'static str> {
        match written {
            WrittenPath::Text(text) => Ok(EntryPath(text.into_bytes())),
            WrittenPath::Hex { hex } => {
                hex::decode(hex.as_bytes()).map(EntryPath).ok_or("no hexadecimal path")
            }
        }
    }
}

/// An entry of a backup.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Entry {
    pub(super) path: EntryPath,
    #[serde(flatten)]
    pub(super) kind: EntryKind,
    /// The bits of its mode.
    pub(super) mode: u32,
    /// When it was modified: seconds since 1970, and nanoseconds.
    pub(super) modified: (i64, i64),
    /// The version that was copied, while the backup is being made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) version: Option<Version>,
    /// Whether the last pass did not find it. It was removed, or moved while the pass ran.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) missed: bool,
}

/// The kind of an entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(super) enum EntryKind {
    /// A regular file.
    File {
        size: u64,
        /// The BLAKE3 digest of its bytes; none until they are read.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        digest: Option<String>,
    },
    Folder,
    /// A symbolic link.
    Link {
        target: EntryPath,
    },
}

/// An entry of the data folder at one moment. Any change of it, also of its name, gives another version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Version {
    pub(super) device: u64,
    pub(super) inode: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Version {
    /// Returns the version of an entry that looks like `found`. Returns `None` if the entry changed so
    /// recently that another change could have the same time.
    pub(super) fn of(found: &Metadata) -> Option<Version> {
        let changed = UNIX_EPOCH + Duration::from_secs(found.ctime().unsigned_abs());
        let changed = changed + Duration::from_nanos(found.ctime_nsec().unsigned_abs());
        let now = SystemTime::now();
        let age = now.duration_since(changed).or_else(|_| changed.duration_since(now)).unwrap_or_default();
        (age >= FILE_TIME_TICK).then(|| Version {
            device: found.dev(),
            inode: found.ino(),
            modified: (found.mtime(), found.mtime_nsec()),
            changed: (found.ctime(), found.ctime_nsec()),
        })
    }
}

impl Entry {
    pub(super) fn new(path: Vec<u8>, kind: EntryKind, found: &Metadata, version: Option<Version>) -> Entry {
        Entry {
            path: EntryPath(path),
            kind,
            mode: found.mode() & 0o777,
            modified: (found.mtime(), found.mtime_nsec()),
            version,
            missed: false,
        }
    }

    /// Returns the size of a file; other entries have none.
    pub(super) fn size(&self) -> Option<u64> {
        match self.kind {
            EntryKind::File { size, .. } => Some(size),
            EntryKind::Folder | EntryKind::Link { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_read_back_whatever_its_name() {
        let place = tempfile::tempdir().unwrap();
        let found = place.path().metadata().unwrap();
        let target = EntryPath(b"../x".to_vec());
        let file = EntryKind::File { size: u64::MAX, digest: Some("ab".to_owned()) };
        for kind in [EntryKind::Folder, EntryKind::Link { target }, file] {
            for name in [&b"plain"[..], b"", b"two\nlines\t\"", b"caf\xe9", "日本".as_bytes()] {
                let entry = Entry::new(name.to_vec(), kind.clone(), &found, None);
                let line = serde_json::to_string(&entry).unwrap();
                assert!(!line.contains('\n'), "{line}");
                assert_eq!(serde_json::from_str::<Entry>(&line).unwrap(), entry, "{line}");
            }
        }
    }

    #[test]
    fn a_change_within_one_tick_of_the_clock_has_no_version_yet() {
        let place = tempfile::tempdir().unwrap();
        std::fs::write(place.path().join("file"), "").unwrap();
        let version = || Version::of(&place.path().join("file").metadata().unwrap());
        assert_eq!(version(), None);
        std::thread::sleep(2 * FILE_TIME_TICK);
        assert!(version().is_some() && version() == version());
    }
}
