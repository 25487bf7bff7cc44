//! The homes on the disk, and the quarantine of a removed account's home.
//!
//! It does not read homes. Invariant: a home that was moved away is never found by a later account of the
//! same name, not even after a power cut.

use std::fs::{DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::Context as _;
use plimsoll_wire::calendar::{format_rfc3339, since_1970};

/// Returns the folder of an account in the data folder.
pub(super) fn home_of(data: &Path, name: &str) -> PathBuf {
    data.join("accounts").join(name)
}

/// Moves the home of `name` to a unique folder below `removed`. Returns the new path, if there was a home.
pub(super) fn move_to_removed(data: &Path, name: &str) -> anyhow::Result<Option<PathBuf>> {
    let (home, removed) = (home_of(data, name), data.join("removed"));
    if !home.exists() {
        return Ok(None);
    }
    let target = removed.join(format!("{name}.{}", now()));
    let moved = make_private(&removed).and_then(|()| std::fs::rename(&home, &target));
    moved.with_context(|| format!("cannot move {} to {}", home.display(), target.display()))?;
    for folder in [&removed, &data.join("accounts")] {
        File::open(folder)
            .and_then(|folder| folder.sync_all())
            .with_context(|| format!("cannot sync {}", folder.display()))?;
    }
    Ok(Some(target))
}

/// Deletes a home that was moved away.
pub(super) fn delete(target: &Path) -> anyhow::Result<()> {
    // The deletion opens a folder at each level of the deepest path.
    crate::open_files::raise();
    std::fs::remove_dir_all(target).with_context(|| format!("cannot delete {}", target.display()))
}

fn make_private(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

/// Returns the time as part of a name: `20261120T134005Z`.
fn now() -> String {
    format_rfc3339(since_1970(SystemTime::now())).replace(['-', ':'], "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quarantined_home_is_whole_and_blocks_no_new_account() {
        let data = tempfile::tempdir().unwrap();
        let home = home_of(data.path(), "alice");
        std::fs::create_dir_all(home.join("files/deep")).unwrap();
        std::fs::write(home.join("files/deep/a.txt"), "a").unwrap();
        let target = move_to_removed(data.path(), "alice").unwrap().unwrap();
        assert!(!home.exists());
        assert!(target.starts_with(data.path().join("removed")), "{}", target.display());
        assert!(
            target.file_name().unwrap().to_str().unwrap().starts_with("alice.20"),
            "{}",
            target.display()
        );
        assert_eq!(std::fs::read(target.join("files/deep/a.txt")).unwrap(), b"a");
        assert_eq!(move_to_removed(data.path(), "alice").unwrap(), None);
        delete(&target).unwrap();
        assert!(!target.exists());
    }
}
