//! Which user this process is to the file system, and whether that user may use the data.
//!
//! Invariant: unreadable data is never reported as missing. The error names the user of this process, the
//! owner of the data, and the remedy.

use std::ffi::OsString;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::thread;

use anyhow::{Context as _, bail};
use plimsoll_auth::directory::file_of;
use rustix::fs::{Access, AtFlags, CWD, accessat};
use rustix::process::{Gid, Uid, geteuid};
use rustix::thread::{
    CapabilitySet, capabilities, set_capabilities, set_thread_groups, set_thread_res_gid, set_thread_res_uid,
};

use crate::config::Config;

/// Fails if this process may not read and write the data folder, as far as it is there.
pub(crate) fn check_data(data: &Path) -> anyhow::Result<()> {
    [data.to_owned(), data.join("accounts")].iter().try_for_each(|folder| check_path(folder, Access::EXEC_OK))
}

/// Like [`check_data`], for the directory of accounts that `url` names, if it is in a file.
pub(crate) fn check_directory(url: &str) -> anyhow::Result<()> {
    let Some(file) = file_of(url) else { return Ok(()) };
    ["", "-wal", "-shm"].iter().try_for_each(|end| {
        let mut path = OsString::from(&file);
        path.push(end);
        check_path(Path::new(&path), Access::empty())
    })
}

fn check_path(path: &Path, more: Access) -> anyhow::Result<()> {
    let wanted = Access::READ_OK | Access::WRITE_OK | more;
    match accessat(CWD, path, wanted, AtFlags::EACCESS).map_err(io::Error::from) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => bail!(refused(path, &error)),
        // The caller makes a missing path, and the call that uses the path reports any other error.
        _ => Ok(()),
    }
}

/// Fails if this process may not create files in `folder`.
pub(crate) fn check_writable(folder: &Path) -> io::Result<()> {
    Ok(accessat(CWD, folder, Access::WRITE_OK | Access::EXEC_OK, AtFlags::EACCESS)?)
}

/// The error of a path that this user may not use, or may not make.
pub(crate) fn refused(path: &Path, error: &io::Error) -> String {
    let (shown, user) = (path.display(), user(geteuid()));
    let of = |path: &Path| path.metadata().map(|found| (Uid::from_raw(found.uid()), found.mode() & 0o7777));
    let owner = match of(path) {
        Ok((owner, mode)) => format!("It belongs to {}, mode {mode:o}", self::user(owner)),
        Err(_) => {
            let above = existing(path);
            let owner = of(&above).map_or_else(|_| String::new(), |(owner, _)| self::user(owner));
            format!("It would be in {}, which belongs to {owner}", above.display())
        }
    };
    format!(
        "{shown} cannot be read and written as {user}: {error}. {owner}. Run plimsoll as the user that owns \
         the data (sudo -u USER plimsoll …), or give the data to the server's user: sudo chown -R USER: DATA"
    )
}

/// A user as a person reads it: the name, if there is one, and the number.
pub(crate) fn user(uid: Uid) -> String {
    let number = uid.as_raw();
    name_of(uid).map_or_else(|| format!("user {number}"), |name| format!("user {name} ({number})"))
}

/// The name of a user of this machine.
pub(crate) fn name_of(uid: Uid) -> Option<String> {
    let number = uid.as_raw().to_string();
    let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)? == number).then(|| name.to_owned())
    })
}

/// Returns the folder itself, or the nearest existing ancestor.
pub(crate) fn existing(folder: &Path) -> PathBuf {
    let found = folder.ancestors().find(|above| above.is_dir());
    // A relative path has the empty path as its last ancestor, which stands for the working folder.
    found.filter(|found| !found.as_os_str().is_empty()).map_or_else(|| PathBuf::from("."), Path::to_owned)
}

/// The user and group that own the files of this configuration, if they are not the superuser's.
pub(crate) fn owner(config: &Config) -> io::Result<Option<(Uid, Gid)>> {
    let file = file_of(&config.fixed.directory);
    let folder = file.as_deref().and_then(Path::parent).unwrap_or(&config.fixed.data);
    let folder = existing(folder);
    // The owner of a link to the superuser's folder has fewer rights than the superuser.
    let (link, found) = (folder.symlink_metadata()?, folder.metadata()?);
    let owner = [link, found].into_iter().find(|found| found.uid() != 0);
    Ok(owner.map(|owner| (Uid::from_raw(owner.uid()), Gid::from_raw(owner.gid()))))
}

/// Runs `work` as the owner of the data, if this process runs as the superuser. The server of that user can
/// then use the files that `work` makes. A link that the owner has planted leads to no file of another
/// user.
///
/// The thread keeps `CAP_DAC_READ_SEARCH`: systemd keeps the data of a `DynamicUser` below
/// `/var/lib/private`, which that user cannot enter.
pub(crate) fn as_owner<T: Send>(
    config: &Config,
    work: impl FnOnce() -> anyhow::Result<T> + Send,
) -> anyhow::Result<T> {
    if !geteuid().is_root() {
        return work();
    }
    let owner = owner(config).with_context(|| format!("cannot look at {}", config.fixed.data.display()))?;
    as_user(owner, work)
}

/// Runs `work` as this user, if there is one and this process runs as the superuser; see [`as_owner`].
pub(crate) fn as_user<T: Send>(
    user: Option<(Uid, Gid)>,
    work: impl FnOnce() -> anyhow::Result<T> + Send,
) -> anyhow::Result<T> {
    let Some((uid, gid)) = user.filter(|_| geteuid().is_root()) else { return work() };
    let doing = || {
        become_user(uid, gid)
            .with_context(|| format!("cannot act as {}, who owns the data", self::user(uid)))?;
        work()
    };
    // Credentials are a thread's own in Linux, and the threads that it starts inherit them.
    thread::scope(|scope| scope.spawn(doing).join()).unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

fn become_user(uid: Uid, gid: Gid) -> io::Result<()> {
    set_thread_groups(&[gid])?;
    set_thread_res_gid(None, gid, None)?;
    set_thread_res_uid(None, uid, None)?;
    let mut sets = capabilities(None)?;
    sets.effective = CapabilitySet::DAC_READ_SEARCH & sets.permitted;
    Ok(set_capabilities(None, sets)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_is_shown_by_name_and_number() {
        assert_eq!(user(Uid::ROOT), "user root (0)");
        assert_eq!(user(Uid::from_raw(4_000_000_000)), "user 4000000000");
    }

    #[test]
    fn a_path_leads_to_the_nearest_folder_that_is_there() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(existing(&folder.path().join("a/b")), folder.path());
        assert_eq!(existing(Path::new("./not-there")), Path::new("."));
        assert_eq!(existing(Path::new("not-there")), Path::new("."));
    }
}
