//! Tests of splicing, under every kind of socket: bytes that stay in the kernel.

use std::future::poll_fn;
use std::io::Write as _;
use std::net::TcpStream;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use plimsoll_io::limits::PIPED_BYTES_MIN;
use plimsoll_io::{Address, File, Filled, Fs as _, Io, Pipe, Rx, Segment, Stream, Want, join};

use rustix::net::SendFlags;

use crate::block_on;
use crate::files::SystemFs;
use crate::ring::check_ring;
use crate::serve::EngineKind;
use crate::skips;

/// Returns an engine for each way to wait: epoll, poll, and the ring where one can be created.
fn kinds() -> Vec<EngineKind> {
    let mut kinds = vec![EngineKind::Epoll, EngineKind::Thread];
    match check_ring() {
        Ok(()) => kinds.push(EngineKind::Uring),
        Err(reason) => skips::skip(skips::Need::Uring, &reason.to_string()),
    }
    kinds
}

const BODY_BYTES: usize = 300_000;

/// Returns the two ends of a connection by way of `at`.
async fn connection(io: &Io, at: &Address) -> (Stream, Stream) {
    let mut listener = io.listen(at).unwrap();
    let address = listener.address().clone();
    let (near, far) = join(io.connect(&address), listener.accept()).await;
    (near.unwrap(), far.unwrap())
}

fn body() -> Vec<u8> {
    (0..BODY_BYTES).map(|at| (at / 7 % 251).to_le_bytes()[0]).collect()
}

/// Sends a body from a client to a server that passes it on to another client. Returns whether its first
/// bytes stayed in the kernel on the way.
async fn pass_on(io: Io, from: Address) -> bool {
    let (mut sender, mut near) = connection(&io, &from).await;
    let (mut far, mut receiver) = connection(&io, &"127.0.0.1:0".parse().unwrap()).await;
    sender.tx.push(Segment::Owned(body()));
    let passing = async {
        let (mut left, mut is_piped) = (BODY_BYTES as u64, None);
        while left > 0 {
            let segment = near.rx.recv_for(&far.tx, left).await.unwrap().expect("not the end");
            is_piped.get_or_insert(matches!(segment, Segment::Piped(_)));
            left -= segment.len();
            far.tx.push(segment);
            far.tx.drain(PIPED_BYTES_MIN).await.unwrap();
        }
        far.tx.finish();
        is_piped == Some(true)
    };
    let receiving = async {
        let mut received = Vec::new();
        while let Some(lease) = receiver.rx.recv(Want::Body).await.unwrap() {
            received.extend_from_slice(&lease);
        }
        received
    };
    let (is_piped, received) = join(passing, receiving).await;
    assert!(received == body());
    is_piped
}

#[test]
fn relayed_bytes_stay_in_the_kernel_for_sockets_of_both_kinds() {
    let folder = tempfile::tempdir().unwrap();
    for kind in kinds() {
        let unix = Address::Unix(folder.path().join(kind.to_string()));
        for from in ["127.0.0.1:0".parse().unwrap(), unix] {
            let label = format!("{kind} from {from}");
            assert!(block_on(kind, |io| pass_on(io, from)).unwrap(), "{label}");
        }
    }
}

/// More than the capacity of any pipe, however the kernel fragments the bytes.
const LARGE_BYTES: usize = 48 << 20;

fn large() -> Vec<u8> {
    (0_u32..).flat_map(|number| number.wrapping_mul(2_654_435_761).to_le_bytes()).take(LARGE_BYTES).collect()
}

/// Writes the content of a pipe into a file, from `at` on, and returns the offset after it.
fn empty(pipe: &Pipe, file: &File, mut at: u64) -> u64 {
    while pipe.bytes() > 0 {
        at += SystemFs.write_from(file, pipe, pipe.bytes(), at).unwrap();
    }
    at
}

/// Sends much, in large pieces and small ones, and ends, while `receiving` receives.
async fn while_much_comes(io: &Io, from: &Address, receiving: impl AsyncFnOnce(Stream)) {
    let (mut sender, near) = connection(io, from).await;
    let sending = async {
        let bytes = large();
        let (begin, end) = bytes.split_at(LARGE_BYTES - 5_000);
        for piece in begin.chunks(1 << 20) {
            sender.tx.push(Segment::Owned(piece.to_vec()));
            sender.tx.drain(1 << 20).await.unwrap();
        }
        for piece in end.chunks(7) {
            sender.tx.push(Segment::Owned(piece.to_vec()));
            sender.tx.drain(0).await.unwrap();
        }
        sender.tx.finish();
    };
    join(sending, receiving(near)).await;
}

async fn recv_into(rx: &Rx, pipe: &Pipe, bytes_max: u64) -> Filled {
    poll_fn(|cx| rx.poll_recv_into(cx, pipe, bytes_max)).await.unwrap()
}

/// Empties a pipe each time it is full, and returns how often it was.
async fn emptied_when_full(io: Io, from: Address, file: File) -> u32 {
    let (mut at, mut was_full) = (0, 0);
    while_much_comes(&io, &from, async |near| {
        let pipe = near.rx.pipe().unwrap();
        loop {
            match recv_into(&near.rx, &pipe, u64::MAX).await {
                Filled::Bytes(_) => {}
                Filled::Full => {
                    was_full += 1;
                    at = empty(&pipe, &file, at);
                }
                Filled::End => break,
                Filled::Refused => panic!("nothing is urgent"),
            }
        }
        at = empty(&pipe, &file, at);
    })
    .await;
    was_full
}

#[test]
fn bytes_that_a_full_pipe_refuses_are_received_once_there_is_room() {
    let folder = tempfile::tempdir().unwrap();
    let root = SystemFs.open_root(folder.path()).unwrap();
    for kind in kinds() {
        let unix = Address::Unix(folder.path().join(kind.to_string()));
        for from in ["127.0.0.1:0".parse().unwrap(), unix] {
            let label = format!("{kind} from {from}");
            let file = SystemFs.create(&root, b"received").unwrap();
            let was_full = block_on(kind, |io| emptied_when_full(io, from, file)).unwrap();
            assert!(was_full > 1, "{label}");
            assert!(std::fs::read(folder.path().join("received")).unwrap() == large(), "{label}");
            SystemFs.remove_file(&root, b"received").unwrap();
        }
    }
}

async fn emptied_meanwhile(io: Io, file: File) {
    while_much_comes(&io, &"127.0.0.1:0".parse().unwrap(), async |near| {
        let pipe = Arc::new(near.rx.pipe().unwrap());
        let emptied = Arc::downgrade(&pipe);
        let emptying = thread::spawn(move || {
            let mut at = 0;
            while let Some(pipe) = emptied.upgrade() {
                at = empty(&pipe, &file, at);
            }
            at
        });
        loop {
            match recv_into(&near.rx, &pipe, 100_000).await {
                Filled::Bytes(_) => {}
                Filled::Full => io.sleep(Duration::from_micros(100)).await,
                Filled::End => break,
                Filled::Refused => panic!("nothing is urgent"),
            }
        }
        while pipe.bytes() > 0 {
            io.sleep(Duration::from_millis(1)).await;
        }
        drop(pipe);
        assert_eq!(emptying.join().unwrap(), LARGE_BYTES as u64);
    })
    .await;
}

#[test]
fn a_pipe_may_be_emptied_by_another_thread_meanwhile() {
    let folder = tempfile::tempdir().unwrap();
    let root = SystemFs.open_root(folder.path()).unwrap();
    for kind in [EngineKind::Epoll, EngineKind::Uring].into_iter().filter(|kind| kinds().contains(kind)) {
        let file = SystemFs.create(&root, b"received").unwrap();
        block_on(kind, |io| emptied_meanwhile(io, file)).unwrap();
        assert!(std::fs::read(folder.path().join("received")).unwrap() == large(), "{kind}");
        SystemFs.remove_file(&root, b"received").unwrap();
    }
}

/// Receives bytes with an urgent byte among them, into pipes until they refuse.
async fn received_with_an_urgent_byte(io: Io, ends: bool) -> Vec<u8> {
    let mut listener = io.listen(&"127.0.0.1:0".parse().unwrap()).unwrap();
    let address = listener.address().to_string();
    let sending = thread::spawn(move || {
        let mut sender = TcpStream::connect(address).unwrap();
        sender.write_all(&[1; 100_000]).unwrap();
        rustix::net::send(&sender, &[2], SendFlags::OOB).unwrap();
        sender.write_all(&[3; 100_000]).unwrap();
        if !ends {
            // The end has not arrived yet when everything else has.
            thread::sleep(Duration::from_millis(200));
        }
    });
    let mut near = listener.accept().await.unwrap();
    let (mut received, mut is_refused) = (Vec::new(), false);
    io.sleep(Duration::from_millis(50)).await;
    while !is_refused {
        let pipe = near.rx.pipe().unwrap();
        match recv_into(&near.rx, &pipe, u64::MAX).await {
            Filled::Bytes(bytes) => {
                let mut came = vec![0; usize::try_from(bytes).unwrap()];
                assert_eq!(rustix::io::read(pipe.source(), &mut came[..]).unwrap(), came.len());
                pipe.drained(bytes);
                received.extend(came);
            }
            Filled::Refused => is_refused = true,
            other => panic!("{other:?} after {} bytes", received.len()),
        }
    }
    while let Some(lease) = near.rx.recv(Want::Body).await.unwrap() {
        received.extend_from_slice(&lease);
    }
    sending.join().unwrap();
    received
}

#[test]
fn bytes_behind_an_urgent_byte_are_received_and_are_not_the_end() {
    for kind in kinds() {
        for ends in [true, false] {
            let received = block_on(kind, move |io| received_with_an_urgent_byte(io, ends)).unwrap();
            let of = |byte: u8| received.iter().filter(|&&found| found == byte).count();
            assert_eq!((of(1), of(3)), (100_000, 100_000), "{kind} {ends}");
        }
    }
}

/// Receives until the connection ends, all of it into a pipe. Returns the last result.
async fn ended_by(io: Io, is_reset: bool) -> std::io::Result<Filled> {
    let (mut sender, near) = connection(&io, &"127.0.0.1:0".parse().unwrap()).await;
    sender.tx.push(Segment::Owned(vec![7; 10_000]));
    sender.tx.drain(0).await.unwrap();
    let pipe = near.rx.pipe().unwrap();
    while pipe.bytes() < 10_000 {
        recv_into(&near.rx, &pipe, u64::MAX).await;
    }
    let ending = async {
        io.sleep(Duration::from_millis(20)).await;
        if !is_reset {
            sender.tx.finish();
            io.sleep(Duration::from_millis(20)).await;
        }
        drop(sender);
    };
    join(poll_fn(|cx| near.rx.poll_recv_into(cx, &pipe, u64::MAX)), ending).await.0
}

#[test]
fn a_peer_that_resets_has_not_ended() {
    for kind in kinds() {
        let of = |is_reset| block_on(kind, move |io| ended_by(io, is_reset)).unwrap();
        assert_eq!(of(false).unwrap(), Filled::End, "{kind}");
        assert_eq!(of(true).unwrap_err().kind(), std::io::ErrorKind::ConnectionReset, "{kind}");
    }
}
