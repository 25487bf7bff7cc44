//! Passwords for a server without encryption on another machine: not sent, unless the server accepts them.
//!
//! The unspecified address stands for another machine. Its connections go to this machine, but neither the
//! client nor the server takes it for the loopback interface.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::{Arc, Mutex};

use plimsoll_tests::binary::{EngineKind, Server, among_others};

use super::{PASSWORD, Person, serving};

fn url(at: SocketAddr) -> String {
    format!("http://{}:{}", Ipv4Addr::UNSPECIFIED, at.port())
}

/// Answers each connection with `answer`, and returns the URL and all that is received.
fn answering(answer: &'static str) -> (String, Arc<Mutex<Vec<u8>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = url(listener.local_addr().unwrap());
    let received = Arc::<Mutex<Vec<u8>>>::default();
    let record = Arc::clone(&received);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut block = [0; 4096];
            while let Ok(bytes @ 1..) = stream.read(&mut block) {
                record.lock().unwrap().extend_from_slice(&block[..bytes]);
                stream.write_all(answer.as_bytes()).unwrap();
            }
        }
    });
    (url, received)
}

const REFUSAL: &str = "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Bearer\r\nContent-Length: 0\r\n\r\n";
const REDIRECT: &str = "HTTP/1.1 308 Permanent Redirect\r\n\
                        Location: https://files.example:8443/api/whoami\r\nContent-Length: 0\r\n\r\n";
const UNRELATED: &str = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";

#[test]
fn no_password_crosses_the_network_to_a_server_that_would_refuse_it() {
    let _permit = among_others();
    for (answer, word) in [
        (REFUSAL, "Try --server https://0.0.0.0"),
        (REDIRECT, "Try --server https://files.example:8443"),
        (UNRELATED, "200"),
    ] {
        let (url, received) = answering(answer);
        let alice = Person::logged_out(&url);
        for command in ["login", "signup"] {
            alice.fails(&[command, "alice"], 1, &[word]);
        }
        let received = received.lock().unwrap();
        let text = String::from_utf8_lossy(&received);
        assert!(text.starts_with("GET /api/whoami ") && !text.contains(PASSWORD), "{text}");
        assert!(!text.contains("alice") && !text.contains("POST"), "{text}");
    }
}

#[test]
fn a_server_that_accepts_passwords_without_encryption_gets_them_with_a_warning() {
    let _permit = among_others();
    let data = tempfile::tempdir().unwrap();
    let begin = |policy: &str| {
        let mut serve = serving(EngineKind::Epoll, data.path(), "127.0.0.1:0");
        serve.args(["--plain-passwords", policy]);
        Server::spawn(serve)
    };
    let server = begin("allow");
    let alice = Person::logged_out(&url(server.at()));
    alice.writes("new", "battery staple");
    let change = ["passwd", "--new-password-file", "new"];
    for args in [&["signup", "alice"][..], &["login", "alice"], &change] {
        let done = alice.types(args).well();
        let is_warned = done.stderr.contains("warning") && done.stderr.contains("Try https://0.0.0.0");
        assert!(is_warned, "{args:?}: {}", done.stderr);
    }
    // Commands without a password do not warn, and this machine is not warned of.
    assert_eq!(alice.types(&["whoami"]).well().stderr, "");
    let local = Person::logged_out(&server.url(""));
    assert_eq!(local.types(&["login", "alice", "--password-file", "missing"]).status.code(), Some(1));
    local.writes("new", "battery staple");
    let done = local.types(&["login", "alice", "--password-file", "new"]).well();
    assert!(!done.stderr.contains("encrypted"), "{}", done.stderr);
    // A server with the default setting says before the password is sent that it would refuse it.
    drop(server);
    let server = begin("loopback");
    let bob = Person::logged_out(&url(server.at()));
    for command in ["login", "signup"] {
        bob.fails(&[command, "bob"], 1, &["was not sent", "https://0.0.0.0"]);
    }
}
