//! The random ports for passive data connections.
//!
//! Invariant: the next port is unpredictable. The server draws it, because the kernel's own search gets slow
//! with ten thousands of connections in TIME_WAIT.

use core::net::SocketAddr;
use std::io;

use plimsoll_io::{Address, Io, Listener};

use super::limits::PORT_TRIES_MAX;

/// A range of ports, first and last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ports {
    /// The first port.
    pub first: u16,
    /// The last port.
    pub last: u16,
}

impl Default for Ports {
    /// Returns a range below the kernel's ephemeral ports (32768 and above).
    fn default() -> Ports {
        Ports { first: 20_000, last: 29_999 }
    }
}

impl Ports {
    /// Listens on a free port of the address `at`, whose own port is ignored.
    pub(super) fn listen(self, io: &Io, mut at: SocketAddr) -> io::Result<Listener> {
        let mut taken = io::Error::from(io::ErrorKind::AddrInUse);
        for _ in 0..PORT_TRIES_MAX {
            at.set_port(self.draw(io));
            match io.listen(&Address::Ip(at)) {
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => taken = error,
                listening => return listening,
            }
        }
        Err(taken)
    }

    fn draw(self, io: &Io) -> u16 {
        let mut bytes = [0; 4];
        io.entropy(&mut bytes);
        let count = u32::from(self.last.saturating_sub(self.first)) + 1;
        let drawn = u32::from_ne_bytes(bytes) % count;
        self.first.saturating_add(u16::try_from(drawn).unwrap_or(0))
    }
}
