//! The caller of an operation, its address, and its protocol.
//!
//! This module checks no credential: [`crate::Operations`] turns a [`Visitor`] with a valid credential
//! into a [`Caller`].

use std::sync::Arc;

use plimsoll_auth::Identity;
use plimsoll_io::{Io, JobOwner, Peer};

/// The protocols through which operations are requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP.
    Http,
    /// FTP.
    Ftp,
    /// Classic.
    Classic,
}

impl Protocol {
    /// All protocols, in their order.
    pub const ALL: [Protocol; 3] = [Protocol::Http, Protocol::Ftp, Protocol::Classic];

    /// Returns the name in logs and metrics.
    pub fn name(self) -> &'static str {
        match self {
            Protocol::Http => "http",
            Protocol::Ftp => "ftp",
            Protocol::Classic => "classic",
        }
    }
}

/// The client of a connection, not yet authenticated.
#[derive(Clone)]
pub struct Visitor {
    /// The engine that the connection is on.
    pub io: Io,
    /// The client's address.
    pub peer: Peer,
    /// The client's protocol.
    pub protocol: Protocol,
    /// Whether no third party can read the connection between client and server: it is encrypted, or does
    /// not leave this machine.
    pub is_protected: bool,
}

/// An authenticated client. [`Caller::new`] is the only constructor, so that blocking work always has an
/// owner.
#[derive(Clone)]
#[non_exhaustive]
pub struct Caller {
    /// The client's connection: engine, address and protocol.
    pub visitor: Visitor,
    /// The authenticated account and its credential.
    pub identity: Identity,
    /// The ids of the locks whose tokens the client submits. The account must hold a lock to use it.
    pub(crate) lock_ids: Option<Arc<[String]>>,
}

impl Caller {
    /// Builds a caller from a visitor that presented a credential of `identity`. The account owns the
    /// caller's blocking work. A visitor of a public link is a guest, and delays no work of the account.
    #[must_use]
    pub fn new(visitor: Visitor, identity: Identity) -> Caller {
        let owner = match identity.link() {
            None => JobOwner::account(identity.account.id),
            Some(_) => JobOwner::guest(&visitor.peer),
        };
        Caller { visitor: Visitor { io: visitor.io.for_owner(owner), ..visitor }, identity, lock_ids: None }
    }

    /// Adds the ids of locks whose tokens the client submits.
    #[must_use]
    pub fn with_locks(self, ids: Vec<String>) -> Caller {
        Caller { lock_ids: Some(ids.into()), ..self }
    }

    /// Returns the ids of the locks whose tokens the client submits.
    pub fn submitted_locks(&self) -> &[String] {
        self.lock_ids.as_deref().unwrap_or_default()
    }

    /// Returns the engine, for work on behalf of the account.
    pub fn io(&self) -> &Io {
        &self.visitor.io
    }
}
