//! What can be sent: bytes from anywhere, or a range of a file that the engine moves itself.
//!
//! A segment is not a queue ([`crate::outbox`] is) and knows nothing of sockets. What must hold: it owns
//! what it names, so that who pushed it may forget it.

use std::ops::Range;
use std::sync::Arc;

use crate::file::File;
use crate::lease::Lease;
use crate::piped::Pipe;

/// A piece of what is to be sent, in the order in which it is pushed.
#[derive(Debug)]
pub enum Segment {
    /// Bytes that are part of the program.
    Static(&'static [u8]),
    /// Bytes made for this answer.
    Owned(Vec<u8>),
    /// Bytes that several answers share.
    Shared(Arc<[u8]>),
    /// Bytes that were received and go on (a proxy's body); the lease ends when they are sent.
    Lease(Lease),
    /// A range of a file. Only where [`crate::Tx::takes_files`].
    File(FileRange),
    /// Bytes that were received and go on, and stay with the system. Only where [`crate::Tx::takes_piped`].
    Piped(Pipe),
}

/// `range` of `file`, in bytes. If the file ends before the range does, the connection is aborted: its
/// length was already told.
#[derive(Debug, Clone)]
pub struct FileRange {
    /// The open file.
    pub file: File,
    /// First byte and the byte after the last.
    pub range: Range<u64>,
}

impl Segment {
    /// Bytes that this segment still has to send.
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

    /// Whether its bytes are in memory.
    pub fn is_in_memory(&self) -> bool {
        !matches!(self, Segment::File(_) | Segment::Piped(_))
    }

    /// The bytes, if they are in memory; empty for others.
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
