//! MLSD and MLST: facts, and their selection.

use std::time::Duration;

use plimsoll_wire::ftp::facts::{Facts, mlst_line, push_mlsd};
use plimsoll_wire::ftp::listing::{Entry, EntryKind, Rights};
use proptest::prelude::*;

const ALL: Rights = Rights { read: true, write: true, remove: true };

fn file(name: &[u8]) -> Entry<'_> {
    let modified = Duration::from_secs(1_767_225_600);
    Entry { name, kind: EntryKind::File, size: 1234, modified, unique: (0xfd01, 0x2a), rights: ALL }
}

fn line(entry: &Entry<'_>, facts: &str) -> String {
    String::from_utf8(mlst_line(entry, Facts::parse(facts.as_bytes()))).unwrap()
}

#[test]
fn an_mlsd_entry_has_facts_a_space_and_the_name() {
    assert_eq!(
        mlst_line(&file(b" a;b=c"), Facts::default()).as_slice(),
        b"type=file;size=1234;modify=20260101000000;perm=adfrw;unique=fd01g2a;  a;b=c"
    );
    let folder = Entry { kind: EntryKind::Folder, ..file(b"docs") };
    let mut out = Vec::new();
    assert!(push_mlsd(&mut out, &folder, Facts::default()));
    assert_eq!(out, b"type=dir;modify=20260101000000;perm=cdeflmp;unique=fd01g2a; docs\r\n");
}

#[test]
fn opts_mlst_selects_the_facts() {
    let folder = Entry { kind: EntryKind::Folder, ..file(b"a") };
    assert_eq!(line(&file(b"a"), "size;type;"), "type=file;size=1234; a", "in the server's order");
    assert_eq!(line(&file(b"a"), "TYPE"), "type=file; a");
    assert_eq!(line(&file(b"a"), "type;fish;cakes;"), "type=file; a");
    assert_eq!(line(&file(b"a"), ""), " a");
    assert_eq!(line(&folder, "size;"), " a", "a folder's has none");
}

#[test]
fn feat_marks_the_selected_facts() {
    let all = Facts::default();
    assert_eq!(all.feature(), "MLST type*;size*;modify*;perm*;unique*;");
    assert_eq!(all.opts_text(), "MLST OPTS type;size;modify;perm;unique;");
    let some = Facts::parse(b"modify;TYPE;fish;");
    assert_eq!(some.feature(), "MLST type*;size;modify*;perm;unique;");
    assert_eq!(some.opts_text(), "MLST OPTS type;modify;");
    assert_eq!(Facts::parse(b"").opts_text(), "MLST OPTS");
    assert_eq!(Facts::parse(b"typed; type;type*").opts_text(), "MLST OPTS");
}

#[test]
fn the_perm_fact_lists_the_permitted_commands() {
    for (read, write, remove, of_file, of_folder) in [
        (true, true, true, "adfrw", "cdeflmp"),
        (true, false, false, "r", "el"),
        (false, true, false, "", "cm"),
        (false, false, true, "d", "dp"),
        (false, true, true, "adfw", "cdfmp"),
        (false, false, false, "", ""),
    ] {
        let rights = Rights { read, write, remove };
        for (kind, letters) in [(EntryKind::File, of_file), (EntryKind::Folder, of_folder)] {
            let entry = Entry { kind, rights, ..file(b"a") };
            assert_eq!(line(&entry, "perm;"), format!("perm={letters}; a"), "{rights:?}");
        }
    }
}

#[test]
fn a_name_with_a_line_end_is_not_listed() {
    let mut out = Vec::new();
    for name in [&b"a\nb"[..], b"a\r", b"\n"] {
        assert!(!push_mlsd(&mut out, &file(name), Facts::default()));
    }
    assert!(out.is_empty());
}

proptest! {
    #[test]
    fn everything_behind_the_first_space_is_the_name(
        name in any::<Vec<u8>>(),
        unique in any::<(u64, u64)>(),
        list in any::<Vec<u8>>(),
    ) {
        let mut out = Vec::new();
        let entry = Entry { unique, ..file(&name) };
        if push_mlsd(&mut out, &entry, Facts::parse(&list)) {
            let space = out.iter().position(|&byte| byte == b' ').unwrap();
            prop_assert_eq!(&out[space + 1..], &[&name[..], b"\r\n"].concat());
            prop_assert_eq!(out.iter().filter(|&&byte| byte == b'\n').count(), 1);
        } else {
            prop_assert!(out.is_empty() && name.iter().any(|byte| b"\r\n".contains(byte)));
        }
    }
}
