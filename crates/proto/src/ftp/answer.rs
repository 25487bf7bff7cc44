//! An answer to a command: a code and what a person reads beside it.
//!
//! How it is written is the wire's (`plimsoll_wire::ftp::answer`). What must hold: each command has one last
//! answer.

use std::borrow::Cow;

use plimsoll_wire::ftp::answer;

/// An answer to a command.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) code: u16,
    first: Cow<'static, [u8]>,
    /// Lines between the first and the last, if there are several.
    middle: Option<Vec<Vec<u8>>>,
    last: &'static str,
    /// Whether the session ends with it.
    pub(super) ends: bool,
}

/// What a verb does: an answer either way, told apart so that `?` ends a verb early.
pub(super) type Obeyed = Result<Answer, Answer>;

impl Answer {
    /// One line.
    pub(super) const fn new(code: u16, text: &'static str) -> Answer {
        Answer { code, first: Cow::Borrowed(text.as_bytes()), middle: None, last: "", ends: false }
    }

    /// One line that is made for this answer.
    pub(super) fn made(code: u16, text: impl Into<Vec<u8>>) -> Answer {
        Answer { first: Cow::Owned(text.into()), ..Answer::new(code, "") }
    }

    /// Several lines.
    pub(super) fn lines(code: u16, first: &'static str, middle: Vec<Vec<u8>>, last: &'static str) -> Answer {
        Answer { middle: Some(middle), last, ..Answer::new(code, first) }
    }

    /// The session ends with it.
    pub(super) fn and_end(self) -> Answer {
        Answer { ends: true, ..self }
    }

    /// Writes it as it is sent.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        match &self.middle {
            None => answer::push_line(out, self.code, &self.first),
            Some(middle) => {
                let middle = middle.iter().map(Vec::as_slice);
                answer::push_lines(out, self.code, &self.first, middle, self.last.as_bytes());
            }
        }
    }
}
