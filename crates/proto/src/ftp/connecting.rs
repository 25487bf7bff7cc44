//! Opens data connections.
//!
//! This module transfers no files. Invariants: the other end is the peer of the control connection, not the
//! first host that connects. A prepared data connection serves one transfer.

use core::net::SocketAddr;
use std::io;

use plimsoll_io::{Address, Deadline, Io, Peer, Stream};

use super::limits::ACTIVE_PORT_MIN;
use super::ports::PassivePort;
use super::reply::Reply;
use super::state::DataMode;

impl DataMode {
    /// Opens the data connection, within `deadline`.
    pub(super) async fn open(self, io: &Io, peer: &Peer, deadline: &Deadline) -> io::Result<Stream> {
        let opening = async {
            match self {
                DataMode::Unset => Err(io::ErrorKind::NotConnected.into()),
                DataMode::Passive(port) => accept(io, port, peer).await,
                DataMode::Active(at) => io.connect(&Address::Ip(at)).await,
            }
        };
        deadline.within(opening).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
    }
}

/// Accepts the connection of the session's own peer. Connections from other addresses are closed at once and
/// never end the wait: only the caller's deadline does. A limit on their number would let any other host
/// cancel a transfer by connecting that often.
async fn accept(io: &Io, mut port: PassivePort, peer: &Peer) -> io::Result<Stream> {
    let mut is_logged = false;
    loop {
        let stream = port.listener.accept().await?;
        if is_same_address(stream.peer(), peer) {
            return Ok(stream);
        }
        // Once for each listener: a flood of connections must not become a flood of log lines.
        if !std::mem::replace(&mut is_logged, true) {
            let stranger = stream.peer();
            tracing::warn!(%stranger, %peer, "closed a stranger's connections to a data port");
        }
        drop(stream);
        // A backlog full of them must not hold up the thread's other connections.
        io.yield_now().await;
    }
}

fn is_same_address(one: &Peer, other: &Peer) -> bool {
    matches!((one, other), (Peer::Ip(one, _), Peer::Ip(other, _)) if one == other)
}

/// Checks that a client may choose `at` for a data connection.
///
/// To prevent the bounce attack, only the client's own address is accepted, and there "it is suggested that
/// servers not open data connections to TCP ports less than 1024" (RFC 2577, section 3).
pub(super) fn check_active_address(at: SocketAddr, peer: &Peer) -> Result<(), Reply> {
    match peer {
        Peer::Ip(ip, _) if at.ip().to_canonical() != *ip => {
            Err(Reply::new(501, "A data connection is made to your own address and to no other."))
        }
        Peer::Ip(..) if at.port() < ACTIVE_PORT_MIN => {
            Err(Reply::new(501, "A data connection is made to ports from 1024 on."))
        }
        Peer::Ip(..) => Ok(()),
        Peer::Unix => Err(NO_ADDRESS),
    }
}

/// The reply to a client on a Unix socket, which has no IP address.
pub(super) const NO_ADDRESS: Reply = Reply::new(425, "There are no data connections over a Unix socket.");

/// Returns the local address of a control connection.
pub(super) fn local_address(control: &Stream) -> Result<SocketAddr, Reply> {
    match control.local() {
        Ok(Address::Ip(at)) => Ok(at),
        Ok(Address::Unix(_)) => Err(NO_ADDRESS),
        Err(error) => {
            tracing::warn!(%error, "a connection's own address could not be found");
            Err(Reply::new(425, "The server could not open a data connection."))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_active_data_connection_goes_to_an_unprivileged_port_of_the_client_only() {
        let peer = Peer::Ip([192, 0, 2, 1].into(), 40_000);
        let check = |ip: [u8; 4], port| check_active_address((ip, port).into(), &peer).is_ok();
        assert!(check([192, 0, 2, 1], ACTIVE_PORT_MIN));
        assert!(!check([192, 0, 2, 1], ACTIVE_PORT_MIN - 1));
        assert!(!check([192, 0, 2, 2], ACTIVE_PORT_MIN));
    }
}
