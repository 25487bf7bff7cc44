//! Requests and responses between the tiers: one layer for accounts and for files.
//!
//! A tier's server implements [`Service`], and its clients call it through an [`RpcClient`]. The
//! transport is HTTP/1.1 with JSON bodies. The methods are not here: each tier's crate defines its own.
//!
//! Invariants:
//!
//! 1. Each call presents the [`Secret`] that the servers of a deployment share. It is compared in
//!    constant time and never logged ([`SecretCheck`]).
//! 2. A call ends within its method's deadline. A call without a response is an error, never a success.
//! 3. A call is repeated only if its method is idempotent, and only once, if a keep-alive connection
//!    turned out to be closed.
//! 4. Connections, queues, message sizes and tables of addresses are bounded ([`limits`]).
//! 5. A client that caches results learns of each change within the feed's trust time, or stops
//!    trusting its cache ([`ChangeFeed`], [`Subscription`]).
#![forbid(unsafe_code)]

mod call_error;
mod change_feed;
mod client;
mod envelope;
mod failures;
pub mod limits;
mod method;
mod network;
mod permits;
mod responses;
mod secret;
mod secret_check;
mod service;
mod subscription;
mod table;
pub mod time;
pub mod transport;

pub use call_error::CallError;
pub use change_feed::{ChangeFeed, Changes, FeedError, FeedPosition, Watch};
pub use client::{ClientLimits, RpcClient, ServerAddress, check_status};
pub use envelope::{decode, encode};
pub use failures::{Budget, FailureCounts, Failures};
pub use method::{ConnectionClass, Method, Request};
pub use network::{Network, Source};
pub use permits::{CallPermit, Permits};
pub use secret::Secret;
pub use secret_check::{SecretCheck, SecretRefused};
pub use service::{Call, CallRefused, Forwarder, Service, parse};
pub use subscription::Subscription;
pub use table::{Key, Table};
