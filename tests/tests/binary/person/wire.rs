//! A proxy between a client and a server that can withhold bytes, or change one.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::thread;
use std::time::Duration;

/// The treatment of further bytes in each direction.
#[derive(Default)]
struct Left {
    up: Direction,
    down: Direction,
}

/// The treatment of bytes in one direction.
struct Direction {
    /// How many bytes are forwarded.
    open: AtomicI64,
    /// How many bytes are forwarded unchanged before one is changed, once.
    whole: AtomicI64,
    /// How often the withheld bytes were discarded.
    cuts: AtomicI64,
}

impl Default for Direction {
    fn default() -> Direction {
        Direction { open: AtomicI64::new(ALL), whole: AtomicI64::new(ALL), cuts: AtomicI64::new(0) }
    }
}

/// A proxy to a server.
pub(super) struct Wire {
    at: SocketAddr,
    left: Arc<Left>,
}

const ALL: i64 = i64::MAX;

impl Wire {
    /// Starts a proxy to the server at `to`, forwarding all bytes.
    pub(super) fn to(to: SocketAddr) -> Wire {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = listener.local_addr().unwrap();
        let left = Arc::<Left>::default();
        let wire = Wire { at, left: Arc::clone(&left) };
        thread::spawn(move || {
            for client in listener.incoming() {
                // If the server is unreachable, the client's connection is closed.
                let (Ok(client), Ok(server)) = (client, TcpStream::connect(to)) else { continue };
                let (down, up) = (server.try_clone().unwrap(), client.try_clone().unwrap());
                let (left, same) = (Arc::clone(&left), Arc::clone(&left));
                thread::spawn(move || carry(up, server, &left.up));
                thread::spawn(move || carry(down, client, &same.down));
            }
        });
        wire
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}", self.at)
    }

    /// Returns the URL of a server over TLS.
    pub(super) fn https_url(&self) -> String {
        format!("https://{}", self.at)
    }

    /// Forwards `bytes` to the server, and then withholds the rest.
    pub(super) fn hold_after_up(&self, bytes: i64) {
        self.left.up.open.store(bytes, Ordering::SeqCst);
    }

    /// Forwards `bytes` to the client, and then withholds the rest.
    pub(super) fn hold_after_down(&self, bytes: i64) {
        self.left.down.open.store(bytes, Ordering::SeqCst);
    }

    /// Returns whether it withholds bytes.
    pub(super) fn is_held(&self) -> bool {
        [&self.left.up, &self.left.down].iter().any(|direction| direction.open.load(Ordering::SeqCst) <= 0)
    }

    /// Changes one byte after `bytes`, in each direction.
    pub(super) fn change_after(&self, bytes: i64) {
        for direction in [&self.left.up, &self.left.down] {
            direction.whole.store(bytes, Ordering::SeqCst);
        }
    }

    /// Discards the withheld bytes, and closes their connections. Forwards all later bytes.
    pub(super) fn cut(&self) {
        for direction in [&self.left.up, &self.left.down] {
            direction.cuts.fetch_add(1, Ordering::SeqCst);
        }
        self.open();
    }

    /// Forwards all bytes again.
    pub(super) fn open(&self) {
        self.hold_after_up(ALL);
        self.hold_after_down(ALL);
    }
}

fn carry(mut from: TcpStream, mut to: TcpStream, direction: &Direction) {
    let mut block = [0; 16 * 1024];
    let cuts = direction.cuts.load(Ordering::SeqCst);
    while let Ok(bytes @ 1..) = from.read(&mut block) {
        while direction.open.load(Ordering::SeqCst) <= 0 {
            thread::sleep(Duration::from_millis(5));
        }
        if direction.cuts.load(Ordering::SeqCst) != cuts {
            let _ = to.shutdown(Shutdown::Both);
            return;
        }
        if passes(&direction.whole, bytes) {
            block[bytes - 1] ^= 1;
            direction.whole.store(ALL, Ordering::SeqCst);
        }
        if to.write_all(&block[..bytes]).is_err() {
            break;
        }
        passes(&direction.open, bytes);
    }
    // One direction has ended or failed, so its receiver gets an end of file.
    let _ = to.shutdown(Shutdown::Write);
}

/// Counts forwarded bytes, and returns whether the count is reached.
fn passes(left: &AtomicI64, bytes: usize) -> bool {
    let bytes = bytes as i64;
    left.load(Ordering::SeqCst) != ALL && left.fetch_sub(bytes, Ordering::SeqCst) <= bytes
}
