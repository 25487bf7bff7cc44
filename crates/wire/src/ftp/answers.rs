//! Answers as a client reads them.
//!
//! Not here: what is done about an answer, and writing them ([`super::answer`]). What must hold: the same
//! answers come out however the bytes are cut; an answer costs no more memory than the named limits; what is
//! no answer is an error, and stays one.

use std::mem;

use super::line::Lines;

/// The longest line of an answer: a path of 4 KB with every byte doubled, and some text.
pub const ANSWER_LINE_BYTES_MAX: usize = 10 << 10;

/// The longest answer of several lines, each with [`LINE_COST_BYTES`] beside its text. STAT may list a folder
/// in one.
pub const ANSWER_BYTES_MAX: usize = 256 << 10;

/// What a line costs in memory beside its text, about.
pub const LINE_COST_BYTES: usize = 32;

/// One answer of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Its three digits.
    pub code: u16,
    /// Its lines, at least one: the code and the separator are taken off the first and the last, and off a
    /// line between that has the same code.
    pub lines: Vec<Vec<u8>>,
}

impl Answer {
    /// The last line's text: for an answer of one line, all of it.
    #[must_use]
    pub fn text(&self) -> &[u8] {
        self.lines.last().map(Vec::as_slice).unwrap_or_default()
    }
}

/// What came is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadAnswer {
    /// A line that has to begin with a code and does not.
    #[error("the server's answer does not begin with a code of three digits")]
    Code,
    /// More than [`ANSWER_LINE_BYTES_MAX`] or [`ANSWER_BYTES_MAX`].
    #[error("the server's answer is too long")]
    TooLong,
}

/// Takes answers out of the bytes that a server sends on the control connection.
#[derive(Clone, Debug, Default)]
pub struct Answers {
    lines: Lines,
    /// The code and the lines of an answer of several lines that has begun.
    begun: Option<Answer>,
    cost_bytes: usize,
    failed: Option<BadAnswer>,
}

/// What a line is by its first bytes.
struct Coded<'a> {
    code: u16,
    is_last: bool,
    text: &'a [u8],
}

impl Answers {
    /// Looks at the bytes that follow what was consumed so far, up to the end of an answer: how many that
    /// were, and the answer, or why it is none, which then is so ever after. Without either all of them were
    /// consumed, and more are needed.
    pub fn take(&mut self, bytes: &[u8]) -> (usize, Option<Result<Answer, BadAnswer>>) {
        let mut consumed = 0;
        while self.failed.is_none() {
            let rest = bytes.get(consumed..).unwrap_or_default();
            let (line_bytes, line) = self.lines.take(rest, ANSWER_LINE_BYTES_MAX);
            consumed += line_bytes;
            let Some(line) = line else { return (consumed, None) };
            match line.map_err(|_| BadAnswer::TooLong).and_then(|line| self.line(line)) {
                Ok(Some(answer)) => return (consumed, Some(Ok(answer))),
                Ok(None) => {}
                Err(bad) => self.failed = Some(bad),
            }
        }
        self.begun = None;
        (consumed, self.failed.map(Err))
    }

    /// Adds a line to the answer; the answer if that was its last.
    fn line(&mut self, line: Vec<u8>) -> Result<Option<Answer>, BadAnswer> {
        let coded = coded(&line);
        let Some(answer) = &mut self.begun else {
            let Coded { code, is_last, text } = coded.ok_or(BadAnswer::Code)?;
            let answer = Answer { code, lines: vec![text.to_vec()] };
            self.cost_bytes = line.len() + LINE_COST_BYTES;
            self.begun = (!is_last).then(|| answer.clone());
            return Ok(is_last.then_some(answer));
        };
        self.cost_bytes += line.len() + LINE_COST_BYTES;
        if self.cost_bytes > ANSWER_BYTES_MAX {
            return Err(BadAnswer::TooLong);
        }
        let (text, is_last) = match coded.filter(|coded| coded.code == answer.code) {
            Some(coded) => (coded.text.to_vec(), coded.is_last),
            None => (line, false),
        };
        answer.lines.push(text);
        Ok(if is_last { mem::take(&mut self.begun) } else { None })
    }
}

/// Reads the code, a space or a hyphen, and the rest. A code alone, which some servers send, is a last line.
fn coded(line: &[u8]) -> Option<Coded<'_>> {
    let (digits, rest) = line.split_at_checked(3)?;
    let code = crate::decimal::decimal(digits).and_then(|code| u16::try_from(code).ok())?;
    let (is_last, text) = match rest {
        [] => (true, rest),
        [b' ', text @ ..] => (true, text),
        [b'-', text @ ..] => (false, text),
        _ => return None,
    };
    (code >= 100).then_some(Coded { code, is_last, text })
}
