//! The control connection: sends commands and receives their answers.
//!
//! It does not interpret commands. Invariants: one command is in progress at a time, and no answer is taken
//! for that of another command. Dropping a wait loses nothing. A session with an outstanding answer sends no
//! further command.

use std::future::pending;
use std::io;
use std::time::Duration;

use plimsoll_io::{Deadline, Io, Lease, Peer, Segment, Stream, Want};
use plimsoll_tls::Handshake;
use plimsoll_wire::ftp::command::Verb;
use plimsoll_wire::ftp::reply_parser::{Reply, ReplyParser};

use super::encryption::Encryption;
use super::error::{Command, Error, When};
use super::limits::LATE_REFUSAL_TIME_MAX;

/// Telnet's escape byte (IAC), which is doubled to be a byte of a name (RFC 854).
const IAC: u8 = 255;

/// The control connection.
pub(super) struct Control {
    stream: Stream,
    parser: ReplyParser,
    /// Received bytes that have not been parsed.
    unparsed: Lease,
    /// The latest command.
    command: Command,
    /// Whether its final answer is still due.
    is_due: bool,
}

/// The meaning of an answer's first digit (RFC 959, section 4.2.1); refusals are errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReplyClass {
    /// 1yz: the command has started, and another answer will follow.
    Preliminary,
    /// 2yz: the command is complete.
    Completion,
    /// 3yz: a further command is needed.
    Intermediate,
}

impl Control {
    /// Creates the connection of a new session, whose greeting is due.
    pub(super) fn new(stream: Stream) -> Control {
        let unparsed = Lease::owned(Vec::new());
        Control { stream, parser: ReplyParser::default(), unparsed, command: Command::Greeting, is_due: true }
    }

    /// Returns the server's address.
    pub(super) fn peer(&self) -> &Peer {
        self.stream.peer()
    }

    /// Sends a command.
    pub(super) fn send(&mut self, verb: Verb, argument: &[u8]) -> Result<(), Error> {
        let line = line(verb, argument)?;
        if self.is_due {
            return Err(Error::OutOfStep);
        }
        (self.command, self.is_due) = (Command::Verb(verb), true);
        // Bytes that arrived before the command answer nothing, but may announce that the server ends (421).
        if !self.unparsed.is_empty() {
            let received = self.take().map(|reply| reply.and_then(|reply| self.classify(reply)));
            return Err(received.and_then(Result::err).unwrap_or_else(|| self.unexpected()));
        }
        self.stream.tx.push(Segment::Owned(line));
        Ok(())
    }

    /// Encrypts the connection behind the answer to AUTH.
    pub(super) async fn encrypt(&mut self, io: &Io, encryption: &Encryption) -> Result<Handshake, Error> {
        // An attacker may have inserted them, to be taken for encrypted answers.
        if !self.unparsed.is_empty() {
            return Err(self.unexpected());
        }
        encryption.connect(io, &mut self.stream).await.map_err(Error::Encryption)
    }

    /// Returns the next answer to the latest command. Dropping the future loses nothing.
    pub(super) async fn reply(&mut self) -> Result<(ReplyClass, Reply), Error> {
        loop {
            if let Some(reply) = self.take() {
                return reply.and_then(|reply| self.classify(reply));
            }
            let broken = match self.stream.rx.recv(Want::Head).await {
                Ok(Some(lease)) => {
                    self.unparsed = lease;
                    continue;
                }
                Ok(None) => io::ErrorKind::UnexpectedEof.into(),
                Err(error) => error,
            };
            return Err(Error::Broken { when: When::Waiting(self.command), source: broken });
        }
    }

    /// As [`Control::reply`], within `time`.
    pub(super) async fn receive_reply(
        &mut self,
        deadline: &Deadline,
        time: Duration,
    ) -> Result<(ReplyClass, Reply), Error> {
        let late = Error::Late(When::Waiting(self.command));
        deadline.after(time);
        deadline.within(self.reply()).await.unwrap_or(Err(late))
    }

    /// As [`Control::receive_reply`], for an answer that must confirm completion.
    pub(super) async fn receive_completion(
        &mut self,
        deadline: &Deadline,
        time: Duration,
    ) -> Result<Reply, Error> {
        match self.receive_reply(deadline, time).await? {
            (ReplyClass::Completion, reply) => Ok(reply),
            _ => Err(self.unexpected()),
        }
    }

    /// Listens during a transfer. Ready only if the transfer cannot continue: on a refusal, or an answer
    /// that does not fit yet. A premature confirmation is such an answer, unless `done` is given to record
    /// it.
    pub(super) async fn transfer_refusal(&mut self, mut done: Option<&mut bool>) -> Error {
        if done.as_deref() == Some(&true) {
            return pending().await;
        }
        match (self.reply().await, &mut done) {
            (Ok((ReplyClass::Completion, _)), Some(done)) => {
                **done = true;
                pending().await
            }
            (Ok(_), _) => self.unexpected(),
            (Err(error), _) => error,
        }
    }

    /// Waits for a late refusal that explains the failure `error`; returns it, or else `error`.
    pub(super) async fn late_refusal(&mut self, deadline: &Deadline, error: Error) -> Error {
        match self.is_due {
            true => match self.receive_reply(deadline, LATE_REFUSAL_TIME_MAX).await {
                Err(refused @ Error::Refused { .. }) => refused,
                _ => error,
            },
            false => error,
        }
    }

    /// Returns the error of an answer that does not fit the command.
    pub(super) fn unexpected(&self) -> Error {
        Error::Unexpected(self.command)
    }

    /// Parses the next answer out of the received bytes.
    fn take(&mut self) -> Option<Result<Reply, Error>> {
        let (consumed, reply) = self.parser.take(&self.unparsed);
        self.unparsed.consume(consumed);
        if self.unparsed.is_empty() {
            // Returns the lease's memory to the engine.
            self.unparsed = Lease::owned(Vec::new());
        }
        reply.map(|reply| reply.map_err(|source| Error::Malformed { command: self.command, source }))
    }

    /// Classifies an answer. After 1yz another is due: "The user-process sending another command before the
    /// completion reply would be in violation of protocol" (RFC 959, section 4.2.1).
    fn classify(&mut self, reply: Reply) -> Result<(ReplyClass, Reply), Error> {
        self.is_due = reply.code < 200;
        match reply.code / 100 {
            1 => Ok((ReplyClass::Preliminary, reply)),
            2 => Ok((ReplyClass::Completion, reply)),
            3 => Ok((ReplyClass::Intermediate, reply)),
            4 | 5 => {
                Err(Error::Refused { command: self.command, code: reply.code, text: reply.text().to_vec() })
            }
            _ => Err(self.unexpected()),
        }
    }
}

/// Ends a session cleanly between commands, and resets it within a command.
impl Drop for Control {
    fn drop(&mut self) {
        if !self.is_due {
            self.stream.tx.finish();
        }
    }
}

/// Writes a command line. A line end in a name would make it two commands; some servers take a NUL for a
/// line end.
fn line(verb: Verb, argument: &[u8]) -> Result<Vec<u8>, Error> {
    if argument.iter().any(|byte| matches!(byte, b'\r' | b'\n' | 0)) {
        return Err(Error::Request("a name or a password has the end of a line in it"));
    }
    let mut line = Vec::with_capacity(verb.name().len() + argument.len() + 3);
    line.extend_from_slice(verb.name().as_bytes());
    if !argument.is_empty() {
        line.push(b' ');
    }
    for &byte in argument {
        line.extend(std::iter::repeat_n(byte, 1 + usize::from(byte == IAC)));
    }
    line.extend_from_slice(b"\r\n");
    Ok(line)
}
