//! The connecting side, against hostile accepting sides.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::thread::JoinHandle;

use plimsoll_channel::message::{number_of, offer};
use plimsoll_channel::{Bodies, Connector, Settings};
use plimsoll_engine::{EngineKind, block_on};
use plimsoll_io::{Address, Want};
use rustix::event::{EventfdFlags, eventfd};
use rustix::fs::{
    MemfdFlags, OFlags, SealFlags, fcntl_add_seals, fcntl_getfl, fcntl_setfl, ftruncate, memfd_create,
};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::time::{TimerfdClockId, TimerfdFlags, timerfd_create};

use super::{BYTES, CAPACITY, FILE, HEADER, PATIENCE, RawSide, doorbell, kinds, receive, send};

const REGION_BYTES: u64 = ((HEADER + 2 * CAPACITY) * 8) as u64;

/// The descriptors of an offer.
struct Offered {
    memory: OwnedFd,
    page: OwnedFd,
    wake: OwnedFd,
}

fn offered(bytes: u64, seals: SealFlags, flags: EventfdFlags) -> Offered {
    let memory = memfd_create("hostile", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).unwrap();
    ftruncate(&memory, bytes).unwrap();
    fcntl_add_seals(&memory, seals).unwrap();
    let [page, _] = doorbell();
    Offered { memory, page, wake: eventfd(0, flags).unwrap() }
}

fn orderly() -> Offered {
    offered(REGION_BYTES, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL, EventfdFlags::NONBLOCK)
}

fn with_wake(wake: OwnedFd) -> Offered {
    Offered { wake, ..orderly() }
}

fn pipes() -> Offered {
    with_wake(pipe_with(PipeFlags::NONBLOCK).unwrap().1)
}

fn sockets() -> Offered {
    let (one, _) = UnixStream::pair().unwrap();
    one.set_nonblocking(true).unwrap();
    with_wake(one.into())
}

fn timers() -> Offered {
    with_wake(timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK).unwrap())
}

/// A file with the name that the kernel gives an eventfd.
fn files() -> Offered {
    let folder = tempfile::tempdir().unwrap();
    let named = File::create(folder.path().join("anon_inode:[eventfd]")).unwrap();
    let flags = fcntl_getfl(&named).unwrap() | OFlags::NONBLOCK;
    fcntl_setfl(&named, flags).unwrap();
    with_wake(named.into())
}

/// Accepts one connection, and treats it as `behave` does.
fn acceptor(at: &Path, behave: impl FnOnce(UnixStream) + Send + 'static) -> JoinHandle<()> {
    let listener = UnixListener::bind(at).unwrap();
    std::thread::spawn(move || {
        let (socket, _) = listener.accept().unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        behave(socket);
    })
}

/// Connects, receives until the end, and returns the outcome.
fn outcome(kind: EngineKind, at: &Path) -> Result<Vec<u8>, io::ErrorKind> {
    let at = Address::Unix(at.to_owned());
    block_on(kind, move |io| async move {
        let connector = Connector::new(&io, Bodies::Passed, Settings::default());
        let mut stream = connector.connect(&at).await.map_err(|error| error.kind())?;
        let mut whole = Vec::new();
        while let Some(lease) = stream.rx.recv(Want::Body).await.map_err(|error| error.kind())? {
            whole.extend_from_slice(&lease);
        }
        Ok(whole)
    })
    .unwrap()
}

fn outcome_of(
    kind: EngineKind,
    behave: impl FnOnce(UnixStream) + Send + 'static,
) -> Result<Vec<u8>, io::ErrorKind> {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().join("socket");
    let thread = acceptor(&at, behave);
    let outcome = outcome(kind, &at);
    thread.join().unwrap();
    outcome
}

/// Offers what `make` returns, and waits until the other side has gone.
fn refused(kind: EngineKind, message: Vec<u8>, count: usize, make: fn() -> Offered) -> Option<io::ErrorKind> {
    let outcome = outcome_of(kind, move |socket| {
        let _ = receive(&socket);
        let Offered { memory, page, wake } = make();
        let all = [memory.as_fd(), page.as_fd(), wake.as_fd(), memory.as_fd(), memory.as_fd()];
        send(&socket, &message, &all[..count]);
        let _ = receive(&socket);
    });
    outcome.err()
}

#[test]
fn an_offer_with_anything_wrong_is_refused() {
    let seals = SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL;
    assert_eq!(seals, SealFlags::from_bits_retain(7));
    let invalid = Some(io::ErrorKind::InvalidData);
    let good = || offer(0, REGION_BYTES).to_vec();
    for kind in kinds() {
        assert_eq!(refused(kind, b"HTTP/1.1 503 Service Unavailable\r\n".to_vec(), 0, orderly), invalid);
        assert_eq!(refused(kind, offer(0, 0).to_vec(), 0, orderly), invalid, "{kind}: no version in common");
        for count in [0, 1, 2, 4, 5] {
            assert_eq!(refused(kind, good(), count, orderly), invalid, "{kind}: {count} descriptors");
        }
        for bytes in [0, 8, REGION_BYTES - 8, REGION_BYTES * 2, u64::MAX] {
            assert_eq!(refused(kind, offer(0, bytes).to_vec(), 3, orderly), invalid, "{kind}: {bytes} bytes");
        }
        let unsealed = || offered(REGION_BYTES, SealFlags::GROW, EventfdFlags::NONBLOCK);
        assert_eq!(refused(kind, good(), 3, unsealed), invalid, "{kind}: it could shrink");
        let blocking = || offered(REGION_BYTES, SealFlags::from_bits_retain(7), EventfdFlags::empty());
        assert_eq!(refused(kind, good(), 3, blocking), invalid, "{kind}: a wake-up could block");
        for make in [pipes, sockets, timers, files] {
            assert_eq!(refused(kind, good(), 3, make), invalid, "{kind}: no eventfd");
        }
        let no_page = || Offered { page: orderly().memory, ..orderly() };
        assert_eq!(refused(kind, good(), 3, no_page), invalid, "{kind}: the doorbell has another size");
        assert_eq!(
            refused(kind, offer(512, REGION_BYTES).to_vec(), 3, orderly),
            invalid,
            "{kind}: no such mark"
        );
        let closed = outcome_of(kind, drop);
        assert!(closed.is_err(), "{kind}: {closed:?}");
    }
}

/// Sets up a channel in order, and returns the side.
fn raw_side(socket: UnixStream) -> RawSide {
    let (message, files) = receive(&socket).unwrap();
    let [their_page, their_wake] = <[_; 2]>::try_from(files).unwrap();
    let Offered { memory, page, wake } = orderly();
    send(&socket, &offer(0, REGION_BYTES), &[memory.as_fd(), page.as_fd(), wake.as_fd()]);
    let (page, bell, number) = (their_page.into(), their_wake.into(), number_of(&message).unwrap());
    RawSide { socket, memory: memory.into(), page, bell, number, writes: 1 }
}

#[test]
fn a_passed_file_is_read_by_the_range_of_its_frame() {
    for kind in kinds() {
        let outcome = outcome_of(kind, |socket| {
            let side = raw_side(socket);
            let folder = tempfile::tempdir().unwrap();
            std::fs::write(folder.path().join("a"), "0123456789").unwrap();
            let file = File::open(folder.path().join("a")).unwrap();
            send(&side.socket, b"f", &[file.as_fd()]);
            let word = u64::from_ne_bytes(*b"head    ");
            side.publish(&[BYTES | 4 << 32, word, FILE, 3, 5, BYTES | 4 << 32, word, super::END]);
            side.expect_end();
        });
        assert_eq!(outcome, Ok(b"head34567head".to_vec()), "{kind}");
    }
}

#[test]
fn a_passed_descriptor_that_is_no_read_only_file_is_refused() {
    let passed: [fn() -> Vec<OwnedFd>; 5] = [
        Vec::new,
        || vec![io::pipe().unwrap().0.into()],
        || vec![tempfile::tempfile().unwrap().into()],
        || vec![File::open("/").unwrap().into()],
        || vec![File::open("/proc/self/exe").unwrap().into(), File::open("/proc/self/exe").unwrap().into()],
    ];
    for kind in kinds() {
        for (number, pass) in passed.into_iter().enumerate() {
            let outcome = outcome_of(kind, move |socket| {
                let (side, files) = (raw_side(socket), pass());
                let files: Vec<_> = files.iter().map(AsFd::as_fd).collect();
                if !files.is_empty() {
                    send(&side.socket, b"f", &files);
                }
                side.publish(&[FILE, 0, 10]);
                let _ = receive(&side.socket);
            });
            assert_eq!(outcome, Err(io::ErrorKind::InvalidData), "{kind}: {number}");
        }
    }
}

#[test]
fn a_passed_file_that_is_too_short_is_an_error_and_no_end() {
    for kind in kinds() {
        let outcome = outcome_of(kind, |socket| {
            let side = raw_side(socket);
            let folder = tempfile::tempdir().unwrap();
            std::fs::write(folder.path().join("a"), "short").unwrap();
            let file = File::open(folder.path().join("a")).unwrap();
            send(&side.socket, b"f", &[file.as_fd()]);
            side.publish(&[FILE, 0, 10, super::END]);
            let _ = receive(&side.socket);
        });
        assert_eq!(outcome, Err(io::ErrorKind::UnexpectedEof), "{kind}");
    }
}
