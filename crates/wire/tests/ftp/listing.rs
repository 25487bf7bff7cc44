//! LIST and NLST: one entry, one line.

use std::time::Duration;

use plimsoll_wire::ftp::listing::{Entry, EntryKind, RECENT_DAYS, Rights, push_list, push_name};
use proptest::prelude::*;

/// The 20th of November 2026, 20:00:05.
const NOW: Duration = Duration::from_secs(1_795_204_805);

const ALL: Rights = Rights { read: true, write: true, remove: true };

fn file(name: &[u8]) -> Entry<'_> {
    Entry { name, kind: EntryKind::File, size: 1234, modified: NOW, unique: (1, 2), rights: ALL }
}

fn listed(entry: &Entry<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    push_list(&mut out, entry, "alice", NOW);
    out
}

#[test]
fn list_entries_have_the_format_of_ls() {
    let line = listed(&file(b"a b.txt"));
    assert_eq!(line.as_slice(), b"-rw-r--r-- 1 alice alice       1234 Nov 20 20:00 a b.txt\r\n");
    let folder = Entry { kind: EntryKind::Folder, size: 4096, ..file(b"docs") };
    assert_eq!(listed(&folder).as_slice(), b"drwxr-xr-x 1 alice alice       4096 Nov 20 20:00 docs\r\n");
}

#[test]
fn the_mode_of_an_entry_shows_only_permitted_operations() {
    let read = Rights { read: true, write: false, remove: false };
    let none = Rights { read: false, ..read };
    for (kind, rights, mode) in [
        (EntryKind::File, read, "-r--r--r--"),
        (EntryKind::Folder, read, "dr-xr-xr-x"),
        (EntryKind::File, none, "----------"),
        (EntryKind::Folder, none, "d---------"),
    ] {
        let line = listed(&Entry { kind, rights, ..file(b"a") });
        assert!(line.starts_with(mode.as_bytes()), "{mode}");
    }
}

#[test]
fn an_old_or_future_time_shows_the_year() {
    let day = Duration::from_secs(86_400);
    let back = NOW - day * u32::try_from(RECENT_DAYS).unwrap();
    let second = Duration::from_secs(1);
    for (modified, when) in [
        (NOW, "Nov 20 20:00"),
        (back, "May 24 20:00"),
        (back - second, "May 24  2026"),
        (NOW + second, "Nov 20  2026"),
        (Duration::ZERO, "Jan  1  1970"),
        (Duration::MAX, "Dec 31  9999"),
    ] {
        let line = String::from_utf8(listed(&Entry { modified, ..file(b"a") })).unwrap();
        assert!(line.contains(&format!(" {when} a\r\n")), "{line} has {when}");
    }
}

#[test]
fn a_size_wider_than_its_column_is_not_truncated() {
    let line = String::from_utf8(listed(&Entry { size: u64::MAX, ..file(b"a") })).unwrap();
    assert!(line.contains(" 18446744073709551615 "), "{line}");
}

#[test]
fn names_and_owners_cannot_break_the_columns_of_a_listing() {
    let line = listed(&file(b"a\r\n-rw-r--r-- 1 b"));
    assert!(line.ends_with(b" a??-rw-r--r-- 1 b\r\n"));
    let mut out = Vec::new();
    push_list(&mut out, &file(b"a"), "a b\r\n", NOW);
    assert!(out.starts_with(b"-rw-r--r-- 1 a?b?? a?b?? "));
}

#[test]
fn nlst_lists_names_that_later_commands_accept() {
    let mut out = Vec::new();
    assert!(push_name(&mut out, b"", b"a b"));
    assert!(push_name(&mut out, b"docs/", b"\xff"));
    assert_eq!(out, b"a b\r\ndocs/\xff\r\n");
    for (folder, name) in [(&b""[..], &b"a\nb"[..]), (b"", b"a\r"), (b"a\n/", b"b")] {
        assert!(!push_name(&mut out, folder, name));
    }
    assert_eq!(out, b"a b\r\ndocs/\xff\r\n");
}

proptest! {
    #[test]
    fn every_entry_is_one_line(
        name in any::<Vec<u8>>(),
        owner in any::<String>(),
        modified in any::<u64>(),
        size in any::<u64>(),
    ) {
        let mut out = Vec::new();
        let entry = Entry { size, modified: Duration::from_secs(modified), ..file(&name) };
        push_list(&mut out, &entry, &owner, NOW);
        prop_assert_eq!(out.iter().filter(|&&byte| byte == b'\n' || byte == b'\r').count(), 2);
        prop_assert!(out.ends_with(b"\r\n"));
    }
}
