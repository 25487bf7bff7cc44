//! A method's properties, which a tier lists in one table.
//!
//! It is not the code of the method. Invariant: each request has exactly one row.

use std::time::Duration;

use serde::Serialize;

use crate::network::Network;

/// The properties of a method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Method {
    /// The URL path.
    pub path: &'static str,
    /// How long the client waits for the response, the wait for a connection included.
    pub deadline: Duration,
    /// Whether the method has the same effect twice as once, so that it may be repeated.
    pub is_idempotent: bool,
    /// The connections that it uses.
    pub class: ConnectionClass,
}

/// Which connections a method uses. Each class has its own bound, so that calls of a slow class do not
/// delay those of a quick one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectionClass {
    /// Calls that take a lookup.
    Quick,
    /// Calls that take long: password hashing, file transfers.
    Slow,
    /// Calls that are not bounded.
    Unbounded,
}

/// A request to a tier.
pub trait Request: Serialize {
    /// Returns its row in the tier's table of methods.
    fn method(&self) -> Method;

    /// Returns the network that it comes from, if networks share the connections of its class in turn.
    fn network(&self) -> Network {
        Network::new()
    }
}
