//! Tests of details that the suite for every engine does not reach: permissions, non-blocking access, and
//! file systems without renameat2 flags.

use std::io::{self, ErrorKind};
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use plimsoll_io::{Existing, File, FileKind, Fs, Handle, Pipe};

use rustix::io::Errno;

use super::copying::copy_by_hand;
use super::reading::error_of;
use super::writing::rename_without_flags;
use super::{FreesLater, NonBlockingFs, SystemFs, free_now};

/// Creates a folder with a file, a folder and an empty folder in it.
fn folder() -> (tempfile::TempDir, File) {
    let held = tempfile::tempdir().unwrap();
    std::fs::write(held.path().join("file"), "text").unwrap();
    std::fs::create_dir_all(held.path().join("folder/inner")).unwrap();
    std::fs::create_dir(held.path().join("empty")).unwrap();
    let root = SystemFs.open_root(held.path()).unwrap();
    (held, root)
}

fn pipe() -> Pipe {
    let make = || io::pipe().ok().map(|(source, sink)| (source.into(), sink.into()));
    Pipe::open(usize::MAX, make).unwrap()
}

/// Creates a pipe with bytes in it.
fn pipe_with(bytes: &[u8]) -> Pipe {
    let pipe = pipe();
    assert_eq!(rustix::io::write(pipe.sink(), bytes).unwrap(), bytes.len());
    pipe.filled(bytes.len() as u64);
    pipe
}

#[test]
fn the_metadata_of_a_cached_name_is_available_without_blocking() {
    let (held, root) = folder();
    std::os::unix::fs::symlink("file", held.path().join("link")).unwrap();
    for (name, kind) in [("file", FileKind::File), ("folder", FileKind::Folder), ("link", FileKind::Other)] {
        let name = name.as_bytes();
        let nonblocking = NonBlockingFs.stat_name(&root, name).unwrap();
        assert_eq!((nonblocking.kind, nonblocking), (kind, SystemFs.stat_name(&root, name).unwrap()));
    }
    assert_eq!(NonBlockingFs.stat_name(&root, b"none").unwrap_err().kind(), ErrorKind::WouldBlock);
    for wrong in ["..", "folder/inner", ""] {
        assert_eq!(
            NonBlockingFs.stat_name(&root, wrong.as_bytes()).unwrap_err().kind(),
            ErrorKind::InvalidInput
        );
    }
}

#[test]
fn bytes_go_from_a_pipe_into_a_file_and_no_more_than_were_asked_for() {
    let (held, root) = folder();
    let file = SystemFs.open_to_write(&root, b"file").unwrap();
    let pipe = pipe_with(b"0123456789");
    assert_eq!(SystemFs.write_from(&file, &pipe, 4, 2).unwrap(), 4);
    assert_eq!(pipe.bytes(), 6);
    assert_eq!(SystemFs.write_from(&file, &pipe, 6, 6).unwrap(), 6);
    assert_eq!(pipe.bytes(), 0);
    assert_eq!(std::fs::read(held.path().join("file")).unwrap(), b"te0123456789");
}

#[test]
fn where_splice_refuses_a_file_the_bytes_of_a_pipe_are_copied() {
    let (held, _root) = folder();
    // "The target file is opened in append mode" is one of the reasons that splice(2) gives.
    let append = std::fs::OpenOptions::new().append(true).open(held.path().join("file")).unwrap();
    let file = File::new(Handle::Descriptor(append.into()));
    let pipe = pipe_with(b"0123456789");
    assert_eq!(SystemFs.write_from(&file, &pipe, 7, 4).unwrap(), 7);
    assert_eq!(pipe.bytes(), 3);
    assert_eq!(std::fs::read(held.path().join("file")).unwrap(), b"text0123456");
}

#[test]
fn a_file_freed_later_stays_open_until_then_only_on_threads_that_defer_frees() {
    let (held, root) = folder();
    let is_held = || {
        let opened = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
        let mut names = opened.filter_map(|entry| std::fs::read_link(entry.path()).ok());
        names.any(|name| name == held.path().join("file"))
    };
    SystemFs.free_later(&root, b"file");
    assert!(!is_held(), "nobody would close it");
    let frees = FreesLater::begin();
    SystemFs.free_later(&root, b"file");
    assert!(is_held());
    free_now();
    assert!(!is_held());
    SystemFs.free_later(&root, b"none");
    SystemFs.free_later(&root, b"file");
    drop(frees);
    assert!(!is_held());
}

#[test]
fn only_the_servers_account_may_read_what_is_made() {
    let (held, root) = folder();
    SystemFs.create(&root, b"new").unwrap();
    SystemFs.make_folder(&root, b"sub").unwrap();
    let rights = |name| std::fs::metadata(held.path().join(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!((rights("new"), rights("sub")), (0o600, 0o700));
}

#[test]
fn nothing_that_changes_a_file_is_nonblocking() {
    let (held, root) = folder();
    let file = SystemFs.open_to_write(&root, b"file").unwrap();
    let pipe = pipe();
    let answers: [io::Result<()>; 13] = [
        NonBlockingFs.names(&root, 9).map(drop),
        NonBlockingFs.write_from(&file, &pipe, 1, 0).map(drop),
        NonBlockingFs.create(&root, b"new").map(drop),
        NonBlockingFs.open_to_write(&root, b"file").map(drop),
        NonBlockingFs.write_at(&file, b"x", 0).map(drop),
        NonBlockingFs.set_len(&file, 0),
        NonBlockingFs.set_modified(&file, Duration::ZERO),
        NonBlockingFs.sync(&file),
        NonBlockingFs.make_folder(&root, b"new"),
        NonBlockingFs.rename(&root, b"file", &root, b"new", Existing::Kept),
        NonBlockingFs.remove_file(&root, b"file"),
        NonBlockingFs.remove_folder(&root, b"empty"),
        NonBlockingFs.copy(&file, &file, u64::MAX).map(drop),
    ];
    for answer in answers {
        assert_eq!(answer.unwrap_err().kind(), ErrorKind::WouldBlock);
    }
    assert_eq!(NonBlockingFs.space(&root).unwrap_err().kind(), ErrorKind::WouldBlock);
    assert_eq!(std::fs::read(held.path().join("file")).unwrap(), b"text");
}

/// Renames as on a file system that knows no flags.
fn rename(root: &File, from: &str, to: &str) -> Result<(), ErrorKind> {
    let fd = root.descriptor().unwrap();
    rename_without_flags((fd, from.as_bytes()), (fd, to.as_bytes())).map_err(|error| error.kind())
}

#[test]
fn without_flags_a_rename_replaces_nothing_either() {
    let (held, root) = folder();
    assert_eq!(rename(&root, "file", "folder"), Err(ErrorKind::AlreadyExists));
    assert_eq!(rename(&root, "folder", "file"), Err(ErrorKind::AlreadyExists));
    assert_eq!(rename(&root, "folder", "empty"), Err(ErrorKind::AlreadyExists));
    assert_eq!(rename(&root, "none", "new"), Err(ErrorKind::NotFound));
    let inner = SystemFs.open_beneath(&root, b"folder/inner").unwrap();
    let (from, to) = (root.descriptor().unwrap(), inner.descriptor().unwrap());
    let into_itself = rename_without_flags((from, b"folder"), (to, b"self")).unwrap_err();
    assert_eq!(into_itself.kind(), ErrorKind::InvalidInput);
    assert_eq!(rename(&root, "file", "new"), Ok(()));
    assert_eq!(rename(&root, "folder", "moved"), Ok(()));
    let mut names: Vec<_> = SystemFs.names(&root, 9).unwrap().into_iter().map(|entry| entry.name).collect();
    names.sort();
    assert_eq!(names, [b"empty".as_slice(), b"moved", b"new"]);
    assert_eq!(std::fs::read(held.path().join("new")).unwrap(), b"text");
}

#[test]
fn a_copy_by_hand_is_whole() {
    let (held, root) = folder();
    let bytes: Vec<u8> = (0..300_000_u32).map(|at| at.to_le_bytes()[1]).collect();
    std::fs::write(held.path().join("file"), &bytes).unwrap();
    let from = SystemFs.open_beneath(&root, b"file").unwrap();
    let to = SystemFs.create(&root, b"to").unwrap();
    // The kernel has copied a part, and then fails.
    SystemFs.write_at(&to, &bytes[..1000], 0).unwrap();
    assert_eq!(copy_by_hand(&from, &to, 1000, 300_000).unwrap(), 300_000);
    assert!(std::fs::read(held.path().join("to")).unwrap() == bytes);
    assert_eq!(copy_by_hand(&from, &to, 0, 400_000).unwrap(), 300_000, "the file became shorter");
}

#[test]
fn a_copy_to_another_file_system_is_whole() {
    let (_held, root) = folder();
    // Where there is no /dev/shm, this is a copy on one file system.
    let other_folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
    let target = SystemFs.open_root(other_folder.path()).unwrap();
    let from = SystemFs.open_beneath(&root, b"file").unwrap();
    let to = SystemFs.create(&target, b"to").unwrap();
    assert_eq!(SystemFs.copy(&from, &to, u64::MAX).unwrap(), 4);
    assert_eq!(std::fs::read(other_folder.path().join("to")).unwrap(), b"text");
    let moved = SystemFs.rename(&root, b"file", &target, b"moved", Existing::Kept);
    assert!(moved.is_ok() || moved.unwrap_err().kind() == ErrorKind::CrossesDevices);
}

#[test]
fn a_device_is_nothing_to_be_written() {
    let devices = SystemFs.open_root(std::path::Path::new("/dev")).unwrap();
    assert_eq!(SystemFs.stat_name(&devices, b"null").unwrap().kind, FileKind::Other);
    assert_eq!(SystemFs.open_to_write(&devices, b"null").unwrap_err().kind(), ErrorKind::NotFound);
}

#[test]
fn an_exhausted_resource_has_its_own_error_kind() {
    let kinds = [
        (Errno::NOSPC, ErrorKind::StorageFull),
        (Errno::DQUOT, ErrorKind::QuotaExceeded),
        (Errno::MFILE, ErrorKind::ResourceBusy),
        (Errno::NFILE, ErrorKind::ResourceBusy),
    ];
    for (errno, kind) in kinds {
        assert_eq!(error_of(errno).kind(), kind);
    }
}

#[test]
fn the_names_of_a_file_are_counted_and_a_removed_one_has_none() {
    let (held, root) = folder();
    let file = SystemFs.open_beneath(&root, b"file").unwrap();
    let count = || (SystemFs.stat(&file).unwrap().links, NonBlockingFs.stat(&file).unwrap().links);
    assert_eq!(count(), (1, 1));
    std::fs::hard_link(held.path().join("file"), held.path().join("other")).unwrap();
    assert_eq!(count(), (2, 2));
    SystemFs.remove_file(&root, b"other").unwrap();
    std::fs::write(held.path().join("new"), "new").unwrap();
    SystemFs.rename(&root, b"new", &root, b"file", Existing::Replaced).unwrap();
    assert_eq!(count(), (0, 0));
}
