//! The disk with the accounts' file is full to the last byte, under load.
//!
//! The disk is a small tmpfs, which only root may mount. Changes must be refused as for a full disk, and
//! existing credentials must work. With free space, all requests succeed again. The file must stay intact.

use std::path::Path;

use plimsoll_auth::limits::DIRECTORY_BUSY_TIME;
use plimsoll_tests::binary::visitor::base64;
use plimsoll_tests::binary::{EngineKind, Member, Server, tool};
use plimsoll_tests::on_each_engine;
use serde_json::json;

use super::check::{check, until_ready};
use super::load::{Load, People};
use super::{CONFIRMED, REFUSED, begin};
use crate::faults::full_disk::{Small, fill};

/// The statuses of a refusal for lack of space.
const NO_ROOM: &[u16] = &[507];
fn assert_no_room(alice: &mut Member, (method, target): (&str, &str), body: &serde_json::Value) {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let refused = alice.ask(method, target, "", body.as_bytes());
    assert_eq!(refused.status, 507, "{method} {target}: {}", refused.text());
    assert!(refused.text().contains("disk") && refused.text().contains("full"), "{}", refused.text());
}

/// Creates alice with a private file and a shared one.
fn who_shares(server: &Server) -> Member {
    let (mut alice, carol) = (Member::new(server, "alice"), Member::new(server, "carol"));
    for name in ["own", "shared"] {
        assert_eq!(alice.put(&format!("/files/{name}.txt"), name.as_bytes()).status, 201);
    }
    let share = json!({ "path": "/shared.txt", "with": carol.name, "permission": "read" }).to_string();
    let given = alice.ask("POST", "/api/shares", "", share.as_bytes());
    assert_eq!(given.status, 201, "{}", given.text());
    alice
}

/// Asserts that requests that need no space succeed, and that all others are refused without effect.
fn assert_full(alice: &mut Member) {
    let account = |name: &str, password: &str| json!({ "name": name, "password": password });
    assert_no_room(alice, ("POST", "/api/accounts"), &account("bob", "battery staple"));
    assert_no_room(alice, ("POST", "/api/sessions"), &account("alice", "correct horse"));
    let passwords = json!({ "old": "correct horse", "new": "battery staple" });
    assert_no_room(alice, ("PUT", "/api/password"), &passwords);
    // A share must end before its file is removed, and ending one needs space.
    assert_no_room(alice, ("DELETE", "/files/shared.txt"), &json!(null));
    assert_eq!(alice.get("/files/shared.txt").body, b"shared");
    assert_eq!(alice.ask("DELETE", "/files/own.txt", "", b"").status, 204);
    assert_eq!(alice.get("/api/whoami").status, 200);
    let basic = format!("Authorization: Basic {}\r\n", base64(b"alice:correct horse"));
    let shown = alice.visitor.ask("GET", "/files/shared.txt", &basic, b"").unwrap();
    assert_eq!(shown.status, 200, "a password of each request: {}", shown.text());
    let wrong = alice.ask("POST", "/api/sessions", "", account("alice", "a guess").to_string().as_bytes());
    assert_eq!(wrong.status, 401, "{}", wrong.text());
    // A logout needs no space.
    assert_eq!(alice.ask("DELETE", "/api/sessions/current", "", b"").status, 204);
    assert_eq!(alice.get("/api/whoami").status, 401);
}

/// Runs SQLite's own integrity check.
fn assert_whole(file: &Path) {
    let look = "import sqlite3, sys
print(sqlite3.connect(sys.argv[1]).execute('PRAGMA integrity_check').fetchall())";
    let output = tool::run(tool("python3").args(["-c", look]).arg(file)).well().text();
    assert_eq!(output.trim(), "[('ok',)]");
}

fn checked(server: &Server, people: &mut People) {
    until_ready(&[server]);
    check(&Load::at(&[server], DIRECTORY_BUSY_TIME, &[]), people);
}

fn a_full_disk_loses_no_account_and_admits_no_unknown_caller(engine: EngineKind) {
    let folder = tempfile::tempdir().unwrap();
    let Some(small) = Small::at(folder.path()) else { return };
    let (mut people, _) = begin(&format!("a full disk under {engine}"));
    let (data, filler) = (small.0.join("data"), small.0.join("filler"));
    let start = || Server::on_data(engine, &data, &["--transfer-log", "off"]);
    let server = start();
    let alice = who_shares(&server);
    let load = Load::at(&[&server], DIRECTORY_BUSY_TIME, NO_ROOM);
    people.live(&load, || {
        load.until_confirmed(CONFIRMED);
        // SQLite can still use pages that it allocated before.
        std::thread::scope(|scope| {
            let refused = scope.spawn(|| load.until_refused(REFUSED));
            while !refused.is_finished() {
                fill(&filler);
            }
        });
        assert_full(&mut alice.again(&server));
        load.until_refused(REFUSED);
        std::fs::remove_file(&filler).unwrap();
        load.until_confirmed(CONFIRMED);
    });
    checked(&server, &mut people);
    drop(server);
    checked(&start(), &mut people);
    assert_whole(&data.join("directory.sqlite"));
}

on_each_engine!(forks: a_full_disk_loses_no_account_and_admits_no_unknown_caller);
