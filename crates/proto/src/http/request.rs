//! A request as a service sees it.
//!
//! It decides nothing. What must hold: the head's bytes stay where they were received; fields are looked
//! up, not copied.

use plimsoll_io::{Io, Peer};
use plimsoll_wire::http::head::{Field, Head, Method};

use super::body::RequestBody;
use super::site::HotSet;

/// One request: its head, and its body as far as it was not read.
pub struct Request<'a> {
    /// The engine it is served on.
    pub io: &'a Io,
    /// Who sends it.
    pub peer: &'a Peer,
    /// The parts of the head.
    pub head: &'a Head,
    /// The bytes that the head's parts lie in.
    pub block: &'a [u8],
    /// What follows the head.
    pub body: RequestBody<'a>,
    /// Files that are kept ready.
    pub hot: &'a HotSet,
}

impl<'a> Request<'a> {
    /// What is to be done.
    pub fn method(&self) -> Method {
        self.head.method()
    }

    /// What it is to be done to, as it was sent.
    pub fn target(&self) -> &'a [u8] {
        self.head.target(self.block)
    }

    /// The first value of a field.
    pub fn field(&self, field: Field) -> Option<&'a [u8]> {
        self.head.field(self.block, field)
    }
}
