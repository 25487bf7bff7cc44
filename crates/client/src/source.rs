//! Sources of bodies and files to be sent, a piece at a time.
//!
//! They do not send. Invariant: the next piece is requested from a source only when there is room for it.

use std::io;
use std::pin::Pin;

use plimsoll_io::Segment;

/// A future of the next piece of a body or a file; `None` at its end.
pub type NextSegment<'a> = Pin<Box<dyn Future<Output = io::Result<Option<Segment>>> + 'a>>;

/// The source of a streamed body, or of a file to be uploaded.
///
/// A source reads files itself, through `Io::offload`. It may return a [`Segment::File`] only where the
/// connection takes files. A pending piece is dropped when the server answers early.
pub trait Source {
    /// Returns the next piece: any number of bytes, possibly none. Not called again after the end.
    fn next(&mut self) -> NextSegment<'_>;
}

/// A source of one piece that is in memory.
#[derive(Debug)]
pub struct SingleSegment(Option<Segment>);

impl SingleSegment {
    /// Creates a source of `segment` alone.
    #[must_use]
    pub fn new(segment: Segment) -> SingleSegment {
        SingleSegment(Some(segment))
    }
}

impl Source for SingleSegment {
    fn next(&mut self) -> NextSegment<'_> {
        Box::pin(std::future::ready(Ok(self.0.take())))
    }
}
