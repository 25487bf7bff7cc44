//! The units of a data folder: each home, and the rest of the folder.
//!
//! Invariant: every entry of a data folder belongs to one unit, unless a restored server has no use for it.

use std::io;

use plimsoll_auth::directory::file_of;
use plimsoll_store::STAGING;

use super::beneath::{Tree, join, names};
use crate::config::Config;

/// The folder of the homes.
const ACCOUNTS: &[u8] = b"accounts";
/// Uploads in progress, in a home. They end with the restore, as with any change of the server.
const PENDING: &[u8] = b"pending";
/// The home's trash, in the same folder.
const TRASH: &[u8] = b"trash";
/// A home's record of its account, before it has its name.
const NEW_OWNER: &[u8] = b"account.new";
/// Entries of the running server: its lock, and uploads that it passes on to a storage server.
const OF_THE_SERVER: [&[u8]; 2] = [b"lock", b"spool"];
/// The ends of the names of files that belong to a directory of accounts in a file.
const OF_THE_DIRECTORY: [&str; 6] = ["", "-wal", "-shm", "-journal", "-revoked", "-probe"];
/// The folder that a file system keeps at its root.
const LOST_AND_FOUND: &[u8] = b"lost+found";

/// A part of the data folder that is copied together.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Unit {
    /// The home of this name.
    Home(Vec<u8>),
    /// All but the homes: removed accounts' files, names, secrets, logs. The last one: a home that is removed
    /// meanwhile moves there.
    Rest,
}

impl Unit {
    /// Returns the unit's folder in the data folder, which is also its name.
    pub(super) fn folder(&self) -> Vec<u8> {
        match self {
            Unit::Rest => Vec::new(),
            Unit::Home(name) => join(ACCOUNTS, name),
        }
    }

    /// Lists the units of the data folder.
    pub(super) fn all(data: &Tree) -> io::Result<Vec<Unit>> {
        let accounts = match data.folder(ACCOUNTS) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(vec![Unit::Rest]),
            opened => opened?,
        };
        let mut units: Vec<Unit> = names(&accounts)?.into_iter().map(Unit::Home).collect();
        units.push(Unit::Rest);
        units.sort();
        Ok(units)
    }
}

/// Whether the entry `path` of a home is of an upload in progress.
fn is_pending(path: &[u8]) -> bool {
    let below = path.strip_prefix(PENDING).and_then(|rest| rest.strip_prefix(b"/"));
    below.is_some_and(|below| below.split(|byte| *byte == b'/').next() != Some(TRASH))
}

/// The entries that are not copied.
pub(super) struct Skipped {
    /// The names of the directory's files, if they are in the data folder.
    directory: Vec<Vec<u8>>,
}

impl Skipped {
    pub(super) fn of(config: &Config) -> Skipped {
        let file = file_of(&config.fixed.directory).filter(|_| config.fixed.has_directory_in_data());
        let name = file.and_then(|file| Some(file.file_name()?.as_encoded_bytes().to_vec()));
        let files = |name: Vec<u8>| OF_THE_DIRECTORY.iter().map(move |end| [&name, end.as_bytes()].concat());
        Skipped { directory: name.map(files).into_iter().flatten().collect() }
    }

    /// Returns whether the entry `path` of a unit is left out.
    pub(super) fn has(&self, unit: &Unit, path: &[u8]) -> bool {
        match unit {
            Unit::Home(_) => {
                is_pending(path)
                    || path == NEW_OWNER
                    || path.rsplit(|byte| *byte == b'/').next() == Some(STAGING)
            }
            Unit::Rest => {
                path == ACCOUNTS
                    || OF_THE_SERVER.contains(&path)
                    || self.directory.iter().any(|name| name == path)
            }
        }
    }

    /// Returns whether the entry is a folder of the file system, which only the superuser can read.
    pub(super) fn is_of_the_file_system(unit: &Unit, path: &[u8]) -> bool {
        match unit {
            Unit::Home(name) => name == LOST_AND_FOUND && path.is_empty(),
            Unit::Rest => path == LOST_AND_FOUND,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_of_the_server_and_of_the_directory_are_left_out_and_nothing_else() {
        let skipped = Skipped::of(&Config::of(&["--data", "/srv/plimsoll"]));
        for name in ["accounts", "lock", "spool", "directory.sqlite", "directory.sqlite-revoked"] {
            assert!(skipped.has(&Unit::Rest, name.as_bytes()), "{name}");
        }
        for name in ["removed", "secret", "directory.name", "homes.settled", "removed/a/pending"] {
            assert!(!skipped.has(&Unit::Rest, name.as_bytes()), "{name}");
        }
        let alice = Unit::Home(b"alice".to_vec());
        for name in
            ["pending/x", "pending/x/trash", "files/.plimsoll-pending", "files/disk/.plimsoll-pending"]
        {
            assert!(skipped.has(&alice, name.as_bytes()), "{name}");
        }
        for name in ["account", "files", "files/pending/x", "files/lock", "files/directory.sqlite"] {
            assert!(!skipped.has(&alice, name.as_bytes()), "{name}");
        }
        for name in ["pending", "pending/trash", "pending/trash/x", "pending/trash/x/y"] {
            assert!(!skipped.has(&alice, name.as_bytes()), "{name}");
        }
        let outside = Config::of(&["--data", "/srv/plimsoll", "--directory", "sqlite:/db/directory.sqlite"]);
        assert!(!Skipped::of(&outside).has(&Unit::Rest, b"directory.sqlite"));
    }
}
