//! A request as a service sees it.
//!
//! It decides nothing. What must hold: the head's bytes stay where they were received; fields are looked
//! up, not copied.

use std::any::Any;

use plimsoll_io::{Io, Peer};
use plimsoll_wire::http::head::{Field, Head, Method};

use super::body::RequestBody;
use super::forwarded;
use super::site::HotSet;

/// One request: its head, and its body as far as it was not read.
pub struct Request<'a> {
    /// The engine it is served on.
    pub io: &'a Io,
    /// The client: the connection's peer, or the one that a trusted proxy reports.
    pub peer: &'a Peer,
    /// Whether a trusted proxy has passed it on.
    pub arrival: Arrival,
    /// The parts of the head.
    pub head: &'a Head,
    /// The bytes that the head's parts lie in.
    pub block: &'a [u8],
    /// What follows the head.
    pub body: RequestBody<'a>,
    /// Files that are kept ready.
    pub hot: &'a HotSet,
    /// What the service keeps of the connection that it came on.
    pub connection: &'a mut ConnectionData,
}

/// How a request has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// From the client itself, or through a proxy that is not trusted.
    Direct,
    /// Through a trusted proxy, whose word counts on the client and on the name that it used.
    Proxied,
}

/// What a service keeps of a connection from one request to the next. It ends with the connection, which may
/// be on another thread by then.
#[derive(Default)]
pub struct ConnectionData(Option<Box<dyn Any + Send>>);

impl ConnectionData {
    /// What was kept last, if it is of this type.
    pub fn get<T: 'static>(&self) -> Option<&T> {
        self.0.as_ref()?.downcast_ref()
    }

    /// Keeps nothing any more.
    pub fn forget(&mut self) {
        self.0 = None;
    }

    /// Keeps `data`, in place of what was kept.
    pub fn keep<T: Send + 'static>(&mut self, data: T) {
        match self.0.as_mut().and_then(|kept| kept.downcast_mut()) {
            Some(kept) => *kept = data,
            None => self.0 = Some(Box::new(data)),
        }
    }
}

impl<'a> Request<'a> {
    /// Reports that the client has shown valid credentials: its connection keeps its slot where slots run
    /// short, and its bodies may take long.
    pub fn authenticated(&self) {
        self.body.tx.slot().authenticate();
    }

    /// What is to be done.
    pub fn method(&self) -> Method {
        self.head.method()
    }

    /// What it is to be done to, as it was sent.
    pub fn target(&self) -> &'a [u8] {
        self.head.target(self.block)
    }

    /// The authorities that trusted proxies report to have been asked for. Empty for a request that came
    /// through none.
    pub fn forwarded_hosts(&self) -> Vec<&'a [u8]> {
        match self.arrival {
            Arrival::Direct => Vec::new(),
            Arrival::Proxied => forwarded::hosts(self.head, self.block),
        }
    }

    /// The first value of a field.
    pub fn field(&self, field: Field) -> Option<&'a [u8]> {
        self.head.field(self.block, field)
    }
}
