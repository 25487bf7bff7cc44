//! Finds the body of a message among the bytes received behind its head (RFC 9112, section 6.3).
//!
//! Not here: the bytes, which stay in the caller's buffer, and the waits for more. Invariants: the body does
//! not depend on how the bytes are split. No byte behind a body is taken for part of it. A body that was cut
//! short has no end. An error is permanent.

use super::chunked::ChunkedDecoder;
use super::refusal::Refusal;
use super::response::Framing;

/// The state of a body that is being received.
#[derive(Clone, Debug)]
pub struct BodyDecoder(Progress);

#[derive(Clone, Debug)]
enum Progress {
    /// So many bytes are missing.
    Length(u64),
    /// Boxed, because it is large and bodies of a known length are frequent.
    Chunked(Box<ChunkedDecoder>),
    UntilClose,
    Closed,
}

/// The result of [`BodyDecoder::decode`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Decoded {
    /// Bytes examined. If the body has ended, those behind them belong to the next message.
    pub consumed: usize,
    /// Bytes of the body, at the start of the buffer.
    pub len: usize,
}

impl BodyDecoder {
    /// Returns a decoder at the start of a body. Trailer fields are discarded.
    #[must_use]
    pub fn new(framing: Framing) -> Self {
        Self::with(framing, ChunkedDecoder::new)
    }

    /// Returns a decoder at the start of a body that keeps the trailer fields.
    #[must_use]
    pub fn keeping_trailers(framing: Framing) -> Self {
        Self::with(framing, ChunkedDecoder::keeping_trailers)
    }

    fn with(framing: Framing, chunked: impl FnOnce() -> ChunkedDecoder) -> Self {
        Self(match framing {
            Framing::None => Progress::Length(0),
            Framing::Length(bytes) => Progress::Length(bytes),
            Framing::Chunked => Progress::Chunked(Box::new(chunked())),
            Framing::UntilClose => Progress::UntilClose,
        })
    }

    /// Returns whether the body has ended.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        match &self.0 {
            Progress::Length(left) => *left == 0,
            Progress::Chunked(chunked) => chunked.is_ended(),
            Progress::UntilClose => false,
            Progress::Closed => true,
        }
    }

    /// Returns why the end of the body cannot be found, if that is so.
    #[must_use]
    pub fn refusal(&self) -> Option<Refusal> {
        match &self.0 {
            Progress::Chunked(chunked) => chunked.refusal(),
            _ => None,
        }
    }

    /// Returns how many bytes are missing, if that is known.
    #[must_use]
    pub fn left(&self) -> Option<u64> {
        match &self.0 {
            Progress::Length(left) => Some(*left),
            _ => self.has_ended().then_some(0),
        }
    }

    /// Returns how many of the next bytes in the connection belong to the body and nothing else: `u64::MAX`
    /// if all do, none within the chunked coding.
    #[must_use]
    pub fn plain(&self) -> u64 {
        match &self.0 {
            Progress::Length(left) => *left,
            Progress::UntilClose => u64::MAX,
            Progress::Chunked(_) | Progress::Closed => 0,
        }
    }

    /// Counts [plain](Self::plain) bytes that were received without being decoded.
    pub fn skip(&mut self, bytes: u64) {
        if let Progress::Length(left) = &mut self.0 {
            *left = left.saturating_sub(bytes);
        }
    }

    /// Moves the bytes of the body in `received` to its start: those of a chunk move by its header's few
    /// bytes, and no other memory is used.
    ///
    /// # Errors
    ///
    /// A [`Refusal`] if the chunked coding is malformed or a limit is exceeded.
    pub fn decode(&mut self, received: &mut [u8]) -> Result<Decoded, Refusal> {
        match &mut self.0 {
            Progress::Length(left) => {
                let len = usize::try_from(*left).unwrap_or(usize::MAX).min(received.len());
                *left -= len as u64;
                Ok(Decoded { consumed: len, len })
            }
            Progress::Chunked(chunked) => chunked.unchunk(received),
            Progress::UntilClose => Ok(Decoded { consumed: received.len(), len: received.len() }),
            Progress::Closed => Ok(Decoded::default()),
        }
    }

    /// Notes that the sender has closed its side. Returns false if that cuts the body short.
    #[must_use]
    pub fn close(&mut self) -> bool {
        if matches!(self.0, Progress::UntilClose) {
            self.0 = Progress::Closed;
        }
        self.has_ended()
    }

    /// Iterates over the kept trailer fields, name and trimmed value, in the order received. All of them are
    /// there when the body has ended.
    pub fn trailers(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let chunked = match &self.0 {
            Progress::Chunked(chunked) if chunked.is_ended() => Some(&**chunked),
            _ => None,
        };
        chunked.into_iter().flat_map(ChunkedDecoder::trailers)
    }
}
