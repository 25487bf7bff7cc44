//! The client of classic in the simulator, against a server whose lines are written by hand.
//! A failing seed is printed; run it again with `PLIMSOLL_SEED=<seed>`.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use plimsoll_client::classic::{Error, Times, When, get, sign_up};
use plimsoll_io::sim::{Faults, Sim, seeds};
use plimsoll_io::{Address, Io, Segment, Stream, Want, join};
use plimsoll_wire::classic::Credentials;

const SECOND: Duration = Duration::from_secs(1);
const TIMES: Times =
    Times { connect: SECOND, answer: SECOND.saturating_mul(2), between_bytes: SECOND.saturating_mul(3) };
const FILE: &[u8] = b"what is in the file\nand more";

/// Runs a client against a server of one connection, until both have ended; returns the client's result.
fn run<T: 'static>(
    (seed, faults): (u64, Faults),
    server: impl AsyncFnOnce(Io, Stream) + 'static,
    client: impl AsyncFnOnce(Io, Address) -> T + 'static,
) -> T {
    let sim = Sim::new(seed, faults);
    let (near, far) = (sim.host("client"), sim.host("server"));
    let at = Address::Ip((far.ip(), 9000).into());
    let mut listener = far.io().listen(&at).unwrap();
    let (io, far_io, made) = (near.io(), far.io(), Rc::new(Cell::new(None)));
    let result = Rc::clone(&made);
    sim.run(&near, async move {
        let serving = async move { server(far_io, listener.accept().await.unwrap()).await };
        let (made, ()) = join(client(io, at), serving).await;
        result.set(Some(made));
    });
    assert_eq!((near.leased_bytes(), sim.connections_open()), (0, 0), "seed {seed}: something is left");
    made.take().unwrap()
}

fn alice() -> Credentials {
    Credentials { name: b"al:ice".to_vec(), password: b"horse".to_vec().into() }
}

/// Expects a line, with no bytes after it.
async fn expect_line(stream: &mut Stream, line: &[u8]) {
    let mut received = Vec::new();
    while received.len() < line.len() {
        received.extend_from_slice(&stream.rx.recv(Want::Head).await.unwrap().expect("more from the client"));
    }
    assert_eq!(received, line);
}

fn send_bytes(stream: &mut Stream, bytes: &[u8]) {
    stream.tx.push(Segment::Owned(bytes.to_vec()));
}

/// Serves a file to a client, and ends after so many bytes of the answers.
async fn send_file(mut stream: Stream, bytes: usize) {
    let (first, rest) = (&b"ok\n"[..], [b"ok 28\n", FILE].concat());
    expect_line(&mut stream, b"get:al\\:ice:horse\n").await;
    send_bytes(&mut stream, &first[..bytes.min(first.len())]);
    if bytes >= first.len() {
        expect_line(&mut stream, b"a\n").await;
        send_bytes(&mut stream, &rest[..rest.len().min(bytes - first.len())]);
    }
    // After a truncated answer, the client has disconnected.
    let _ = stream.finish().await;
}

async fn fetched(io: Io, at: Address) -> Result<Vec<u8>, Error> {
    let mut download = get(&io, &at, alice(), b"a", TIMES).await?;
    let mut bytes = Vec::new();
    while let Some(lease) = download.recv().await? {
        bytes.extend_from_slice(&lease);
    }
    assert_eq!(download.bytes(), bytes.len() as u64);
    Ok(bytes)
}

async fn discarded(io: Io, at: Address) -> Result<u64, Error> {
    get(&io, &at, alice(), b"a", TIMES).await?.discard().await
}

#[test]
fn a_file_arrives_complete_wherever_its_bytes_are_split() {
    let whole = async |_: Io, stream: Stream| send_file(stream, usize::MAX).await;
    let all =
        (0..60).map(|at| (0, Faults::split_at(at))).chain(seeds(200).map(|seed| (seed, Faults::splits())));
    for truncation in all {
        assert_eq!(run(truncation, whole, fetched).unwrap(), FILE);
        assert_eq!(run(truncation, whole, discarded).unwrap(), FILE.len() as u64);
    }
}

#[test]
fn a_file_that_ends_early_at_any_byte_is_an_error() {
    let length = b"ok\nok 28\n".len() + FILE.len();
    for bytes in 0..length {
        let cut = async move |_: Io, stream: Stream| send_file(stream, bytes).await;
        for error in [
            run((0, Faults::none()), cut, fetched).map(|_| ()),
            run((0, Faults::none()), cut, discarded).map(|_| ()),
        ] {
            assert!(matches!(error, Err(Error::Broken { .. })), "after {bytes} bytes: {error:?}");
        }
    }
}

#[test]
fn a_response_that_does_not_fit_the_request_is_an_error() {
    for bytes in ["hello\n", "ok 5\n", "ok\nok\n", "ok\nok 3\nhello", "ok\nok many\n", "ok\nhello\n"] {
        let server = async move |_: Io, mut stream: Stream| {
            send_bytes(&mut stream, bytes.as_bytes());
            let _ = stream.finish().await;
        };
        let error = run((0, Faults::none()), server, fetched).unwrap_err();
        assert!(matches!(error, Error::Malformed), "{bytes:?}: {error:?}");
    }
}

#[test]
fn a_refusal_carries_the_servers_reason() {
    let refuse = |before: &'static [u8]| {
        async move |_: Io, mut stream: Stream| {
            send_bytes(&mut stream, &[before, b"error: not found\n"].concat());
            let _ = stream.finish().await;
        }
    };
    let signed = async |io: Io, at: Address| sign_up(&io, &at, alice(), TIMES).await;
    let calm = || (0, Faults::none());
    for refused in [
        run(calm(), refuse(b"ok\n"), fetched).map(|_| ()),
        run(calm(), refuse(b""), fetched).map(|_| ()),
        run(calm(), refuse(b""), signed),
    ] {
        assert!(matches!(refused, Err(Error::Refused(reason)) if reason == b"not found"));
    }
}

#[test]
fn sign_up_succeeds_when_the_server_confirms() {
    let server = async |_: Io, mut stream: Stream| {
        expect_line(&mut stream, b"new:al\\:ice:horse\n").await;
        send_bytes(&mut stream, b"ok\n");
        let _ = stream.finish().await;
    };
    let client = async |io: Io, at: Address| sign_up(&io, &at, alice(), TIMES).await;
    run((0, Faults::none()), server, client).unwrap();
}

#[test]
fn every_wait_of_the_classic_client_times_out() {
    for (bytes, when) in [("", When::Waiting), ("ok\n", When::Waiting), ("ok\nok 5\nhel", When::Receiving)] {
        let server = async move |io: Io, mut stream: Stream| {
            send_bytes(&mut stream, bytes.as_bytes());
            io.sleep(SECOND * 60).await;
        };
        let error = run((0, Faults::none()), server, fetched).unwrap_err();
        assert!(matches!(error, Error::Late(found) if found == when), "{bytes:?}: {error:?}");
    }
}

#[test]
fn a_name_that_the_protocol_cannot_express_is_not_sent() {
    let sim = Sim::new(0, Faults::none());
    let near = sim.host("client");
    let (io, at) = (near.io(), Address::Ip((near.ip(), 9000).into()));
    sim.run(&near, async move {
        let credentials = Credentials { name: b"a\nb".to_vec(), password: Vec::new().into() };
        assert!(matches!(sign_up(&io, &at, credentials, TIMES).await, Err(Error::Request(_))));
        assert!(matches!(get(&io, &at, alice(), b"a\nb", TIMES).await, Err(Error::Request(_))));
    });
}
