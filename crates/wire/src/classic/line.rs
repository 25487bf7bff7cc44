//! Reassembles a line from the pieces in which it is received.
//!
//! Not here: parsing of the line. Invariants: memory is bounded by the maximum line length; a byte after
//! the line's end is not consumed; buffered bytes are wiped when dropped, because they may include a
//! password.

use crate::limits::CLASSIC_LINE_BYTES_MAX;
use zeroize::Zeroizing;

/// The line exceeds the maximum length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a line has {CLASSIC_LINE_BYTES_MAX} bytes at most")]
pub struct TooLong;

/// A line without its LF, which is wiped from memory when it is dropped.
pub type WipedLine = Zeroizing<Vec<u8>>;

/// The received part of a line.
#[derive(Clone, Debug, Default)]
pub struct LineBuffer(WipedLine);

impl LineBuffer {
    /// Consumes bytes up to the end of the line. Returns the number of bytes consumed and the line without
    /// its LF. Without a line, all bytes were consumed and more are needed.
    ///
    /// # Errors
    /// Returns [`TooLong`] as soon as the line exceeds the maximum. No further line can be read from the
    /// connection.
    pub fn take(&mut self, bytes: &[u8]) -> Result<(usize, Option<WipedLine>), TooLong> {
        let end = bytes.iter().position(|&byte| byte == b'\n');
        let more = bytes.get(..end.unwrap_or(bytes.len())).unwrap_or_default();
        if self.0.len() + more.len() > CLASSIC_LINE_BYTES_MAX {
            return Err(TooLong);
        }
        if self.0.capacity() == 0 {
            // Reserves the final capacity at once: growing would leave unwiped copies in freed memory.
            self.0.reserve_exact(if end.is_some() { more.len() } else { CLASSIC_LINE_BYTES_MAX });
        }
        self.0.extend_from_slice(more);
        Ok(match end {
            Some(end) => (end + 1, Some(std::mem::take(&mut self.0))),
            None => (bytes.len(), None),
        })
    }
}
