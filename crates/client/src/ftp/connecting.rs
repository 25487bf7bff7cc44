//! Connections to a server: the control connection, and one data connection for each transfer.
//!
//! It moves no files. Invariant: a data connection is made to the address of the control connection,
//! whatever address the server names. Otherwise a server could direct the client to any host (the bounce
//! attack, RFC 2577).

use core::net::SocketAddr;
use std::io;

use plimsoll_io::{Address, Either, Elapsed, Io, Peer, Stream, select};
use plimsoll_wire::ftp::address::{parse_epsv_text, parse_pasv_text};
use plimsoll_wire::ftp::command::Verb;

use super::error::Error;
use super::session::Session;

/// The refusals of EPSV that concern the command itself: unknown, unknown parameters, not implemented, or a
/// network protocol that is not supported ("522", RFC 2428).
const NOT_EXTENDED: [u16; 5] = [500, 501, 502, 504, 522];

/// Connects; the caller's deadline bounds it.
pub(super) async fn connect(io: &Io, to: &Address) -> Result<Stream, Error> {
    io.connect(to).await.map_err(|source| failed(to, source))
}

/// Returns the error of a failed connect.
pub(super) fn failed(to: &Address, source: io::Error) -> Error {
    Error::Connect { to: to.to_string(), source }
}

impl Session {
    /// Opens a data connection for the next transfer.
    pub(super) async fn data(&mut self) -> Result<Stream, Error> {
        let port = self.passive_port().await?;
        let Peer::Ip(ip, _) = *self.control.peer() else {
            return Err(Error::Request("there are no data connections over a Unix socket"));
        };
        let to = Address::Ip(SocketAddr::new(ip, port));
        self.deadline.after(self.times.connect);
        let connecting = select(connect(&self.io, &to), self.control.transfer_refusal(None));
        match self.deadline.within(connecting).await {
            Ok(Either::Left(connected)) => connected,
            Ok(Either::Right(refusal)) => Err(refusal),
            Err(Elapsed) => Err(failed(&to, io::ErrorKind::TimedOut.into())),
        }
    }

    /// Has the server listen for the next transfer; returns the port.
    async fn passive_port(&mut self) -> Result<u16, Error> {
        if self.is_extended {
            match self.ask(Verb::Epsv, b"").await {
                Ok(reply) => return parse_epsv_text(reply.text()).ok_or_else(|| self.control.unexpected()),
                Err(Error::Refused { code, .. }) if NOT_EXTENDED.contains(&code) => self.is_extended = false,
                Err(error) => return Err(error),
            }
        }
        let reply = self.ask(Verb::Pasv, b"").await?;
        let port = parse_pasv_text(reply.text()).map(|at| at.port()).filter(|port| *port != 0);
        port.ok_or_else(|| self.control.unexpected())
    }
}
