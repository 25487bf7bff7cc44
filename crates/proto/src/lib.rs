//! Protocols: the conversations, told once as plain async functions over the I/O contract.
//!
//! Bytes are read and written by `plimsoll_wire`; what a request means is decided here. Nothing in here
//! knows which engine runs it, or waits in any other way than by `await`. What must hold: every queue,
//! wait and buffer that a peer can make grow has a named limit.
#![forbid(unsafe_code)]

pub mod classic;
mod current;
mod file_parts;
pub mod ftp;
pub mod http;
pub mod limits;
mod opening;
mod outgoing;
mod proxied;

pub use current::Current;
pub use proxied::Proxied;
