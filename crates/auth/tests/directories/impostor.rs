//! Servers of MySQL and PostgreSQL that are not what they claim to be, over plain TCP.
//!
//! They ask for the password in each form that the protocol has.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::thread::{self, JoinHandle};

use plimsoll_auth::directory::open;

const CHALLENGE: &[u8] = b"abcdefghijklmnopqrst";

/// The greeting of MySQL 8 without TLS.
fn greeting() -> Vec<u8> {
    let [start, end] = [&CHALLENGE[..8], &CHALLENGE[8..]];
    let (low, high) = (b"\x0d\xa2\x2d\x02\0", b"\x0f\0\x15\0\0\0\0\0\0\0\0\0\0");
    let plugin = b"\0mysql_native_password\0";
    [b"\x0a8.0.40\0\x07\0\0\0", start, b"\0", low, high, end, plugin].concat()
}

/// Creates a request to authenticate by another plugin.
fn switch_to(plugin: &str) -> Vec<u8> {
    [b"\xfe", plugin.as_bytes(), b"\0", CHALLENGE, b"\0"].concat()
}

fn send(stream: &mut TcpStream, number: u8, packet: &[u8]) {
    let length = u8::try_from(packet.len()).unwrap();
    stream.write_all(&[&[length, 0, 0, number], packet].concat()).unwrap();
}

/// Returns a packet, which is a short one; `None` at the end.
fn receive(stream: &mut TcpStream) -> Option<Vec<u8>> {
    let mut head = [0; 4];
    stream.read_exact(&mut head).ok()?;
    let mut packet = vec![0; usize::from(head[0]) | usize::from(head[1]) << 8];
    stream.read_exact(&mut packet).ok()?;
    Some(packet)
}

/// Starts an impostor that answers the client's packets with these. Returns its URL, and the client's
/// packets.
fn impostor(requests: Vec<Vec<u8>>) -> (String, JoinHandle<Vec<Vec<u8>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("mysql://me:sesame@{}/files", listener.local_addr().unwrap());
    let received = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut received = Vec::new();
        for (packet, number) in [vec![greeting()], requests].concat().iter().zip((0..).step_by(2)) {
            send(&mut stream, number, packet);
            received.extend(receive(&mut stream));
        }
        received
    });
    (url, received)
}

#[test]
fn an_impostor_of_mysql_gets_a_proof_of_the_password_and_neither_itself_nor_a_request_for_a_key() {
    let full = b"\x01\x04".to_vec();
    for (requests, proofs) in [
        (vec![switch_to("caching_sha2_password"), full.clone()], 1),
        (vec![full], 0),
        (vec![switch_to("mysql_clear_password")], 0),
        (vec![switch_to("mysql_old_password")], 0),
        (vec![switch_to("sha256_password")], 0),
        (vec![switch_to("dialog")], 0),
        (vec![switch_to("client_ed25519")], 0),
        (vec![switch_to("parsec")], 0),
        (vec![Vec::new()], 0),
    ] {
        let (url, received) = impostor(requests);
        let error = open(&url).err().unwrap().to_string();
        let received = received.join().unwrap();
        // The first packet has the user's name, and a proof that fits the challenge alone.
        assert_eq!(received.len(), 1 + proofs, "{received:?}");
        assert!(received[1..].iter().all(|proof| proof.len() == 32), "{received:?}");
        let has_password = |packet: &Vec<u8>| packet.windows(6).any(|part| part == b"sesame");
        assert!(!received.iter().any(has_password), "{received:?}");
        assert!(!error.contains("sesame"), "{error}");
    }
}

/// Starts an impostor of PostgreSQL that offers no TLS, and asks for the password itself. Returns its
/// address, and the client's messages after the first.
fn impostor_of_postgres() -> (String, JoinHandle<Vec<u8>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let received = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        loop {
            let mut length = [0; 4];
            stream.read_exact(&mut length).unwrap();
            let mut message = vec![0; u32::from_be_bytes(length) as usize - 4];
            stream.read_exact(&mut message).unwrap();
            // A request for TLS, before the first message.
            if message.len() > 4 {
                break;
            }
            stream.write_all(b"N").unwrap();
        }
        stream.write_all(b"R\0\0\0\x08\0\0\0\x03").unwrap();
        let mut received = Vec::new();
        // The client closes, and that may be with an error.
        let _ = stream.read_to_end(&mut received);
        received
    });
    (address, received)
}

#[test]
fn an_impostor_of_postgres_that_asks_for_the_password_itself_gets_nothing() {
    for mode in ["prefer", "disable"] {
        let (address, received) = impostor_of_postgres();
        let url = format!("postgres://me:sesame@{address}/files?sslmode={mode}");
        let error = open(&url).err().unwrap().to_string();
        assert!(error.contains("asks for the password itself") && !error.contains("sesame"), "{error}");
        assert_eq!(received.join().unwrap(), b"", "{mode}");
    }
}
