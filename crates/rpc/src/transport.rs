//! The HTTP client's types, for file transfers, which are no calls: their bytes are streamed.
//!
//! It has no code. Invariant: the crates of the tiers take these types from here, and do not depend on the
//! HTTP client.

pub use plimsoll_client::http::{Body, Client, Error, NextSegment, Request, Response, Source};
