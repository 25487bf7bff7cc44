//! A response of the classic protocol: success, the number of bytes that follow, or an error and its
//! reason.
//!
//! Not here: the bytes of the file. Invariant: a response is one line, regardless of the bytes in the
//! reason.

use crate::decimal::{decimal, write_decimal};
use crate::limits::CLASSIC_LINE_BYTES_MAX;

const ERROR: &[u8] = b"error: ";

/// A response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The request succeeded.
    Done,
    /// The file follows, with this many bytes.
    File(u64),
    /// The request was refused, for this reason.
    Refused(Vec<u8>),
}

/// A line that is not a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this is no answer: expected ok, ok SIZE or error: REASON")]
pub struct BadAnswer;

impl Answer {
    /// Reads a line, without its LF.
    ///
    /// # Errors
    /// Returns [`BadAnswer`] if the line is not a response.
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

    /// Appends the line, with its LF. A reason is truncated to [`CLASSIC_LINE_BYTES_MAX`]; a CR or LF in it
    /// becomes a space.
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
                out.extend(reason.iter().take(CLASSIC_LINE_BYTES_MAX - ERROR.len()).map(on_the_line));
            }
        }
        out.push(b'\n');
    }
}
