//! The connection to Redis: its commands, its end, and replies that no Redis sends.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::channel;
use std::thread;

use plimsoll_auth::directory::{DirectoryError, open};

use crate::database::{Database, Fresh, Transport};
use crate::relay::{Fault, Relay, Target};
use crate::{add, fresh, new_account, with_server};

const PORT: u16 = 6379;

/// The replies to the calls that open a directory: twice its version, and the change counter.
const OPENED: [&[u8]; 3] = [b"*2\r\n$1\r\n5\r\n$0\r\n\r\n", b"*2\r\n$1\r\n5\r\n$0\r\n\r\n", b"$1\r\n0\r\n"];

fn listener() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("redis://{}/0", listener.local_addr().unwrap());
    (listener, url)
}

/// Waits for a command, and replies.
fn reply(stream: &mut TcpStream, reply: &[u8]) {
    assert!(stream.read(&mut [0; 1024]).unwrap() > 0);
    stream.write_all(reply).unwrap();
}

#[test]
fn a_reply_that_no_redis_sends_is_an_error_that_does_not_quote_it() {
    let nested = [b"*1\r\n".repeat(200), b":1\r\n".to_vec()].concat();
    for hostile in [
        b"$argon2id$hash\r\n".as_slice(),
        b"+$argon2id$hash\r\n",
        b":$argon2id$hash\r\n",
        b"*2\r\n$9\r\n$argon2id\r\n$99999999999999999\r\n$argon2id",
        b"*99999999999999\r\n:1\r\n",
        b"*-2\r\n",
        b"$1\r\n123\r\n",
        b"%1\r\n+a\r\n+b\r\n",
        b"|1\r\n+a\r\n+b\r\n:1\r\n",
        b"|99999999999999999999\r\n",
        b">2\r\n+message\r\n+$argon2id\r\n",
        b">0\r\n",
        b"~1\r\n:1\r\n",
        b",inf\r\n",
        b"_\r\n",
        b"*0\r\n",
        b"\xff\xfe\r\n",
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        b"+OK",
        b"",
        &nested,
    ] {
        let (listener, url) = listener();
        let hostile = hostile.to_vec();
        let server = thread::spawn(move || reply(&mut listener.accept().unwrap().0, &hostile));
        let error = open(&url).err().unwrap().to_string();
        assert!(error.starts_with("Redis: ") && !error.contains("argon2id"), "{error}");
        assert!(!error.contains("in time"), "{error}");
        server.join().unwrap();
    }
}

#[test]
fn a_redis_without_tls_gets_no_password_that_is_for_one_with_it() {
    let (listener, url) = listener();
    let url = url.replace("redis://", "rediss://me:sesame@");
    let server = thread::spawn(move || {
        let mut stream = listener.accept().unwrap().0;
        let mut received = vec![0; 1024];
        let count = stream.read(&mut received).unwrap();
        stream.write_all(b"-ERR Protocol error: unbalanced quotes in request\r\n").unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        received.truncate(count);
        stream.read_to_end(&mut received).unwrap_or(0);
        received
    });
    let error = open(&url).err().unwrap().to_string();
    assert!(error.contains("TLS: ") && !error.contains("sesame"), "{error}");
    assert!(!server.join().unwrap().windows(6).any(|part| part == b"sesame"));
}

#[test]
fn bytes_between_two_calls_are_no_reply_to_the_second() {
    let (listener, url) = listener();
    let ((go, may_go), (done, is_done)) = (channel(), channel());
    let server = thread::spawn(move || {
        let mut first = listener.accept().unwrap().0;
        // Without a delay, until the client acknowledges the reply before.
        first.set_nodelay(true).unwrap();
        OPENED.iter().for_each(|opened| reply(&mut first, opened));
        may_go.recv().unwrap();
        first.write_all(b"$1\r\n0\r\n").unwrap();
        done.send(()).unwrap();
        reply(&mut listener.accept().unwrap().0, b"$1\r\n0\r\n");
    });
    let mut directory = open(&url).unwrap();
    go.send(()).unwrap();
    is_done.recv().unwrap();
    assert!(directory.has_foreign_changes().unwrap(), "it is asked on another connection");
    server.join().unwrap();
}

/// Starts a Redis of its own, and a relay to it. Returns the URL by way of the relay, too.
fn relayed() -> (Database, Fresh, Relay, String) {
    let mut server = Database::start("redis");
    let at = server.fresh_over(Transport::Tcp);
    let (before, rest) = at.url.split_once('@').unwrap();
    let (host, database) = rest.split_once('/').unwrap();
    let relay = Relay::start(Target::Tcp(SocketAddr::new(host.parse().unwrap(), PORT)));
    let url = format!("{before}@{}/{database}", relay.address());
    (server, at, relay, url)
}

/// Returns how often clients have sent this word to the relay.
fn count(relay: &Relay, word: &str) -> usize {
    let word = format!("\r\n{word}\r\n");
    relay.sent().windows(word.len()).filter(|part| *part == word.as_bytes()).count()
}

#[test]
fn redis_gets_the_script_only_when_it_does_not_know_it_and_no_call_twice() {
    let (mut server, at, relay, url) = relayed();
    let mut directory = open(&url).unwrap();
    let alice = add(&mut *directory, "alice");
    assert_eq!((count(&relay, "SCRIPT"), count(&relay, "add_account")), (1, 1));
    // A new connection sends what it is for, and nothing else.
    let calls = count(&relay, "EVALSHA");
    directory.disconnect();
    assert_eq!(directory.account("alice").unwrap().unwrap().account, alice);
    assert_eq!(["SCRIPT", "AUTH", "EVALSHA"].map(|word| count(&relay, word)), [1, 2, calls + 1]);
    server.run(&at, "SCRIPT FLUSH");
    directory.add_account(&new_account("bob")).unwrap().unwrap();
    assert_eq!((count(&relay, "SCRIPT"), count(&relay, "add_account")), (2, 3));
    for bytes in (1..).step_by(7) {
        let before = count(&relay, "changes");
        relay.set(Fault::CutAfter(bytes));
        let is_opened = open(&url).is_ok();
        assert!(count(&relay, "changes") <= before + 1, "cut after {bytes} bytes");
        if is_opened {
            break;
        }
    }
    // One that Redis closes between two calls is noticed before the second.
    let mut directory = open(&at.url).unwrap();
    server.run(&at, "CLIENT KILL TYPE normal");
    assert!(directory.account("bob").unwrap().is_some());
}

#[test]
fn a_redis_that_refuses_to_write_is_reported_as_full() {
    let (mut server, at, _relay, _url) = relayed();
    let mut directory = open(&at.url).unwrap();
    server.run(&at, "CONFIG SET maxmemory 1");
    let error = directory.add_account(&new_account("alice")).unwrap_err();
    assert!(matches!(&error, DirectoryError::Full(why) if why.contains("OOM")), "{error}");
    server.run(&at, "CONFIG SET maxmemory 0");
    directory.add_account(&new_account("alice")).unwrap().unwrap();
}

#[test]
fn a_user_of_redis_without_a_password_is_not_taken_for_the_default_one() {
    let at = fresh("redis");
    with_server("redis", |server| server.run(&at, "ACL SETUSER guest on nopass ~plimsoll:* +@all"));
    add(&mut *open(&at.url.replace(":sesame@", "guest@")).unwrap(), "alice");
    let error = open(&at.url.replace(":sesame@", "nobody@")).err().unwrap().to_string();
    assert!(error.contains("WRONGPASS"), "{error}");
}
