//! A wire between a person and a server that can hold bytes back, or change one.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::thread;
use std::time::Duration;

/// What becomes of bytes from now on, each way.
#[derive(Default)]
struct Left {
    up: Way,
    down: Way,
}

/// What becomes of bytes one way.
struct Way {
    /// How many are let through.
    open: AtomicI64,
    /// How many come as they are; then one is changed, once.
    whole: AtomicI64,
    /// How often what is held back was lost.
    cuts: AtomicI64,
}

impl Default for Way {
    fn default() -> Way {
        Way { open: AtomicI64::new(ALL), whole: AtomicI64::new(ALL), cuts: AtomicI64::new(0) }
    }
}

/// A wire to a server.
pub(super) struct Wire {
    at: SocketAddr,
    left: Arc<Left>,
}

const ALL: i64 = i64::MAX;

impl Wire {
    /// A wire to the server at `to`, open.
    pub(super) fn to(to: SocketAddr) -> Wire {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = listener.local_addr().unwrap();
        let left = Arc::<Left>::default();
        let wire = Wire { at, left: Arc::clone(&left) };
        thread::spawn(move || {
            for client in listener.incoming() {
                // Whoever finds no server is hung up on.
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

    /// Lets so many bytes through to the server, and then none.
    pub(super) fn hold_after_up(&self, bytes: i64) {
        self.left.up.open.store(bytes, Ordering::SeqCst);
    }

    /// Lets so many bytes through to the client, and then none.
    pub(super) fn hold_after_down(&self, bytes: i64) {
        self.left.down.open.store(bytes, Ordering::SeqCst);
    }

    /// Whether it holds something back.
    pub(super) fn is_held(&self) -> bool {
        [&self.left.up, &self.left.down].iter().any(|way| way.open.load(Ordering::SeqCst) <= 0)
    }

    /// Changes a byte after so many, each way, once.
    pub(super) fn change_after(&self, bytes: i64) {
        for way in [&self.left.up, &self.left.down] {
            way.whole.store(bytes, Ordering::SeqCst);
        }
    }

    /// Loses what it holds back, and the connections with it; lets everything through again.
    pub(super) fn cut(&self) {
        for way in [&self.left.up, &self.left.down] {
            way.cuts.fetch_add(1, Ordering::SeqCst);
        }
        self.open();
    }

    /// Lets everything through again.
    pub(super) fn open(&self) {
        self.hold_after_up(ALL);
        self.hold_after_down(ALL);
    }
}

fn carry(mut from: TcpStream, mut to: TcpStream, way: &Way) {
    let mut block = [0; 16 * 1024];
    let cuts = way.cuts.load(Ordering::SeqCst);
    while let Ok(bytes @ 1..) = from.read(&mut block) {
        while way.open.load(Ordering::SeqCst) <= 0 {
            thread::sleep(Duration::from_millis(5));
        }
        if way.cuts.load(Ordering::SeqCst) != cuts {
            let _ = to.shutdown(Shutdown::Both);
            return;
        }
        if passes(&way.whole, bytes) {
            block[bytes - 1] ^= 1;
            way.whole.store(ALL, Ordering::SeqCst);
        }
        if to.write_all(&block[..bytes]).is_err() {
            break;
        }
        passes(&way.open, bytes);
    }
    // One side has ended: so does the other, both ways if it broke.
    let _ = to.shutdown(Shutdown::Write);
}

/// Counts bytes, and tells whether they were the last that are left.
fn passes(left: &AtomicI64, bytes: usize) -> bool {
    let bytes = bytes as i64;
    left.load(Ordering::SeqCst) != ALL && left.fetch_sub(bytes, Ordering::SeqCst) <= bytes
}
