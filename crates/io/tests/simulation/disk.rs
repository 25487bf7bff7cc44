//! The simulated disk as an [`Fs`].

use std::io::{self, ErrorKind};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_io::sim::{Faults, START, Sim, SimDisk};
use plimsoll_io::{File, FileKind, Fs};

/// Returns a disk with a served folder and a file outside it, and the root of the served folder.
fn disk() -> (Arc<SimDisk>, File) {
    let sim = Sim::new(0, Faults::none());
    let disk = Arc::clone(sim.host("one").disk());
    disk.write("/srv/a.txt", "aaa").unwrap();
    disk.write("/srv/sub/b.txt", "bb").unwrap();
    disk.write("/secret", "x").unwrap();
    let root = disk.open_root(Path::new("/srv")).unwrap();
    (disk, root)
}

fn read(disk: &SimDisk, root: &File, name: &str) -> Result<String, ErrorKind> {
    let read = || -> io::Result<String> {
        let file = disk.open_beneath(root, name.as_bytes())?;
        let mut bytes = [0; 64];
        let count = disk.read_at(&file, &mut bytes, 0)?;
        Ok(String::from_utf8_lossy(&bytes[..count]).into_owned())
    };
    read().map_err(|error| error.kind())
}

#[test]
fn a_name_is_followed_below_its_root() {
    let (disk, root) = disk();
    for name in ["a.txt", "./a.txt", "sub/../a.txt", "sub/./.././a.txt"] {
        assert_eq!(read(&disk, &root, name), Ok("aaa".to_owned()), "{name}");
    }
    assert_eq!(read(&disk, &root, "sub//b.txt"), Ok("bb".to_owned()));
    assert_eq!(read(&disk, &root, "sub//../a.txt"), Err(ErrorKind::NotFound), "two slashes are a boundary");
    assert_eq!(read(&disk, &root, "sub/b.txt"), Ok("bb".to_owned()));
    assert_eq!(read(&disk, &root, "sub"), Err(ErrorKind::IsADirectory));
    assert_eq!(disk.stat(&disk.open_beneath(&root, b"").unwrap()).unwrap().kind, FileKind::Folder);
}

#[test]
fn nothing_outside_is_found_by_any_name_or_link() {
    let (disk, root) = disk();
    disk.symlink("/srv/up", "../secret").unwrap();
    disk.symlink("/srv/absolute", "/secret").unwrap();
    disk.symlink("/srv/inside-absolute", "/srv/a.txt").unwrap();
    disk.symlink("/srv/around", "../srv/a.txt").unwrap();
    disk.symlink("/srv/outer", "..").unwrap();
    for name in [
        "../secret",
        "sub/../../secret",
        "/secret",
        "up",
        "absolute",
        "inside-absolute",
        "around",
        "outer/secret",
        "outer",
    ] {
        assert_eq!(read(&disk, &root, name), Err(ErrorKind::NotFound), "{name}");
    }
}

#[test]
fn links_within_the_root_are_followed() {
    let (disk, root) = disk();
    disk.symlink("/srv/sub/near", "b.txt").unwrap();
    disk.symlink("/srv/sub/up", "../a.txt").unwrap();
    disk.symlink("/srv/folder", "sub").unwrap();
    assert_eq!(read(&disk, &root, "sub/near"), Ok("bb".to_owned()));
    assert_eq!(read(&disk, &root, "sub/up"), Ok("aaa".to_owned()));
    assert_eq!(read(&disk, &root, "folder/near"), Ok("bb".to_owned()));
}

#[test]
fn the_operators_root_may_be_a_link() {
    let (disk, _) = disk();
    disk.symlink("/www", "/srv").unwrap();
    let root = disk.open_root(Path::new("/www")).unwrap();
    assert_eq!(read(&disk, &root, "a.txt"), Ok("aaa".to_owned()));
    let file = disk.open_root(Path::new("/srv/a.txt")).unwrap_err();
    assert_eq!(file.kind(), ErrorKind::NotADirectory);
    assert_eq!(disk.open_root(Path::new("/none")).unwrap_err().kind(), ErrorKind::NotFound);
}

#[test]
fn a_loop_of_links_and_names_too_long_are_not_found() {
    let (disk, root) = disk();
    disk.symlink("/srv/one", "two").unwrap();
    disk.symlink("/srv/two", "one").unwrap();
    assert_eq!(read(&disk, &root, "one"), Err(ErrorKind::NotFound));
    assert_eq!(read(&disk, &root, &"n".repeat(256)), Err(ErrorKind::NotFound));
    assert_eq!(read(&disk, &root, "a\0b"), Err(ErrorKind::InvalidInput));
}

#[test]
fn a_file_with_a_slash_behind_it_is_no_folder() {
    let (disk, root) = disk();
    for name in ["a.txt/", "a.txt/.", "a.txt/..", "a.txt/b"] {
        assert_eq!(read(&disk, &root, name), Err(ErrorKind::NotADirectory), "{name}");
    }
    assert!(disk.open_beneath(&root, b"sub/").is_ok());
}

#[test]
fn a_removed_file_stays_readable_through_an_open_descriptor() {
    let (disk, root) = disk();
    let file = disk.open_beneath(&root, b"a.txt").unwrap();
    disk.remove("/srv/a.txt").unwrap();
    disk.write("/srv/a.txt", "new").unwrap();
    let mut bytes = [0; 3];
    disk.read_at(&file, &mut bytes, 0).unwrap();
    assert_eq!(&bytes, b"aaa");
    let replaced = disk.open_beneath(&root, b"a.txt").unwrap();
    assert_ne!(disk.stat(&file).unwrap().inode, disk.stat(&replaced).unwrap().inode);
}

#[test]
fn every_change_is_seen_in_the_time_of_the_last_change() {
    let (disk, root) = disk();
    let stat = || disk.stat(&disk.open_beneath(&root, b"a.txt").unwrap()).unwrap();
    let mut before = stat();
    assert!(before.modified >= START && before.modified_at() > std::time::UNIX_EPOCH);
    let changes: [&dyn Fn(); 4] = [
        &|| disk.write("/srv/a.txt", "bbb").unwrap(),
        &|| disk.write("/srv/a.txt", "bbb").unwrap(),
        &|| disk.truncate("/srv/a.txt", 5).unwrap(),
        &|| disk.set_modified("/srv/a.txt", Duration::from_secs(1)).unwrap(),
    ];
    for change in changes {
        change();
        assert!(stat().changed > before.changed && stat().inode == before.inode);
        before = stat();
    }
    assert_eq!((before.size, before.modified), (5, Duration::from_secs(1)));
}

#[test]
fn a_listing_leaves_out_what_leads_nowhere() {
    let (disk, root) = disk();
    disk.symlink("/srv/out", "/secret").unwrap();
    disk.symlink("/srv/dangling", "none").unwrap();
    disk.symlink("/srv/sub/link", "../a.txt").unwrap();
    disk.special("/srv/pipe").unwrap();
    let names = |name: &[u8]| {
        let entries = disk.list(&root, name, 10).unwrap().into_iter();
        entries.map(|entry| (String::from_utf8(entry.name).unwrap(), entry.stat.kind)).collect::<Vec<_>>()
    };
    let (file, folder, other) = (FileKind::File, FileKind::Folder, FileKind::Other);
    assert_eq!(names(b""), [("a.txt".into(), file), ("pipe".into(), other), ("sub".into(), folder)]);
    assert_eq!(names(b"sub"), [("b.txt".into(), file), ("link".into(), file)]);
}

#[test]
fn a_listing_is_bounded() {
    let (disk, root) = disk();
    for number in 0..8 {
        disk.write(format!("/srv/{number}"), "").unwrap();
    }
    assert_eq!(disk.list(&root, b"", 10).unwrap().len(), 10);
    assert_eq!(disk.list(&root, b"", 9).unwrap_err().kind(), ErrorKind::QuotaExceeded);
    assert_eq!(disk.list(&root, b"a.txt", 9).unwrap_err().kind(), ErrorKind::NotADirectory);
}

#[test]
fn a_forbidden_file_is_a_permission_error() {
    let (disk, root) = disk();
    disk.forbid("/srv/a.txt").unwrap();
    assert_eq!(read(&disk, &root, "a.txt"), Err(ErrorKind::PermissionDenied));
    assert_eq!(disk.list(&root, b"", 10).unwrap().len(), 2);
}

#[test]
fn a_removed_folder_goes_with_all_that_is_in_it() {
    let (disk, root) = disk();
    disk.remove("/srv/sub").unwrap();
    assert_eq!(read(&disk, &root, "sub/b.txt"), Err(ErrorKind::NotFound));
    disk.mkdir("/srv/sub").unwrap();
    assert_eq!(disk.list(&root, b"sub", 1).unwrap(), []);
    assert!(disk.mkdir("/srv/a.txt/below").is_err() && disk.write("/srv/sub", "").is_err());
}

#[test]
fn reading_beyond_the_end_is_the_end() {
    let (disk, root) = disk();
    let file = disk.open_beneath(&root, b"a.txt").unwrap();
    let mut bytes = [0; 8];
    assert_eq!(disk.read_at(&file, &mut bytes, 1).unwrap(), 2);
    assert_eq!(disk.read_at(&file, &mut bytes, 3).unwrap(), 0);
    assert_eq!(disk.read_at(&file, &mut bytes, u64::MAX).unwrap(), 0);
}
