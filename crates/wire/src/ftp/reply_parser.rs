//! Parses a server's replies, for a client.
//!
//! Not here: how the client reacts to a reply, and writing ([`super::reply`]). Invariants: the replies
//! do not depend on how the bytes are split; a reply's memory is bounded by the named limits; a parse
//! error is permanent.

use std::mem;

use super::line::Lines;
use crate::limits::{REPLY_BYTES_MAX, REPLY_LINE_BYTES_MAX, REPLY_LINE_COST_BYTES};

/// One reply from a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// The three-digit code.
    pub code: u16,
    /// The lines, at least one. The code and the separator are removed from the first and the last line,
    /// and from a line between that has the same code.
    pub lines: Vec<Vec<u8>>,
}

impl Reply {
    /// Returns the last line's text, which is the only line of most replies.
    #[must_use]
    pub fn text(&self) -> &[u8] {
        self.lines.last().map(Vec::as_slice).unwrap_or_default()
    }
}

/// The received bytes are not a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadReply {
    /// A line does not begin with a code where one is required.
    #[error("the server's answer does not begin with a code of three digits")]
    Code,
    /// More than [`REPLY_LINE_BYTES_MAX`] or [`REPLY_BYTES_MAX`].
    #[error("the server's answer is too long")]
    TooLong,
}

/// Extracts replies from the bytes that a server sends on the control connection.
#[derive(Clone, Debug, Default)]
pub struct ReplyParser {
    lines: Lines,
    /// A reply of several lines that is not complete yet.
    begun: Option<Reply>,
    cost_bytes: usize,
    failed: Option<BadReply>,
}

/// A line that begins with a code.
struct Coded<'a> {
    code: u16,
    is_last: bool,
    text: &'a [u8],
}

impl ReplyParser {
    /// Consumes the next bytes, up to the end of a reply. Returns the number of bytes consumed, and the
    /// reply or an error. An error is permanent: every later call returns it. Without either, all bytes
    /// were consumed and more are needed.
    pub fn take(&mut self, bytes: &[u8]) -> (usize, Option<Result<Reply, BadReply>>) {
        let mut consumed = 0;
        while self.failed.is_none() {
            let rest = bytes.get(consumed..).unwrap_or_default();
            let (line_bytes, line) = self.lines.take(rest, REPLY_LINE_BYTES_MAX);
            consumed += line_bytes;
            let Some(line) = line else { return (consumed, None) };
            match line.map_err(|_| BadReply::TooLong).and_then(|line| self.line(line)) {
                Ok(Some(reply)) => return (consumed, Some(Ok(reply))),
                Ok(None) => {}
                Err(bad) => self.failed = Some(bad),
            }
        }
        self.begun = None;
        (consumed, self.failed.map(Err))
    }

    /// Adds a line. Returns the reply if this was its last line.
    fn line(&mut self, line: Vec<u8>) -> Result<Option<Reply>, BadReply> {
        let coded = coded(&line);
        let Some(reply) = &mut self.begun else {
            let Coded { code, is_last, text } = coded.ok_or(BadReply::Code)?;
            let reply = Reply { code, lines: vec![text.to_vec()] };
            self.cost_bytes = line.len() + REPLY_LINE_COST_BYTES;
            self.begun = (!is_last).then(|| reply.clone());
            return Ok(is_last.then_some(reply));
        };
        self.cost_bytes += line.len() + REPLY_LINE_COST_BYTES;
        if self.cost_bytes > REPLY_BYTES_MAX {
            return Err(BadReply::TooLong);
        }
        let (text, is_last) = match coded.filter(|coded| coded.code == reply.code) {
            Some(coded) => (coded.text.to_vec(), coded.is_last),
            None => (line, false),
        };
        reply.lines.push(text);
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
