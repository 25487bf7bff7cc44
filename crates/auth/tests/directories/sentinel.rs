//! A Redis that Sentinels watch: which server is used, and what a failover costs.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use plimsoll_auth::Directory;
use plimsoll_auth::directory::open;
use plimsoll_auth::limits::POLL_TRUST_TIME;

use crate::database::{Database, Fresh, Transport};
use crate::{NOW, add, new_account, with_server};

/// Longer than a failover takes, even on a slow machine.
const PATIENCE: Duration = Duration::from_secs(120);
/// The interval between attempts.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// Starts a server that answers each command with a reply.
pub(crate) fn server(answer: impl Fn(&str) -> String + Send + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let (mut stream, mut block) = (stream.unwrap(), [0; 4096]);
            while let Ok(received @ 1..) = stream.read(&mut block) {
                let reply = answer(&String::from_utf8_lossy(&block[..received]));
                if stream.write_all(reply.as_bytes()).is_err() {
                    break;
                }
            }
        }
    });
    address
}

/// The reply of a Sentinel that names this master.
fn named(host: &str, port: u16) -> String {
    let port = port.to_string();
    format!("*2\r\n${}\r\n{host}\r\n${}\r\n{port}\r\n", host.len(), port.len())
}

#[test]
fn sentinels_are_asked_in_turn_and_get_the_password_if_they_demand_it() {
    let at = with_server("redis", |server| server.fresh_over(Transport::Tcp));
    let (host, number) = at.url.split_once('@').unwrap().1.split_once('/').unwrap();
    let ignorant = server(|_| "*-1\r\n".to_owned());
    let answer = named(host, 6379);
    let is_known = AtomicBool::new(false);
    let knowing = server(move |command| {
        if command.contains("AUTH") && command.contains("sesame") {
            is_known.store(true, Ordering::SeqCst);
            return "+OK\r\n".to_owned();
        }
        assert!(command.contains("GET-MASTER-ADDR-BY-NAME\r\n$5\r\nfiles\r\n"), "{command}");
        if is_known.swap(false, Ordering::SeqCst) {
            answer.clone()
        } else {
            "-NOAUTH Authentication required.\r\n".to_owned()
        }
    });
    let url = format!("redis+sentinel://:sesame@127.0.0.1:1,{ignorant},{knowing}/files?db={number}");
    let mut directory = open(&url).unwrap();
    let alice = add(&mut *directory, "alice");
    directory.disconnect();
    assert_eq!(directory.account("alice").unwrap().unwrap().account, alice);
    let error = open(&format!("redis+sentinel://:sesame@{ignorant}/files")).err().unwrap().to_string();
    assert!(error.contains("knows no master \"files\"") && !error.contains("sesame"), "{error}");
}

#[test]
fn a_server_that_is_no_master_is_not_used() {
    let replica = server(|command| {
        let role = "*5\r\n$5\r\nslave\r\n$1\r\na\r\n:6379\r\n$9\r\nconnected\r\n:7\r\n";
        if command.contains("ROLE") { role.to_owned() } else { "+OK\r\n".to_owned() }
    });
    let sentinel = server(move |_| named(&replica.ip().to_string(), replica.port()));
    let error = open(&format!("redis+sentinel://:sesame@{sentinel}/files")).err().unwrap().to_string();
    assert!(error.contains("no master") && !error.contains("sesame"), "{error}");
}

/// Two masters, a Sentinel that names the first, and a directory with two connections by way of it. The first
/// master has the account alice, and the second one bob.
struct TwoMasters {
    first: Database,
    at: Fresh,
    names: Arc<Mutex<String>>,
    second: String,
    one: Box<dyn Directory>,
    other: Box<dyn Directory>,
}

impl TwoMasters {
    fn start() -> TwoMasters {
        let host = |at: &Fresh| at.url.split_once('@').unwrap().1.split_once('/').unwrap().0.to_owned();
        let mut first = Database::start("redis");
        let at = first.fresh_over(Transport::Tcp);
        let second = with_server("redis", |server| server.fresh_over(Transport::Tcp));
        add(&mut *open(&second.url).unwrap(), "bob");
        let names = Arc::new(Mutex::new(named(&host(&at), 6379)));
        let answer = Arc::clone(&names);
        let sentinel = server(move |_| answer.lock().unwrap().clone());
        // The database has the same number at both.
        let url = format!("redis+sentinel://:sesame@{sentinel}/files?db={}", second.number());
        let (mut one, second) = (open(&url).unwrap(), named(&host(&second), 6379));
        let mut other = one.another().unwrap();
        add(&mut *one, "alice");
        assert!(other.account("alice").unwrap().is_some());
        TwoMasters { first, at, names, second, one, other }
    }

    fn name_the_second(&self) {
        self.names.lock().unwrap().clone_from(&self.second);
    }

    /// Makes the first server a replica, of none that exists.
    fn demote_the_first(&mut self) {
        self.first.run(&self.at, "REPLICAOF 127.0.0.1 1");
    }
}

#[test]
fn a_change_that_a_demoted_master_refuses_is_made_once_at_the_new_one() {
    let mut masters = TwoMasters::start();
    masters.demote_the_first();
    masters.name_the_second();
    add(&mut *masters.one, "carol");
    assert!(masters.one.account("bob").unwrap().is_some());
    // The other connection to the old master is not used again, not even to read.
    assert!(masters.other.account("carol").unwrap().is_some());
    assert!(masters.one.has_foreign_changes().unwrap(), "the new master may have other rows");
}

#[test]
fn a_master_that_the_sentinels_no_longer_name_is_not_read_from_longer_than_a_poll_is_trusted() {
    let mut masters = TwoMasters::start();
    assert!(masters.one.account("bob").unwrap().is_none());
    // As one that is cut off from the others, which still takes itself for a master.
    masters.name_the_second();
    thread::sleep(POLL_TRUST_TIME);
    assert!(masters.one.account("bob").unwrap().is_some());
    assert!(masters.other.account("alice").unwrap().is_none());
}

#[test]
fn a_master_that_was_demoted_is_not_read_from_while_sentinels_name_it() {
    let mut masters = TwoMasters::start();
    masters.demote_the_first();
    thread::sleep(POLL_TRUST_TIME);
    for _ in 0..2 {
        let error = masters.one.account("alice").unwrap_err().to_string();
        assert!(error.contains("it is no master"), "{error}");
    }
}

#[test]
fn a_change_without_the_demanded_replicas_is_an_error() {
    for (replicas, is_confirmed) in [("0", false), ("1", false), ("2", true)] {
        let redis = server(move |command| match command {
            _ if command.contains("WAIT\r\n$1\r\n2\r\n") => format!(":{replicas}\r\n"),
            _ if command.contains("\r\nstate\r\n") => "*2\r\n$1\r\n5\r\n$0\r\n\r\n".to_owned(),
            _ if command.contains("\r\nchanges\r\n") => "$1\r\n0\r\n".to_owned(),
            _ => "$-1\r\n".to_owned(),
        });
        let mut directory = open(&format!("redis://{redis}/0?wait=2")).unwrap();
        let done = directory.check_writable(NOW);
        assert_eq!(done.is_ok(), is_confirmed, "{done:?}");
        if let Err(error) = done {
            assert!(error.to_string().contains(&format!("{replicas} of 2 replicas")), "{error}");
        }
    }
}

/// It is in the long run only: a Sentinel takes seconds to notice that its master is gone.
#[test]
fn a_failover_loses_no_account_that_a_replica_had_to_confirm() {
    if std::env::var_os("PLIMSOLL_LONG").is_none() {
        return;
    }
    let mut servers = Database::start("sentinel");
    let at = servers.fresh();
    let mut directory = open(&format!("{}&wait=1", at.url)).unwrap();
    let confirmed = ["alice", "bob", "carol"].map(|name| add(&mut *directory, name));
    servers.fail();
    let start = Instant::now();
    for account in &confirmed {
        let found = loop {
            match directory.account(&account.name) {
                Ok(found) => break found.unwrap(),
                Err(error) => assert!(start.elapsed() < PATIENCE, "there is still no master: {error}"),
            }
            thread::sleep(LOOK_AGAIN);
        };
        assert_eq!(found.account, *account);
    }
    // No replica is left to confirm a change.
    let error = directory.add_account(&new_account("dora")).unwrap_err().to_string();
    assert!(error.contains("0 of 1 replicas"), "{error}");
    open(&at.url).unwrap().add_account(&new_account("eve")).unwrap().unwrap();
}
