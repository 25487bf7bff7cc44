//! More concurrent password checks than the server's queue takes, at their real cost.
//!
//! The fair share of one name or one address is tested in `behaviours/`; here no rate limit applies. A
//! refused client must get its answer at once, and must succeed later. A client with a session must not
//! wait for any password.

use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use plimsoll_tests::binary::member::PASSWORD;
use plimsoll_tests::binary::process::resident_kib;
use plimsoll_tests::binary::visitor::connect_from;
use plimsoll_tests::binary::{EngineKind, Member, Server, Visitor, on_one_core, until};
use plimsoll_tests::on_each_engine;
use serde_json::json;

/// The queue's length for one core, by the engine's limits.
const WAITING_MAX: usize = 64;
/// Far more than the queue takes.
const GUESSES: usize = 3 * WAITING_MAX;

/// Sends a login, and does not wait for the answer.
fn begin(server: &Server, name: &str) -> Visitor {
    let mut visitor = server.visit();
    send(&mut visitor, name, "a guess of it");
    visitor
}

fn send(visitor: &mut Visitor, name: &str, password: &str) {
    let body = json!({ "name": name, "password": password }).to_string();
    let length = body.len();
    let head = format!("POST /api/sessions HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\n\r\n");
    visitor.send(&format!("{head}{body}")).expect("it is sent");
}

fn a_full_queue_refuses_the_next_and_says_when_to_come_back(kind: EngineKind) {
    let data = tempfile::tempdir().unwrap();
    let mut serve = on_one_core();
    serve.args(["serve", "--http", "127.0.0.1:0", "--access-log", "off", "--engine", &kind.to_string()]);
    serve.args(["--signup", "open", "--lab-no-attempt-limits", "true", "--data"]).arg(data.path());
    let server = Server::spawn(serve);
    let mut alice = Member::new(&server, "alice");
    let guesses: Vec<Visitor> = (0..GUESSES).map(|at| begin(&server, &format!("name{at}"))).collect();
    let start = Instant::now();
    assert_eq!(alice.get("/api/whoami").status, 200);
    let hers = start.elapsed();
    let replies: Vec<_> = guesses.into_iter().map(|mut guess| guess.reply().expect("an answer")).collect();
    let all = start.elapsed();
    let (refused, weighed): (Vec<_>, Vec<_>) = replies.iter().partition(|reply| reply.status == 503);
    assert!(weighed.iter().all(|reply| reply.status == 401), "{weighed:?}");
    assert!(weighed.len() >= WAITING_MAX && !refused.is_empty(), "{} of {GUESSES}", refused.len());
    assert!(hers < all / 4, "a session waits for passwords: {hers:?} of {all:?}");
    for reply in refused {
        assert_eq!(reply.field("Content-Type"), Some("application/problem+json"));
        assert_eq!(reply.field("Retry-After"), Some("1"), "{}", reply.head);
        assert!(reply.json()["detail"].as_str().unwrap().contains("Try again in 1 s."), "{}", reply.text());
    }
    std::thread::sleep(Duration::from_secs(1));
    let body = json!({ "name": "alice", "password": PASSWORD }).to_string();
    let again = server.visit().ask("POST", "/api/sessions", "", body.as_bytes()).expect("an answer");
    assert_eq!(again.status, 201, "{}", again.text());
}

/// The networks that guess, one password each at a time.
const NETWORKS: u8 = 60;

/// Sends a wrong password from each of many networks. Returns the connections, which wait for the answers.
fn guess_everywhere(server: &Server) -> Vec<Visitor> {
    let guess = |network| {
        let from = Ipv4Addr::new(127, 0, 1, network);
        let stream = connect_from(from, server.at(), None).expect("the server accepts connections");
        let mut visitor = Visitor::new(stream).expect("a socket");
        send(&mut visitor, &format!("name{network}"), "a guess of it");
        visitor
    };
    (0..NETWORKS).map(guess).collect()
}

fn assert_wrong(guesses: Vec<Visitor>) {
    for mut guess in guesses {
        let reply = guess.reply().expect("an answer");
        assert_eq!(reply.status, 401, "{}", reply.text());
    }
}

fn a_log_in_from_a_new_network_does_not_wait_for_networks_that_guess(kind: EngineKind) {
    let data = tempfile::tempdir().unwrap();
    let mut serve = on_one_core();
    serve.args(["serve", "--http", "127.0.0.1:0", "--access-log", "off", "--engine", &kind.to_string()]);
    serve.args(["--signup", "open", "--data"]).arg(data.path());
    let server = Server::spawn(serve);
    let _alice = Member::new(&server, "alice");
    assert_wrong(guess_everywhere(&server));
    let (guesses, start) = (guess_everywhere(&server), Instant::now());
    let stream = connect_from(Ipv4Addr::new(127, 0, 2, 1), server.at(), None).unwrap();
    let mut new = Visitor::new(stream).unwrap();
    send(&mut new, "alice", PASSWORD);
    let reply = new.reply().expect("an answer");
    let hers = start.elapsed();
    assert_eq!(reply.status, 201, "{}", reply.text());
    assert_wrong(guesses);
    let all = start.elapsed();
    println!("{kind}: {hers:?} of {all:?}");
    assert!(hers < all / 2, "the log-in waits for guesses: {hers:?} of {all:?}");
}

/// Concurrent logins of one account from one address.
const BURST: usize = 40;
/// The bound of memory that a burst may leave resident: less than the 19 MiB of one hash.
const LEFT_KIB_MAX: u64 = 12 * 1024;

fn a_burst_of_log_ins_waits_and_its_memory_is_freed(kind: EngineKind) {
    let data = tempfile::tempdir().unwrap();
    let mut serve = on_one_core();
    serve.args(["serve", "--http", "127.0.0.1:0", "--access-log", "off", "--engine", &kind.to_string()]);
    serve.args(["--signup", "open", "--data"]).arg(data.path());
    let server = Server::spawn(serve);
    let resident = resident_kib(server.pid());
    let mut alice = Member::new(&server, "alice");
    let body = json!({ "name": "alice", "password": PASSWORD }).to_string();
    let head =
        format!("POST /api/sessions HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n", body.len());
    let mut visitors: Vec<Visitor> = (0..BURST).map(|_| server.visit()).collect();
    visitors.iter_mut().for_each(|visitor| visitor.send(&format!("{head}{body}")).expect("it is sent"));
    assert_eq!(alice.get("/api/whoami").status, 200);
    for mut visitor in visitors {
        let reply = visitor.reply().expect("an answer");
        assert_eq!(reply.status, 201, "{}", reply.text());
    }
    until("the memory is free again", || resident_kib(server.pid()) < resident + LEFT_KIB_MAX);
}

mod forks_alone {
    #[test]
    fn a_burst_of_log_ins_waits_and_its_memory_is_freed() {
        let _permit = plimsoll_tests::binary::alone();
        super::a_burst_of_log_ins_waits_and_its_memory_is_freed(super::EngineKind::Process);
    }

    #[test]
    fn a_log_in_from_a_new_network_does_not_wait_for_networks_that_guess() {
        let _permit = plimsoll_tests::binary::alone();
        super::a_log_in_from_a_new_network_does_not_wait_for_networks_that_guess(super::EngineKind::Process);
    }
}

on_each_engine!(alone:
    a_full_queue_refuses_the_next_and_says_when_to_come_back,
    a_burst_of_log_ins_waits_and_its_memory_is_freed,
    a_log_in_from_a_new_network_does_not_wait_for_networks_that_guess,
);
