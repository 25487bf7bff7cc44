//! An HTTP/1.1 client: one keep-alive connection, and one request on it at a time.
//!
//! It does not follow redirections, and has no cookies. Invariants: a body that was cut short is an
//! error. A request is repeated only where that has the same effect as once. A final answer that comes early
//! ends the sending.

mod client;
mod connection;
mod error;
mod interim;
pub mod limits;
mod outgoing;
mod request;
mod response;
mod url;

pub use client::{Client, Dial, KeepAlive, Resolve, Resolving};
pub use connection::{Connection, NoResponse, ResponseInbox};
pub use error::{Error, When};
pub use limits::Times;
pub use request::{Body, Request};
pub use response::Response;
pub use url::{BadUrl, Url, split_zone};

pub use crate::source::{NextSegment, Source};
pub use plimsoll_tls::{Connector, refuses_identity};
