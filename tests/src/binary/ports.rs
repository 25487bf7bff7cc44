//! Free ports for servers that cannot choose one themselves.
//!
//! A port that the kernel chooses may become the source port of any connection, between its choice and the
//! start of the server. So these ports are below the kernel's range for that (32768 to 60999 by default).

use std::net::TcpListener;
use std::ops::Range;
use std::sync::atomic::{AtomicU16, Ordering};

/// Below the source ports of connections, above the ports that tests name.
const PORTS: Range<u16> = 22_000..32_000;

/// The number of ports that this program has taken. It gives none twice.
static TAKEN: AtomicU16 = AtomicU16::new(0);

/// Returns a port of 127.0.0.1 at which nothing listens. Test programs run beside each other, so each begins
/// at a place of its own.
pub fn free_port() -> u16 {
    let count = PORTS.end - PORTS.start;
    let start = std::process::id().wrapping_mul(2_654_435_761) >> 16;
    for _ in 0..count {
        let next = u32::from(TAKEN.fetch_add(1, Ordering::Relaxed));
        let offset = u16::try_from((start + next) % u32::from(count)).unwrap();
        let port = PORTS.start + offset;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
    panic!("no port of {PORTS:?} is free");
}

#[test]
fn no_port_is_given_twice() {
    let ports: std::collections::HashSet<u16> = (0..200).map(|_| free_port()).collect();
    assert_eq!(ports.len(), 200);
    assert!(ports.iter().all(|port| PORTS.contains(port)));
}
