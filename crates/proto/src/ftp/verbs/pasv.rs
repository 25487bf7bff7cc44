//! PASV: "This command requests the server-DTP to "listen" on a data port" (RFC 959, section 4.1.2).
//!
//! Invariants: the port is random, and accepts only the client of the control connection.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddrV4};

use plimsoll_io::Peer;
use plimsoll_wire::ftp::address::pasv_text;

use crate::ftp::connecting::{NO_ADDRESS, local_address};
use crate::ftp::conversation::Conversation;
use crate::ftp::ports::NoPort;
use crate::ftp::reply::{CommandResult, Reply};
use crate::ftp::state::{DataMode, Login};

pub(super) fn execute(c: &mut Conversation<'_>) -> CommandResult {
    if c.state.only_epsv {
        return Err(Reply::new(501, "You said EPSV ALL."));
    }
    let IpAddr::V4(local) = local_address(&c.control.stream)?.ip() else {
        return Err(Reply::new(425, "PASV has no form for IPv6 addresses: say EPSV."));
    };
    let address = announced(c, local);
    let port = listen(c)?;
    Ok(Reply::formatted(227, pasv_text(SocketAddrV4::new(address, port))))
}

/// Returns the address for the reply. Programs on the same machine do not need the router's.
fn announced(c: &Conversation<'_>, local: Ipv4Addr) -> Ipv4Addr {
    let is_local = matches!(c.peer, Peer::Ip(peer, _) if peer.is_loopback());
    c.shared.settings.announced.filter(|_| !is_local).unwrap_or(local)
}

/// Listens for the next data connection; returns the port.
pub(super) fn listen(c: &mut Conversation<'_>) -> Result<u16, Reply> {
    // First, because the new listener may need the descriptor of the old one.
    c.state.data_mode = DataMode::Unset;
    let mut at = local_address(&c.control.stream)?;
    if c.control.stream.is_behind_proxy() {
        // The proxy connects to another address than its client does, perhaps to loopback.
        at.set_ip(if at.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() });
    }
    let (account, address) = holder(c)?;
    let (ports, shares) = (c.shared.settings.ports, &c.shared.services.port_shares);
    let idle_time = c.shared.limits().connect_time;
    let port = ports.listen(&c.shared.io, at, shares, (account, address), idle_time).map_err(refusal)?;
    let plimsoll_io::Address::Ip(listening) = port.listener.address() else {
        return Err(NO_ADDRESS);
    };
    let number = listening.port();
    c.state.data_mode = DataMode::Passive(port);
    Ok(number)
}

/// Returns the account and the address for which the session holds a port.
fn holder<'c>(c: &'c Conversation<'_>) -> Result<(Option<&'c str>, IpAddr), Reply> {
    let Peer::Ip(address, _) = c.peer else { return Err(NO_ADDRESS) };
    match &c.state.login {
        Login::Account(caller) => Ok((Some(&caller.identity.account.name), address)),
        Login::None | Login::NameGiven(_) | Login::Guest => Ok((None, address)),
    }
}

fn refusal(reason: NoPort) -> Reply {
    match reason {
        NoPort::HasItsShare => {
            Reply::new(425, "You have too many data connections waiting; use or abort them, and try again.")
        }
        NoPort::NoneFree => {
            tracing::warn!("no port for data is free; ftp_ports may need more");
            Reply::new(425, "The server has no free port for data; try again shortly.")
        }
        NoPort::Failed(error) => {
            tracing::warn!(%error, "no port could be listened at for data");
            Reply::new(425, "The server has no free port for data; try again shortly.")
        }
    }
}
