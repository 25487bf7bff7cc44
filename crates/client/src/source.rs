//! Where what is sent comes from, a piece at a time.
//!
//! Not here: sending it. What must hold: a source is asked for the next piece only when there is room for it.

use std::io;
use std::pin::Pin;

use plimsoll_io::Segment;

/// The next piece of a body or a file, in the making; None at its end.
pub type Piece<'a> = Pin<Box<dyn Future<Output = io::Result<Option<Segment>>> + 'a>>;

/// Where a streamed body, or a file on its way, comes from.
///
/// Files are read by the source itself, through `Io::offload`. A [`Segment::File`] may be given only where
/// the connection takes files. A piece in the making is dropped when the server answers early.
pub trait Source {
    /// Makes the next piece: any number of bytes, none at all if it must be. Not asked again after the end.
    fn next(&mut self) -> Piece<'_>;
}

/// A source of one piece, which is at hand.
#[derive(Debug)]
pub struct Whole(Option<Segment>);

impl Whole {
    /// All of it is `segment`.
    #[must_use]
    pub fn new(segment: Segment) -> Whole {
        Whole(Some(segment))
    }
}

impl Source for Whole {
    fn next(&mut self) -> Piece<'_> {
        Box::pin(std::future::ready(Ok(self.0.take())))
    }
}
