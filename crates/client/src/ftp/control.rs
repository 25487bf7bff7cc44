//! The control connection: a command out, its answers in.
//!
//! Not here: what a command is for. What must hold: one command is under way at a time, and no answer is
//! taken for another's; dropping a wait loses nothing, and a session whose answers are not all heard goes no
//! further.

use std::future::pending;
use std::io;
use std::time::Duration;

use plimsoll_io::{Deadline, Lease, Peer, Segment, Stream, Want};
use plimsoll_wire::ftp::answers::{Answer, Answers};
use plimsoll_wire::ftp::command::Verb;

use super::error::{Asked, Error, When};
use super::limits::LAST_WORDS_TIME_MAX;

/// Telnet's escape, which is doubled to be a byte of a name (RFC 854).
const IAC: u8 = 255;

/// The control connection.
pub(super) struct Control {
    stream: Stream,
    answers: Answers,
    /// What was received and not looked at.
    held: Lease,
    /// What was asked last.
    asked: Asked,
    /// Whether its last answer is still due.
    is_due: bool,
}

/// What an answer says by its first digit (RFC 959, section 4.2.1); those that say no are errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Says {
    /// 1yz: it has begun, and another answer will follow.
    Begun,
    /// 2yz: it is done.
    Done,
    /// 3yz: more is needed.
    More,
}

impl Control {
    /// The connection of a new session, whose greeting is due.
    pub(super) fn new(stream: Stream) -> Control {
        let held = Lease::owned(Vec::new());
        Control { stream, answers: Answers::default(), held, asked: Asked::Greeting, is_due: true }
    }

    /// Who is at the other end.
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
        // What came before we asked answers nothing, but it may say that the server ends (421).
        if !self.held.is_empty() {
            let came = self.take().map(|answer| answer.and_then(|answer| self.judge(answer)));
            return Err(came.and_then(Result::err).unwrap_or_else(|| self.unasked()));
        }
        self.stream.tx.push(Segment::Owned(line));
        Ok(())
    }

    /// The next answer to what was asked. Dropping the future loses nothing.
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

    /// As [`Control::hear`], of an answer that says that all is done.
    pub(super) async fn hear_done(&mut self, deadline: &Deadline, time: Duration) -> Result<Answer, Error> {
        match self.hear(deadline, time).await? {
            (Says::Done, answer) => Ok(answer),
            _ => Err(self.unasked()),
        }
    }

    /// Listens while something else goes on, and is ready only if that cannot go on: the server says no, or
    /// what makes no sense yet. That all is done is one of these, unless `done` is there to hold it.
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

    /// What came to an end by `error` may have an answer that says more.
    pub(super) async fn last_words(&mut self, deadline: &Deadline, error: Error) -> Error {
        match self.is_due {
            true => match self.hear(deadline, LAST_WORDS_TIME_MAX).await {
                Err(refused @ Error::Refused { .. }) => refused,
                _ => error,
            },
            false => error,
        }
    }

    /// An answer came that does not fit what was asked.
    pub(super) fn unasked(&self) -> Error {
        Error::Unasked(self.asked)
    }

    /// The next answer out of what was received.
    fn take(&mut self) -> Option<Result<Answer, Error>> {
        let (consumed, answer) = self.answers.take(&self.held);
        self.held.consume(consumed);
        if self.held.is_empty() {
            // Its memory is the engine's.
            self.held = Lease::owned(Vec::new());
        }
        answer.map(|answer| answer.map_err(|source| Error::Malformed { asked: self.asked, source }))
    }

    /// Sorts an answer. After 1yz another is due: "The user-process sending another command before the
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

/// A session that is left between commands ends; one that is left within a command breaks.
impl Drop for Control {
    fn drop(&mut self) {
        if !self.is_due {
            self.stream.tx.finish();
        }
    }
}

/// A command line. A name with a line's end in it would be two commands; a NUL stands for a line's end in
/// some servers.
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
