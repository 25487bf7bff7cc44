//! The protocols, each written once as plain async functions over the I/O contract.
//!
//! `plimsoll_wire` parses and formats bytes; this crate implements the semantics of requests. Nothing here
//! depends on the engine, or waits in any way other than `await`. Invariant: every queue, wait and buffer
//! that a peer can enlarge has a named limit.
#![forbid(unsafe_code)]

mod archive;
mod body_sender;
mod body_stream;
pub mod classic;
mod file_parts;
pub mod ftp;
mod generated;
pub mod http;
pub mod limits;
mod proxied;
mod upload_pipe;

pub use archive::Archive;
pub use body_sender::{drain, linger};
pub use body_stream::{BodyStream, PendingChunk, StreamedBody};
pub use file_parts::{Parts, is_busy, patiently, read_patiently};
pub use generated::GeneratedBodies;
pub use plimsoll_io::Current;
pub use proxied::Proxied;
