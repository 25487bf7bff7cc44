//! The trash by command, across a restart and a reload of the server.

use plimsoll_tests::binary::{EngineKind, Server, among_others};
use plimsoll_tests::on_each_engine;

use super::{Person, Workspace, lines, serving};

fn deleted_files_are_listed_restored_and_deleted_for_good(kind: EngineKind) {
    let place = Workspace::open(kind);
    let alice = Person::at(&place.server.url(""), "alice");
    for name in ["a", "b", "docs/c"] {
        alice.writes(name, name);
    }
    alice.types(&["put", "-r", "a", "b", "docs", "/"]).well();
    alice.types(&["rm", "-r", "a", "docs"]).well();
    alice.types(&["rm", "--forever", "b"]).well();
    assert!(lines(alice.types(&["ls"])).is_empty());
    let listed = lines(alice.types(&["trash"]));
    assert_eq!(listed.len(), 2, "{listed:?}");
    assert!(listed.iter().any(|line| line.ends_with("  /a")), "{listed:?}");
    assert!(listed.iter().any(|line| line.ends_with("  /docs/")), "{listed:?}");
    let entries = alice.json(&["trash", "list"])["entries"].as_array().unwrap().clone();
    let id = |path: &str| {
        let entry = entries.iter().find(|entry| entry["path"] == path);
        entry.expect("it is listed")["id"].as_str().unwrap().to_owned()
    };
    let (a, docs) = (id("/a"), id("/docs"));
    assert_eq!(alice.types(&["trash", "restore", &docs]).well().text(), "Restored to /docs\n");
    alice.types(&["put", "a"]).well();
    alice.fails(&["trash", "restore", &a], 1, &["that path", "PATH"]);
    assert_eq!(alice.json(&["trash", "restore", &a, "again"])["path"], "/again");
    assert_eq!(lines(alice.types(&["ls"])), ["docs/", "a", "again"]);
    alice.types(&["get", "docs/c", "again", "back/"]).well();
    assert_eq!((alice.reads("back/c"), alice.reads("back/again")), (b"docs/c".to_vec(), b"a".to_vec()));
    alice.fails(&["trash", "restore", &a], 1, &["plimsoll trash"]);
    alice.fails(&["trash", "rm", "../x"], 2, &["id"]);
    alice.types(&["rm", "a", "again"]).well();
    let left = alice.json(&["trash"])["entries"].as_array().unwrap().clone();
    let first = left[0]["id"].as_str().unwrap();
    assert_eq!(alice.json(&["trash", "rm", first])["ids"][0], *first);
    alice.types(&["trash", "empty"]).well();
    assert!(lines(alice.types(&["trash"])).is_empty());
    let trash = place.data.path().join("accounts/alice/pending/trash");
    assert_eq!(std::fs::read_dir(trash).unwrap().count(), 0);
}

on_each_engine!(forks: deleted_files_are_listed_restored_and_deleted_for_good);

#[test]
fn the_trash_outlives_a_restart_and_a_server_without_one_deletes_for_good() {
    let _permit = among_others();
    let data = tempfile::tempdir().unwrap();
    let server = Server::spawn(serving(EngineKind::Epoll, data.path(), "127.0.0.1:0"));
    let mut alice = Person::at(&server.url(""), "alice");
    alice.writes("a", "a");
    alice.types(&["put", "a"]).well();
    alice.types(&["rm", "a"]).well();
    drop(server);
    let server = Server::spawn(serving(EngineKind::Epoll, data.path(), "127.0.0.1:0"));
    alice.server = server.url("");
    alice.types(&["login", "alice"]).well();
    assert_eq!(lines(alice.types(&["trash"])).len(), 1);
    drop(server);
    let mut command = serving(EngineKind::Epoll, data.path(), "127.0.0.1:0");
    command.args(["--trash-days", "0"]);
    let server = Server::spawn(command);
    alice.server = server.url("");
    alice.types(&["login", "alice"]).well();
    alice.types(&["put", "a"]).well();
    alice.types(&["rm", "a"]).well();
    let trash = data.path().join("accounts/alice/pending/trash");
    let emptied = || std::fs::read_dir(&trash).unwrap().count() == 0;
    assert!((0..100).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(50));
        emptied()
    }));
}
