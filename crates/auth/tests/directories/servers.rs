//! Tests of directories on a database server only: concurrent processes, failures and recovery.

use std::process::Command;
use std::sync::Barrier;
use std::time::{Duration, Instant};

use plimsoll_auth::directory::{DirectoryError, GivenShare, open};
use plimsoll_auth::{Account, Change, Directory, NetworkHash, Permission, Permissions, Quota};

use crate::database::{Database, Fresh};
use crate::{KINDS, NOW, add, each_fresh, fresh, new_account, session, session_id, with_server};

/// Longer than any server takes to be reachable again, even on a slow machine.
const PATIENCE: Duration = Duration::from_secs(60);
/// The interval between attempts.
const LOOK_AGAIN: Duration = Duration::from_millis(5);

type Boxed = Box<dyn Directory>;

fn two(at: &Fresh) -> [Boxed; 2] {
    [(); 2].map(|()| open(&at.url).unwrap())
}

/// Runs `test` on an empty database of each kind of server.
fn each_server(test: impl Fn(&Fresh)) {
    for at in each_fresh() {
        test(&at);
    }
}

/// Runs `test` on each kind of server concurrently, because it mostly waits.
fn beside_each_other(test: impl Fn(&str) + Sync) {
    std::thread::scope(|scope| {
        for kind in KINDS {
            let test = &test;
            scope.spawn(move || test(kind));
        }
    });
}

/// Retries `ask` until the server is back, and returns the result. Attempts within the retry time fail
/// at once.
fn once_found<T>(mut ask: impl FnMut() -> Result<T, DirectoryError>) -> T {
    let start = Instant::now();
    loop {
        match ask() {
            Ok(answer) => return answer,
            Err(error) => assert!(start.elapsed() < PATIENCE, "it is still away: {error}"),
        }
        std::thread::sleep(LOOK_AGAIN);
    }
}

/// Runs `work` in eight threads at once, each with its own connection. Returns the results.
fn at_once<T: Send>(at: &Fresh, work: impl Fn(&mut dyn Directory, u8) -> T + Sync) -> Vec<T> {
    let start = Barrier::new(8);
    let one = |number| {
        start.wait();
        work(&mut *open(&at.url).unwrap(), number)
    };
    std::thread::scope(|scope| {
        let one = &one;
        let all: Vec<_> = (1..=8).map(|number| scope.spawn(move || one(number))).collect();
        all.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

fn given(id: &str, (owner, with): (&Account, &Account), path: &[u8]) -> GivenShare {
    GivenShare {
        id: id.to_owned(),
        owner: owner.id,
        with: with.id,
        path: path.to_vec(),
        permission: Permission::Read,
        created: NOW,
        expires: None,
    }
}

#[test]
fn a_new_connection_finds_the_stored_accounts_and_sessions() {
    each_server(|at| {
        let mut directory = open(&at.url).unwrap();
        let alice = add(&mut *directory, "alice");
        directory.add_session(&session(1, &alice, 0), 9).unwrap().unwrap();
        drop(directory);
        let mut directory = open(&at.url).unwrap();
        assert_eq!(directory.account("alice").unwrap().unwrap().account, alice);
        assert!(directory.session(session_id(1), NOW).unwrap().is_some());
    });
}

#[test]
fn a_connection_that_was_ended_is_made_anew_and_what_was_missed_is_asked_again() {
    each_server(|at| {
        let mut directory = open(&at.url).unwrap();
        for name in ["alice", "bob"] {
            directory.disconnect();
            let account = add(&mut *directory, name);
            directory.disconnect();
            assert_eq!(directory.account(name).unwrap().unwrap().account, account);
            assert!(directory.has_foreign_changes().unwrap(), "nobody knows what was missed");
            assert!(!directory.has_foreign_changes().unwrap());
        }
    });
}

#[test]
fn a_change_by_one_connection_of_a_process_is_not_reported_to_another() {
    each_server(|at| {
        let mut one = open(&at.url).unwrap();
        let mut other = one.another().unwrap();
        let alice = add(&mut *one, "alice");
        assert_eq!(other.account("alice").unwrap().unwrap().account, alice);
        assert!(one.has_foreign_changes().unwrap(), "a new connection may have missed changes");
        other.change(alice.id, Change::Enabled(false)).unwrap().unwrap();
        assert!(!one.has_foreign_changes().unwrap() && !other.has_foreign_changes().unwrap());
        let mut other_process = open(&at.url).unwrap();
        other_process.change(alice.id, Change::Enabled(true)).unwrap().unwrap();
        assert!(
            other.has_foreign_changes().unwrap() && !one.has_foreign_changes().unwrap(),
            "one connection of a process reports a change"
        );
    });
}

#[test]
fn a_revocation_is_reported_once_to_every_other_connection_and_not_to_its_own() {
    type Work = fn(&mut dyn Directory, &Account, &Account);
    let changes: [Work; 7] = [
        |one, alice, _| drop(one.change(alice.id, Change::Enabled(true)).unwrap().unwrap()),
        |one, _, _| assert!(one.end_session(session_id(1)).unwrap()),
        |one, alice, _| assert!(one.set_password(alice.id, 1, "second", None).unwrap()),
        |one, _, bob| drop(one.add_session(&session(9, bob, 9), 1).unwrap().unwrap()),
        |one, alice, _| assert!(one.end_share(alice.id, "1").unwrap()),
        |one, alice, _| assert!(one.end_shares(alice.id, b"b").unwrap()),
        |one, alice, _| assert!(one.remove_account(alice.id).unwrap()),
    ];
    each_server(|at| {
        let [mut one, mut other] = two(at);
        let (alice, bob) = (add(&mut *one, "alice"), add(&mut *one, "bob"));
        one.add_session(&session(1, &alice, 0), 9).unwrap().unwrap();
        one.add_session(&session(2, &bob, 0), 9).unwrap().unwrap();
        one.add_share(&given("1", (&alice, &bob), b"a"), 9).unwrap().unwrap();
        one.add_share(&given("2", (&alice, &bob), b"b"), 9).unwrap().unwrap();
        other.has_foreign_changes().unwrap();
        for (number, change) in changes.iter().enumerate() {
            change(&mut *one, &alice, &bob);
            assert!(!one.has_foreign_changes().unwrap(), "{number}");
            assert!(other.has_foreign_changes().unwrap(), "{number}");
            assert!(!other.has_foreign_changes().unwrap(), "{number}");
        }
        other.remove_account(bob.id).unwrap();
        assert!(one.has_foreign_changes().unwrap());
    });
}

#[test]
fn to_open_a_database_that_is_set_up_changes_nothing() {
    each_server(|at| {
        let mut one = open(&at.url).unwrap();
        drop(open(&at.url).unwrap());
        assert!(!one.has_foreign_changes().unwrap());
    });
}

#[test]
fn many_that_open_a_new_database_at_once_all_can_and_no_name_is_given_twice() {
    each_server(|at| {
        let made =
            at_once(at, |directory, _| directory.add_account(&new_account("alice")).unwrap().is_some());
        assert_eq!(made.into_iter().filter(|made| *made).count(), 1);
    });
}

#[test]
fn of_many_who_replace_a_password_at_once_one_does_and_no_session_of_the_old_one_is_left() {
    each_server(|at| {
        let alice = add(&mut *open(&at.url).unwrap(), "alice");
        let done = at_once(at, |directory, number| {
            // Half of the threads log in with the old password meanwhile.
            if number % 2 == 0 {
                directory.add_session(&session(number, &alice, 0), 9).unwrap();
                false
            } else {
                directory.set_password(alice.id, 1, &format!("of {number}"), None).unwrap()
            }
        });
        assert_eq!(done.into_iter().filter(|done| *done).count(), 1);
        let mut directory = open(&at.url).unwrap();
        assert_eq!(directory.account("alice").unwrap().unwrap().version, 2);
        for number in 1..=8 {
            assert_eq!(directory.session(session_id(number), NOW).unwrap(), None, "{number}");
        }
    });
}

#[test]
fn limits_hold_exactly_for_concurrent_callers() {
    each_server(|at| {
        let mut directory = open(&at.url).unwrap();
        let (alice, bob) = (add(&mut *directory, "alice"), add(&mut *directory, "bob"));
        let results = at_once(at, |directory, number| {
            let id = number.to_string();
            let ended = directory.add_session(&session(number, &alice, 0), 3).unwrap().unwrap();
            let share = given(&id, (&alice, &bob), id.as_bytes());
            let back = given(&format!("back {id}"), (&bob, &alice), id.as_bytes());
            let is_kept = directory.add_share(&share, 3).unwrap().is_some();
            directory.add_share(&back, 9).unwrap().unwrap();
            (ended.len(), is_kept)
        });
        let is_known = |number: &u8| directory.session(session_id(*number), NOW).unwrap().is_some();
        assert_eq!((1..=8).filter(is_known).count(), 3);
        assert_eq!(results.iter().map(|(ended, _)| ended).sum::<usize>(), 5);
        assert_eq!(results.iter().filter(|(_, is_kept)| *is_kept).count(), 3);
    });
}

#[test]
fn two_who_change_one_account_at_once_lose_neither_change() {
    each_server(|at| {
        let alice = add(&mut *open(&at.url).unwrap(), "alice");
        let may = Permissions { write: false, ..Permissions::default() };
        at_once(at, |directory, number| match number % 3 {
            0 => directory.change(alice.id, Change::Permissions(may)).unwrap().is_some(),
            1 => directory.change(alice.id, Change::Enabled(false)).unwrap().is_some(),
            _ => {
                let quota = Quota { bytes: Some(7), files: Some(9) };
                directory.change(alice.id, Change::Quota(quota)).unwrap().is_some()
            }
        });
        let account = open(&at.url).unwrap().account("alice").unwrap().unwrap().account;
        assert_eq!((account.permissions, account.enabled, account.quota.files), (may, false, Some(9)));
    });
}

#[test]
fn a_server_that_was_killed_is_found_again_and_has_what_it_confirmed() {
    beside_each_other(|kind| {
        let mut server = Database::start(kind);
        let at = server.fresh();
        let mut directory = open(&at.url).unwrap();
        let alice = add(&mut *directory, "alice");
        server.kill();
        directory.account("alice").unwrap_err();
        assert!(directory.add_account(&new_account("bob")).is_err());
        server.start_again();
        let found = once_found(|| directory.account("alice"));
        assert_eq!(found.unwrap().account, alice);
        assert_eq!(directory.account("bob").unwrap(), None);
        assert!(directory.has_foreign_changes().unwrap(), "who knows what was done meanwhile");
        assert!(!directory.has_foreign_changes().unwrap());
        // A restart between two calls is not noticed as an error.
        server.kill();
        server.start_again();
        assert!(directory.account("alice").unwrap().is_some());
        assert!(directory.has_foreign_changes().unwrap());
    });
}

#[test]
fn a_server_that_hangs_is_an_error_and_never_a_yes() {
    beside_each_other(|kind| {
        let mut server = Database::start(kind);
        let at = server.fresh();
        let mut directory = open(&at.url).unwrap();
        let alice = add(&mut *directory, "alice");
        directory.add_session(&session(1, &alice, 0), 9).unwrap().unwrap();
        server.stop();
        // The first call waits for the response. The next two fail at once. Opening waits for a
        // greeting.
        directory.session(session_id(1), NOW).unwrap_err();
        directory.has_foreign_changes().unwrap_err();
        directory.end_session(session_id(1)).unwrap_err();
        assert!(open(&at.url).is_err());
        server.resume();
        assert!(once_found(|| directory.session(session_id(1), NOW)).is_some());
    });
}

#[test]
fn an_error_about_an_unreachable_server_has_its_address_and_no_password() {
    for url in [
        "postgres://me:sesame@127.0.0.1:1/files",
        "postgres://me:sesame@/files?host=/nowhere",
        "redis://me:sesame@127.0.0.1:1",
        "mysql://me:sesame@127.0.0.1:1/files",
        "mysql://me:sesame@/files?socket=/nowhere/mysql",
        "redis+unix://me:sesame@/nowhere/redis",
    ] {
        let message = open(url).err().unwrap().to_string();
        assert!(message.contains("127.0.0.1:1") || message.contains("/nowhere/"), "{message}");
        assert!(!message.contains("sesame"), "{message}");
    }
}

#[test]
fn tables_of_a_newer_version_are_left_alone() {
    let newer = [
        ("mysql", "UPDATE plimsoll_state SET version = 1000"),
        ("postgres", "UPDATE plimsoll.state SET version = 1000"),
        ("redis", "HSET plimsoll:state version 1000"),
    ];
    for (kind, newer) in newer {
        let at = fresh(kind);
        drop(open(&at.url).unwrap());
        with_server(kind, |server| server.run(&at, newer));
        for _ in 0..2 {
            let refused = open(&at.url).err().unwrap().to_string();
            assert!(refused.contains("newer plimsoll"), "{refused}");
            assert!(refused.contains("version 1000"), "{refused}");
        }
    }
}

#[test]
fn a_database_of_the_first_version_is_upgraded_and_keeps_its_accounts() {
    let first = [
        (
            "mysql",
            "DROP TABLE plimsoll_networks, plimsoll_probe, plimsoll_closed, plimsoll_links, plimsoll_locks; \
             UPDATE plimsoll_state SET version = 1",
        ),
        (
            "postgres",
            "DROP TABLE plimsoll.networks, plimsoll.links, plimsoll.locks; \
             ALTER TABLE plimsoll.state DROP COLUMN probed, DROP COLUMN closed; \
             UPDATE plimsoll.state SET version = 1",
        ),
        ("redis", "HSET plimsoll:state version 1"),
    ];
    for (kind, downgrade) in first {
        let at = fresh(kind);
        let alice = add(&mut *open(&at.url).unwrap(), "alice");
        with_server(kind, |server| server.run(&at, downgrade));
        let mut directory = open(&at.url).unwrap();
        assert_eq!(directory.account("alice").unwrap().unwrap().account, alice, "{kind}");
        let network = NetworkHash::from_bytes([1; 32]);
        directory.add_network(alice.id, network, NOW, 9).unwrap();
        assert_eq!(directory.network_seen(alice.id, network).unwrap(), Some(NOW), "{kind}");
        directory.check_writable(NOW).unwrap();
    }
}

#[test]
fn a_redis_that_lost_everything_is_not_taken_for_an_empty_one() {
    let at = fresh("redis");
    let mut directory = open(&at.url).unwrap();
    let alice = add(&mut *directory, "alice");
    with_server("redis", |server| server.run(&at, "FLUSHDB"));
    for _ in 0..2 {
        let message = directory.add_account(&new_account("alice")).unwrap_err().to_string();
        assert!(message.contains("may have lost what it had"), "{message}");
    }
    // Opening it again means that the operator has accepted the loss.
    let mut directory = open(&at.url).unwrap();
    assert_eq!(directory.account("alice").unwrap(), None);
    assert_eq!(directory.account_of(alice.id).unwrap(), None);
}

#[test]
fn redis_is_shown_the_password_of_a_user_of_its_own() {
    let at = fresh("redis");
    with_server("redis", |server| server.run(&at, "ACL SETUSER files on >p@ss ~plimsoll:* +@all"));
    let mut directory = open(&at.url.replace(":sesame", "files:p%40ss")).unwrap();
    add(&mut *directory, "alice");
    let wrong = open(&at.url.replace(":sesame", "files:nonsense")).err().unwrap().to_string();
    assert!(wrong.contains("WRONGPASS") && !wrong.contains("nonsense"), "{wrong}");
}

#[test]
fn mysql_gets_a_password_or_none_where_the_kernel_authenticates_the_user() {
    let at = fresh("mysql");
    drop(open(&at.url).unwrap());
    let we = String::from_utf8(Command::new("id").arg("-un").output().unwrap().stdout).unwrap();
    let we = format!("'{}'@localhost", we.trim());
    let us = format!("CREATE USER IF NOT EXISTS {we}; ALTER USER {we} IDENTIFIED VIA unix_socket");
    with_server("mysql", |server| server.run(&at, &format!("{us}; GRANT ALL ON *.* TO {we}")));
    let we = we.split('\'').nth(1).unwrap();
    drop(open(&at.url.replace("plimsoll:sesame", we)).unwrap());
    let wrong = open(&at.url.replace("sesame", "nonsense")).err().unwrap().to_string();
    assert!(wrong.contains("Access denied") && !wrong.contains("nonsense"), "{wrong}");
    let nobody = open(&at.url.replace("plimsoll:sesame", "nobody")).err().unwrap().to_string();
    assert!(nobody.contains("Access denied"), "{nobody}");
}

#[test]
fn postgres_is_shown_a_password_in_each_way_that_it_may_ask_for() {
    let at = fresh("postgres");
    for (user, method) in [("md5", "md5"), ("plain", "scram-sha-256"), ("proof", "scram-sha-256")] {
        let role = format!("SET password_encryption = '{method}'; CREATE ROLE {user} LOGIN PASSWORD 'p@ss'");
        with_server("postgres", |server| {
            server.run(&at, &format!("{role}; GRANT CREATE ON DATABASE d{} TO {user}", at.number()));
        });
        let url = at.url.replace("plimsoll:sesame", &format!("{user}:p%40ss"));
        let wrong = open(&at.url.replace("plimsoll:sesame", &format!("{user}:nonsense"))).err().unwrap();
        assert!(wrong.to_string().contains("password authentication failed"), "{wrong}");
        assert!(!wrong.to_string().contains("nonsense"), "{wrong}");
        // It gets as far as the tables, which belong to another user, or creates them.
        let opened = open(&url).err().map_or(String::new(), |error| error.to_string());
        assert!(!opened.contains("password"), "{opened}");
    }
}
