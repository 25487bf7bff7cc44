//! The folders that one server at a time uses: the data folder, and the cache folder of a proxy.
//!
//! It reads and writes nothing in them but the lock. Invariants: one server at a time has an exclusive lock.
//! New folders are readable only by the server's user. A message names the flag for another folder.

use std::fs::{DirBuilder, File};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::Path;

use anyhow::{Context as _, bail};
use plimsoll_engine::SystemFs;
use plimsoll_io::Fs as _;
use plimsoll_proxy::cache::store::{check_folder, mark_folder};
use rustix::fs::{FileType, FlockOperation, Mode, OFlags, flock, fstat, openat};
use rustix::io::Errno;
use rustix::process::geteuid;

use crate::access;
use crate::backup::UNFINISHED_RESTORE;

/// The use of a folder.
#[derive(Clone, Copy)]
enum FolderKind {
    Data,
    Cache,
}

impl FolderKind {
    fn name(self) -> &'static str {
        match self {
            FolderKind::Data => "data folder",
            FolderKind::Cache => "cache folder",
        }
    }

    fn flag(self) -> &'static str {
        match self {
            FolderKind::Data => "--data",
            FolderKind::Cache => "--cache",
        }
    }

    fn cannot_make(self, folder: &Path) -> String {
        format!("cannot make the {} {}; choose another with {}", self.name(), folder.display(), self.flag())
    }
}

/// A lock on a folder, exclusive or shared, until it is dropped.
pub(crate) struct FolderLock {
    _folder: File,
    _file: File,
}

/// Creates the data folder if it is missing.
pub(crate) fn make_data_folder(data: &Path) -> anyhow::Result<()> {
    make(FolderKind::Data, data)
}

/// Creates the data folder if it is missing, and locks it for this process alone.
pub(crate) fn take_data_folder(data: &Path) -> anyhow::Result<FolderLock> {
    let lock = lock(FolderKind::Data, data, FlockOperation::NonBlockingLockExclusive)?;
    refuse_unfinished(data)?;
    Ok(lock)
}

/// Like [`take_data_folder`], but shared with other authentication servers, because several may use one
/// directory of accounts.
pub(crate) fn share_data_folder(data: &Path) -> anyhow::Result<FolderLock> {
    let lock = lock(FolderKind::Data, data, FlockOperation::NonBlockingLockShared)?;
    refuse_unfinished(data)?;
    Ok(lock)
}

/// Creates a proxy's cache folder if it is missing, and locks it for this process alone. Refuses a folder
/// that has other files, or in which another user can create some: they would be removed, or sent to
/// clients.
pub(crate) fn take_cache_folder(folder: &Path) -> anyhow::Result<FolderLock> {
    if folder.metadata().is_ok_and(|found| found.is_dir() && found.uid() == geteuid().as_raw()) {
        access::check_writable(folder).with_context(|| unfit(folder))?;
    }
    make(FolderKind::Cache, folder)?;
    check_owner(folder)?;
    let marked = SystemFs.open_root(folder).and_then(|root| mark_folder(&SystemFs, &root));
    marked.with_context(|| unfit(folder))?;
    lock(FolderKind::Cache, folder, FlockOperation::NonBlockingLockExclusive)
}

/// Returns the kind of the operating system's error in a refusal, if there is one.
pub(crate) fn kind_of(refusal: &anyhow::Error) -> Option<io::ErrorKind> {
    refusal.chain().find_map(|cause| cause.downcast_ref::<io::Error>()).map(io::Error::kind)
}

/// Checks that only this process's user can create files in a cache folder.
fn check_owner(folder: &Path) -> anyhow::Result<()> {
    let root = File::open(folder).with_context(|| unfit(folder))?;
    for name in [".", "objects", "pending"] {
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = match openat(&root, name, flags, Mode::empty()) {
            Err(Errno::NOENT) => continue,
            opened => opened.map_err(io::Error::from).with_context(|| unfit(folder))?,
        };
        check_owner_of(&opened, &folder.join(name))?;
    }
    Ok(())
}

fn check_owner_of(opened: impl AsFd, path: &Path) -> anyhow::Result<()> {
    let stat = fstat(opened).map_err(io::Error::from)?;
    let (owner, user) = (rustix::process::Uid::from_raw(stat.st_uid), geteuid());
    if owner != user {
        let (owner, user) = (access::user(owner), access::user(user));
        bail!(
            "the cache folder {} belongs to {owner}, who could change what clients get; give it to {user} \
             (chown), or choose another with --cache",
            path.display()
        );
    }
    if stat.st_mode & 0o022 != 0 {
        bail!(
            "other users may write in the cache folder {} (mode {:o}), and could change what clients get; \
             run chmod go-w on it, or choose another with --cache",
            path.display(),
            stat.st_mode & 0o7777
        );
    }
    Ok(())
}

fn unfit(folder: &Path) -> String {
    format!("cannot use {} as the cache folder; choose another with --cache", folder.display())
}

/// Returns whether another process has locked the folder. Creates nothing.
pub(crate) fn is_folder_held(folder: &Path) -> bool {
    let open = File::open(folder);
    open.is_ok_and(|open| flock(&open, FlockOperation::NonBlockingLockExclusive) == Err(Errno::WOULDBLOCK))
}

/// Checks that a proxy's cache folder can be used, or created. Creates nothing.
pub(crate) fn check_cache_folder(folder: &Path) -> anyhow::Result<()> {
    let kind = FolderKind::Cache;
    let checked = match existing_folder(folder) {
        Ok(existing) => access::check_writable(existing),
        Err(error) => Err(error),
    };
    match checked {
        Ok(()) if folder.is_dir() => {
            access::check_data(folder)?;
            check_owner(folder)?;
            let checked = SystemFs.open_root(folder).and_then(|root| check_folder(&SystemFs, &root));
            checked.map(drop).with_context(|| unfit(folder))
        }
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            anyhow::bail!(access::refused(folder, &error))
        }
        Err(error) => Err(error).with_context(|| kind.cannot_make(folder)),
    }
}

/// Returns the folder itself, or the ancestor in which it would be created.
fn existing_folder(folder: &Path) -> io::Result<&Path> {
    for above in folder.ancestors() {
        // A relative path has the empty path as its last ancestor, which stands for the working folder.
        let above = if above.as_os_str().is_empty() { Path::new(".") } else { above };
        match above.metadata() {
            Ok(found) if found.is_dir() => return Ok(above),
            Ok(_) => return Err(io::ErrorKind::NotADirectory.into()),
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            // A symbolic link to a missing target is in the way of a folder.
            Err(error) if above.symlink_metadata().is_ok() => return Err(error),
            Err(_) => {}
        }
    }
    Err(io::ErrorKind::NotFound.into())
}

fn make(kind: FolderKind, folder: &Path) -> anyhow::Result<()> {
    match DirBuilder::new().recursive(true).mode(0o700).create(folder) {
        Ok(()) => access::check_data(folder),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            anyhow::bail!(access::refused(folder, &error))
        }
        Err(error) => Err(error).with_context(|| kind.cannot_make(folder)),
    }
}

/// Locks the folder itself and a file in it. The folder's lock remains valid if the file is removed.
/// Servers of earlier versions see the file's lock, and so do other machines on NFS.
fn lock(kind: FolderKind, path: &Path, lock: FlockOperation) -> anyhow::Result<FolderLock> {
    make(kind, path)?;
    let shown = format!("{} {}", kind.name(), path.display());
    let folder = File::open(path).with_context(|| format!("cannot open the {shown}"))?;
    let path = path.join("lock");
    let file = open_lock(&folder).with_context(|| format!("cannot open {}", path.display()))?;
    for (locked, is_folder) in [(&folder, true), (&file, false)] {
        match flock(locked, lock) {
            Ok(()) => {}
            // Some file systems lock only files that are open for writing, which a folder never is.
            Err(Errno::BADF) if is_folder => {}
            Err(Errno::WOULDBLOCK) => anyhow::bail!(
                "another plimsoll has the {shown}; end it, or choose another folder with {}",
                kind.flag()
            ),
            Err(error) => return Err(error).with_context(|| format!("cannot lock the {shown}")),
        }
    }
    Ok(FolderLock { _folder: folder, _file: file })
}

/// Fails if a restore into the data folder was interrupted: it has a part of the data only.
fn refuse_unfinished(data: &Path) -> anyhow::Result<()> {
    let shown = data.display();
    anyhow::ensure!(
        !data.join(UNFINISHED_RESTORE).exists(),
        "a restore into {shown} was interrupted: remove the folder and restore again, or choose another \
         folder with --data"
    );
    Ok(())
}

/// Opens the file for the lock, and creates it if it is missing. A link could lead to any file, which
/// would be created, and a pipe would block: neither is opened.
fn open_lock(folder: &File) -> io::Result<File> {
    let flags = OFlags::CREATE | OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = openat(folder, "lock", flags, Mode::RUSR | Mode::WUSR).map_err(|error| match error {
        Errno::LOOP => io::Error::new(io::ErrorKind::InvalidInput, "it is a symbolic link; remove it"),
        error => error.into(),
    })?;
    if FileType::from_raw_mode(fstat(&file)?.st_mode) != FileType::RegularFile {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no regular file; remove it"));
    }
    Ok(file.into())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn error_of<T>(made: anyhow::Result<T>) -> String {
        format!("{:#}", made.err().expect("it is refused"))
    }

    #[test]
    fn a_folder_in_use_is_refused_with_its_name_and_its_flag() {
        let folder = tempfile::tempdir().unwrap();
        let shown = folder.path().display();
        let held = take_cache_folder(folder.path()).unwrap();
        check_cache_folder(folder.path()).unwrap();
        assert_eq!(
            error_of(take_cache_folder(folder.path())),
            format!(
                "another plimsoll has the cache folder {shown}; end it, or choose another folder with --cache"
            )
        );
        let refused = error_of(take_data_folder(folder.path()));
        assert!(refused.contains("the data folder") && refused.ends_with("with --data"), "{refused}");
        assert!(is_folder_held(folder.path()));
        drop(held);
        assert!(!is_folder_held(folder.path()));
    }

    #[test]
    fn a_check_of_the_cache_folder_finds_the_errors_of_a_start_and_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        std::fs::write(path("file"), "").unwrap();
        std::os::unix::fs::symlink(path("nowhere"), path("link")).unwrap();
        for name in ["file", "file/cache", "link", "link/cache"] {
            let (checked, taken) = (check_cache_folder(&path(name)), take_cache_folder(&path(name)));
            let checked = error_of(checked);
            assert!(taken.is_err(), "{name}");
            assert!(checked.contains("the cache folder") && checked.contains("with --cache: "), "{checked}");
        }
        std::fs::create_dir(path("empty")).unwrap();
        std::fs::set_permissions(path("empty"), std::fs::Permissions::from_mode(0o700)).unwrap();
        for name in ["empty", "new", "new/cache"] {
            check_cache_folder(&path(name)).unwrap();
        }
        assert_eq!(std::fs::read_dir(path("empty")).unwrap().count(), 0);
        check_cache_folder(Path::new("not-there")).unwrap();
        let mut left: Vec<_> =
            std::fs::read_dir(folder.path()).unwrap().map(|at| at.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, ["empty", "file", "link"]);
    }

    #[test]
    fn a_folder_that_is_no_cache_is_refused_with_its_files_and_its_flag() {
        let folder = tempfile::tempdir().unwrap();
        let precious = folder.path().join("objects/precious.doc");
        std::fs::create_dir(folder.path().join("objects")).unwrap();
        std::fs::write(&precious, "precious").unwrap();
        for refused in [take_cache_folder(folder.path()).map(drop), check_cache_folder(folder.path())] {
            let refused = error_of(refused);
            assert!(refused.contains("precious.doc") && refused.contains("--cache"), "{refused}");
        }
        assert_eq!(std::fs::read(&precious).unwrap(), b"precious");
        assert!(!folder.path().join("lock").exists());
    }

    #[test]
    fn a_folder_in_which_others_can_write_is_refused() {
        for (name, mode) in [("", 0o777), ("", 0o770), ("objects", 0o702)] {
            let folder = tempfile::tempdir().unwrap();
            drop(take_cache_folder(folder.path()).unwrap());
            let path = folder.path().join(name);
            DirBuilder::new().recursive(true).mode(0o700).create(&path).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            for refused in [take_cache_folder(folder.path()).map(drop), check_cache_folder(folder.path())] {
                let refused = error_of(refused);
                assert!(refused.contains("chmod go-w") && refused.contains("--cache"), "{refused}");
            }
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o700)).unwrap();
            take_cache_folder(folder.path()).unwrap();
        }
    }

    #[test]
    fn a_link_or_a_pipe_named_lock_is_not_opened() {
        for is_link in [true, false] {
            let folder = tempfile::tempdir().unwrap();
            let (lock, target) = (folder.path().join("lock"), folder.path().join("target"));
            if is_link {
                std::os::unix::fs::symlink(&target, &lock).unwrap();
            } else {
                rustix::fs::mknodat(rustix::fs::CWD, &lock, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)
                    .unwrap();
            }
            assert!(error_of(take_data_folder(folder.path())).contains("remove it"));
            assert!(error_of(take_cache_folder(folder.path())).contains("\"lock\""));
            assert!(!target.exists());
        }
    }

    #[test]
    fn a_file_in_place_of_a_folder_is_refused_with_the_flag() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        std::fs::write(&file, "").unwrap();
        for path in [file.clone(), file.join("cache")] {
            let refused = error_of(take_cache_folder(&path));
            let start =
                format!("cannot make the cache folder {}; choose another with --cache: ", path.display());
            assert!(refused.starts_with(&start), "{refused}");
            assert!(error_of(take_data_folder(&path)).contains("choose another with --data: "));
        }
    }
}
