//! The state folder: small JSON files that only their user can read.
//!
//! It does not know their contents. Invariants: a file is written completely or not at all. A file that
//! others can read or change is refused, with the command that fixes it.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use plimsoll_wire::hex;
use serde::Serialize;
use serde::de::DeserializeOwned;
use sha2::{Digest as _, Sha256};

use crate::limits::STATE_BYTES_MAX;

/// The store of one kind of values: a subfolder of the state folder.
pub(crate) struct StateFolder {
    folder: PathBuf,
}

impl StateFolder {
    /// Returns the store of a kind: below `$XDG_STATE_HOME/plimsoll`, else `~/.local/state/plimsoll`.
    pub(crate) fn of(kind: &str) -> anyhow::Result<StateFolder> {
        let set = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let base = set("XDG_STATE_HOME").or_else(|| Some(set("HOME")?.join(".local/state")));
        let base =
            base.context("There is no place for what is to be remembered. Set HOME or XDG_STATE_HOME.")?;
        Ok(StateFolder { folder: base.join("plimsoll").join(kind) })
    }

    /// Reads the value of `key`.
    pub(crate) fn load<T: DeserializeOwned>(&self, key: &str) -> anyhow::Result<Option<T>> {
        read(&self.path(key))
    }

    /// Reads all values of this kind.
    pub(crate) fn all<T: DeserializeOwned>(&self) -> anyhow::Result<Vec<T>> {
        let entries = match fs::read_dir(&self.folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => {
                return Err(error).with_context(|| format!("cannot read {}", self.folder.display()));
            }
        };
        let mut all = Vec::new();
        for entry in entries {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == "json") {
                all.extend(read(&path)?);
            }
        }
        Ok(all)
    }

    /// Stores a value under `key`.
    pub(crate) fn save(&self, key: &str, value: &impl Serialize) -> anyhow::Result<()> {
        let path = self.path(key);
        self.write(&path, &serde_json::to_vec(value)?)
            .with_context(|| format!("cannot write {}", path.display()))
    }

    fn write(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        DirBuilder::new().recursive(true).mode(0o700).create(&self.folder)?;
        let new = path.with_extension(format!("{}.new", std::process::id()));
        let written =
            OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new).and_then(|mut file| {
                file.write_all(bytes)?;
                file.sync_all()?;
                fs::rename(&new, path)
            });
        written.inspect_err(|_| {
            // Removes a partly written file.
            let _ = fs::remove_file(&new);
        })
    }

    /// Removes the value of `key`, if there is one.
    pub(crate) fn forget(&self, key: &str) -> anyhow::Result<()> {
        let path = self.path(key);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(error).with_context(|| format!("cannot remove {}", path.display()))
            }
            _ => Ok(()),
        }
    }

    /// Returns the path of the value of `key`.
    pub(crate) fn path(&self, key: &str) -> PathBuf {
        self.folder.join(format!("{key}.json"))
    }
}

/// Returns a key for a list of parts.
pub(crate) fn key(parts: &[&[u8]]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        // The length is hashed first, so that no two lists of parts hash the same bytes.
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    hex::encode(&hash.finalize()[..16])
}

fn read<T: DeserializeOwned>(path: &Path) -> anyhow::Result<Option<T>> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error).with_context(|| format!("cannot read {}", path.display())),
    };
    check_private(&file, path)?;
    let mut bytes = Vec::new();
    file.take(STATE_BYTES_MAX).read_to_end(&mut bytes)?;
    let value = serde_json::from_slice(&bytes);
    value.map(Some).with_context(|| format!("{} is damaged. Remove it and log in again.", path.display()))
}

fn check_private(file: &File, path: &Path) -> anyhow::Result<()> {
    let metadata = file.metadata()?;
    let shown = path.display();
    if metadata.mode() & 0o077 != 0 {
        bail!("Others can read {shown}, which is yours alone. Make it so: chmod 600 '{shown}'");
    }
    if metadata.uid() != rustix::process::geteuid().as_raw() {
        bail!("{shown} belongs to another user of this machine. Use your own: set XDG_STATE_HOME.");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn state(folder: &tempfile::TempDir) -> StateFolder {
        StateFolder { folder: folder.path().join("plimsoll/things") }
    }

    #[test]
    fn saved_state_is_read_again_and_only_by_its_owner() {
        let folder = tempfile::tempdir().unwrap();
        let state = state(&folder);
        assert_eq!(state.load::<u64>("one").unwrap(), None);
        state.save("one", &1).unwrap();
        state.save("one", &2).unwrap();
        state.save("two", &3).unwrap();
        assert_eq!(state.load::<u64>("one").unwrap(), Some(2));
        let mut all = state.all::<u64>().unwrap();
        all.sort_unstable();
        assert_eq!(all, [2, 3]);
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&state.folder), mode(&state.path("one"))), (0o700, 0o600));
        state.forget("one").unwrap();
        state.forget("one").unwrap();
        assert_eq!(state.load::<u64>("one").unwrap(), None);
    }

    #[test]
    fn state_that_others_can_read_is_refused_with_the_command_that_fixes_it() {
        let folder = tempfile::tempdir().unwrap();
        let state = state(&folder);
        state.save("one", &1).unwrap();
        for mode in [0o640, 0o604, 0o602] {
            fs::set_permissions(state.path("one"), fs::Permissions::from_mode(mode)).unwrap();
            let refused = state.load::<u64>("one").unwrap_err().to_string();
            assert!(refused.contains("chmod 600"), "{refused}");
        }
    }

    #[test]
    fn keys_of_different_parts_differ() {
        assert_ne!(key(&[b"a", b"bc"]), key(&[b"ab", b"c"]));
        assert_eq!(key(&[b"a"]).len(), 32);
    }
}
