//! The control connection: sends commands and receives their answers.
//!
//! It does not interpret commands. Invariants: one command is in progress at a time, and no answer is taken
//! for that of another command. Dropping a wait loses nothing. A session with an outstanding answer sends no
//! further command.

use std::future::pending;
use std::io;
use std::time::Duration;

use plimsoll_io::{Deadline, Lease, Peer, Segment, Stream, Want};
use plimsoll_wire::ftp::answers::{Answer, Answers};
use plimsoll_wire::ftp::command::Verb;

use super::error::{Asked, Error, When};
use super::limits::LAST_WORDS_TIME_MAX;

/// Telnet's escape byte (IAC), which is doubled to be a byte of a name (RFC 854).
const IAC: u8 = 255;

/// The control connection.
pub(super) struct Control {
    stream: Stream,
    answers: Answers,
    /// Received bytes that have not been parsed.
    held: Lease,
    /// The latest command.
    asked: Asked,
    /// Whether its final answer is still due.
    is_due: bool,
}

/// The meaning of an answer's first digit (RFC 959, section 4.2.1); refusals are errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Says {
    /// 1yz: the command has started, and another answer will follow.
    Begun,
    /// 2yz: the command is complete.
    Done,
    /// 3yz: a further command is needed.
    More,
}

impl Control {
    /// Creates the connection of a new session, whose greeting is due.
    pub(super) fn new(stream: Stream) -> Control {
        let held = Lease::owned(Vec::new());
        Control { stream, answers: Answers::default(), held, asked: Asked::Greeting, is_due: true }
    }

    /// Returns the server's address.
    pub(super) fn peer(&self) -> &Peer {
        self.stream.peer()
    }

    /// Sends a command.
    pub(super) fn say(&mut self, verb: Verb, argument: &[u8]) -> Result<(), Error> {
        let line = line(verb, argument)?;
        if self.is_due {
            return Err(Error::OutOfStep);
        }
        (self.asked, self.is_due) = (Asked::Verb(verb), true);
        // Bytes that arrived before the command answer nothing, but may announce that the server ends (421).
        if !self.held.is_empty() {
            let came = self.take().map(|answer| answer.and_then(|answer| self.judge(answer)));
            return Err(came.and_then(Result::err).unwrap_or_else(|| self.unasked()));
        }
        self.stream.tx.push(Segment::Owned(line));
        Ok(())
    }

    /// Returns the next answer to the latest command. Dropping the future loses nothing.
    pub(super) async fn answer(&mut self) -> Result<(Says, Answer), Error> {
        loop {
            if let Some(answer) = self.take() {
                return answer.and_then(|answer| self.judge(answer));
            }
            let broken = match self.stream.rx.recv(Want::Head).await {
                Ok(Some(lease)) => {
                    self.held = lease;
                    continue;
                }
                Ok(None) => io::ErrorKind::UnexpectedEof.into(),
                Err(error) => error,
            };
            return Err(Error::Broken { when: When::Waiting(self.asked), source: broken });
        }
    }

    /// As [`Control::answer`], within `time`.
    pub(super) async fn hear(
        &mut self,
        deadline: &Deadline,
        time: Duration,
    ) -> Result<(Says, Answer), Error> {
        let late = Error::Late(When::Waiting(self.asked));
        deadline.after(time);
        deadline.within(self.answer()).await.unwrap_or(Err(late))
    }

    /// As [`Control::hear`], for an answer that must confirm completion.
    pub(super) async fn hear_done(&mut self, deadline: &Deadline, time: Duration) -> Result<Answer, Error> {
        match self.hear(deadline, time).await? {
            (Says::Done, answer) => Ok(answer),
            _ => Err(self.unasked()),
        }
    }

    /// Listens during a transfer. Ready only if the transfer cannot continue: on a refusal, or an answer
    /// that does not fit yet. A premature confirmation is such an answer, unless `done` is given to record
    /// it.
    pub(super) async fn objection(&mut self, mut done: Option<&mut bool>) -> Error {
        if done.as_deref() == Some(&true) {
            return pending().await;
        }
        match (self.answer().await, &mut done) {
            (Ok((Says::Done, _)), Some(done)) => {
                **done = true;
                pending().await
            }
            (Ok(_), _) => self.unasked(),
            (Err(error), _) => error,
        }
    }

    /// Waits for a late refusal that explains the failure `error`; returns it, or else `error`.
    pub(super) async fn last_words(&mut self, deadline: &Deadline, error: Error) -> Error {
        match self.is_due {
            true => match self.hear(deadline, LAST_WORDS_TIME_MAX).await {
                Err(refused @ Error::Refused { .. }) => refused,
                _ => error,
            },
            false => error,
        }
    }

    /// Returns the error of an answer that does not fit the command.
    pub(super) fn unasked(&self) -> Error {
        Error::Unasked(self.asked)
    }

    /// Parses the next answer out of the received bytes.
    fn take(&mut self) -> Option<Result<Answer, Error>> {
        let (consumed, answer) = self.answers.take(&self.held);
        self.held.consume(consumed);
        if self.held.is_empty() {
            // Returns the lease's memory to the engine.
            self.held = Lease::owned(Vec::new());
        }
        answer.map(|answer| answer.map_err(|source| Error::Malformed { asked: self.asked, source }))
    }

    /// Classifies an answer. After 1yz another is due: "The user-process sending another command before the
    /// completion reply would be in violation of protocol" (RFC 959, section 4.2.1).
    fn judge(&mut self, answer: Answer) -> Result<(Says, Answer), Error> {
        self.is_due = answer.code < 200;
        match answer.code / 100 {
            1 => Ok((Says::Begun, answer)),
            2 => Ok((Says::Done, answer)),
            3 => Ok((Says::More, answer)),
            4 | 5 => {
                Err(Error::Refused { asked: self.asked, code: answer.code, text: answer.text().to_vec() })
            }
            _ => Err(self.unasked()),
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
