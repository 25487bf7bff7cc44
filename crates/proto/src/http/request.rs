//! A request, as the service receives it.
//!
//! This module decides nothing. Invariants: the head's bytes stay where they were received. Fields are looked
//! up, not copied.

use std::any::Any;

use plimsoll_io::{Io, Peer};
use plimsoll_wire::http::head::{Field, Head, Method};

use super::body::RequestBody;
use super::forwarded;
use super::local_request::is_local_request;
use plimsoll_content::HotCache;

/// One request: its head, and the unread part of its body.
pub struct Request<'a> {
    /// The engine that serves the request.
    pub io: &'a Io,
    /// The client: the connection's peer, or the address that a trusted proxy reports.
    pub peer: &'a Peer,
    /// Whether the request came through a trusted proxy.
    pub arrival: Arrival,
    /// Whether the client has sent the request encrypted.
    pub is_encrypted: bool,
    /// Whether it came over a Unix socket, and no proxy reports that its client uses no encryption.
    pub is_admitted_by_socket: bool,
    /// Whether it is from a page of an origin that the operator has named.
    pub is_of_named_origin: bool,
    /// The parsed head.
    pub head: &'a Head,
    /// The bytes that the parsed head refers to.
    pub block: &'a [u8],
    /// The body.
    pub body: RequestBody<'a>,
    /// The hot cache.
    pub hot: &'a HotCache,
    /// The service's data about the connection.
    pub connection: &'a mut ConnectionData,
}

/// The route by which a request arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// From the client itself, or through an untrusted proxy.
    Direct,
    /// Through a trusted proxy, whose fields name the client and the authority that it used.
    Proxied,
}

/// The data that a service keeps between the requests of a connection. It is dropped with the connection,
/// which may be on another thread by then.
#[derive(Default)]
pub struct ConnectionData(Option<Box<dyn Any + Send>>);

impl ConnectionData {
    /// Returns the stored data if it is of this type.
    pub fn get<T: 'static>(&self) -> Option<&T> {
        self.0.as_ref()?.downcast_ref()
    }

    /// Drops the stored data.
    pub fn forget(&mut self) {
        self.0 = None;
    }

    /// Stores `data` and drops the previous data.
    pub fn keep<T: Send + 'static>(&mut self, data: T) {
        match self.0.as_mut().and_then(|kept| kept.downcast_mut()) {
            Some(kept) => *kept = data,
            None => self.0 = Some(Box::new(data)),
        }
    }
}

impl<'a> Request<'a> {
    /// Reports that the client has presented valid credentials: its connection keeps its slot when slots run
    /// short, and its bodies may take long.
    pub fn authenticated(&self) {
        self.body.tx.slot().authenticate();
    }

    /// Whether the request is from a program on this machine, and passed no proxy.
    pub fn is_local(&self) -> bool {
        is_local_request(self.peer, self.arrival, self.head, self.block)
    }

    /// Whether no third party can read the request, as far as is known: it is encrypted, does not leave this
    /// machine, or comes over a Unix socket. The socket's mode admits programs that the operator trusts.
    pub fn is_protected(&self) -> bool {
        self.is_encrypted || self.is_admitted_by_socket || self.is_local()
    }

    /// Returns the method.
    pub fn method(&self) -> Method {
        self.head.method()
    }

    /// Returns the target, as it was sent.
    pub fn target(&self) -> &'a [u8] {
        self.head.target(self.block)
    }

    /// Returns the authorities that the client used, as trusted proxies report them. Empty for a direct
    /// request.
    pub fn forwarded_hosts(&self) -> Vec<&'a [u8]> {
        match self.arrival {
            Arrival::Direct => Vec::new(),
            Arrival::Proxied => forwarded::hosts(self.head, self.block),
        }
    }

    /// Returns the first value of a field.
    pub fn field(&self, field: Field) -> Option<&'a [u8]> {
        self.head.field(self.block, field)
    }
}
