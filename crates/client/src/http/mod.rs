//! HTTP/1.1 as a client speaks it: one connection, kept, and one request on it at a time.
//!
//! Not here: redirections, cookies, TLS. What must hold: a body that was cut short is an error; a request is
//! sent twice only where that is the same as once; a final answer that comes early ends the sending.

mod client;
mod connection;
mod error;
pub mod limits;
mod outgoing;
mod request;
mod response;
mod url;

pub use client::{Client, Kept, Resolve, Resolving};
pub use error::{Error, When};
pub use limits::Times;
pub use request::{Body, Request};
pub use response::Response;
pub use url::{BadUrl, Url};

pub use crate::source::{Piece, Source};
