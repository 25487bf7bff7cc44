//! Who asks, from where, and in which protocol.
//!
//! It proves nothing: [`crate::Operations`] makes a [`Caller`] of a [`Visitor`] who shows a credential.

use plimsoll_auth::Identity;
use plimsoll_io::{Io, JobOwner, Peer};

/// The protocols that operations are asked for in.
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
    /// All of them, in their order.
    pub const ALL: [Protocol; 3] = [Protocol::Http, Protocol::Ftp, Protocol::Classic];

    /// Its name in logs and metrics.
    pub fn name(self) -> &'static str {
        match self {
            Protocol::Http => "http",
            Protocol::Ftp => "ftp",
            Protocol::Classic => "classic",
        }
    }
}

/// Somebody at the other end of a connection.
#[derive(Clone)]
pub struct Visitor {
    /// The engine that the connection is on.
    pub io: Io,
    /// Where they are.
    pub peer: Peer,
    /// What they speak.
    pub protocol: Protocol,
}

/// A visitor whose account is known. [`Caller::new`] alone makes one, so that blocking work always has its
/// owner.
#[derive(Clone)]
#[non_exhaustive]
pub struct Caller {
    /// Who they are at the other end.
    pub visitor: Visitor,
    /// Who they are to us.
    pub identity: Identity,
}

impl Caller {
    /// A visitor who has shown a credential of `identity`. Blocking work is done on behalf of the account.
    #[must_use]
    pub fn new(visitor: Visitor, identity: Identity) -> Caller {
        let owner = JobOwner::account(identity.account.id);
        Caller { visitor: Visitor { io: visitor.io.for_owner(owner), ..visitor }, identity }
    }

    /// The owner of blocking work that is done for the caller.
    pub(crate) fn job_owner(&self) -> JobOwner {
        JobOwner::account(self.identity.account.id)
    }

    /// The engine, for work on behalf of the account.
    pub fn io(&self) -> &Io {
        &self.visitor.io
    }
}
