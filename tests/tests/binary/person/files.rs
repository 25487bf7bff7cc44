//! Files: put, ls, get, rm, mv, cp, and their error messages.

use plimsoll_tests::binary::{EngineKind, Server, among_others};
use plimsoll_tests::on_each_engine;
use plimsoll_tests::tree::noise;

use super::{Person, Workspace, lines, serving};

/// A file is uploaded, downloaded and listed, small and large.
fn files_come_back_as_they_were_sent(kind: EngineKind) {
    let place = Workspace::open(kind);
    let alice = Person::at(&place.server.url(""), "alice");
    for (name, bytes) in [("empty", 0), ("small", 5_000), ("limit", 1 << 20), ("large", (9 << 20) + 7)] {
        alice.writes(name, noise(bytes as u64, bytes));
        let put = alice.json(&["put", name]);
        assert_eq!((&put["files"][0]["bytes"], &put["failed"]), (&bytes.into(), &serde_json::json!([])));
        let got = alice.json(&["get", name, "back/"]);
        assert_eq!(got["files"][0]["received"], bytes);
        assert!(alice.reads(&format!("back/{name}")) == noise(bytes as u64, bytes), "{name}");
    }
    assert_eq!(lines(alice.types(&["ls"])), ["empty", "large", "limit", "small"]);
    assert_eq!(std::fs::read_dir(alice.path("back")).unwrap().count(), 4, "no part is left");
    alice.types(&["rm", "small", "limit"]).well();
    assert_eq!(lines(alice.types(&["ls"])), ["empty", "large"]);
}

on_each_engine!(forks: files_come_back_as_they_were_sent);

#[test]
fn a_file_that_cannot_be_sent_is_reported_with_the_next_step() {
    let _permit = among_others();
    let place = Workspace::open(EngineKind::Epoll);
    let alice = Person::at(&place.server.url(""), "alice");
    alice.writes("small", "small");
    alice.writes("large", noise(1, (1 << 20) + 1));
    alice.fails(&["put", "missing"], 1, &["missing: There is no such file here. Check the name"]);
    for name in ["small", "large"] {
        alice.fails(&["put", name, "no/folder/"], 1, &["first: plimsoll mkdir -p no/folder\n"]);
    }
}

#[test]
fn where_files_go_follows_from_what_was_typed() {
    let _permit = among_others();
    let place = Workspace::open(EngineKind::Epoll);
    let alice = Person::at(&place.server.url(""), "alice");
    for name in ["a", "b", "c"] {
        alice.writes(name, name);
    }
    alice.types(&["mkdir", "docs"]).well();
    alice.types(&["put", "a"]).well();
    alice.types(&["put", "a", "renamed"]).well();
    // As for cp: with a file as the last argument, b is stored under that name.
    alice.types(&["put", "b", "c"]).well();
    alice.types(&["put", "a", "b", "docs/"]).well();
    alice.types(&["put", "c", "docs"]).well();
    alice.types(&["put", "c", "--to", "docs/d"]).well();
    assert_eq!(lines(alice.types(&["ls"])), ["docs/", "a", "c", "renamed"]);
    assert_eq!(lines(alice.types(&["ls", "docs"])), ["a", "b", "c", "d"]);
    alice.types(&["get", "c", "fourth"]).well();
    assert_eq!(alice.reads("fourth"), b"b");
    alice.types(&["get", "docs/d", "docs/a", "back/"]).well();
    alice.types(&["get", "renamed", "./other"]).well();
    alice.types(&["get", "docs/a", "--to", "third"]).well();
    assert_eq!((alice.reads("back/d"), alice.reads("back/a")), (b"c".to_vec(), b"a".to_vec()));
    assert_eq!((alice.reads("other"), alice.reads("third")), (b"a".to_vec(), b"a".to_vec()));
    alice.fails(&["put", "a", "b", "--to", "nowhere"], 2, &["end it with a slash"]);
    for command in ["put", "get", "cp", "mv"] {
        alice.fails(&[command, "a", "c", "nowhere"], 2, &["nowhere", "end it with a slash"]);
    }
    alice.fails(&["put", "-"], 2, &["plimsoll put - PATH"]);
    alice.fails(&["put", "a", "../up"], 2, &["\"..\""]);
}

#[test]
fn a_failed_path_is_reported_and_the_others_are_done() {
    let _permit = among_others();
    let place = Workspace::open(EngineKind::Epoll);
    let alice = Person::at(&place.server.url(""), "alice");
    alice.writes("a", "a");
    alice.writes("sub/b", "b");
    alice.fails(&["put", "missing", "sub", "a", "/"], 1, &["missing", "sub", "put -r", "2 things"]);
    alice.fails(&["put", "a", "none/a"], 1, &["plimsoll mkdir -p"]);
    alice.fails(&["get", "missing", "a", "back/"], 1, &["missing", "no such file"]);
    assert_eq!(alice.reads("back/a"), b"a");
    alice.fails(&["rm", "missing"], 1, &["missing"]);
    alice.fails(&["ls", "missing"], 1, &["missing"]);
    let failed = alice.types(&["put", "missing", "a", "/", "--json"]);
    let report: serde_json::Value = serde_json::from_slice(&failed.stdout).unwrap();
    assert_eq!((failed.status.code(), &report["failed"][0]["file"]), (Some(1), &"missing".into()));
    assert_eq!(report["files"][0]["path"], "a");
}

#[test]
fn a_file_over_the_quota_is_reported_before_it_is_sent() {
    let _permit = among_others();
    let data = tempfile::tempdir().unwrap();
    let mut command = serving(EngineKind::Epoll, data.path(), "127.0.0.1:0");
    command.args(["--quota-bytes", "3MiB"]);
    let server = Server::spawn(command);
    let alice = Person::at(&server.url(""), "alice");
    alice.writes("small", vec![1; 1 << 20]);
    alice.writes("large", vec![1; 4 << 20]);
    alice.fails(&["put", "large", "small", "/"], 1, &["large", "quota", "Delete something"]);
    assert_eq!(lines(alice.types(&["ls"])), ["small"]);
}

#[test]
fn a_local_file_is_replaced_once_the_download_is_complete() {
    let _permit = among_others();
    let place = Workspace::open(EngineKind::Epoll);
    let alice = Person::at(&place.server.url(""), "alice");
    alice.writes("a", "new");
    alice.types(&["put", "a"]).well();
    alice.writes("a", "old and longer");
    alice.types(&["get", "a"]).well();
    assert_eq!(alice.reads("a"), b"new");
    alice.writes("folder/a/b", "");
    alice.fails(&["get", "a", "folder"], 1, &["is a folder here"]);
}

#[test]
fn listings_are_for_people_and_for_programs() {
    let _permit = among_others();
    let place = Workspace::open(EngineKind::Epoll);
    let alice = Person::at(&place.server.url(""), "alice");
    alice.writes("a", vec![0; 5 << 10]);
    alice.types(&["put", "a"]).well();
    alice.types(&["mkdir", "sub"]).well();
    let long = alice.types(&["ls", "-l"]).well().text();
    assert!(long.contains("5.00 KiB") && long.contains("sub/") && long.contains("folder"), "{long}");
    assert!(alice.types(&["ls", "-l", "--bytes"]).well().text().contains("5120"));
    let listing = alice.json(&["ls"]);
    assert_eq!((&listing["entries"][1]["name"], &listing["entries"][1]["size"]), (&"a".into(), &5120.into()));
    assert_eq!(lines(alice.types(&["ls", "a"])), ["a"], "a file is listed by itself");
}

#[test]
fn files_move_and_are_copied_on_the_server() {
    let _permit = among_others();
    let place = Workspace::open(EngineKind::Epoll);
    let alice = Person::at(&place.server.url(""), "alice");
    alice.writes("a", "a");
    alice.writes("b", "b");
    alice.types(&["put", "a", "b", "/"]).well();
    alice.types(&["mkdir", "-p", "docs/deep/er"]).well();
    alice.types(&["mkdir", "-p", "docs/deep"]).well();
    alice.fails(&["mkdir", "docs"], 1, &["taken"]);
    alice.types(&["mv", "a", "docs/"]).well();
    alice.types(&["cp", "b", "docs/a", "docs/deep"]).well();
    alice.types(&["cp", "b", "docs/a"]).well();
    alice.types(&["get", "docs/a", "docs/deep/b", "back/"]).well();
    assert_eq!((alice.reads("back/a"), alice.reads("back/b")), (b"b".to_vec(), b"b".to_vec()));
    alice.fails(&["get", "docs/a", "docs/deep/a", "back/"], 1, &["docs/deep/a", "just put there"]);
    alice.writes("sub/a", "other");
    alice.fails(&["put", "a", "sub/a", "/"], 1, &["sub/a", "just put there"]);
    alice.fails(&["cp", "docs", "copy"], 1, &["cp -r"]);
    alice.types(&["cp", "-r", "docs", "copy"]).well();
    alice.types(&["mv", "copy", "moved"]).well();
    assert_eq!(lines(alice.types(&["ls", "moved/deep"])), ["er/", "a", "b"]);
    alice.fails(&["mv", "docs", "b"], 1, &["b is a file", "another name"]);
    alice.types(&["mkdir", "moved/docs"]).well();
    alice.fails(&["mv", "docs", "b", "moved"], 1, &["moved/docs is a folder", "another name"]);
    assert!(lines(alice.types(&["ls", "moved"])).contains(&"b".to_owned()), "the rest is done");
    alice.fails(&["rm", "moved"], 1, &["rm -r"]);
    alice.types(&["rm", "-r", "moved"]).well();
    alice.fails(&["ls", "moved"], 1, &[]);
}
