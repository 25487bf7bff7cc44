//! The number of wake-ups, counted at connecting sides that are written by hand.

use std::future::poll_fn;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::fs::FileExt as _;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::mpsc::channel;
use std::task::Poll;
use std::time::{Duration, Instant};

use plimsoll_channel::message::{hello, number_of};
use plimsoll_channel::{Channels, Settings};
use plimsoll_engine::{EngineKind, block_on};
use plimsoll_io::{Address, Handler, Io, LocalFuture, Segment, Stream, Want};

use super::{BYTES, END, MARKS, PATIENCE, RING_BYTES, RING_HEADER, RawSide, doorbell, kinds, receive, send};

/// The channels of a test.
const COUNT: u32 = 8;
/// The flag of a ring's reader, in its header.
const CONSUMER_WAITS: usize = 16;
/// The flag of a ring's writer.
const PRODUCER_WAITS: usize = 24;

/// Sends received bytes back.
struct Echo;

impl Handler for Echo {
    fn serve(&self, mut stream: Stream) -> LocalFuture {
        Box::pin(async move {
            while let Ok(Some(lease)) = stream.rx.recv(Want::Head).await {
                stream.tx.push(Segment::Owned(lease.to_vec()));
            }
            stream.tx.finish();
        })
    }
}

/// Serves so many channels at once, on a thread of its own.
fn serve(kind: EngineKind, path: PathBuf) {
    let (ready, listening) = channel();
    std::thread::spawn(move || {
        block_on(kind, move |io: Io| async move {
            let mut listener = io.listen(&Address::Unix(path)).unwrap();
            ready.send(()).unwrap();
            let settings = Settings { ring_bytes: RING_BYTES, ..Settings::default() };
            let channels = Channels::new(io, Rc::new(Echo), settings);
            let mut served: Vec<LocalFuture> = Vec::new();
            for _ in 0..COUNT {
                served.push(channels.serve(listener.accept().await.unwrap()));
            }
            poll_fn(|cx| {
                served.retain_mut(|served| served.as_mut().poll(cx).is_pending());
                if served.is_empty() { Poll::Ready(()) } else { Poll::Pending }
            })
            .await;
        })
        .unwrap();
    });
    listening.recv_timeout(PATIENCE).unwrap();
}

/// Sides of one process, which share a doorbell.
struct Sides {
    sides: Vec<RawSide>,
    page: std::fs::File,
    wake: OwnedFd,
    _folder: tempfile::TempDir,
}

impl Sides {
    fn connect(kind: EngineKind) -> Sides {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        serve(kind, path.clone());
        let [page, wake] = doorbell();
        let sockets: Vec<UnixStream> = (0..COUNT)
            .map(|number| {
                let socket = UnixStream::connect(&path).unwrap();
                socket.set_read_timeout(Some(PATIENCE)).unwrap();
                send(&socket, &hello(number), &[page.as_fd(), wake.as_fd()]);
                socket
            })
            .collect();
        let sides = sockets.into_iter().map(|socket| {
            let (message, files) = receive(&socket).unwrap();
            let [memory, page, bell] = <[_; 3]>::try_from(files).unwrap();
            let number = number_of(&message).unwrap();
            RawSide { socket, memory: memory.into(), page: page.into(), bell: bell.into(), number, writes: 0 }
        });
        Sides { sides: sides.collect(), page: page.into(), wake, _folder: folder }
    }

    /// Says that this process waits for everything.
    fn wait_for_everything(&self) {
        for side in &self.sides {
            side.set(RING_HEADER + CONSUMER_WAITS, 1);
            side.set(PRODUCER_WAITS, 1);
        }
        self.page.write_all_at(&1u64.to_ne_bytes(), 0).unwrap();
    }

    /// Returns how often the eventfd was written to.
    fn wakeups(&self) -> u64 {
        let mut count = [0; 8];
        rustix::io::read(&self.wake, &mut count).map_or(0, |_| u64::from_ne_bytes(count))
    }

    /// Gets an answer on each channel, ends all of them, and returns how often the eventfd was written to.
    fn wakeups_of_answers(&self) -> u64 {
        let request = [BYTES | 5 << 32, u64::from_ne_bytes(*b"hello   "), END];
        self.sides.iter().for_each(|side| side.publish(&request[..2]));
        until("all are marked", || self.marks() == (1 << COUNT) - 1);
        self.sides.iter().for_each(|side| side.publish(&request));
        // After the end, the other side writes nothing any more.
        self.sides.iter().for_each(RawSide::expect_end);
        self.wakeups()
    }

    /// Returns the channels that are marked.
    fn marks(&self) -> u64 {
        let mut marks = [0; 8];
        self.page.read_exact_at(&mut marks, MARKS as u64 * 8).unwrap();
        u64::from_ne_bytes(marks)
    }
}

/// Waits until `is_done`.
fn until(condition: &str, is_done: impl Fn() -> bool) {
    let start = Instant::now();
    while !is_done() {
        assert!(start.elapsed() < PATIENCE, "{condition}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_thread_that_waits_is_woken_once_for_all_its_channels() {
    for kind in kinds() {
        let sides = Sides::connect(kind);
        sides.wait_for_everything();
        assert_eq!(sides.wakeups_of_answers(), 1, "{kind}");
    }
}

#[test]
fn a_wakeup_for_nothing_is_not_answered_by_another() {
    for kind in kinds() {
        let sides = Sides::connect(kind);
        for _ in 0..10 {
            sides.wait_for_everything();
            // When the second is taken, the first was handled.
            for _ in 0..2 {
                sides.sides.iter().for_each(RawSide::ring);
                until("no mark is left", || !sides.sides.iter().any(RawSide::is_marked));
            }
            assert_eq!((sides.marks(), sides.wakeups()), (0, 0), "{kind}");
        }
        assert_eq!(sides.wakeups_of_answers(), 1, "{kind}");
    }
}
