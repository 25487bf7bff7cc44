//! Tests of migrations: upgrades of frozen directories, interrupted ones, and refusals.

use std::path::{Path, PathBuf};

use plimsoll_auth::directory::{DirectoryError, Opening, StoredRow, open, open_rows};
use plimsoll_auth::limits::POLL_TRUST_TIME;
use plimsoll_auth::{Change, Directory};

use crate::database::Fresh;
use crate::{KINDS, fresh, new_account, with_server};

/// The statements of the migrations in MySQL, where each is a transaction of its own.
const MYSQL_MIGRATIONS: [&str; 5] = [
    include_str!("../../src/directory/mysql/migrations/001_accounts.sql"),
    include_str!("../../src/directory/mysql/migrations/002_networks.sql"),
    include_str!("../../src/directory/mysql/migrations/003_closed.sql"),
    include_str!("../../src/directory/mysql/migrations/004_links.sql"),
    include_str!("../../src/directory/mysql/migrations/005_locks.sql"),
];

fn frozen(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/directories").join(name)
}

/// The rows of a frozen directory, as the store's own tools read them.
fn frozen_rows(kind: &str) -> Vec<String> {
    let text = std::fs::read_to_string(frozen(&format!("v2.{kind}.rows"))).unwrap();
    sorted(&text.lines().map(|line| serde_json::from_str(line).unwrap()).collect::<Vec<_>>())
}

fn sorted(rows: &[StoredRow]) -> Vec<String> {
    let mut rows: Vec<String> = rows.iter().map(|row| serde_json::to_string(row).unwrap()).collect();
    rows.sort();
    rows
}

fn rows(url: &str) -> Vec<String> {
    let mut rows = Vec::new();
    let mut directory = open_rows(url, Opening::Inspect).unwrap();
    directory
        .read_rows(&mut |row| {
            rows.push(row);
            Ok(())
        })
        .unwrap();
    sorted(&rows)
}

/// Loads a frozen directory of version 2 into an empty database.
fn loaded(kind: &str) -> Fresh {
    let at = fresh(kind);
    with_server(kind, |server| server.load(&at, &frozen(&format!("v2.{kind}"))));
    at
}

fn run(kind: &str, at: &Fresh, command: &str) {
    with_server(kind, |server| server.run(at, command));
}

/// A copy of the frozen file.
fn frozen_file() -> (tempfile::TempDir, PathBuf, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("d.sqlite");
    std::fs::copy(frozen("v2.sqlite"), &path).unwrap();
    let url = format!("sqlite:{}", path.display());
    (folder, path, url)
}

/// Runs `test` on a frozen directory of each store.
fn each_frozen(test: impl Fn(&str, &str)) {
    let (_folder, _, url) = frozen_file();
    test("sqlite", &url);
    for kind in KINDS {
        test(kind, &loaded(kind).url);
    }
}

fn refusal<T>(done: Result<T, DirectoryError>) -> String {
    done.err().unwrap().to_string()
}

#[test]
fn an_upgraded_directory_has_every_row_of_the_frozen_one_and_can_be_changed() {
    each_frozen(|kind, url| {
        let mut directory = open(url).unwrap();
        assert_eq!(rows(url), frozen_rows(kind), "{kind}");
        let alice = directory.account("alice").unwrap().unwrap();
        assert_eq!(alice.account.quota.files, Some(1000), "{kind}");
        let mut schema = open_rows(url, Opening::Inspect).unwrap();
        let schema = schema.schema().unwrap();
        assert_eq!((schema.version, schema.closed.as_str()), (schema.known, ""), "{kind}");
        directory.change(alice.account.id, Change::Enabled(false)).unwrap().unwrap();
        assert!(directory.remove_account(alice.account.id).unwrap(), "{kind}");
        assert!(rows(url).iter().all(|row| !row.contains(&alice.account.id.to_string())), "{kind}");
    });
}

#[test]
fn an_upgraded_database_has_the_schema_of_a_new_one() {
    for kind in KINDS {
        let (old, new) = (loaded(kind), fresh(kind));
        drop(open(&old.url).unwrap());
        let mut from = open_rows(&old.url, Opening::Transfer).unwrap();
        let mut to = open_rows(&new.url, Opening::Transfer).unwrap();
        plimsoll_auth::directory::transfer(|each| from.read_rows(each), &mut *to).unwrap();
        let schema = |at: &Fresh| with_server(kind, |server| server.schema(at));
        assert_eq!(schema(&old), schema(&new), "{kind}");
    }
}

#[test]
fn an_upgraded_file_has_the_schema_of_a_new_one() {
    let schema = |path: &Path| {
        let connection = rusqlite::Connection::open(path).unwrap();
        let mut all = connection.prepare("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL").unwrap();
        let all = all.query_map((), |row| row.get::<_, String>(0)).unwrap();
        let mut all: Vec<String> =
            all.map(|sql| sql.unwrap().split_whitespace().collect::<Vec<_>>().join(" ")).collect();
        all.sort();
        all
    };
    let (folder, old, url) = frozen_file();
    drop(open(&url).unwrap());
    let new = folder.path().join("new.sqlite");
    drop(open(&format!("sqlite:{}", new.display())).unwrap());
    assert_eq!(schema(&old), schema(&new));
}

#[test]
fn eight_servers_that_start_at_once_on_an_older_directory_all_find_it_upgraded() {
    each_frozen(|kind, url| {
        let start = std::sync::Barrier::new(8);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    start.wait();
                    let mut directory = open(url).unwrap();
                    assert!(directory.account("bob").unwrap().is_some(), "{kind}");
                });
            }
        });
        assert_eq!(rows(url), frozen_rows(kind), "{kind}");
    });
}

#[test]
fn a_mysql_migration_that_ended_after_any_statement_is_completed() {
    let statements: Vec<String> = MYSQL_MIGRATIONS
        .iter()
        .enumerate()
        .flat_map(|(at, text)| {
            let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with("--")).collect();
            let all = lines.join(" ");
            let mut all: Vec<String> = all.split(';').map(|sql| sql.trim().to_owned()).collect();
            all.retain(|sql| !sql.is_empty());
            all.push(format!("UPDATE plimsoll_state SET version = {}", at + 1));
            all
        })
        .collect();
    assert!(statements.len() > 10);
    // A commit run takes a fifth of them: each needs a database of its own.
    let step = if std::env::var_os("PLIMSOLL_LONG").is_some() { 1 } else { 5 };
    for count in (1..statements.len()).step_by(step) {
        let at = fresh("mysql");
        run("mysql", &at, &statements[..count].join("; "));
        let mut directory = open(&at.url).unwrap();
        assert_eq!(directory.account("alice").unwrap(), None, "{count}");
        directory.check_writable(crate::NOW).unwrap();
    }
}

/// The state that a server leaves which is killed in the middle of the step.
#[test]
fn a_redis_migration_that_ended_in_the_middle_is_completed_once_its_lock_has_expired() {
    let at = loaded("redis");
    run("redis", &at, "HSET plimsoll:state version 5 upgrading 2");
    run("redis", &at, "RENAME plimsoll:names plimsoll:{plimsoll:state}:names");
    run("redis", &at, "SET plimsoll:{plimsoll:state}:upgrading 7 PX 500");
    let schema = open_rows(&at.url, Opening::Inspect).unwrap().schema().unwrap();
    assert_eq!((schema.version, schema.known), (2, 5));
    let mut directory = open(&at.url).unwrap();
    assert!(directory.account("alice").unwrap().is_some());
    assert_eq!(rows(&at.url), frozen_rows("redis"));
}

/// A program of version 2 looks for the version in `plimsoll:state`, too.
#[test]
fn a_redis_directory_that_is_being_upgraded_is_refused_to_servers_that_run() {
    let at = loaded("redis");
    let mut directory = open(&at.url).unwrap();
    run("redis", &at, "HSET plimsoll:state upgrading 2");
    let refused = refusal(directory.account("alice"));
    assert!(refused.contains("is being upgraded"), "{refused}");
}

#[test]
fn a_server_that_runs_stops_using_a_directory_of_a_newer_version_and_a_closed_one() {
    let newer = [
        ("mysql", "UPDATE plimsoll_state SET version = 1000", "UPDATE plimsoll_state SET version = 5"),
        ("postgres", "UPDATE plimsoll.state SET version = 1000", "UPDATE plimsoll.state SET version = 5"),
        ("redis", "HSET plimsoll:state version 1000", "HSET plimsoll:state version 5"),
    ];
    for (kind, newer, same) in newer {
        let at = loaded(kind);
        let mut directory = open(&at.url).unwrap();
        directory.has_foreign_changes().unwrap();
        run(kind, &at, newer);
        for _ in 0..2 {
            let refused = refusal(directory.has_foreign_changes());
            assert!(refused.contains("newer plimsoll") && refused.contains("version 1000"), "{refused}");
        }
        run(kind, &at, same);
        directory.has_foreign_changes().unwrap();
        is_refused_while_closed(&mut *directory, &at.url);
    }
    let (_folder, path, url) = frozen_file();
    let mut directory = open(&url).unwrap();
    let other = rusqlite::Connection::open(&path).unwrap();
    other.pragma_update(None, "user_version", 1000).unwrap();
    for _ in 0..2 {
        let refused = refusal(directory.has_foreign_changes());
        assert!(refused.contains("newer plimsoll") && refused.contains("version 1000"), "{refused}");
    }
    other.pragma_update(None, "user_version", 5).unwrap();
    is_refused_while_closed(&mut *directory, &url);
}

fn is_refused_while_closed(directory: &mut dyn Directory, url: &str) {
    let mut rows = open_rows(url, Opening::Transfer).unwrap();
    rows.close("it was moved to there").unwrap();
    let messages = [refusal(directory.has_foreign_changes()), open(url).err().unwrap().to_string()];
    for message in messages {
        assert!(message.contains("closed to servers: it was moved to there"), "{message}");
    }
    rows.close("").unwrap();
    directory.has_foreign_changes().unwrap();
    drop(open(url).unwrap());
}

/// As a sign-up that waits for its password's hash meanwhile.
#[test]
fn a_change_that_was_begun_before_a_directory_was_closed_is_refused_after_it() {
    each_frozen(|kind, url| {
        let mut directory = open(url).unwrap();
        directory.has_foreign_changes().unwrap();
        let mut rows = open_rows(url, Opening::Transfer).unwrap();
        rows.close("its rows are being moved").unwrap();
        std::thread::sleep(POLL_TRUST_TIME);
        let refused = refusal(directory.add_account(&new_account("late")));
        assert!(refused.contains("closed to servers: its rows are being moved"), "{kind}: {refused}");
        rows.close("").unwrap();
        assert!(directory.add_account(&new_account("late")).unwrap().is_some(), "{kind}");
    });
}

/// The way back to the program of before: its own dump, loaded into the emptied database.
#[test]
fn a_dump_of_before_an_upgrade_replaces_the_upgraded_directory() {
    let emptied = [
        (
            "mysql",
            "DROP TABLE plimsoll_locks, plimsoll_links, plimsoll_networks, \
          plimsoll_shares, plimsoll_sessions, plimsoll_accounts, \
          plimsoll_probe, plimsoll_state, plimsoll_closed",
        ),
        ("postgres", "DROP SCHEMA plimsoll CASCADE"),
        ("redis", "FLUSHDB"),
    ];
    for (kind, empty) in emptied {
        let at = loaded(kind);
        drop(open(&at.url).unwrap());
        run(kind, &at, empty);
        with_server(kind, |server| server.load(&at, &frozen(&format!("v2.{kind}"))));
        let schema = open_rows(&at.url, Opening::Inspect).unwrap().schema().unwrap();
        assert_eq!(schema.version, 2, "{kind}");
        drop(open(&at.url).unwrap());
        assert_eq!(rows(&at.url), frozen_rows(kind), "{kind}");
    }
}
