//! A body of unknown length, which is generated while it is sent.
//!
//! It sends nothing ([`crate::body_sender`] does). Invariants: a chunk is generated only when the client has
//! received most of the one before. A body is complete, or it ends with an error, after which the connection
//! is reset.

use std::pin::Pin;

use plimsoll_store::Error;

/// A pending chunk: its bytes, or `None` at the end of the body.
pub type PendingChunk<'a> = Pin<Box<dyn Future<Output = Result<Option<Vec<u8>>, Error>> + 'a>>;

/// The generator of a body.
pub trait BodyStream {
    /// Generates the next chunk, which is not empty. It is not called again after the end or an error.
    ///
    /// # Errors
    /// The error that prevents the rest of the body.
    fn next(&mut self) -> PendingChunk<'_>;

    /// Returns the bytes that the generator itself has in memory, if they may be many.
    fn memory_bytes(&self) -> u64 {
        0
    }
}

/// The generator of a response's body.
pub struct StreamedBody(pub(crate) Box<dyn BodyStream>);

impl StreamedBody {
    /// Creates the body that `stream` generates.
    pub fn new(stream: impl BodyStream + 'static) -> StreamedBody {
        StreamedBody(Box::new(stream))
    }
}

impl std::fmt::Debug for StreamedBody {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("StreamedBody")
    }
}
