//! Parses a server's answers, for a client.
//!
//! Not here: how the client reacts to an answer, and writing ([`super::answer`]). Invariants: the answers
//! do not depend on how the bytes are split; an answer's memory is bounded by the named limits; a parse
//! error is permanent.

use std::mem;

use super::line::Lines;

/// Maximum length of an answer's line in bytes: a path of 4 KB with every byte doubled, and some text.
pub const ANSWER_LINE_BYTES_MAX: usize = 10 << 10;

/// Maximum size of an answer of several lines, in bytes. Each line counts as its text and
/// [`LINE_COST_BYTES`]. STAT may list a folder in one.
pub const ANSWER_BYTES_MAX: usize = 256 << 10;

/// Approximate memory overhead of a line, in bytes.
pub const LINE_COST_BYTES: usize = 32;

/// One answer from a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The three-digit code.
    pub code: u16,
    /// The lines, at least one. The code and the separator are removed from the first and the last line,
    /// and from a line between that has the same code.
    pub lines: Vec<Vec<u8>>,
}

impl Answer {
    /// Returns the last line's text, which is the only line of most answers.
    #[must_use]
    pub fn text(&self) -> &[u8] {
        self.lines.last().map(Vec::as_slice).unwrap_or_default()
    }
}

/// The received bytes are not an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadAnswer {
    /// A line does not begin with a code where one is required.
    #[error("the server's answer does not begin with a code of three digits")]
    Code,
    /// More than [`ANSWER_LINE_BYTES_MAX`] or [`ANSWER_BYTES_MAX`].
    #[error("the server's answer is too long")]
    TooLong,
}

/// Extracts answers from the bytes that a server sends on the control connection.
#[derive(Clone, Debug, Default)]
pub struct Answers {
    lines: Lines,
    /// An answer of several lines that is not complete yet.
    begun: Option<Answer>,
    cost_bytes: usize,
    failed: Option<BadAnswer>,
}

/// A line that begins with a code.
struct Coded<'a> {
    code: u16,
    is_last: bool,
    text: &'a [u8],
}

impl Answers {
    /// Consumes the next bytes, up to the end of an answer. Returns the number of bytes consumed, and the
    /// answer or an error. An error is permanent: every later call returns it. Without either, all bytes
    /// were consumed and more are needed.
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

    /// Adds a line. Returns the answer if this was its last line.
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

/// Splits a line into code, separator and text. A code alone, which some servers send, is a last line.
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
