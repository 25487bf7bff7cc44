//! The acts of the contract's server.

use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use plimsoll_io::{Either, Handler, Io, Lease, Rx, Segment, Stream, Want, select};
use plimsoll_tests::service::Each;
use plimsoll_tests::tree::noise;
use plimsoll_tests::{Engine, Protocol, Scenario, Scene};

/// More than the kernel's socket buffers hold between two processes.
pub(super) const MORE_THAN_SOCKETS_HOLD: usize = 24 << 20;

/// Returns a length above all buffers; the simulator's windows are small.
pub(super) fn too_much(scene: &Scene) -> usize {
    if scene.engine == Engine::Simulator { 300_000 } else { MORE_THAN_SOCKETS_HOLD }
}

pub(super) fn scenario() -> Scenario {
    Scenario { protocol: Protocol::Of(handler), ..Scenario::default() }
}

fn handler(io: Io) -> Rc<dyn Handler> {
    Rc::new(Each(io, act))
}

/// Returns the bytes that the server sends where a test only counts them.
pub(super) fn sent(len: usize) -> Vec<u8> {
    noise(9, len)
}

/// A command is an act's name and a number of eight digits.
const COMMAND_BYTES: usize = 9;

/// Returns the command to run the act `name` with `number`.
pub(super) fn command(name: char, number: usize) -> Vec<u8> {
    format!("{name}{number:08}").into_bytes()
}

async fn act(io: Io, mut stream: Stream) {
    let mut received = Vec::new();
    while received.len() < COMMAND_BYTES {
        match stream.rx.recv(Want::Head).await {
            Ok(Some(lease)) => received.extend_from_slice(&lease),
            _ => return,
        }
    }
    let rest = received.split_off(COMMAND_BYTES);
    let number = str::from_utf8(&received[1..]).unwrap().parse().unwrap();
    match received[0] {
        b'e' => echo(stream, rest).await,
        b'E' => echo_dropping_futures(io, stream, rest).await,
        b'o' => onward(&io, stream, number as u64, rest).await,
        b'p' => push_and_never_look_again(io, stream, number).await,
        b'd' => stream.tx.push(Segment::Owned(sent(number))),
        b'D' => drain_and_drop(stream, number).await,
        b'f' => finish(stream, number).await,
        b'c' => close(stream, number).await,
        b'h' => {
            io.sleep(HELD_BACK).await;
            count_until_the_end(stream, rest.len()).await;
        }
        b'l' => keep_leases(stream).await,
        b'r' => count_until_the_end(stream, rest.len()).await,
        b'!' => panic!("asked to"),
        other => panic!("no act {other}"),
    }
}

/// How long the act `h` receives nothing.
pub(super) const HELD_BACK: Duration = Duration::from_millis(400);

/// Echoes received bytes until the peer's end.
async fn echo(mut stream: Stream, rest: Vec<u8>) {
    stream.tx.push(Segment::Owned(rest));
    while let Ok(Some(lease)) = stream.rx.recv(Want::Body).await {
        stream.tx.push(Segment::Lease(lease));
        if stream.tx.drain(100_000).await.is_err() {
            return;
        }
    }
    let _ = stream.finish().await;
}

/// As [`echo`], with every future dropped once before it is awaited.
async fn echo_dropping_futures(io: Io, mut stream: Stream, rest: Vec<u8>) {
    stream.tx.push(Segment::Owned(rest));
    loop {
        let received = match select(stream.rx.recv(Want::Body), io.yield_now()).await {
            Either::Left(received) => received,
            Either::Right(()) => stream.rx.recv(Want::Body).await,
        };
        let Ok(Some(lease)) = received else { break };
        stream.tx.push(Segment::Lease(lease));
        let _dropped = select(stream.tx.drain(0), io.yield_now()).await;
    }
    let _ = stream.finish().await;
}

/// Echoes received bytes without reading them, at most `bytes_max` at a time, until the peer's end. Each
/// future is dropped once before it is awaited.
async fn onward(io: &Io, mut stream: Stream, bytes_max: u64, rest: Vec<u8>) {
    stream.tx.push(Segment::Owned(rest));
    loop {
        let received = match select(stream.rx.recv_for(&stream.tx, bytes_max), io.yield_now()).await {
            Either::Left(received) => received,
            Either::Right(()) => stream.rx.recv_for(&stream.tx, bytes_max).await,
        };
        let Ok(Some(segment)) = received else { break };
        assert!((1..=bytes_max).contains(&segment.len()), "{} of {bytes_max}", segment.len());
        stream.tx.push(segment);
        if stream.tx.drain(100_000).await.is_err() {
            return;
        }
    }
    let _ = stream.finish().await;
}

/// Pushes, and fails if the task is polled again before the server stops.
async fn push_and_never_look_again(io: Io, mut stream: Stream, len: usize) {
    stream.tx.push(Segment::Owned(sent(len)));
    let mut polls = 0;
    let looked = poll_fn(|_| {
        polls += 1;
        if polls > 1 && !io.is_stopping() {
            panic!("the task was polled again");
        }
        if polls > 1 { Poll::Ready(()) } else { Poll::Pending }
    });
    looked.await;
}

async fn drain_and_drop(mut stream: Stream, len: usize) {
    stream.tx.push(Segment::Owned(sent(len)));
    let _ = stream.tx.drain(0).await;
}

async fn finish(mut stream: Stream, len: usize) {
    stream.tx.push(Segment::Owned(sent(len)));
    let _ = stream.finish().await;
}

/// Ends without waiting for the peer: the kernel has taken all bytes, and nothing more is received.
async fn close(mut stream: Stream, len: usize) {
    stream.tx.push(Segment::Owned(sent(len)));
    if stream.tx.drain(0).await.is_ok() {
        stream.tx.finish();
    }
}

/// Keeps three leases at once, writes into the first, and sends all back. Requests the bytes of each with a
/// `+`.
async fn keep_leases(mut stream: Stream) {
    let mut leases = Vec::new();
    while leases.len() < 3 {
        stream.tx.push(Segment::Static(b"+"));
        leases.push(exactly_one(&mut stream.rx).await);
    }
    leases[0].make_ascii_uppercase();
    for lease in leases {
        stream.tx.push(Segment::Lease(lease));
    }
    stream.finish().await.unwrap();
}

async fn exactly_one(rx: &mut Rx) -> Lease {
    rx.recv(Want::Head).await.unwrap().unwrap()
}

/// Counts received bytes until the peer has ended its side, and then answers with the count.
async fn count_until_the_end(mut stream: Stream, begun: usize) {
    let mut received = begun;
    loop {
        match stream.rx.recv(Want::Body).await {
            Ok(Some(lease)) => received += lease.len(),
            Ok(None) => break,
            Err(_) => return,
        }
    }
    stream.tx.push(Segment::Owned(received.to_string().into_bytes()));
    let _ = stream.finish().await;
}
