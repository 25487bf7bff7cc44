//! The HTTP client's types, for file transfers, which are no calls: their bytes are streamed.
//!
//! It has no code. Invariant: only this crate depends on the HTTP client.

pub use plimsoll_client::http::{Body, Client, Error, NextSegment, Request, Resolve, Response, Source, Url};
