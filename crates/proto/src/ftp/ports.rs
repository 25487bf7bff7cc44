//! The ports at which clients connect for data, drawn by chance.
//!
//! What must hold: nobody can tell the next one. They are drawn by us, because the system's own search gets
//! slow where ten thousands of ended connections are remembered.

use core::net::SocketAddr;
use std::io;

use plimsoll_io::{Address, Io, Listener};

use super::limits::PORT_TRIES_MAX;

/// A range of ports, first and last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ports {
    /// The first.
    pub first: u16,
    /// The last.
    pub last: u16,
}

impl Default for Ports {
    /// Below the ports that systems connect from by themselves (32768 and above).
    fn default() -> Ports {
        Ports { first: 20_000, last: 29_999 }
    }
}

impl Ports {
    /// Listens at a port that is free, of this address; its own port says nothing.
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
