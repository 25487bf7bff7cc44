//! Names of files, folders and links.

use std::io::ErrorKind::{
    AlreadyExists, DirectoryNotEmpty, InvalidFilename, InvalidInput, IsADirectory, NotADirectory, NotFound,
};

use plimsoll_io::{Existing, File, FileKind, Fs};

use super::{read, refused, write_all};

/// Renames an entry within one folder.
fn rename(fs: &dyn Fs, folder: &File, from: &str, to: &str, existing: Existing) -> std::io::Result<()> {
    fs.rename(folder, from.as_bytes(), folder, to.as_bytes(), existing)
}

pub(super) fn a_name_that_is_taken_is_not_given_again(fs: &dyn Fs, root: &File) {
    for name in ["file", "folder", "link", "dangling", "pipe"] {
        assert_eq!(refused(fs.create(root, name.as_bytes())), AlreadyExists, "{name}");
        assert_eq!(refused(fs.make_folder(root, name.as_bytes())), AlreadyExists, "{name}");
        assert_eq!(refused(rename(fs, root, "other", name, Existing::Kept)), AlreadyExists, "{name}");
    }
    assert_eq!(refused(rename(fs, root, "file", "file", Existing::Kept)), AlreadyExists);
    assert_eq!(read(fs, root, "file"), b"text");
    assert_eq!(refused(fs.stat_name(root, b"nowhere")), NotFound, "a link was followed");
}

pub(super) fn a_path_that_is_no_single_name_is_refused_by_every_call(fs: &dyn Fs, root: &File) {
    let long = [b'n'; 256];
    let names: [(&[u8], _); 10] = [
        (b"", InvalidInput),
        (b".", InvalidInput),
        (b"..", InvalidInput),
        (b"/", InvalidInput),
        (b"folder/inner", InvalidInput),
        (b"/file", InvalidInput),
        (b"folder/", InvalidInput),
        (b"a\0b", InvalidInput),
        (b"file\0", InvalidInput),
        (&long, InvalidFilename),
    ];
    for (name, kind) in names {
        let shown = name.escape_ascii();
        assert_eq!(refused(fs.create(root, name)), kind, "create {shown}");
        assert_eq!(refused(fs.open_to_write(root, name)), kind, "open {shown}");
        assert_eq!(refused(fs.stat_name(root, name)), kind, "stat {shown}");
        assert_eq!(refused(fs.make_folder(root, name)), kind, "make {shown}");
        assert_eq!(refused(fs.remove_file(root, name)), kind, "remove {shown}");
        assert_eq!(refused(fs.remove_folder(root, name)), kind, "remove folder {shown}");
        for existing in [Existing::Kept, Existing::Replaced] {
            assert_eq!(refused(fs.rename(root, name, root, b"new", existing)), kind, "from {shown}");
            assert_eq!(refused(fs.rename(root, b"file", root, name, existing)), kind, "to {shown}");
        }
    }
    assert_eq!(fs.names(root, 99).unwrap().len(), 8);
}

pub(super) fn a_name_may_have_255_bytes_of_any_kind(fs: &dyn Fs, root: &File) {
    let names: [&[u8]; 5] = [&[b'n'; 255], b"...", b"\xff\xfe", b"new\nline", b" "];
    for name in names {
        write_all(fs, &fs.create(root, name).unwrap(), name, 0);
        fs.rename(root, name, root, b"moved", Existing::Kept).unwrap();
        fs.rename(root, b"moved", root, name, Existing::Kept).unwrap();
        assert_eq!(fs.stat_name(root, name).unwrap().size, name.len() as u64);
        assert!(fs.names(root, 99).unwrap().iter().any(|entry| entry.name == name));
        fs.remove_file(root, name).unwrap();
    }
}

pub(super) fn only_files_are_opened_to_be_written(fs: &dyn Fs, root: &File) {
    for name in ["link", "dangling", "to-folder", "pipe", "none"] {
        assert_eq!(refused(fs.open_to_write(root, name.as_bytes())), NotFound, "{name}");
    }
    assert_eq!(refused(fs.open_to_write(root, b"folder")), IsADirectory);
    assert!(fs.open_to_write(root, b"file").is_ok());
}

pub(super) fn a_link_is_removed_and_moved_itself(fs: &dyn Fs, root: &File) {
    let folder = fs.open_beneath(root, b"folder").unwrap();
    fs.rename(root, b"link", &folder, b"link", Existing::Kept).unwrap();
    assert_eq!(fs.stat_name(&folder, b"link").unwrap().kind, FileKind::Other);
    fs.remove_file(&folder, b"link").unwrap();
    assert_eq!(read(fs, root, "file"), b"text");
    assert_eq!(refused(fs.remove_folder(root, b"to-folder")), NotADirectory);
    // A rename over a link replaces the link, not its target.
    rename(fs, root, "other", "to-folder", Existing::Replaced).unwrap();
    assert_eq!(read(fs, root, "to-folder"), b"other text");
    assert_eq!(read(fs, root, "folder/inner"), b"inner text");
}

pub(super) fn a_link_is_made_and_its_target_read(fs: &dyn Fs, root: &File) {
    for target in ["file", "nowhere", "../out", "/absolute"] {
        fs.make_link(root, b"new", target.as_bytes()).unwrap();
        assert_eq!(fs.read_link(root, b"new").unwrap(), target.as_bytes());
        assert_eq!(fs.stat_name(root, b"new").unwrap().kind, FileKind::Other);
        assert_eq!(refused(fs.make_link(root, b"new", b"file")), AlreadyExists);
        fs.remove_file(root, b"new").unwrap();
    }
    fs.make_link(root, b"new", b"file").unwrap();
    assert_eq!(read(fs, root, "new"), b"text");
    for name in ["file", "folder", "pipe"] {
        assert_eq!(refused(fs.read_link(root, name.as_bytes())), InvalidInput, "{name}");
    }
    assert_eq!(refused(fs.read_link(root, b"none")), NotFound);
}

pub(super) fn a_file_replaces_a_file_only_if_that_was_asked_for(fs: &dyn Fs, root: &File) {
    let folder = fs.open_beneath(root, b"folder").unwrap();
    let kept = fs.rename(root, b"file", &folder, b"inner", Existing::Kept);
    assert_eq!(refused(kept), AlreadyExists);
    assert_eq!((read(fs, root, "file"), read(fs, &folder, "inner")), (b"text".into(), b"inner text".into()));
    fs.rename(root, b"file", &folder, b"inner", Existing::Replaced).unwrap();
    assert_eq!(
        (refused(fs.stat_name(root, b"file")), read(fs, &folder, "inner")),
        (NotFound, b"text".into())
    );
    fs.rename(&folder, b"inner", root, b"back", Existing::Kept).unwrap();
    assert_eq!(read(fs, root, "back"), b"text");
    rename(fs, root, "back", "back", Existing::Replaced).unwrap();
    for existing in [Existing::Kept, Existing::Replaced] {
        assert_eq!(refused(rename(fs, root, "none", "other", existing)), NotFound);
    }
    assert_eq!((read(fs, root, "back"), read(fs, root, "other")), (b"text".into(), b"other text".into()));
}

pub(super) fn a_file_and_a_folder_never_replace_each_other(fs: &dyn Fs, root: &File) {
    assert_eq!(refused(rename(fs, root, "file", "empty", Existing::Replaced)), IsADirectory);
    assert_eq!(refused(rename(fs, root, "link", "empty", Existing::Replaced)), IsADirectory);
    assert_eq!(refused(rename(fs, root, "empty", "file", Existing::Replaced)), NotADirectory);
    assert_eq!(refused(rename(fs, root, "empty", "link", Existing::Replaced)), NotADirectory);
    assert_eq!((read(fs, root, "file"), fs.names(root, 99).unwrap().len()), (b"text".into(), 8));
}

pub(super) fn a_folder_replaces_an_empty_one_only_and_never_goes_into_itself(fs: &dyn Fs, root: &File) {
    let folder = fs.open_beneath(root, b"folder").unwrap();
    assert_eq!(refused(rename(fs, root, "empty", "folder", Existing::Replaced)), DirectoryNotEmpty);
    assert_eq!(refused(rename(fs, root, "folder", "empty", Existing::Kept)), AlreadyExists);
    for existing in [Existing::Kept, Existing::Replaced] {
        assert_eq!(refused(fs.rename(root, b"folder", &folder, b"self", existing)), InvalidInput);
        fs.make_folder(&folder, b"deep").unwrap();
        let deep = fs.open_beneath(root, b"folder/deep").unwrap();
        assert_eq!(refused(fs.rename(root, b"folder", &deep, b"self", existing)), InvalidInput);
        fs.remove_folder(&folder, b"deep").unwrap();
    }
    rename(fs, root, "folder", "empty", Existing::Replaced).unwrap();
    assert_eq!(read(fs, root, "empty/inner"), b"inner text");
    assert_eq!(refused(fs.stat_name(root, b"folder")), NotFound);
    rename(fs, root, "empty", "folder", Existing::Kept).unwrap();
    assert_eq!(read(fs, root, "folder/inner"), b"inner text");
}

pub(super) fn a_moved_file_keeps_its_inode_size_and_time(fs: &dyn Fs, root: &File) {
    let before = fs.stat_name(root, b"file").unwrap();
    // A file system's timestamps may be coarse: repeat the move until the change time advances.
    let moved = (0..1_000_000).find_map(|_| {
        rename(fs, root, "file", "moved", Existing::Kept).unwrap();
        rename(fs, root, "moved", "file", Existing::Replaced).unwrap();
        fs.stat_name(root, b"file").ok().filter(|moved| moved.changed > before.changed)
    });
    let moved = moved.expect("a move is a change");
    assert_eq!((moved.kind, moved.size, moved.inode), (before.kind, before.size, before.inode));
    assert_eq!(moved.modified, before.modified);
}
