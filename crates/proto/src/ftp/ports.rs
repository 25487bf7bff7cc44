//! The random ports for passive data connections.
//!
//! Invariant: the next port is unpredictable. The server draws it, because the kernel's own search gets slow
//! with ten thousands of connections in TIME_WAIT. An account and an address hold no more than their shares
//! ([`super::port_shares`]).

use core::net::{IpAddr, SocketAddr};
use std::io;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_io::{Address, Instant, Io, Listener};

use super::limits::{PORT_TRIES_MAX, SHORT_PORT_TIME, SHORT_PORTS_PART};
use super::port_shares::{HasItsShare, Holder, PortHold, PortShares};

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

/// A port that waits for the client's data connection.
pub(super) struct PassivePort {
    pub(super) listener: Listener,
    /// The time by which the transfer must be requested.
    pub(super) until: Instant,
    /// Dropped after the listener: then the port is free.
    _hold: PortHold,
}

/// The reason why there is no port for a transfer.
pub(super) enum NoPort {
    /// The account or the address holds its share of the ports.
    HasItsShare,
    /// No port is free.
    NoneFree,
    /// The operating system's error.
    Failed(io::Error),
}

impl Ports {
    /// Returns the number of ports.
    pub fn count(self) -> usize {
        usize::from(self.last.saturating_sub(self.first)) + 1
    }

    /// Listens on a free port of the address `at`, whose own port is ignored, for the account and address of
    /// `holder`. Without a transfer, the port is closed after `idle_time`.
    pub(super) fn listen(
        self,
        io: &Io,
        mut at: SocketAddr,
        shares: &Arc<PortShares>,
        (account, address): (Option<&str>, IpAddr),
        idle_time: Duration,
    ) -> Result<PassivePort, NoPort> {
        let now = io.now();
        // The client may request the transfer at the end of the idle time, and its data connection may take
        // as long again.
        let holder = Holder { account, address, now, until: now + 2 * idle_time };
        shares.check(&holder, self.count()).map_err(|HasItsShare| NoPort::HasItsShare)?;
        let is_short = shares.held() >= (self.count() / SHORT_PORTS_PART).max(1);
        let until = now + if is_short { idle_time.min(SHORT_PORT_TIME) } else { idle_time };
        let first = self.draw(io);
        let drawn = (0..PORT_TRIES_MAX).map(|_| self.draw(io));
        // Where nearly all are held, drawing finds none.
        let in_a_row = (0..self.count()).map(|index| (first + index) % self.count());
        let mut tries = PORT_TRIES_MAX;
        for index in drawn.chain(in_a_row) {
            let Some(hold) = shares.take(index, &holder) else { continue };
            at.set_port(self.first.saturating_add(u16::try_from(index).unwrap_or(0)));
            match io.listen(&Address::Ip(at)) {
                Ok(listener) => return Ok(PassivePort { listener, until, _hold: hold }),
                Err(error) if error.kind() == io::ErrorKind::AddrInUse && tries > 1 => tries -= 1,
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => break,
                Err(error) => return Err(NoPort::Failed(error)),
            }
        }
        Err(NoPort::NoneFree)
    }

    /// Draws a port, by its index in the range.
    fn draw(self, io: &Io) -> usize {
        let mut bytes = [0; 4];
        io.entropy(&mut bytes);
        usize::try_from(u32::from_ne_bytes(bytes)).unwrap_or(0) % self.count()
    }
}
