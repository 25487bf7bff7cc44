//! The accepting side, against hostile connecting sides.

use std::cell::RefCell;
use std::io::{self, Write as _};
use std::net::Shutdown;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::fs::FileExt as _;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use plimsoll_channel::limits::{DOORBELL_BYTES, HANDSHAKE_TIME_MAX};
use plimsoll_channel::message::{hello, number_of, offer};
use plimsoll_channel::{Channels, Count, Meter, Settings};
use plimsoll_engine::{EngineKind, block_on};
use plimsoll_io::{Address, Handler, Io, LocalFuture, Segment, Stream, Want};
use rustix::event::{EventfdFlags, eventfd};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};

use super::{
    BYTES, CAPACITY, END, FILE, HEADER, PATIENCE, RING_BYTES, RawSide, doorbell, kinds, receive, send,
};

/// The result of a connection: the received bytes, or the kind of the error.
type Outcome = Result<Vec<u8>, io::ErrorKind>;

/// Receives until the end, and reports the outcome.
struct OutcomeHandler(Sender<Outcome>);

impl Handler for OutcomeHandler {
    fn serve(&self, mut stream: Stream) -> LocalFuture {
        let outcomes = self.0.clone();
        Box::pin(async move {
            let mut whole = Vec::new();
            let outcome = loop {
                match stream.rx.recv(Want::Head).await {
                    Ok(Some(lease)) => whole.extend_from_slice(&lease),
                    Ok(None) => break Ok(whole),
                    Err(error) => break Err(error.kind()),
                }
            };
            // A receiver that has gone has seen enough.
            let _ = outcomes.send(outcome);
        })
    }
}

/// Sends more than a ring holds, and reports the outcome.
struct Flood(Sender<Outcome>);

impl Handler for Flood {
    fn serve(&self, mut stream: Stream) -> LocalFuture {
        let outcomes = self.0.clone();
        Box::pin(async move {
            stream.tx.push(Segment::Owned(vec![7; 100_000]));
            let drained = stream.tx.drain(0).await;
            let _ = outcomes.send(drained.map(|()| Vec::new()).map_err(|error| error.kind()));
        })
    }
}

/// A server on a thread of its own, which serves one connection after another.
struct Server {
    path: PathBuf,
    outcomes: Receiver<Outcome>,
    meter: Arc<Meter>,
    _folder: tempfile::TempDir,
}

fn server<H: Handler + 'static>(
    kind: EngineKind,
    connections: usize,
    make: fn(Sender<Outcome>) -> H,
) -> Server {
    let folder = tempfile::tempdir().unwrap();
    let (path, meter) = (folder.path().join("socket"), Meter::own());
    let ((report, outcomes), (ready, listening)) = (channel(), channel());
    let settings = Settings { ring_bytes: RING_BYTES, meter: Arc::clone(&meter), ..Settings::default() };
    let at = Address::Unix(path.clone());
    std::thread::spawn(move || {
        block_on(kind, move |io: Io| async move {
            let mut listener = io.listen(&at).unwrap();
            ready.send(()).unwrap();
            let channels = Rc::new(RefCell::new(Channels::new(io, Rc::new(make(report)), settings)));
            for _ in 0..connections {
                let stream = listener.accept().await.unwrap();
                let serving = channels.borrow().serve(stream);
                serving.await;
            }
        })
        .unwrap();
    });
    listening.recv_timeout(PATIENCE).unwrap();
    Server { path, outcomes, meter, _folder: folder }
}

impl Server {
    fn connect(&self) -> RawSide {
        let socket = UnixStream::connect(&self.path).unwrap();
        let [page, wake] = doorbell();
        send(&socket, &hello(0), &[page.as_fd(), wake.as_fd()]);
        side_of(socket)
    }

    fn outcome(&self) -> Outcome {
        self.outcomes.recv_timeout(PATIENCE).expect("the connection ends")
    }
}

fn side_of(socket: UnixStream) -> RawSide {
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let (message, files) = receive(&socket).unwrap();
    let number = number_of(&message).unwrap();
    assert_eq!(message, offer(u32::try_from(number).unwrap(), ((HEADER + 2 * CAPACITY) * 8) as u64));
    let [memory, page, bell] = <[_; 3]>::try_from(files).unwrap();
    RawSide { socket, memory: memory.into(), page: page.into(), bell: bell.into(), number, writes: 0 }
}

const fn bytes(length: u64) -> u64 {
    BYTES | length << 32
}

#[test]
fn bytes_and_the_end_written_by_hand_arrive() {
    for kind in kinds() {
        let server = server(kind, 1, OutcomeHandler);
        let side = server.connect();
        side.publish(&[bytes(5), u64::from_ne_bytes(*b"hello   "), END]);
        assert_eq!(server.outcome(), Ok(b"hello".to_vec()), "{kind}");
        side.expect_end();
    }
}

#[test]
fn nonsense_in_the_ring_is_an_error() {
    let wrong: [&[u64]; 9] = [
        &[0],
        &[77],
        &[bytes(0)],
        &[bytes(9), 0],
        &[bytes(u32::MAX as u64), 0, 0],
        &[bytes(8) | 0x100, 0],
        &[END | 1 << 32],
        &[FILE, 0, 100],
        &[u64::MAX; 16],
    ];
    for kind in kinds() {
        let server = server(kind, wrong.len(), OutcomeHandler);
        for words in wrong {
            let side = server.connect();
            side.publish(words);
            assert_eq!(server.outcome(), Err(io::ErrorKind::InvalidData), "{kind}: {words:x?}");
            side.expect_end();
        }
        assert_eq!(server.meter.get(Count::Corrupt), wrong.len() as u64);
    }
}

#[test]
fn impossible_positions_are_errors() {
    for kind in kinds() {
        let tails = [17, 1 << 40, u64::MAX];
        let server_of_tails = server(kind, tails.len(), OutcomeHandler);
        for tail in tails {
            let side = server_of_tails.connect();
            side.set_tail(tail);
            side.ring();
            assert_eq!(server_of_tails.outcome(), Err(io::ErrorKind::InvalidData), "{kind}: {tail}");
        }
        let heads = [17, 1 << 40, u64::MAX];
        let server_of_heads = server(kind, heads.len(), Flood);
        for head in heads {
            let side = server_of_heads.connect();
            while side.tail_of_peer() < CAPACITY as u64 {
                std::thread::sleep(Duration::from_millis(1));
            }
            side.set_head(head);
            side.ring();
            assert_eq!(server_of_heads.outcome(), Err(io::ErrorKind::InvalidData), "{kind}: {head}");
        }
    }
}

#[test]
fn memory_that_changes_under_the_reader_is_an_error_at_most() {
    for kind in kinds() {
        let server = server(kind, 1, OutcomeHandler);
        let side = server.connect();
        let mut state = 1u64;
        // Random values in the whole region, the flags and positions of both rings included, and wake-ups.
        for _ in 0..20_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let (word, value) = ((state >> 33) as usize % (HEADER + 2 * CAPACITY), state >> 60);
            side.set(word, value << if state & 1 == 0 { 32 } else { 0 } | (state >> 59 & 3));
            if state & 3 == 0 {
                side.page.write_all_at(&(value | value << 40).to_ne_bytes(), word as u64 % 512 * 8).unwrap();
            }
            if state & 7 == 0 {
                // It may be full by now, and the other side may have gone.
                let _ = rustix::io::write(&side.bell, &1u64.to_ne_bytes());
            }
        }
        drop(side);
        let outcome = server.outcome();
        assert!(!matches!(outcome, Err(io::ErrorKind::TimedOut)), "{kind}: {outcome:?}");
    }
}

#[test]
fn the_memory_cannot_be_taken_away() {
    for kind in kinds() {
        let server = server(kind, 1, OutcomeHandler);
        let side = server.connect();
        assert!(side.memory.set_len(0).is_err());
        // A hole is allowed, and reads as zeros: no frame.
        let flags = rustix::fs::FallocateFlags::PUNCH_HOLE | rustix::fs::FallocateFlags::KEEP_SIZE;
        rustix::fs::fallocate(&side.memory, flags, 0, 4096).unwrap();
        side.publish(&[0, 0, 0]);
        assert_eq!(server.outcome(), Err(io::ErrorKind::InvalidData), "{kind}");
    }
}

#[test]
fn a_peer_that_ends_at_any_moment_is_an_error_and_never_an_end() {
    for kind in kinds() {
        let server = server(kind, 3, OutcomeHandler);
        drop(server.connect());
        assert_eq!(server.outcome(), Err(io::ErrorKind::ConnectionReset), "{kind}");
        let side = server.connect();
        side.publish(&[bytes(8), 0]);
        drop(side);
        assert_eq!(server.outcome(), Err(io::ErrorKind::ConnectionReset), "{kind}");
        let side = server.connect();
        side.socket.shutdown(Shutdown::Both).unwrap();
        assert_eq!(server.outcome(), Err(io::ErrorKind::ConnectionReset), "{kind}");
    }
}

#[test]
fn the_first_message_may_be_split_at_every_byte() {
    let hello = hello(0);
    for kind in kinds() {
        let server = server(kind, hello.len() - 1, OutcomeHandler);
        for split in 1..hello.len() {
            let mut socket = UnixStream::connect(&server.path).unwrap();
            let [page, wake] = doorbell();
            send(&socket, &hello[..split], &[page.as_fd(), wake.as_fd()]);
            std::thread::sleep(Duration::from_millis(2));
            socket.write_all(&hello[split..]).unwrap();
            let side = side_of(socket);
            side.publish(&[END]);
            assert_eq!(server.outcome(), Ok(Vec::new()), "{kind}: {split}");
        }
    }
}

#[test]
fn a_peer_of_another_protocol_or_version_gets_no_channel() {
    let mut version = hello(0);
    version[8] = 99;
    for kind in kinds() {
        let server = server(kind, 4, OutcomeHandler);
        let answer = |message: &[u8]| {
            let mut socket = UnixStream::connect(&server.path).unwrap();
            socket.set_read_timeout(Some(PATIENCE)).unwrap();
            socket.write_all(message).unwrap();
            socket.shutdown(Shutdown::Write).unwrap();
            receive(&socket).map_or_else(|_| Vec::new(), |(bytes, _)| bytes)
        };
        assert_eq!(answer(b"GET / HTTP/1.1\r\nHost: test\r\n\r\n"), b"");
        assert_eq!(answer(b"plims"), b"");
        assert_eq!(answer(b""), b"");
        assert_eq!(answer(&version), offer(0, 0), "the response has the version");
        while server.meter.get(Count::Refused) < 4 {
            std::thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(server.meter.get(Count::Opened), 0);
    }
}

#[test]
fn a_first_message_with_anything_wrong_gets_no_channel() {
    type Make = fn() -> [OwnedFd; 2];
    let unsealed = || {
        let [page, wake] = doorbell();
        drop(page);
        let page = memfd_create("hostile", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).unwrap();
        ftruncate(&page, DOORBELL_BYTES as u64).unwrap();
        [page, wake]
    };
    let short = || {
        let page = memfd_create("hostile", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).unwrap();
        fcntl_add_seals(&page, SealFlags::from_bits_retain(7)).unwrap();
        [page, doorbell().into_iter().next_back().unwrap()]
    };
    let blocking = || [doorbell().into_iter().next().unwrap(), eventfd(0, EventfdFlags::empty()).unwrap()];
    let wrong: [(u32, usize, Make); 7] = [
        (0, 0, doorbell),
        (0, 1, doorbell),
        (512, 2, doorbell),
        (u32::MAX, 2, doorbell),
        (0, 2, unsealed),
        (0, 2, short),
        (0, 2, blocking),
    ];
    for kind in kinds() {
        let server = server(kind, wrong.len(), OutcomeHandler);
        for (number, count, make) in wrong {
            let (socket, [page, wake]) = (UnixStream::connect(&server.path).unwrap(), make());
            socket.set_read_timeout(Some(PATIENCE)).unwrap();
            send(&socket, &hello(number), &[page.as_fd(), wake.as_fd()][..count]);
            let answer = receive(&socket).map_or_else(|_| Vec::new(), |(bytes, _)| bytes);
            assert_eq!(answer, b"", "{kind}: number {number}, {count} descriptors");
        }
        while server.meter.get(Count::Refused) < wrong.len() as u64 {
            std::thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(server.meter.get(Count::Opened), 0);
    }
}

#[test]
fn a_peer_that_says_nothing_is_given_up() {
    let server = server(kinds()[0], 1, OutcomeHandler);
    let socket = UnixStream::connect(&server.path).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let start = std::time::Instant::now();
    assert!(matches!(receive(&socket), Ok((bytes, _)) if bytes.is_empty()));
    assert!(start.elapsed() >= HANDSHAKE_TIME_MAX, "{:?}", start.elapsed());
    while server.meter.get(Count::Refused) < 1 {
        std::thread::sleep(Duration::from_millis(1));
    }
}
