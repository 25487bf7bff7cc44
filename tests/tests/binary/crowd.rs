//! Hostile clients, hundreds of them: slow, stuck, flooding and idle.
//!
//! It measures nothing. The crowd must be connected from [`Crowd::gather`] until it is dropped. It counts
//! its activity, so that a test can check that it was hostile.

use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use plimsoll_tests::binary::visitor::connect_from;
use plimsoll_tests::binary::{PATIENCE, Visitor};
use rustix::net::sockopt;

/// Clients that send a byte of a head each second.
pub(crate) const DRIBBLING: usize = 200;
/// Clients that request a large answer and never read it.
pub(crate) const STUCK: usize = 200;
/// Clients that open and close connections, as fast as the server allows.
pub(crate) const FLOODING: usize = 200;
/// Clients that connect and send nothing.
pub(crate) const IDLE: usize = 1_000;

/// Clients that read a huge file repeatedly, as fast as they can.
pub(crate) const GREEDY: usize = 4;
/// The size of that file: much more than a connection may send in a turn, and than the kernel buffers.
pub(crate) const HUGE_BYTES: u64 = 256 << 20;

/// The interval between bytes of a dribbling client.
const DRIBBLE_TIME: Duration = Duration::from_secs(1);

/// The clients, on separate threads.
pub(crate) struct Crowd {
    silent: Vec<TcpStream>,
    doing: Arc<Doing>,
    threads: Vec<JoinHandle<()>>,
}

/// The crowd's counts, and whether it is to stop.
#[derive(Default)]
struct Doing {
    over: AtomicBool,
    dribbled: AtomicU64,
    opened: AtomicU64,
    swallowed: AtomicU64,
}

impl Crowd {
    /// Connects all clients to the server, which has a large file at `target` and [`HUGE_BYTES`] at `huge`.
    pub(crate) fn gather(at: SocketAddr, target: &str, huge: &str) -> Crowd {
        let doing = Arc::new(Doing::default());
        let mut silent: Vec<TcpStream> = (0..IDLE).map(|_| idle(at)).collect();
        silent.extend((0..STUCK).map(|_| stuck(at, target)));
        let (dribbles, floods) = (Arc::clone(&doing), Arc::clone(&doing));
        let mut threads = vec![
            std::thread::spawn(move || dribble(at, &dribbles)),
            std::thread::spawn(move || flood(at, &floods)),
        ];
        for _ in 0..GREEDY {
            let (swallows, huge) = (Arc::clone(&doing), huge.to_owned());
            threads.push(std::thread::spawn(move || swallow(at, &huge, &swallows)));
        }
        Crowd { silent, doing, threads }
    }

    /// Returns the bytes that dribbling clients have sent.
    pub(crate) fn dribbled(&self) -> u64 {
        self.doing.dribbled.load(Ordering::Relaxed)
    }

    /// Returns the connections that flooding clients have opened.
    pub(crate) fn opened(&self) -> u64 {
        self.doing.opened.load(Ordering::Relaxed)
    }

    /// Returns the bytes that greedy clients have read.
    pub(crate) fn swallowed(&self) -> u64 {
        self.doing.swallowed.load(Ordering::Relaxed)
    }

    /// Returns how many idle connections the server has closed by now.
    pub(crate) fn let_go(&self) -> usize {
        self.silent[..IDLE].iter().filter(|stream| has_ended(stream)).count()
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        self.doing.over.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            if thread.join().is_err() {
                println!("a thread of hostile clients panicked; its message is above");
            }
        }
    }
}

fn idle(at: SocketAddr) -> TcpStream {
    TcpStream::connect_timeout(&at, PATIENCE).expect("the server accepts connections")
}

fn stuck(at: SocketAddr, target: &str) -> TcpStream {
    let mut visitor = Visitor::connect_narrowly(at).expect("the server accepts connections");
    visitor.send(&format!("GET {target} HTTP/1.1\r\nHost: stuck\r\n\r\n")).expect("it reads");
    visitor.stream
}

/// Requests the huge file twice, and once more after each answer, so that the server always has a next
/// request.
fn swallow(at: SocketAddr, huge: &str, doing: &Doing) {
    let mut visitor = Visitor::connect(at).expect("the server accepts connections");
    let ask = format!("GET {huge} HTTP/1.1\r\nHost: greedy\r\n\r\n");
    visitor.send(&ask).expect("it reads");
    let mut block = vec![0; 1 << 20];
    loop {
        visitor.send(&ask).expect("it reads");
        let mut left = HUGE_BYTES;
        while left > 0 {
            let bytes = visitor.stream.read(&mut block).expect("more of it");
            assert!(bytes > 0, "the server has ended the answer");
            doing.swallowed.fetch_add(bytes as u64, Ordering::Relaxed);
            left = left.saturating_sub(bytes as u64);
            if doing.over.load(Ordering::Relaxed) {
                return;
            }
        }
    }
}

/// Returns whether a connection without any traffic has ended.
fn has_ended(stream: &TcpStream) -> bool {
    stream.set_nonblocking(true).expect("a socket");
    !matches!((&*stream).read(&mut [0]), Err(error) if error.kind() == io::ErrorKind::WouldBlock)
}

/// Sends the next byte of an endless head from one client after the other, from each once a second. A
/// client that the server has disconnected reconnects.
fn dribble(at: SocketAddr, doing: &Doing) {
    let head = b"GET / HTTP/1.1\r\nHost: slow\r\nX-Slow: ".iter().copied().chain(std::iter::repeat(b'x'));
    let mut clients: Vec<_> = (0..DRIBBLING).map(|_| (idle(at), head.clone())).collect();
    let step = DRIBBLE_TIME / u32::try_from(DRIBBLING).expect("a few");
    let mut next = Instant::now();
    for number in (0..DRIBBLING).cycle() {
        if doing.over.load(Ordering::Relaxed) {
            return;
        }
        let (stream, bytes) = &mut clients[number];
        let byte = bytes.next().expect("it has no end");
        if stream.write_all(&[byte]).is_err() {
            clients[number] = (idle(at), head.clone());
        } else {
            doing.dribbled.fetch_add(1, Ordering::Relaxed);
        }
        next += step;
        std::thread::sleep(next.saturating_duration_since(Instant::now()));
    }
}

/// Each client opens a connection, ends or resets it at once, and opens the next when the server has closed
/// it. So the flood is as fast as the server, and the accept queue is bounded by the crowd. Each client has
/// a separate loopback address, so that ports do not run out.
fn flood(at: SocketAddr, doing: &Doing) {
    let mut clients: Vec<Option<TcpStream>> = (0..FLOODING).map(|_| None).collect();
    for round in 0_usize.. {
        let mut moved = false;
        for (number, client) in clients.iter_mut().enumerate() {
            if doing.over.load(Ordering::Relaxed) {
                return;
            }
            if client.as_ref().is_none_or(has_ended) {
                let source = Ipv4Addr::new(127, 0, 1, u8::try_from(number + 1).expect("at most 255"));
                let opened = connect_from(source, at, None).expect("the server accepts connections");
                doing.opened.fetch_add(1, Ordering::Relaxed);
                *client = end(opened, (round + number) % 3);
                moved = true;
            }
        }
        if !moved {
            std::thread::sleep(Duration::from_micros(100));
        }
    }
}

/// Ends a connection in one of three ways. Returns it if the server still has to close it.
fn end(mut stream: TcpStream, manner_number: usize) -> Option<TcpStream> {
    match manner_number {
        0 => {
            sockopt::set_socket_linger(&stream, Some(Duration::ZERO)).expect("a socket");
            return None;
        }
        1 => {}
        // In the middle of a head.
        _ => stream.write_all(b"GET / HTTP/1.1\r\nHost: fl").expect("a new connection takes that"),
    }
    stream.shutdown(Shutdown::Write).ok().map(|()| stream)
}
