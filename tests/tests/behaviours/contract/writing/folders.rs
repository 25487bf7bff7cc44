//! The contents of folders, and calls on missing ones.

use std::collections::BTreeMap;
use std::io::ErrorKind::{DirectoryNotEmpty, IsADirectory, NotADirectory, NotFound, QuotaExceeded};

use plimsoll_io::{Existing, File, FileKind, Fs};

use super::refused;

pub(super) fn names_are_listed_with_their_own_kind_also_links(fs: &dyn Fs, root: &File) {
    let names: BTreeMap<Vec<u8>, FileKind> =
        fs.names(root, 99).unwrap().into_iter().map(|entry| (entry.name, entry.stat.kind)).collect();
    let (file, folder, other) = (FileKind::File, FileKind::Folder, FileKind::Other);
    let all = [
        ("dangling", other),
        ("empty", folder),
        ("file", file),
        ("folder", folder),
        ("link", other),
        ("other", file),
        ("pipe", other),
        ("to-folder", other),
    ];
    assert_eq!(names, all.map(|(name, kind)| (name.into(), kind)).into());
    for (name, kind) in all {
        assert_eq!(fs.stat_name(root, name.as_bytes()).unwrap().kind, kind, "{name}");
    }
    assert_eq!(fs.stat_name(root, b"other").unwrap().size, 10);
    let opened = fs.stat(&fs.open_beneath(root, b"other").unwrap()).unwrap();
    assert_eq!(fs.stat_name(root, b"other").unwrap(), opened);
    assert_eq!(refused(fs.stat_name(root, b"none")), NotFound);
}

pub(super) fn names_are_bounded(fs: &dyn Fs, root: &File) {
    assert_eq!(fs.names(root, 8).unwrap().len(), 8);
    assert_eq!(refused(fs.names(root, 7)), QuotaExceeded);
    let empty = fs.open_beneath(root, b"empty").unwrap();
    assert_eq!(fs.names(&empty, 0).unwrap(), []);
}

pub(super) fn only_an_empty_folder_is_removed_and_only_as_a_folder(fs: &dyn Fs, root: &File) {
    assert_eq!(refused(fs.remove_folder(root, b"folder")), DirectoryNotEmpty);
    assert_eq!(refused(fs.remove_folder(root, b"file")), NotADirectory);
    assert_eq!(refused(fs.remove_folder(root, b"none")), NotFound);
    assert_eq!(refused(fs.remove_file(root, b"empty")), IsADirectory);
    assert_eq!(refused(fs.remove_file(root, b"none")), NotFound);
    fs.remove_folder(root, b"empty").unwrap();
    fs.remove_file(root, b"pipe").unwrap();
    assert_eq!(fs.names(root, 99).unwrap().len(), 6);
    fs.make_folder(root, b"empty").unwrap();
    assert_eq!(fs.stat_name(root, b"empty").unwrap().kind, FileKind::Folder);
}

pub(super) fn a_folder_is_below_itself_and_the_folders_around_it(fs: &dyn Fs, root: &File) {
    fs.make_folder(&fs.open_beneath(root, b"folder").unwrap(), b"deep").unwrap();
    let open = |name: &str| fs.open_beneath(root, name.as_bytes()).unwrap();
    for (folder, above, is_below) in [
        ("folder", "folder", true),
        ("folder/deep", "folder", true),
        ("to-folder/deep", "folder", true),
        ("folder/deep", "to-folder", true),
        ("folder/deep", "", true),
        ("folder", "folder/deep", false),
        ("", "folder", false),
        ("empty", "folder", false),
    ] {
        assert_eq!(fs.is_below(&open(folder), &open(above)).unwrap(), is_below, "{folder} {above}");
    }
}

pub(super) fn nothing_is_made_in_a_folder_that_is_gone(fs: &dyn Fs, root: &File) {
    let gone = fs.open_beneath(root, b"empty").unwrap();
    fs.remove_folder(root, b"empty").unwrap();
    assert_eq!(refused(fs.create(&gone, b"new")), NotFound);
    assert_eq!(refused(fs.make_folder(&gone, b"new")), NotFound);
    assert_eq!(refused(fs.rename(root, b"file", &gone, b"new", Existing::Kept)), NotFound);
    assert_eq!(refused(fs.rename(root, b"file", &gone, b"new", Existing::Replaced)), NotFound);
    assert_eq!(refused(fs.open_to_write(&gone, b"file")), NotFound);
    assert!(fs.stat_name(root, b"file").is_ok());
    assert_eq!(fs.names(&gone, 9).unwrap(), []);
}

pub(super) fn a_file_is_no_place_for_names(fs: &dyn Fs, root: &File) {
    let file = fs.open_beneath(root, b"file").unwrap();
    assert_eq!(refused(fs.create(&file, b"new")), NotADirectory);
    assert_eq!(refused(fs.make_folder(&file, b"new")), NotADirectory);
    assert_eq!(refused(fs.names(&file, 9)), NotADirectory);
    assert_eq!(refused(fs.stat_name(&file, b"new")), NotADirectory);
    assert_eq!(refused(fs.remove_file(&file, b"new")), NotADirectory);
    assert_eq!(refused(fs.rename(root, b"other", &file, b"new", Existing::Kept)), NotADirectory);
}

pub(super) fn there_is_room_on_the_disk(fs: &dyn Fs, root: &File) {
    let space = fs.space(root).unwrap();
    assert!(space.bytes > 0 && space.files > 0, "{space:?}");
    let file = fs.open_beneath(root, b"file").unwrap();
    assert!(fs.space(&file).unwrap().bytes > 0);
}
