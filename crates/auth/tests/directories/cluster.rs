//! A Redis Cluster: which node is used, and what a failover costs.

use std::thread;
use std::time::{Duration, Instant};

use plimsoll_auth::directory::open;

use crate::database::Database;
use crate::sentinel::server;
use crate::{add, new_account, session, session_id};

/// Longer than a failover takes, even on a slow machine.
const PATIENCE: Duration = Duration::from_secs(120);
/// The interval between attempts.
const LOOK_AGAIN: Duration = Duration::from_millis(20);
/// The hash slot of `plimsoll:state`.
const SLOT: u16 = 4608;

#[test]
fn a_cluster_is_used_at_the_master_of_its_slot_and_a_failover_loses_no_confirmed_account() {
    let mut servers = Database::start("cluster");
    let at = servers.fresh();
    let mut directory = open(&format!("{}?wait=1", at.url)).unwrap();
    let mut other = directory.another().unwrap();
    let alice = add(&mut *directory, "alice");
    assert!(other.account("alice").unwrap().is_some());
    // Both connections lead to a replica from now on. It names the new master.
    servers.switch();
    let bob = add(&mut *directory, "bob");
    assert_eq!(other.account("bob").unwrap().unwrap().account, bob);
    directory.add_session(&session(1, &bob, 0), 9).unwrap().unwrap();
    servers.fail();
    let start = Instant::now();
    for account in [&alice, &bob] {
        let found = loop {
            match directory.account(&account.name) {
                Ok(found) => break found.unwrap(),
                Err(error) => assert!(start.elapsed() < PATIENCE, "there is still no master: {error}"),
            }
            thread::sleep(LOOK_AGAIN);
        };
        assert_eq!(found.account, *account);
    }
    assert!(directory.session(session_id(1), crate::NOW).unwrap().is_some());
    // No replica is left to confirm a change.
    let error = directory.add_account(&new_account("dora")).unwrap_err().to_string();
    assert!(error.contains("0 of 1 replicas"), "{error}");
}

/// Keys are at two nodes then, so that each of them misses some.
#[test]
fn a_slot_that_is_being_moved_is_refused_and_nothing_is_written_in_part() {
    let mut servers = Database::start("cluster");
    let at = servers.fresh();
    let mut directory = open(&at.url).unwrap();
    let alice = add(&mut *directory, "alice");
    servers.run(&at, &format!("CLUSTER SETSLOT {SLOT} MIGRATING NODE"));
    for _ in 0..2 {
        let error = directory.add_account(&new_account("bob")).unwrap_err().to_string();
        assert!(error.contains("non local key"), "{error}");
        directory.account("alice").unwrap_err();
    }
    servers.run(&at, &format!("CLUSTER SETSLOT {SLOT} STABLE"));
    assert_eq!(directory.account("alice").unwrap().unwrap().account, alice);
    assert_eq!(directory.account("bob").unwrap(), None);
    add(&mut *directory, "bob");
}

#[test]
fn nodes_that_name_one_another_are_an_error_and_no_loop() {
    let node = server(|command| {
        if command.contains("EXISTS") {
            "-MOVED 4608 127.0.0.1:1\r\n".to_owned()
        } else {
            "+OK\r\n".to_owned()
        }
    });
    let error = open(&format!("redis+cluster://:sesame@{node}")).err().unwrap().to_string();
    assert!(error.contains("127.0.0.1:1") && !error.contains("sesame"), "{error}");
    // Without a host, it is the node's own.
    let port = std::sync::Arc::new(std::sync::OnceLock::new());
    let own_port = std::sync::Arc::clone(&port);
    let node = server(move |command| {
        let moved = format!("-MOVED 4608 :{}\r\n", own_port.get().unwrap());
        if command.contains("EXISTS") { moved } else { "+OK\r\n".to_owned() }
    });
    port.set(node.port()).unwrap();
    let error = open(&format!("redis+cluster://:sesame@{node}")).err().unwrap().to_string();
    assert!(error.contains("do not agree") && !error.contains("sesame"), "{error}");
    for strange in ["-MOVED\r\n", "-MOVED 4608\r\n", "-MOVED 4608 host\r\n", "-MOVED 4608 host:99999\r\n"] {
        let node = server(move |_| strange.to_owned());
        let error = open(&format!("redis+cluster://{node}")).err().unwrap().to_string();
        assert!(error.contains("does not fit the request"), "{strange:?}: {error}");
    }
    let down = server(|_| "-CLUSTERDOWN The cluster is down\r\n".to_owned());
    let error = open(&format!("redis+cluster://{down}")).err().unwrap().to_string();
    assert!(error.contains("CLUSTERDOWN"), "{error}");
}
