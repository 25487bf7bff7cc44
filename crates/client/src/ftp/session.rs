//! An FTP session: log-in, and the commands.
//!
//! It does not move bytes. Invariants: files are transferred byte for byte (TYPE I). A password is sent only
//! if the server requests it.

use std::io;

use plimsoll_io::{Address, Deadline, Elapsed, Io, Stream};
use plimsoll_tls::Handshake;
use plimsoll_wire::ftp::command::Verb;
use plimsoll_wire::ftp::reply_parser::Reply;

use super::connecting::{connect, failed};
use super::control::{Control, ReplyClass};
use super::download::Download;
use super::encryption::{Encryption, TlsStart};
use super::error::{Command, Error};
use super::limits::Times;

/// The answer to USER that requests a password.
const PASSWORD_WANTED: u16 = 331;
/// The refusals of a transfer because its data connection does not exist any more: "Can't open data
/// connection" (RFC 959, section 4.2.1), and a bad sequence of commands.
const NO_DATA_CONNECTION: [u16; 2] = [425, 503];

/// A session with a server.
///
/// Paths are bytes, as on the server; LIST may take one that begins with a hyphen for options. A session is
/// unusable ([`Error::OutOfStep`]) after an operation was abandoned: a future or a [`Download`] was dropped,
/// or its time elapsed.
pub struct Session {
    pub(super) io: Io,
    pub(super) times: Times,
    pub(super) control: Control,
    /// Shared by all waits: there is one at a time.
    pub(super) deadline: Deadline,
    /// The encryption of the session.
    pub(super) encryption: Option<Encryption>,
    /// Its handshakes, until the caller takes them.
    pub(super) handshakes: Vec<Handshake>,
    /// Whether to try EPSV: true until the server refuses it.
    pub(super) is_extended: bool,
    /// The data connection of the next transfer, if it was opened early.
    opened: Option<Stream>,
}

impl Session {
    /// Connects, and receives the greeting.
    ///
    /// # Errors
    /// The connection failed, or the server does not greet as an FTP server.
    pub async fn connect(io: &Io, to: &Address, times: Times) -> Result<Session, Error> {
        Session::open(io, to, times, None).await
    }

    /// As [`Session::connect`], with all connections encrypted.
    ///
    /// # Errors
    /// As [`Session::connect`]; [`Error::Encryption`]; [`Error::Refused`] if the server has no TLS.
    pub async fn connect_encrypted(
        io: &Io,
        to: &Address,
        times: Times,
        encryption: &Encryption,
    ) -> Result<Session, Error> {
        let mut session = Session::open(io, to, times, Some(encryption.of_session())).await?;
        if encryption.start == TlsStart::Explicit
            && let Some(encryption) = session.encryption.clone()
        {
            session.start_tls(&encryption).await?;
        }
        Ok(session)
    }

    async fn open(
        io: &Io,
        to: &Address,
        times: Times,
        encryption: Option<Encryption>,
    ) -> Result<Session, Error> {
        let deadline = io.deadline();
        deadline.after(times.connect);
        let timed_out = |Elapsed| Err(failed(to, io::ErrorKind::TimedOut.into()));
        let mut stream = deadline.within(connect(io, to)).await.unwrap_or_else(timed_out)?;
        let mut handshakes = Vec::new();
        if let Some(encryption) = encryption.as_ref().filter(|tls| tls.start == TlsStart::Implicit) {
            handshakes.push(encryption.connect(io, &mut stream).await.map_err(Error::Encryption)?);
        }
        let mut control = Control::new(stream);
        // "120 Service ready in nnn minutes", and 220 when it is (RFC 959, section 5.4).
        match control.receive_reply(&deadline, times.answer).await? {
            (ReplyClass::Completion, _) => {}
            (ReplyClass::Preliminary, _) => drop(control.receive_completion(&deadline, times.answer).await?),
            (ReplyClass::Intermediate, _) => return Err(control.unexpected()),
        }
        let (io, is_extended, opened) = (io.clone(), true, None);
        Ok(Session { io, times, control, deadline, encryption, handshakes, is_extended, opened })
    }

    /// Logs in, and selects binary transfers. In an encrypted session, also encrypted data connections.
    ///
    /// # Errors
    /// [`Error::Refused`], also if the server wants more than a name and a password; the error that broke
    /// the session.
    pub async fn log_in(&mut self, name: &str, password: &str) -> Result<(), Error> {
        if let Some(wanted) = self.ask_intermediate(Verb::User, name.as_bytes()).await? {
            if wanted.code != PASSWORD_WANTED {
                return Err(refused(Verb::User, &wanted));
            }
            if let Some(wanted) = self.ask_intermediate(Verb::Pass, password.as_bytes()).await? {
                return Err(refused(Verb::Pass, &wanted));
            }
        }
        self.protect_data().await?;
        self.ask(Verb::Type, b"I").await.map(drop)
    }

    /// Opens the data connection of the next transfer, so that it can begin at once. If the server has closed
    /// it by then, the transfer opens another.
    ///
    /// # Errors
    /// The data connection failed, or the error that broke the session.
    pub async fn open_data(&mut self) -> Result<(), Error> {
        // A server that listens anew closes what it has accepted before.
        self.opened = None;
        self.opened = Some(self.data().await?);
        Ok(())
    }

    /// Starts to download a file, from the byte `offset` on.
    ///
    /// # Errors
    /// [`Error::Refused`] if there is no such file, or it is not accessible; the error that broke the
    /// session.
    pub async fn retrieve(&mut self, path: &[u8], offset: u64) -> Result<Download<'_>, Error> {
        let (data, is_done) = self.begin(Verb::Retr, path, offset).await?;
        Ok(Download::new(self, data, is_done))
    }

    /// Starts to list a folder, in the server's format for people; the current folder if `path` is empty.
    ///
    /// # Errors
    /// As [`Session::retrieve`].
    pub async fn list(&mut self, path: &[u8]) -> Result<Download<'_>, Error> {
        let (data, is_done) = self.begin(Verb::List, path, 0).await?;
        Ok(Download::new(self, data, is_done))
    }

    /// Returns the length of a file, in bytes.
    ///
    /// # Errors
    /// As [`Session::retrieve`].
    pub async fn size(&mut self, path: &[u8]) -> Result<u64, Error> {
        let reply = self.ask(Verb::Size, path).await?;
        let text = std::str::from_utf8(reply.text()).ok();
        text.and_then(|text| text.trim().parse().ok()).ok_or_else(|| self.control.unexpected())
    }

    /// Deletes a file.
    ///
    /// # Errors
    /// As [`Session::retrieve`].
    pub async fn delete(&mut self, path: &[u8]) -> Result<(), Error> {
        self.ask(Verb::Dele, path).await.map(drop)
    }

    /// Ends the session.
    ///
    /// # Errors
    /// The error that broke it before the server confirmed.
    pub async fn quit(mut self) -> Result<(), Error> {
        self.opened = None;
        self.ask(Verb::Quit, b"").await.map(drop)
    }

    /// Sends a command that one answer completes, and returns that answer.
    pub(super) async fn ask(&mut self, verb: Verb, argument: &[u8]) -> Result<Reply, Error> {
        self.control.send(verb, argument)?;
        self.control.receive_completion(&self.deadline, self.times.answer).await
    }

    /// Sends a command that may need another after it; returns the answer if it requests one.
    async fn ask_intermediate(&mut self, verb: Verb, argument: &[u8]) -> Result<Option<Reply>, Error> {
        self.control.send(verb, argument)?;
        match self.control.receive_reply(&self.deadline, self.times.answer).await? {
            (ReplyClass::Completion, _) => Ok(None),
            (ReplyClass::Intermediate, reply) => Ok(Some(reply)),
            (ReplyClass::Preliminary, _) => Err(self.control.unexpected()),
        }
    }

    /// Starts a transfer. Returns its data connection, and whether the server has already confirmed
    /// completion.
    pub(super) async fn begin(
        &mut self,
        verb: Verb,
        path: &[u8],
        offset: u64,
    ) -> Result<(Stream, bool), Error> {
        if let Some(data) = self.opened.take() {
            match self.begin_over(data, verb, path, offset).await {
                Err(Error::Refused { code, .. }) if NO_DATA_CONNECTION.contains(&code) => {}
                begun => return begun,
            }
        }
        let data = self.data().await?;
        self.begin_over(data, verb, path, offset).await
    }

    /// As [`Session::begin`], over an open data connection.
    async fn begin_over(
        &mut self,
        mut data: Stream,
        verb: Verb,
        path: &[u8],
        offset: u64,
    ) -> Result<(Stream, bool), Error> {
        // "The REST command must be the last command issued before the data transfer command" (RFC 3659,
        // section 5.3).
        if offset > 0 && self.ask_intermediate(Verb::Rest, offset.to_string().as_bytes()).await?.is_none() {
            return Err(self.control.unexpected());
        }
        self.control.send(verb, path)?;
        match self.control.receive_reply(&self.deadline, self.times.answer).await? {
            (ReplyClass::Preliminary, _) => {
                let is_done = self.encrypt_data(&mut data).await?;
                Ok((data, is_done))
            }
            // An encrypted transfer cannot be complete before its handshake.
            (ReplyClass::Completion, _) if self.encryption.is_some() => Err(self.control.unexpected()),
            (ReplyClass::Completion, _) => Ok((data, true)),
            (ReplyClass::Intermediate, _) => Err(self.control.unexpected()),
        }
    }
}

/// Returns the error for a server that wants more credentials than a name and a password, such as an account
/// (332).
fn refused(verb: Verb, reply: &Reply) -> Error {
    Error::Refused { command: Command::Verb(verb), code: reply.code, text: reply.text().to_vec() }
}
