//! The contents of files.

use std::time::Duration;

use plimsoll_io::{File, Fs};
use plimsoll_tests::tree::noise;

use super::{read, read_all, write_all};

pub(super) fn a_new_file_is_empty_and_takes_bytes_anywhere(fs: &dyn Fs, root: &File) {
    let file = fs.create(root, b"new").unwrap();
    assert_eq!((fs.stat(&file).unwrap().size, read_all(fs, &file)), (0, vec![]));
    write_all(fs, &file, b"some text", 0);
    write_all(fs, &file, b"TEXT", 5);
    write_all(fs, &file, b"!", 12);
    assert_eq!(read_all(fs, &file), b"some TEXT\0\0\0!");
    assert_eq!(fs.write_at(&file, b"", 99).unwrap(), 0);
    let again = fs.open_to_write(root, b"new").unwrap();
    write_all(fs, &again, b"S", 0);
    assert_eq!(read(fs, root, "new"), b"Some TEXT\0\0\0!");
    assert_eq!(fs.stat(&file).unwrap().size, 13);
}

pub(super) fn a_file_is_cut_and_lengthened_with_zeros(fs: &dyn Fs, root: &File) {
    let file = fs.open_to_write(root, b"file").unwrap();
    let before = fs.stat(&file).unwrap();
    fs.set_len(&file, 2).unwrap();
    fs.set_len(&file, 4).unwrap();
    assert_eq!(read(fs, root, "file"), b"te\0\0");
    let after = fs.stat(&file).unwrap();
    assert!(after.modified >= before.modified && after.changed >= before.changed);
    assert_eq!((after.size, after.inode), (4, before.inode));
}

pub(super) fn a_copy_is_whole_and_leaves_what_is_behind_it(fs: &dyn Fs, root: &File) {
    let (from, to) = (fs.create(root, b"from").unwrap(), fs.create(root, b"to").unwrap());
    let bytes = noise(3, 300_000);
    write_all(fs, &from, &bytes, 0);
    assert_eq!(fs.copy(&from, &to, u64::MAX).unwrap(), 300_000);
    assert!(read_all(fs, &to) == bytes);
    let short = fs.open_beneath(root, b"file").unwrap();
    assert_eq!(fs.copy(&short, &to, 5).unwrap(), 4);
    assert!(read_all(fs, &to) == [b"text", &bytes[4..]].concat());
    let empty = fs.create(root, b"empty-file").unwrap();
    assert_eq!(fs.copy(&empty, &to, u64::MAX).unwrap(), 0);
    let part = fs.create(root, b"part").unwrap();
    assert_eq!(fs.copy(&from, &part, 200_001).unwrap(), 200_001);
    assert!(read_all(fs, &part) == bytes[..200_001]);
    assert_eq!(fs.copy(&short, &part, 0).unwrap(), 0);
    assert!(read_all(fs, &part) == bytes[..200_001]);
}

pub(super) fn a_set_modification_time_is_reported(fs: &dyn Fs, root: &File) {
    let file = fs.open_to_write(root, b"file").unwrap();
    let before = fs.stat(&file).unwrap();
    let time = Duration::new(1_000_000_000, 5000);
    fs.set_modified(&file, time).unwrap();
    let set = fs.stat(&file).unwrap();
    assert_eq!((set.modified, set.size), (time, 4));
    assert!(set.changed >= before.changed && set.changed > time, "nobody can set the other one");
    write_all(fs, &file, b"T", 0);
    assert!(fs.stat(&file).unwrap().modified > time);
}

pub(super) fn a_file_opened_for_reading_cannot_be_written(fs: &dyn Fs, root: &File) {
    let file = fs.open_beneath(root, b"file").unwrap();
    let other = fs.open_beneath(root, b"other").unwrap();
    assert!(fs.write_at(&file, b"x", 0).is_err());
    assert!(fs.set_len(&file, 0).is_err());
    assert!(fs.copy(&other, &file, u64::MAX).is_err());
    assert_eq!(read(fs, root, "file"), b"text");
}

pub(super) fn an_open_file_outlives_its_name(fs: &dyn Fs, root: &File) {
    let file = fs.open_to_write(root, b"file").unwrap();
    fs.remove_file(root, b"file").unwrap();
    write_all(fs, &file, b"T", 0);
    assert_eq!(read_all(fs, &file), b"Text");
    let new = fs.create(root, b"file").unwrap();
    assert_ne!(fs.stat(&new).unwrap().inode, fs.stat(&file).unwrap().inode);
    assert_eq!(read(fs, root, "file"), b"");
    fs.sync(&file).unwrap();
}

pub(super) fn every_open_file_and_folder_can_be_synced(fs: &dyn Fs, root: &File) {
    let file = fs.create(root, b"new").unwrap();
    write_all(fs, &file, b"text", 0);
    let read_only = fs.open_beneath(root, b"other").unwrap();
    let folder = fs.open_beneath(root, b"folder").unwrap();
    for opened in [&file, &folder, &read_only, root, &file] {
        fs.sync(opened).unwrap();
    }
}
