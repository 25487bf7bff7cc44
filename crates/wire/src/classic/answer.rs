//! An answer: that it is done, how many bytes follow, or why not.
//!
//! Not here: the bytes. What must hold: an answer is one line, whatever text there is for a reason.

use super::LINE_BYTES_MAX;
use crate::decimal::{decimal, write_decimal};

const ERROR: &[u8] = b"error: ";

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It is done.
    Done,
    /// So many bytes follow.
    File(u64),
    /// It is not done, and why.
    Refused(Vec<u8>),
}

/// A line that is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this is no answer: expected ok, ok SIZE or error: REASON")]
pub struct BadAnswer;

impl Answer {
    /// Reads a line, without its LF.
    ///
    /// # Errors
    /// It is no answer.
    pub fn parse(line: &[u8]) -> Result<Answer, BadAnswer> {
        if let Some(reason) = line.strip_prefix(ERROR) {
            return Ok(Answer::Refused(reason.to_vec()));
        }
        match line.strip_prefix(b"ok").ok_or(BadAnswer)? {
            b"" => Ok(Answer::Done),
            [b' ', size @ ..] => decimal(size).map(Answer::File).ok_or(BadAnswer),
            _ => Err(BadAnswer),
        }
    }

    /// Appends the line, with its LF. A reason is cut where the line would be too long; what would end the
    /// line is a blank.
    pub fn write(&self, out: &mut Vec<u8>) {
        match self {
            Answer::Done => out.extend_from_slice(b"ok"),
            Answer::File(bytes) => {
                out.extend_from_slice(b"ok ");
                write_decimal(*bytes, out);
            }
            Answer::Refused(reason) => {
                out.extend_from_slice(ERROR);
                let on_the_line = |&byte: &u8| if matches!(byte, b'\n' | b'\r') { b' ' } else { byte };
                out.extend(reason.iter().take(LINE_BYTES_MAX - ERROR.len()).map(on_the_line));
            }
        }
        out.push(b'\n');
    }
}
