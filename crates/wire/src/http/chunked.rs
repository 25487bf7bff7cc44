//! The chunked transfer coding (RFC 9112, section 7.1).
//!
//! Not here: the data, which stays in the receive buffer; a [`Step`] returns its position. Invariants: the
//! data does not depend on how the bytes are split. Nothing lenient is accepted, since an ambiguous chunk
//! size allows request smuggling. Framing costs at most 20 bytes for each byte of data, beyond the named
//! limits. An error is permanent.

use super::body::Decoded;
use super::fields::lines;
use super::grammar::{is_field_byte, is_tchar};
use super::refusal::Refusal;
use super::target::hex_digit;
use crate::limits::{
    CHUNK_EXT_BYTES_MAX, CHUNK_EXT_TOTAL_BYTES_MAX, CHUNK_SIZE_DIGITS_MAX, TRAILER_BYTES_MAX,
    TRAILER_FIELDS_MAX,
};

/// The end of a chunked body without trailers.
pub const LAST_CHUNK: &[u8] = b"0\r\n\r\n";

/// The result of decoding the next bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// `len` bytes of data, at least one, follow `skip` bytes of framing. All of them are consumed.
    Data {
        /// Bytes of framing before the data.
        skip: usize,
        /// Bytes of data.
        len: usize,
    },
    /// All of the input was framing, and more is needed.
    More {
        /// Bytes of framing: the whole input.
        consumed: usize,
    },
    /// The body has ended; later bytes belong to the next message.
    End {
        /// Bytes of framing, up to the end.
        consumed: usize,
    },
}

/// State of the decoder before the next byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    SizeFirst,
    Size,
    Extension,
    SizeLf,
    Data,
    DataCr,
    DataLf,
    TrailerFirst,
    TrailerName,
    TrailerValue,
    TrailerLf,
    EndLf,
    End,
    Failed(Refusal),
}

/// Decodes a chunked body from the pieces in which it is received.
#[derive(Clone, Debug)]
pub struct ChunkedDecoder {
    state: State,
    /// While a size is parsed, its value so far; afterwards the rest of the chunk in bytes.
    remaining: u64,
    digits: u8,
    extension: u16,
    extensions: u16,
    trailer: u16,
    trailer_fields: u8,
    /// The field lines of the trailer section so far; `None` if they are discarded.
    trailers: Option<Vec<u8>>,
}

impl Default for ChunkedDecoder {
    fn default() -> Self {
        Self::new()
    }
}

impl ChunkedDecoder {
    /// Returns a decoder at the start of a body.
    #[must_use]
    pub fn new() -> Self {
        Self {
            state: State::SizeFirst,
            remaining: 0,
            digits: 0,
            extension: 0,
            extensions: 0,
            trailer: 0,
            trailer_fields: 0,
            trailers: None,
        }
    }

    /// Returns a decoder at the start of a body that keeps the trailer fields.
    #[must_use]
    pub fn keeping_trailers() -> Self {
        Self { trailers: Some(Vec::new()), ..Self::new() }
    }

    /// Iterates over the kept trailer fields, name and trimmed value, in the order received. All of them
    /// are there when the body has [ended](Self::is_ended).
    pub fn trailers(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        lines(self.trailers.as_deref().unwrap_or_default())
    }

    /// Returns whether the body has ended.
    #[must_use]
    pub fn is_ended(&self) -> bool {
        self.state == State::End
    }

    /// Returns why the coding is malformed, if it is.
    pub(super) fn refusal(&self) -> Option<Refusal> {
        match self.state {
            State::Failed(refusal) => Some(refusal),
            _ => None,
        }
    }

    /// Moves the data of all chunks in `bytes` to their start.
    pub(super) fn unchunk(&mut self, bytes: &mut [u8]) -> Result<Decoded, Refusal> {
        let mut done = Decoded::default();
        loop {
            match self.decode(bytes.get(done.consumed..).unwrap_or_default())? {
                Step::Data { skip, len } => {
                    let start = done.consumed + skip;
                    bytes.copy_within(start..start + len, done.len);
                    done.consumed = start + len;
                    done.len += len;
                }
                Step::More { consumed } | Step::End { consumed } => {
                    done.consumed += consumed;
                    return Ok(done);
                }
            }
        }
    }

    /// Decodes the bytes that follow those already consumed.
    ///
    /// # Errors
    ///
    /// A [`Refusal`] if the coding is malformed or a limit is exceeded. An error is permanent: every later
    /// call returns it.
    pub fn decode(&mut self, input: &[u8]) -> Result<Step, Refusal> {
        let mut consumed = 0;
        loop {
            match self.state {
                State::Data => return Ok(self.data(input, consumed)),
                State::End => return Ok(Step::End { consumed }),
                State::Failed(refusal) => return Err(refusal),
                _ => {}
            }
            let Some(&byte) = input.get(consumed) else { return Ok(Step::More { consumed }) };
            let next = self.next(byte).unwrap_or_else(State::Failed);
            self.keep_trailer(byte, next);
            self.state = next;
            consumed += 1;
        }
    }

    /// Returns the received part of the chunk's data.
    fn data(&mut self, input: &[u8], skip: usize) -> Step {
        let come = input.len() - skip;
        let len = usize::try_from(self.remaining).unwrap_or(usize::MAX).min(come);
        if len == 0 {
            return Step::More { consumed: skip };
        }
        self.remaining -= len as u64;
        if self.remaining == 0 {
            self.state = State::DataCr;
        }
        Step::Data { skip, len }
    }

    /// Returns the state after a byte of framing.
    fn next(&mut self, byte: u8) -> Result<State, Refusal> {
        match self.state {
            State::SizeFirst => {
                (self.remaining, self.digits, self.extension) = (0, 0, 0);
                self.size_digit(byte)
            }
            State::Size => match byte {
                b'\r' => Ok(State::SizeLf),
                b';' => self.extension_byte(),
                _ => self.size_digit(byte),
            },
            State::Extension => match byte {
                b'\r' => Ok(State::SizeLf),
                _ if is_field_byte(byte) => self.extension_byte(),
                _ => Err(Refusal::ChunkLineEnd),
            },
            State::SizeLf if self.remaining == 0 => line_feed(byte, State::TrailerFirst),
            State::SizeLf => line_feed(byte, State::Data),
            State::DataCr if byte == b'\r' => Ok(State::DataLf),
            State::DataCr => Err(Refusal::ChunkLineEnd),
            State::DataLf => line_feed(byte, State::SizeFirst),
            State::TrailerFirst if byte == b'\r' => Ok(State::EndLf),
            State::TrailerFirst | State::TrailerName | State::TrailerValue => self.trailer_byte(byte),
            State::TrailerLf => line_feed(byte, State::TrailerFirst),
            State::EndLf => line_feed(byte, State::End),
            State::Data | State::End | State::Failed(_) => Ok(self.state),
        }
    }

    /// Parses a digit of `chunk-size = 1*HEXDIG`. The grammar allows white space (`BWS`) only around
    /// extensions; it is refused there too, because implementations differ in it.
    fn size_digit(&mut self, byte: u8) -> Result<State, Refusal> {
        let digit = hex_digit(byte).ok_or(Refusal::ChunkSize)?;
        self.digits += 1;
        if self.digits > CHUNK_SIZE_DIGITS_MAX {
            return Err(Refusal::ChunkSize);
        }
        self.remaining = self.remaining << 4 | u64::from(digit);
        Ok(State::Size)
    }

    /// "A server ought to limit the total length of chunk extensions received in a request to an amount
    /// reasonable for the services provided" (section 7.1.1).
    fn extension_byte(&mut self) -> Result<State, Refusal> {
        self.extension += 1;
        self.extensions += 1;
        if self.extension > CHUNK_EXT_BYTES_MAX || self.extensions > CHUNK_EXT_TOTAL_BYTES_MAX {
            return Err(Refusal::ChunkExtension);
        }
        Ok(State::Extension)
    }

    /// Checks a byte of a trailer field. By default, trailers are discarded: "A recipient that removes the
    /// chunked coding from a message MAY selectively retain or discard the received trailer fields"
    /// (section 7.1.2).
    fn trailer_byte(&mut self, byte: u8) -> Result<State, Refusal> {
        self.trailer += 1;
        self.trailer_fields += u8::from(self.state == State::TrailerFirst);
        if self.trailer > TRAILER_BYTES_MAX || self.trailer_fields > TRAILER_FIELDS_MAX {
            return Err(Refusal::TrailerTooLong);
        }
        match self.state {
            State::TrailerName if byte == b':' => Ok(State::TrailerValue),
            State::TrailerFirst | State::TrailerName if is_tchar(byte) => Ok(State::TrailerName),
            State::TrailerValue if byte == b'\r' => Ok(State::TrailerLf),
            State::TrailerValue if is_field_byte(byte) => Ok(State::TrailerValue),
            _ => Err(Refusal::TrailerBad),
        }
    }
}

impl ChunkedDecoder {
    /// Keeps a byte of a trailer field, which leads from the present state to `next`. The limit on the
    /// section bounds the memory.
    fn keep_trailer(&mut self, byte: u8, next: State) {
        let is_in_line = match self.state {
            State::TrailerFirst => next == State::TrailerName,
            State::TrailerName | State::TrailerValue | State::TrailerLf => !matches!(next, State::Failed(_)),
            _ => false,
        };
        if is_in_line && let Some(trailers) = &mut self.trailers {
            trailers.push(byte);
        }
    }
}

fn line_feed(byte: u8, then: State) -> Result<State, Refusal> {
    if byte == b'\n' { Ok(then) } else { Err(Refusal::ChunkLineEnd) }
}

/// Appends a chunk's header. The caller must send the data and then [`CHUNK_END`].
///
/// Nothing is written for an empty chunk, which would end the body.
pub fn write_chunk_header(len: u64, out: &mut Vec<u8>) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    if len == 0 {
        return;
    }
    let digits = len.ilog2() / 4;
    for place in (0..=digits).rev() {
        let nibble = usize::try_from(len >> (place * 4) & 15).unwrap_or_default();
        out.push(HEX.get(nibble).copied().unwrap_or_default());
    }
    out.extend_from_slice(b"\r\n");
}

/// The end of a chunk, after its data.
pub const CHUNK_END: &[u8] = b"\r\n";
