//! Folders with all their contents, uploaded and downloaded, with names of any bytes.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::Path;

use plimsoll_tests::binary::{EngineKind, among_others};
use plimsoll_tests::on_each_engine;
use plimsoll_tests::tree::noise;

use super::{Person, Workspace, lines};

/// Returns each path below a folder with its bytes, or `None` for a folder.
fn everything(root: &Path) -> BTreeMap<Vec<u8>, Option<Vec<u8>>> {
    let mut all = BTreeMap::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(root).unwrap().as_os_str().to_owned().into_vec();
            if path.is_dir() {
                all.insert(name, None);
                folders.push(path);
            } else {
                all.insert(name, Some(std::fs::read(&path).unwrap()));
            }
        }
    }
    all
}

fn a_folder_comes_back_byte_for_byte(kind: EngineKind) {
    let place = Workspace::open(kind);
    let alice = Person::at(&place.server.url(""), "alice");
    let root = alice.path("tree");
    for name in ["empty/folder", "deep/er/still", "with space"] {
        std::fs::create_dir_all(root.join(name)).unwrap();
    }
    let names: [&[u8]; 8] = [
        b"a",
        b"deep/er/still/b",
        b"with space/%41?#&",
        "für 日本".as_bytes(),
        b"caf\xe9",
        b"a:b",
        b".hidden",
        b"\"'\\",
    ];
    for (at, name) in names.iter().enumerate() {
        std::fs::write(root.join(OsStr::from_bytes(name)), noise(at as u64, at * 1000)).unwrap();
    }
    std::fs::write(root.join("large"), noise(9, 3 << 20)).unwrap();
    for number in 0..200 {
        std::fs::write(root.join(format!("deep/{number}")), format!("{number}")).unwrap();
    }
    alice.types(&["put", "-r", "tree", "kept/in/"]).well();
    alice.types(&["get", "-r", "kept/in/tree", "back/"]).well();
    assert_eq!(everything(&root), everything(&alice.path("back/tree")));
    // Repeated: nothing is nested, and nothing is lost.
    alice.types(&["put", "-r", "tree", "again"]).well();
    alice.types(&["put", "-r", "tree", "again"]).well();
    alice.types(&["get", "-r", "again", "back/"]).well();
    assert_eq!(everything(&root), everything(&alice.path("back/again")));
}

on_each_engine!(a_folder_comes_back_byte_for_byte, names_are_found_in_the_home_and_in_a_shared_folder);

#[test]
fn entries_of_a_folder_that_cannot_be_sent_are_reported() {
    let _permit = among_others();
    let place = Workspace::open(EngineKind::Epoll);
    let alice = Person::at(&place.server.url(""), "alice");
    alice.writes("tree/good", "good");
    alice.writes("tree/bad\nname", "bad");
    std::os::unix::fs::symlink(alice.path("tree"), alice.path("tree/loop")).unwrap();
    std::os::unix::fs::symlink("good", alice.path("tree/link")).unwrap();
    alice.fails(&["put", "-r", "tree"], 1, &["bad\\nname", "control character", "loop", "2 things"]);
    assert_eq!(lines(alice.types(&["ls", "tree"])), ["good", "link"]);
    alice.fails(&["get", "tree"], 1, &["get -r"]);
}

#[test]
fn the_whole_home_comes_with_one_command() {
    let _permit = among_others();
    let place = Workspace::open(EngineKind::Epoll);
    let alice = Person::at(&place.server.url(""), "alice");
    alice.writes("tree/a", "a");
    alice.writes("tree/sub/b", "b");
    alice.types(&["put", "-r", "tree", "/"]).well();
    alice.types(&["get", "-r", "/", "home/"]).well();
    assert_eq!((alice.reads("home/tree/a"), alice.reads("home/tree/sub/b")), (b"a".to_vec(), b"b".to_vec()));
}

fn names_are_found_in_the_home_and_in_a_shared_folder(kind: EngineKind) {
    let place = Workspace::open(kind);
    let (alice, bob) = (Person::at(&place.server.url(""), "alice"), Person::at(&place.server.url(""), "bob"));
    for name in ["docs/Report.txt", "docs/reports/a", "docs/gr\u{fc}\u{df}e:report", "other"] {
        alice.writes(name, "1234");
    }
    std::fs::write(alice.path("docs").join(OsStr::from_bytes(b"report\xe9")), "").unwrap();
    alice.types(&["put", "-r", "docs"]).well();
    alice.types(&["put", "other", "/a:report"]).well();
    let found = alice.types(&["find", "REPORT"]).well().stdout;
    let found: Vec<_> = found.split(|byte| *byte == b'\n').collect();
    let all: [&[u8]; 6] = [
        b"/a:report",
        b"docs/Report.txt",
        "docs/gr\u{fc}\u{df}e:report".as_bytes(),
        b"docs/reports/",
        b"docs/report\xe9",
        b"",
    ];
    assert_eq!(BTreeSet::from_iter(found), BTreeSet::from(all));
    assert_eq!(lines(alice.types(&["find", "port.T", "docs"])), ["docs/Report.txt"]);
    assert!(lines(alice.types(&["find", "nothing"])).is_empty());
    let rows = lines(alice.types(&["find", "-l", "--bytes", "report."]));
    assert!(rows[0].starts_with("file  4  20") && rows[0].ends_with("docs/Report.txt"), "{rows:?}");
    let json = alice.json(&["find", "reports"]);
    assert_eq!(
        (&json["entries"][0]["href"], json["entries"].as_array().unwrap().len()),
        (&"/files/docs/reports/".into(), 1)
    );

    bob.fails(&["find", "report", "alice:docs"], 1, &["alice:docs"]);
    alice.types(&["share", "docs", "bob"]).well();
    assert_eq!(lines(bob.types(&["find", "reports", "alice:docs"])), ["alice:docs/reports/"]);
    let found = lines(bob.types(&["find", "report.", "alice:docs"]));
    bob.types(&["get", &found[0]]).well();
    assert_eq!(bob.reads("Report.txt"), b"1234");
    alice.fails(&["find", ""], 1, &["1 to 255 bytes"]);
    alice.fails(&["find", "a", "missing"], 1, &["missing"]);
}
