//! Opens sockets for addresses: bound and listening, or connecting.
//!
//! It resolves no names. Invariants: every socket is non-blocking and close-on-exec from its creation. The
//! socket file of a dead server is replaced; one on which a server listens is not.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use plimsoll_io::{Address, Peer};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SocketAddrAny, SocketAddrUnix, SocketFlags, SocketType, connect, getsockname, listen,
    socket_with, sockopt,
};

use crate::limits::{BACKLOG_MAX, UNIX_SEND_BYTES};

/// A listening socket.
#[derive(Debug)]
pub struct Bound {
    pub(crate) fd: OwnedFd,
    address: Address,
    client_speaks_first: bool,
    service: Service,
}

/// The protocol of a listener, as far as slots are concerned.
#[derive(Clone, Copy, Debug, Default)]
pub struct Service {
    /// The protocol's number, below [`SERVICES_MAX`](crate::limits::SERVICES_MAX): listeners of one protocol
    /// share its reserved slots.
    pub number: usize,
    /// The message to a client whose address has its share of the slots, sent before the server closes.
    pub refusal: &'static [u8],
}

impl Bound {
    /// Returns the address it listens on, with the port that the kernel chose.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Declares that the client speaks first in this protocol. On loopback, an event loop then lets the
    /// kernel hold back each connection until its first bytes arrive (TCP_DEFER_ACCEPT, tcp(7)). A request
    /// that is there at the accept needs no wait, which saves a sixth of the processor time for 1 KB on a
    /// new connection. A silent client is accepted after about a second, so that the bounds on silent
    /// clients apply to it. Engines with a process or thread for each connection do not defer: the
    /// connection has its own from the start.
    ///
    /// Nor is it done over a network: the kernel counts the client's silence as part of the round-trip time,
    /// and would then wait for seconds before it retransmits a lost packet.
    #[must_use]
    pub fn client_speaks_first(self) -> Bound {
        Bound { client_speaks_first: true, ..self }
    }

    /// Sets the protocol that this listener's connections count for.
    #[must_use]
    pub fn of_service(self, service: Service) -> Bound {
        debug_assert!(service.number < crate::limits::SERVICES_MAX, "there is no such service");
        Bound { service, ..self }
    }

    /// Returns the protocol of the listener.
    pub(crate) fn service(&self) -> Service {
        self.service
    }

    /// Sets TCP_DEFER_ACCEPT, if the client speaks first and the address is on loopback.
    pub(crate) fn defer(&self) {
        static SECONDS: libc::c_int = 1;
        const BYTES: libc::socklen_t = 4;
        let is_here = matches!(self.address, Address::Ip(at) if at.ip().is_loopback());
        if self.client_speaks_first && is_here {
            let (fd, value) = (self.fd.as_raw_fd(), (&raw const SECONDS).cast());
            // SAFETY: the descriptor is open as long as `self` is, and the kernel reads the four bytes of
            // `SECONDS`, which is static. It may refuse: then no connection is deferred, which is correct,
            // too.
            unsafe { libc::setsockopt(fd, libc::IPPROTO_TCP, libc::TCP_DEFER_ACCEPT, value, BYTES) };
        }
    }

    /// Duplicates the listening socket, for another thread.
    ///
    /// # Errors
    /// The error of dup(2), such as a lack of descriptors.
    pub fn try_clone(&self) -> io::Result<Bound> {
        Ok(Bound { fd: self.fd.try_clone()?, address: self.address.clone(), ..*self })
    }
}

const NEW: SocketFlags = SocketFlags::NONBLOCK.union(SocketFlags::CLOEXEC);

fn family(address: &Address) -> AddressFamily {
    match address {
        Address::Ip(at) if at.is_ipv4() => AddressFamily::INET,
        Address::Ip(_) => AddressFamily::INET6,
        Address::Unix(_) => AddressFamily::UNIX,
    }
}

/// Binds a socket to the address and listens.
///
/// # Errors
/// The kernel's error: the address is in use, is not of this machine, or needs a privilege.
pub fn bind(address: &Address) -> io::Result<Bound> {
    let fd = socket_with(family(address), SocketType::STREAM, NEW, None)?;
    match address {
        Address::Ip(at) => {
            sockopt::set_socket_reuseaddr(&fd, true)?;
            // Accepted sockets inherit it: no call per connection, and a response never waits for an
            // acknowledgement.
            sockopt::set_tcp_nodelay(&fd, true)?;
            // FTP clients send the end of ABOR as urgent data: inline, that byte keeps its position.
            sockopt::set_socket_oobinline(&fd, true)?;
            if at.is_ipv6() {
                sockopt::set_ipv6_v6only(&fd, true)?;
            }
            if at.ip().is_loopback() {
                do_not_pace(&fd);
            }
            rustix::net::bind(&fd, at)?;
        }
        Address::Unix(path) => bind_unix(&fd, path)?,
    }
    listen(&fd, BACKLOG_MAX)?;
    let address = match address {
        Address::Ip(_) => Address::Ip(getsockname(&fd)?.try_into()?),
        Address::Unix(_) => address.clone(),
    };
    Ok(Bound { fd, address, client_speaks_first: false, service: Service::default() })
}

/// Checks that [`bind`] would succeed, and leaves the address as it was. It never listens, so no client can
/// connect meanwhile.
///
/// # Errors
/// As [`bind`].
pub fn check_bind(address: &Address) -> io::Result<()> {
    match address {
        Address::Ip(at) => {
            let fd = socket_with(family(address), SocketType::STREAM, NEW, None)?;
            sockopt::set_socket_reuseaddr(&fd, true)?;
            if at.is_ipv6() {
                sockopt::set_ipv6_v6only(&fd, true)?;
            }
            Ok(rustix::net::bind(&fd, at)?)
        }
        Address::Unix(path) if std::fs::symlink_metadata(path).is_ok() => {
            let is_free = is_left_behind(path, &SocketAddrUnix::new(path)?)?;
            if is_free { Ok(()) } else { Err(Errno::ADDRINUSE.into()) }
        }
        Address::Unix(path) => {
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
            std::fs::metadata(folder.unwrap_or(Path::new("."))).map(drop)
        }
    }
}

/// Congestion control without pacing, the better first; the kernel always has the last.
const UNPACED: [&str; 2] = ["cubic", "reno"];

/// Replaces BBR on loopback, which cannot be congested: BBR's pacing timer is slower than the machine.
/// Accepted sockets inherit their listener's setting.
fn do_not_pace(fd: &OwnedFd) {
    if sockopt::tcp_congestion(fd).is_ok_and(|name| name.starts_with("bbr")) {
        // If none is available, the operator's setting stays.
        let _ = UNPACED.iter().any(|name| sockopt::set_tcp_congestion(fd, name).is_ok());
    }
}

fn bind_unix(fd: &OwnedFd, path: &Path) -> io::Result<()> {
    let at = SocketAddrUnix::new(path)?;
    match rustix::net::bind(fd, &at) {
        Err(Errno::ADDRINUSE) if is_left_behind(path, &at)? => {
            std::fs::remove_file(path)?;
            Ok(rustix::net::bind(fd, &at)?)
        }
        bound => Ok(bound?),
    }
}

fn is_left_behind(path: &Path, at: &SocketAddrUnix) -> io::Result<bool> {
    if !std::fs::symlink_metadata(path)?.file_type().is_socket() {
        return Ok(false);
    }
    let probe = socket_with(AddressFamily::UNIX, SocketType::STREAM, NEW, None)?;
    Ok(connect(&probe, at) == Err(Errno::CONNREFUSED))
}

/// Returns a socket that is connecting to `to`, and its peer.
pub(crate) fn start_connect(to: &Address) -> io::Result<(OwnedFd, Peer)> {
    let fd = socket_with(family(to), SocketType::STREAM, NEW, None)?;
    let (started, peer) = match to {
        Address::Ip(at) => {
            sockopt::set_tcp_nodelay(&fd, true)?;
            if at.ip().is_loopback() {
                do_not_pace(&fd);
            }
            (connect(&fd, at), Peer::Ip(at.ip(), at.port()))
        }
        Address::Unix(path) => {
            widen(&fd);
            (connect(&fd, &SocketAddrUnix::new(path)?), Peer::Unix)
        }
    };
    match started {
        Ok(()) | Err(Errno::INPROGRESS) => Ok((fd, peer)),
        Err(error) => Err(error.into()),
    }
}

/// Enlarges the send buffer of a Unix socket. With the default of 208 KiB, two processes on one core switch
/// five times for a megabyte. In a model of a front and a storage server on one core, the two took 0.27 ms
/// of processor time for it with this, and 0.34 without.
pub(crate) fn widen(fd: &OwnedFd) {
    // The kernel caps it at net.core.wmem_max; a smaller buffer works, too.
    let _ = sockopt::set_socket_send_buffer_size(fd, UNIX_SEND_BYTES);
}

/// Returns the address of this end of `fd`.
pub(crate) fn local_address(fd: impl AsFd) -> io::Result<Address> {
    let address = getsockname(fd)?;
    if address.address_family() == AddressFamily::UNIX {
        let address = SocketAddrUnix::try_from(address)?;
        let path = address.path_bytes().unwrap_or_default();
        return Ok(Address::Unix(OsStr::from_bytes(path).into()));
    }
    Ok(Address::Ip(address.try_into()?))
}

/// Returns the peer, given the address from `accept`.
pub(crate) fn peer_of(address: Option<SocketAddrAny>) -> Peer {
    match address.map(std::net::SocketAddr::try_from) {
        Some(Ok(at)) => Peer::Ip(at.ip().to_canonical(), at.port()),
        _ => Peer::Unix,
    }
}

/// Returns whether `fd` has connected, or the error of connecting.
pub(crate) fn connected(fd: impl AsFd) -> Result<(), Errno> {
    sockopt::socket_error(fd)?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_that_must_speak_first_is_accepted_once_it_has() {
        use std::io::Write as _;
        let bound = bind(&"127.0.0.1:0".parse().unwrap()).unwrap().client_speaks_first();
        bound.defer();
        let Address::Ip(at) = bound.address() else { panic!("{bound:?}") };
        let until_accepted = || {
            let until = std::time::Instant::now() + std::time::Duration::from_secs(30);
            while rustix::net::accept(&bound.fd).is_err() {
                assert!(std::time::Instant::now() < until, "nobody is accepted");
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
        };
        let connecting = std::time::Instant::now();
        let mut client = std::net::TcpStream::connect(at).unwrap();
        let is_accepted = rustix::net::accept(&bound.fd).is_ok();
        assert!(!is_accepted || connecting.elapsed() > std::time::Duration::from_millis(500));
        client.write_all(b"G").unwrap();
        until_accepted();
        // A silent client is accepted, too, after a while.
        let _silent = std::net::TcpStream::connect(at).unwrap();
        until_accepted();
    }

    #[test]
    fn over_a_network_a_silent_client_is_accepted_too() {
        let bound = bind(&"0.0.0.0:0".parse().unwrap()).unwrap().client_speaks_first();
        bound.defer();
        let Address::Ip(at) = bound.address() else { panic!("{bound:?}") };
        let _silent = std::net::TcpStream::connect(("127.0.0.1", at.port())).unwrap();
        // Less than the time after which a silent client is accepted anyway.
        std::thread::sleep(std::time::Duration::from_millis(200));
        assert!(rustix::net::accept(&bound.fd).is_ok());
    }

    #[test]
    fn nothing_is_paced_on_loopback_and_what_an_operator_chose_else_stays() {
        let fd = socket_with(AddressFamily::INET, SocketType::STREAM, NEW, None).unwrap();
        // Every kernel has reno; not every kernel has cubic.
        sockopt::set_tcp_congestion(&fd, "reno").unwrap();
        do_not_pace(&fd);
        assert_eq!(sockopt::tcp_congestion(&fd).unwrap(), "reno");
        if sockopt::set_tcp_congestion(&fd, "bbr").is_ok() {
            do_not_pace(&fd);
            assert!(UNPACED.contains(&&*sockopt::tcp_congestion(&fd).unwrap()));
        }
    }
}
