//! A reply to a command: a code, and text for people.
//!
//! Its format is in `plimsoll_wire::ftp::reply`. Invariant: each command has one final reply.

use std::borrow::Cow;

use plimsoll_wire::ftp::reply;

/// A reply to a command.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) code: u16,
    first: Cow<'static, [u8]>,
    /// Lines between the first and the last, if there are several.
    middle: Option<Vec<Vec<u8>>>,
    last: &'static str,
    /// What follows the reply.
    pub(super) then: Then,
}

/// What follows a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Then {
    /// The next command.
    Command,
    /// A TLS handshake.
    Handshake,
    /// The end of the session.
    End,
}

/// The result of a command: a reply in both cases, so that `?` ends a command early.
pub(super) type CommandResult = Result<Reply, Reply>;

impl Reply {
    /// Creates a reply of one line.
    pub(super) const fn new(code: u16, text: &'static str) -> Reply {
        Reply { code, first: Cow::Borrowed(text.as_bytes()), middle: None, last: "", then: Then::Command }
    }

    /// Creates a reply of one formatted line.
    pub(super) fn formatted(code: u16, text: impl Into<Vec<u8>>) -> Reply {
        Reply { first: Cow::Owned(text.into()), ..Reply::new(code, "") }
    }

    /// Creates a reply of several lines.
    pub(super) fn lines(code: u16, first: &'static str, middle: Vec<Vec<u8>>, last: &'static str) -> Reply {
        Reply { middle: Some(middle), last, ..Reply::new(code, first) }
    }

    /// Returns the same reply, after which the session ends.
    pub(super) fn and_end(self) -> Reply {
        Reply { then: Then::End, ..self }
    }

    /// Returns the same reply, after which TLS starts.
    pub(super) fn and_encrypt(self) -> Reply {
        Reply { then: Then::Handshake, ..self }
    }

    /// Writes the reply as it is sent.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        match &self.middle {
            None => reply::push_line(out, self.code, &self.first),
            Some(middle) => {
                let middle = middle.iter().map(Vec::as_slice);
                reply::push_lines(out, self.code, &self.first, middle, self.last.as_bytes());
            }
        }
    }
}
