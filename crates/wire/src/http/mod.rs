//! HTTP/1.1 as bytes: RFC 9110 (semantics) and RFC 9112 (the messages).
//!
//! Not here: what a request means to the file server, and when to read or write. What must hold: a message is
//! either understood exactly as every other strict implementation understands it, or refused. Leniency about
//! where a message ends is how requests are smuggled past a proxy.

pub mod answer;
mod base64;
pub mod chunked;
pub mod conditional;
pub mod credentials;
pub mod date;
pub mod dav;
pub mod digest;
mod field;
mod fields;
pub mod form;
pub mod forwarded;
mod grammar;
pub mod head;
pub mod mtime;
pub mod multipart;
pub mod negotiate;
pub mod range;
pub mod refusal;
pub mod response;
pub mod status;
pub mod target;
pub mod tus;
