//! Paths that no other user can redirect: each folder above them is owned by a trusted user.
//!
//! It creates and opens nothing. Invariant: a path that passes stays the same file until its owner, the
//! superuser or the user behind sudo changes it; other users can only add names to sticky folders.

use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};

const GROUP_WRITES: u32 = 0o020;
const OTHERS_WRITE: u32 = 0o002;
const STICKY: u32 = 0o1000;
/// The user by which a user namespace shows all users that it does not map (user_namespaces(7)).
const UNMAPPED: u32 = 65_534;
/// The map of the initial user namespace: from 0, to 0, every user.
const INITIAL_MAP: [&str; 3] = ["0", "0", "4294967295"];

/// Returns the path of a folder without links, if other users can at most add names to it.
///
/// # Errors
/// Another user can replace the folder, or one above it. Or it does not exist.
pub fn irreplaceable(folder: &Path) -> Result<PathBuf> {
    let real = folder.canonicalize().with_context(|| format!("{}", folder.display()))?;
    let trusted = TrustedUsers::of_process();
    for above in real.ancestors() {
        let found = above.symlink_metadata().with_context(|| format!("{}", above.display()))?;
        trusted.check(above, &found, true)?;
    }
    Ok(real)
}

/// Like [`irreplaceable`], if other users cannot add names to the folder either.
///
/// # Errors
/// Another user can change the folder, or replace it. Or it does not exist.
pub fn unwritable_by_others(folder: &Path) -> Result<PathBuf> {
    let real = irreplaceable(folder)?;
    TrustedUsers::of_process().check(&real, &real.symlink_metadata()?, false)?;
    Ok(real)
}

/// Like [`irreplaceable`], for a folder that may be missing: then for the nearest one above it.
///
/// # Errors
/// Another user can replace the folder.
pub fn irreplaceable_or_missing(folder: &Path) -> Result<()> {
    let absolute = std::path::absolute(folder)?;
    let existing = absolute.ancestors().find(|above| above.symlink_metadata().is_ok());
    irreplaceable(existing.context("the root folder is missing")?).map(|_| ())
}

/// Users with all rights of this process.
struct TrustedUsers {
    /// This user and root, and the user of the shell in which sudo was called.
    users: Vec<u32>,
}

impl TrustedUsers {
    fn of_process() -> TrustedUsers {
        let own = rustix::process::geteuid();
        let mut users = vec![0, own.as_raw()];
        if own.is_root() {
            // Only the superuser's environment can have this variable without sudo.
            users.extend(std::env::var("SUDO_UID").ok().and_then(|user| user.parse::<u32>().ok()));
        }
        let map = fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
        if !map.split_whitespace().eq(INITIAL_MAP) {
            // The machine's own root is among the unmapped users, so its folders would be refused.
            users.push(UNMAPPED);
        }
        TrustedUsers { users }
    }

    /// Refuses a folder of another user, and one that others can write. With `may_be_sticky`, others may
    /// write to a sticky folder, in which they cannot rename or remove the names of its owner.
    fn check(&self, path: &Path, found: &Metadata, may_be_sticky: bool) -> Result<()> {
        let (owner, group, mode) = (found.uid(), found.gid(), found.mode());
        let shown = path.display();
        ensure!(
            self.users.contains(&owner),
            "{shown} belongs to user {owner}, who could put other files there: choose a folder below one of \
             your own"
        );
        // A user's private group has the user's number.
        let is_group_private = group == owner;
        let is_open = mode & OTHERS_WRITE != 0 || (mode & GROUP_WRITES != 0 && !is_group_private);
        ensure!(
            !is_open || (may_be_sticky && mode & STICKY != 0),
            "other users can write to {shown} (mode {:o}), and could put other files there: choose another \
             folder, or type: chmod go-w {shown}",
            mode & 0o7777
        );
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn folder_of_mode(above: &Path, name: &str, mode: u32) -> PathBuf {
        let folder = above.join(name);
        fs::create_dir(&folder).unwrap();
        fs::set_permissions(&folder, fs::Permissions::from_mode(mode)).unwrap();
        folder
    }

    #[test]
    fn a_folder_to_which_others_can_write_is_refused_with_all_below_it() {
        let above = tempfile::tempdir().unwrap();
        let open = folder_of_mode(above.path(), "open", 0o777);
        let below = folder_of_mode(&open, "below", 0o700);
        for path in [&open, &below] {
            let refused = irreplaceable(path).unwrap_err().to_string();
            assert!(refused.contains("chmod go-w") && refused.contains("mode 777"), "{refused}");
        }
        assert!(irreplaceable_or_missing(&open.join("missing")).is_err());
        let own = folder_of_mode(above.path(), "own", 0o755);
        assert_eq!(unwritable_by_others(&own).unwrap(), own.canonicalize().unwrap());
        irreplaceable_or_missing(&own.join("missing/too")).unwrap();
    }

    #[test]
    fn names_below_a_sticky_folder_cannot_be_replaced_but_others_can_add_some() {
        let above = tempfile::tempdir().unwrap();
        let sticky = folder_of_mode(above.path(), "sticky", 0o1777);
        irreplaceable(&sticky).unwrap();
        assert!(unwritable_by_others(&sticky).is_err());
        let below = folder_of_mode(&sticky, "below", 0o700);
        unwritable_by_others(&below).unwrap();
    }

    #[test]
    fn a_folder_of_another_user_is_refused_also_behind_a_link() {
        let above = tempfile::tempdir().unwrap();
        let folder = folder_of_mode(above.path(), "folder", 0o700);
        let link = above.path().join("link");
        std::os::unix::fs::symlink(&folder, &link).unwrap();
        assert_eq!(irreplaceable(&link).unwrap(), folder.canonicalize().unwrap());
        let found = folder.symlink_metadata().unwrap();
        let trusted = TrustedUsers { users: vec![found.uid() + 1] };
        let refused = trusted.check(&folder, &found, true).unwrap_err().to_string();
        assert!(refused.contains("belongs to user"), "{refused}");
    }
}
