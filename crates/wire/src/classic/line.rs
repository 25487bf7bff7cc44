//! A line, out of whatever pieces it arrives in.
//!
//! Not here: what it says. What must hold: it costs no more memory than the longest line may; a byte after
//! its end is left where it is; what it had in memory is wiped, for it may have a password.

use zeroize::Zeroizing;

use super::LINE_BYTES_MAX;

/// The line is longer than one may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a line has {LINE_BYTES_MAX} bytes at most")]
pub struct TooLong;

/// A line without its LF, which is wiped from memory when it is dropped.
pub type Wiped = Zeroizing<Vec<u8>>;

/// What has come of a line.
#[derive(Clone, Debug, Default)]
pub struct Line(Wiped);

impl Line {
    /// Takes bytes up to the end of the line: how many, and the line without its LF. Without a line all of
    /// them were taken, and more are needed.
    ///
    /// # Errors
    /// As soon as it is known to be longer than one may be: there is no line after it.
    pub fn take(&mut self, bytes: &[u8]) -> Result<(usize, Option<Wiped>), TooLong> {
        let end = bytes.iter().position(|&byte| byte == b'\n');
        let more = bytes.get(..end.unwrap_or(bytes.len())).unwrap_or_default();
        if self.0.len() + more.len() > LINE_BYTES_MAX {
            return Err(TooLong);
        }
        if self.0.capacity() == 0 {
            // At once as large as it will be, so that no copy stays where it grew from.
            self.0.reserve_exact(if end.is_some() { more.len() } else { LINE_BYTES_MAX });
        }
        self.0.extend_from_slice(more);
        Ok(match end {
            Some(end) => (end + 1, Some(std::mem::take(&mut self.0))),
            None => (bytes.len(), None),
        })
    }
}
