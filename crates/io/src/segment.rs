//! The units of sending: bytes in memory, a range of a file that the engine transfers, or bytes in a
//! pipe.
//!
//! A segment is not a queue ([`crate::outbox`] is) and knows nothing of sockets. Invariant: it owns its
//! data, so that the sender may drop every other reference after pushing it.

use std::ops::Range;
use std::sync::Arc;

use crate::file::File;
use crate::lease::Lease;
use crate::piped::Pipe;

/// A unit of data to send, in the order in which it is pushed.
#[derive(Debug)]
pub enum Segment {
    /// Bytes in the program's static memory.
    Static(&'static [u8]),
    /// Bytes generated for this response.
    Owned(Vec<u8>),
    /// Bytes that several responses share.
    Shared(Arc<[u8]>),
    /// Received bytes that are forwarded (a proxy's body). The lease ends when they are sent.
    Lease(Lease),
    /// A range of a file. Permitted only if [`crate::Tx::takes_files`].
    File(FileRange),
    /// Received bytes that are forwarded and stay in a kernel pipe. Permitted only if
    /// [`crate::Tx::takes_piped`].
    Piped(Pipe),
}

/// The bytes `range` of `file`. If they cannot be read, or the file ends before the range does, the
/// connection is aborted, because the response has already announced the length, unless its owner
/// [replaces](crate::Tx::drop_unreadable) them.
#[derive(Debug, Clone)]
pub struct FileRange {
    /// The open file.
    pub file: File,
    /// The first byte and the byte after the last.
    pub range: Range<u64>,
}

impl Segment {
    /// Returns the number of bytes that this segment still has to send.
    pub fn len(&self) -> u64 {
        match self {
            Segment::File(part) => part.range.end.saturating_sub(part.range.start),
            Segment::Piped(pipe) => pipe.bytes(),
            _ => self.bytes().len() as u64,
        }
    }

    /// Whether there is nothing to send.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether the segment's bytes are in memory.
    pub fn is_in_memory(&self) -> bool {
        !matches!(self, Segment::File(_) | Segment::Piped(_))
    }

    /// Returns the bytes if they are in memory, and an empty slice otherwise.
    pub fn bytes(&self) -> &[u8] {
        match self {
            Segment::Static(bytes) => bytes,
            Segment::Owned(bytes) => bytes,
            Segment::Shared(bytes) => bytes,
            Segment::Lease(lease) => lease,
            Segment::File(_) | Segment::Piped(_) => &[],
        }
    }
}
