//! `plimsoll directory` and the upgrade of a directory: moves between stores, dumps, refusals, and kills.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use plimsoll_tests::binary::{Done, EngineKind, Member, Server, among_others, command, is_long, tool, until};
use plimsoll_tests::database::{Database, Fresh, Transport};
use serde_json::Value;

use crate::databases::with_server;

const KINDS: [&str; 3] = ["mysql", "postgres", "redis"];

fn fresh(kind: &str) -> Fresh {
    with_server(kind, Database::fresh)
}

fn directory(args: &[&str]) -> Command {
    let mut directory = command();
    directory.arg("directory").args(args);
    directory
}

fn run(args: &[&str]) -> Done {
    tool::run(&mut directory(args))
}

/// Runs a command that must fail, and returns its standard error.
fn refused(args: &[&str]) -> String {
    let done = run(args);
    assert_eq!(done.status.code(), Some(1), "{args:?}: {}{}", done.text(), done.stderr);
    done.stderr
}

fn json(args: &[&str]) -> Value {
    serde_json::from_str(&run(&[args, &["--json"]].concat()).well().text()).unwrap()
}

/// The numbers of rows, and the digest.
fn rows(url: &str) -> Value {
    let mut checked = json(&["check", "--directory", url]);
    assert_eq!(checked["problems"], serde_json::json!([]), "{checked}");
    let names = ["accounts", "sessions", "shares", "networks", "digest"];
    names.map(|name| checked[name].take()).into_iter().collect()
}

fn serve(data: &Path, url: &str) -> Server {
    Server::on_data(EngineKind::Epoll, data, &["--directory", url, "--signup", "open"])
}

fn who_is(person: &mut Member) -> u16 {
    person.ask("GET", "/api/whoami", "", b"").status
}

fn share(alice: &mut Member) {
    assert_eq!(alice.put("/files/a", b"bytes").status, 201);
    let body = br#"{"path":"a","with":"bob","permission":"read"}"#;
    let reply = alice.ask("POST", "/api/shares", "Content-Type: application/json\r\n", body);
    assert_eq!(reply.status, 201, "{}", reply.text());
}

#[test]
fn a_directory_moves_through_every_store_with_its_sessions_and_shares() {
    let _permit = among_others();
    let (folder, data) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let file = |name: &str| format!("sqlite:{}", folder.path().join(name).display());
    let first = file("first.sqlite");
    let server = serve(data.path(), &first);
    let (mut alice, bob) = (Member::new(&server, "alice"), Member::new(&server, "bob"));
    share(&mut alice);
    drop(server);
    let expected = rows(&first);
    let mut stores: Vec<String> = KINDS.iter().map(|kind| fresh(kind).url).collect();
    stores.push(file("last.sqlite"));
    let mut from = first;
    for to in stores {
        let output = run(&["move", "--from", &from, "--to", &to]).well().text();
        assert!(output.contains("verified") && !output.contains("sesame"), "{output}");
        assert_eq!(rows(&to), expected, "{to}");
        let again = refused(&["move", "--from", &from, "--to", &to, "--replace", "--yes"]);
        assert!(again.contains("is not in use: it was moved to") && !again.contains("sesame"), "{again}");
        let old = tool::run(command().args(["account", "list", "--directory", &from]));
        assert!(old.stderr.contains("closed to servers: it was moved to"), "{}", old.stderr);
        let server = serve(data.path(), &to);
        assert_eq!((who_is(&mut alice.again(&server)), who_is(&mut bob.again(&server))), (200, 200), "{to}");
        assert_eq!(bob.again(&server).get("/shared/alice/a").body, b"bytes", "{to}");
        drop(server);
        from = to;
    }
}

#[test]
fn a_move_that_fails_leaves_the_source_open_and_a_full_target_as_it_was() {
    let _permit = among_others();
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| format!("sqlite:{}", folder.path().join(name).display());
    let (one, other) = (file("one.sqlite"), file("other.sqlite"));
    add_account(&one, "alice");
    add_account(&other, "bob");
    let (before, there) = (rows(&one), rows(&other));
    let output = refused(&["move", "--from", &one, "--to", &other]);
    assert!(output.contains("has rows already (accounts: 1,") && output.contains("--replace"), "{output}");
    let asked = run(&["move", "--from", &one, "--to", &other, "--replace"]);
    assert_eq!(asked.status.code(), Some(2), "{}", asked.stderr);
    assert!(asked.stderr.contains("add --yes"), "{}", asked.stderr);
    let unreachable = "postgres://me:sesame@/d?host=/nowhere";
    assert!(!refused(&["move", "--from", &one, "--to", unreachable]).contains("sesame"));
    assert!(
        refused(&["move", "--from", &file("none.sqlite"), "--to", &one]).contains("There is no directory")
    );
    assert_eq!((rows(&one), rows(&other)), (before.clone(), there));
    tool::run(command().args(["account", "list", "--directory", &one])).well();
    run(&["move", "--from", &one, "--to", &other, "--replace", "--yes", "--keep"]).well();
    assert_eq!((rows(&one), rows(&other)), (before.clone(), before));
    tool::run(command().args(["account", "list", "--directory", &one])).well();
}

/// Asserts that a directory whose restore was interrupted is reported, and is no source of rows.
fn assert_is_refused_as_partial(url: &str, data: &Path) {
    let new_folder = tempfile::tempdir().unwrap();
    let folder = new_folder.path();
    let checked = run(&["check", "--directory", url]);
    assert_eq!(checked.status.code(), Some(1), "{}", checked.text());
    assert!(checked.text().contains("problem   servers refuse it: rows were"), "{}", checked.text());
    let (dump, new) = (folder.join("new.dump"), format!("sqlite:{}", folder.join("new.sqlite").display()));
    let mut backup = command();
    backup.arg("backup").arg(folder.join("backup")).arg("--data").arg(data).args(["--directory", url]);
    let backup = tool::run(&mut backup);
    assert_eq!(backup.status.code(), Some(1), "{}", backup.text());
    let outputs = [
        refused(&["dump", dump.to_str().unwrap(), "--directory", url]),
        refused(&["move", "--from", url, "--to", &new]),
        backup.stderr,
    ];
    for output in outputs {
        assert!(output.contains("is not whole: rows were being written to it"), "{url}: {output}");
    }
}

/// Adds an account to a directory, and creates that if it is missing.
fn add_account(url: &str, name: &str) {
    let mut add = command();
    add.args(["account", "add", name, "--directory", url]).env("PLIMSOLL_PASSWORD", "correct horse");
    tool::run(&mut add).well();
}

#[test]
fn a_move_between_two_urls_of_one_store_or_from_an_empty_one_removes_nothing() {
    let _permit = among_others();
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| format!("sqlite:{}", folder.path().join(name).display());
    let postgres = fresh("postgres").url;
    let redis = with_server("redis", |server| {
        let at = server.fresh();
        (server.url(&at, Transport::Tcp), at.url)
    });
    let same = [(file("x"), file("./x")), (postgres.clone(), postgres.replacen("://", "ql://", 1)), redis];
    for (one, other) in same {
        add_account(&one, "alice");
        let before = rows(&one);
        let output = refused(&["move", "--from", &one, "--to", &other, "--replace", "--yes"]);
        assert!(output.contains("lead to the same store"), "{output}");
        assert_eq!((&before[0], rows(&one)), (&Value::from(1), before.clone()), "{one}");
        let list = tool::run(command().args(["account", "list", "--directory", &one])).well().text();
        assert!(list.contains("alice"), "{list}");
        let empty = file("empty");
        std::fs::write(&empty["sqlite:".len()..], b"").unwrap();
        let output = refused(&["move", "--from", &empty, "--to", &one, "--replace", "--yes"]);
        assert!(output.contains("has no rows to move"), "{output}");
        assert_eq!(rows(&one), before, "{one}");
    }
}

#[test]
fn a_move_creates_no_tables_in_a_source_that_was_named_by_mistake() {
    let _permit = among_others();
    let folder = tempfile::tempdir().unwrap();
    let to = format!("sqlite:{}", folder.path().join("d.sqlite").display());
    for from in KINDS.map(|kind| fresh(kind).url) {
        let output = refused(&["move", "--from", &from, "--to", &to]);
        assert!(output.contains("has no rows to move") && !output.contains("sesame"), "{output}");
        assert_eq!(json(&["check", "--directory", &from])["version"], 0, "{from}");
    }
    assert!(!folder.path().join("d.sqlite").exists());
}

#[test]
fn a_dump_is_restored_into_another_store_and_a_broken_one_changes_nothing() {
    let _permit = among_others();
    let (folder, data) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (from, to) = (fresh("postgres").url, fresh("redis").url);
    let server = serve(data.path(), &from);
    let mut alice = Member::new(&server, "alice");
    Member::new(&server, "bob");
    share(&mut alice);
    // A server that runs is no obstacle to a dump.
    let dump = folder.path().join("accounts.dump");
    let at = dump.to_str().unwrap();
    let dumped = json(&["dump", at, "--directory", &from]);
    drop(server);
    assert_eq!(dumped["accounts"], 2);
    assert!(refused(&["dump", at, "--directory", &from]).contains("is there already"));
    let text = std::fs::read_to_string(&dump).unwrap();
    let printed = run(&["dump", "-", "--directory", &from]).well().text();
    assert_eq!(printed.lines().count(), text.lines().count());
    let cut = folder.path().join("cut.dump");
    std::fs::write(&cut, &text[..text.len() * 2 / 3]).unwrap();
    let output = refused(&["restore", cut.to_str().unwrap(), "--directory", &to]);
    assert!(output.contains("not whole") || output.contains("EOF"), "{output}");
    let restored = json(&["restore", at, "--directory", &to]);
    assert_eq!((&restored["digest"], rows(&to)), (&dumped["digest"], rows(&from)));
    let server = serve(data.path(), &to);
    assert_eq!(who_is(&mut alice.again(&server)), 200);
    drop(server);
    assert!(refused(&["restore", at, "--directory", &to]).contains("--replace"));
    let mut piped = directory(&["restore", "-", "--replace", "--yes", "--directory", &to]);
    tool::run(piped.stdin(tool::typed(&text))).well();
    let file = format!("sqlite:{}", folder.path().join("d.sqlite").display());
    for to in [&to, &file] {
        let mut piped = directory(&["restore", "-", "--replace", "--yes", "--directory", to]);
        let done = tool::run(piped.stdin(tool::typed(&text[..text.len() * 2 / 3])));
        assert_eq!(done.status.code(), Some(1));
        assert_is_refused_as_partial(to, data.path());
    }
    let output = tool::run(command().args(["account", "list", "--directory", &to])).stderr;
    assert!(output.contains("closed to servers: rows were being written to it"), "{output}");
    run(&["restore", at, "--replace", "--yes", "--directory", &to]).well();
    tool::run(command().args(["account", "list", "--directory", &to])).well();
}

#[test]
fn a_server_that_runs_answers_503_once_its_directory_is_moved_away() {
    let _permit = among_others();
    // Each store refuses when it is closed: a test of the directories shows it.
    let kinds = if is_long() { &KINDS[..] } else { &["redis"] };
    for kind in kinds {
        let (data, from, to) = (tempfile::tempdir().unwrap(), fresh(kind).url, fresh("postgres").url);
        let server = serve(data.path(), &from);
        let mut alice = Member::new(&server, "alice");
        assert_eq!(who_is(&mut alice), 200);
        run(&["move", "--from", &from, "--to", &to]).well();
        until("the server has stopped to use the directory", || who_is(&mut alice) == 503);
        let body = br#"{"name":"bob","password":"correct horse"}"#;
        let reply = server.visit().ask("POST", "/api/accounts", "Content-Type: application/json\r\n", body);
        assert_eq!(reply.unwrap().status, 503, "{kind}");
    }
}

#[test]
fn a_backup_has_a_dump_of_the_database_and_restores_it_into_an_empty_one() {
    let _permit = among_others();
    let (folder, empty) = (tempfile::tempdir().unwrap(), fresh("mysql").url);
    let path = |name: &str| folder.path().join(name);
    let from = fresh("postgres").url;
    let server = serve(&path("data"), &from);
    let mut alice = Member::new(&server, "alice");
    Member::new(&server, "bob");
    share(&mut alice);
    let backup = |args: [&str; 2], data: &str, url: &str| {
        let mut backup = command();
        backup.arg(args[0]).arg(path(args[1])).arg("--data").arg(path(data)).args(["--directory", url]);
        tool::run(&mut backup)
    };
    let output = backup(["backup", "backup"], "data", &from).well().text();
    assert!(output.contains("accounts  2, with log-ins: 2, shares: 1, in directory.dump"), "{output}");
    drop(server);
    let output = backup(["restore", "backup"], "over", &from);
    assert!(output.stderr.contains("has accounts already"), "{}", output.stderr);
    let output = backup(["restore", "backup"], "restored", &empty).well().text();
    assert!(output.contains("every row was read back") && !output.contains("sesame"), "{output}");
    assert_eq!(rows(&empty), rows(&from));
    let server = serve(&path("restored"), &empty);
    assert_eq!(alice.again(&server).get("/files/a").body, b"bytes");
}

fn frozen(kind: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("data/directories/v2.{kind}"))
}

/// A copy of the frozen directory of version 2.
fn old_directory(kind: &str, folder: &Path) -> String {
    if kind == "sqlite" {
        let path = folder.join("d.sqlite");
        std::fs::copy(frozen(kind), &path).unwrap();
        return format!("sqlite:{}", path.display());
    }
    let at = fresh(kind);
    with_server(kind, |server| server.load(&at, &frozen(kind)));
    at.url
}

#[test]
fn the_doctor_neither_creates_nor_upgrades_tables() {
    let _permit = among_others();
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("accounts")).unwrap();
    let data = folder.path().to_str().unwrap();
    let empty = folder.path().join("empty.sqlite");
    std::fs::write(&empty, b"").unwrap();
    let directories = [
        (old_directory("sqlite", folder.path()), 2),
        (old_directory("postgres", folder.path()), 2),
        (format!("sqlite:{}", empty.display()), 0),
        (fresh("postgres").url, 0),
    ];
    for (url, version) in directories {
        let done = tool::run(command().args(["doctor", "--http", ":0", "--data", data, "--directory", &url]));
        let text = done.text();
        assert!(text.contains(&format!("are of version {version}, and those of this program")), "{text}");
        assert_eq!(json(&["check", "--directory", &url])["version"], version, "{url}");
    }
}

/// Starts commands that upgrade the directory, and kills each after another time, until one completes it.
#[test]
fn an_upgrade_that_is_killed_at_any_time_is_completed_by_the_next() {
    let _permit = among_others();
    // A killed upgrade of Redis keeps the next one waiting for ten seconds.
    let (kinds, rounds) = if is_long() {
        (&["sqlite", "mysql", "postgres", "redis"][..], 40)
    } else {
        (&["mysql", "postgres"][..], 1)
    };
    for kind in kinds {
        let expected = {
            let folder = tempfile::tempdir().unwrap();
            let url = old_directory(kind, folder.path());
            tool::run(command().args(["account", "list", "--directory", &url])).well();
            rows(&url)
        };
        for round in 0..rounds {
            let folder = tempfile::tempdir().unwrap();
            let url = old_directory(kind, folder.path());
            for kill in 0..4 {
                let mut list = command();
                list.args(["account", "list", "--directory", &url]);
                let mut list = list.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
                std::thread::sleep(Duration::from_millis(5 * (round + 1) * kill));
                tool::kill(&mut list);
            }
            tool::run(command().args(["account", "list", "--directory", &url])).well();
            assert_eq!(rows(&url), expected, "{kind}, round {round}");
        }
    }
}
