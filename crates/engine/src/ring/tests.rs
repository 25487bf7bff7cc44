//! Tests of failures that only the ring can have: blocks that run out, operations that outlive their stream.

use std::future::Future;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use plimsoll_io::{Either, Io, Peer, Segment, Stream, Transport, Want, join, select};

use super::{Ring, Socket, check_ring};
use crate::block_on;
use crate::limits::RING_BODY_BLOCKS;
use crate::notifier::Notifier;
use crate::serve::EngineKind;
use crate::skips;

/// Runs a test that needs a ring; skips it where none can be created.
fn with_a_ring(test: impl FnOnce()) {
    match check_ring() {
        Ok(()) => test(),
        Err(reason) => skips::skip(skips::Need::Uring, &reason.to_string()),
    }
}

fn on_the_ring<F: Future<Output = ()> + 'static>(test: impl FnOnce(Io) -> F) {
    with_a_ring(|| block_on(EngineKind::Uring, test).unwrap());
}

async fn pairs(io: &Io, count: u16) -> Vec<(Stream, Stream)> {
    let mut listener = io.listen(&":0".parse().unwrap()).unwrap();
    let address = listener.address().clone();
    let mut pairs = Vec::new();
    for _ in 0..count {
        let (near, far) = join(io.connect(&address), listener.accept()).await;
        pairs.push((near.unwrap(), far.unwrap()));
    }
    pairs
}

/// Runs turns of the ring until `reached`; panics if that takes too long.
fn until(ring: &Ring, reached: impl Fn() -> bool) {
    for _ in 0..1_000 {
        ring.to_flush.new_turn();
        ring.flush();
        if reached() {
            return;
        }
        ring.wait_for_events(Some(Duration::from_millis(20)));
    }
    panic!("not reached");
}

fn ring() -> Rc<Ring> {
    Ring::new(&Notifier::new().unwrap()).unwrap()
}

fn socket(ring: &Rc<Ring>) -> (Rc<Socket>, UnixStream) {
    let (near, far) = UnixStream::pair().unwrap();
    (Socket::accepted(ring, OwnedFd::from(near), Peer::Unix), far)
}

fn receive(socket: &Socket) -> Poll<std::io::Result<Option<Vec<u8>>>> {
    let received = socket.poll_recv(&mut Context::from_waker(Waker::noop()), Want::Body);
    received.map_ok(|lease| lease.map(|lease| lease.to_vec()))
}

#[test]
fn bodies_that_come_together_are_received_though_blocks_run_out_and_every_lease_is_kept() {
    on_the_ring(|io| async move {
        let mut pairs = pairs(&io, 4 * RING_BODY_BLOCKS).await;
        for (_, far) in &mut pairs {
            // The future is dropped and its operation continues, so all of them wait at the same time.
            assert!(matches!(select(far.rx.recv(Want::Body), io.yield_now()).await, Either::Right(())));
        }
        for (number, (near, _)) in pairs.iter_mut().enumerate() {
            near.tx.push(Segment::Owned(format!("body {number}").into_bytes()));
        }
        let mut kept = Vec::new();
        for (_, far) in &mut pairs {
            kept.push(far.rx.recv(Want::Body).await.unwrap().expect("not the end"));
        }
        for (number, lease) in kept.iter().enumerate() {
            assert_eq!(**lease, *format!("body {number}").as_bytes());
        }
    });
}

#[test]
fn a_dropped_socket_ends_its_receive_and_is_closed_after_it() {
    with_a_ring(|| {
        let ring = ring();
        let (socket, mut far) = socket(&ring);
        assert!(receive(&socket).is_pending());
        ring.wait_for_events(Some(Duration::ZERO));
        assert_eq!(ring.in_progress(), 2);
        drop(socket);
        assert_eq!(ring.in_progress(), 2, "it was let go before the kernel was done with it");
        until(&ring, || ring.in_progress() == 1);
        ring.wait_for_events(Some(Duration::ZERO));
        far.set_nonblocking(true).unwrap();
        assert!(!matches!(far.read(&mut [0]), Err(error) if error.kind() == ErrorKind::WouldBlock));
        ring.end();
        assert_eq!(ring.in_progress(), 0);
    });
}

#[test]
fn a_buffer_lent_to_a_send_outlives_its_dropped_socket() {
    with_a_ring(|| {
        let ring = ring();
        let (socket, mut far) = socket(&ring);
        // More than is gathered, and more than the socket's buffer holds while nothing is read.
        socket.push(Segment::Owned(vec![7; 8 << 20]));
        ring.flush();
        ring.wait_for_events(Some(Duration::ZERO));
        let until_stuck = || ring.in_progress() == 2;
        until(&ring, until_stuck);
        drop(socket);
        until(&ring, || ring.in_progress() == 1);
        ring.wait_for_events(Some(Duration::ZERO));
        let mut received = Vec::new();
        // A Unix socket has no reset: an end before all was sent is all there is.
        let _ = far.read_to_end(&mut received);
        assert!(received.len() < 8 << 20 && received.iter().all(|byte| *byte == 7));
        ring.end();
    });
}

#[test]
fn at_most_one_block_is_received_while_no_task_waits() {
    with_a_ring(|| {
        let ring = ring();
        let (socket, mut far) = socket(&ring);
        assert!(receive(&socket).is_pending());
        for part in ["first ", "second"] {
            far.write_all(part.as_bytes()).unwrap();
            for _ in 0..3 {
                ring.wait_for_events(Some(Duration::from_millis(5)));
            }
        }
        assert_eq!(ring.in_progress(), 1, "a receive goes on that nobody asked for");
        assert!(matches!(receive(&socket), Poll::Ready(Ok(Some(first))) if first == b"first "));
        assert!(receive(&socket).is_pending());
        until(&ring, || ring.in_progress() == 1);
        assert!(matches!(receive(&socket), Poll::Ready(Ok(Some(second))) if second == b"second"));
        drop(socket);
        ring.end();
    });
}

#[test]
fn more_operations_than_a_turn_hands_over_are_all_done() {
    on_the_ring(|io| async move {
        let mut pairs = pairs(&io, 300).await;
        for (near, far) in &mut pairs {
            for side in [near, far] {
                side.tx.push(Segment::Static(b"hello"));
                // The receive is queued, and no turn ends.
                let _ = select(side.rx.recv(Want::Head), async {}).await;
            }
        }
        for (near, far) in &mut pairs {
            for side in [near, far] {
                assert_eq!(*side.rx.recv(Want::Head).await.unwrap().unwrap(), *b"hello");
            }
        }
    });
}
