//! The channel between two processes of one machine: a byte stream in each direction over shared memory, over
//! which open files are handed over instead of their bytes.
//!
//! It is one more transport to the protocols, which do not know of it. Each connection to a Unix socket sets
//! up one channel: two rings in a sealed memfd ([`ring`], [`frame`]), a doorbell for each side
//! ([`doorbell`]), and the socket, which carries the descriptors and shows when the peer's process ends. It
//! checks no rights: the accepting side has checked the right to read a file before it passes the descriptor.
//!
//! Bounds: the memory of a channel and its passed descriptors ([`limits`]). Invariants: nothing of the shared
//! memory is trusted: positions are checked and masked, contents are copied out before they are interpreted.
//! Any contents that the peer writes cause an error at most. Only the socket has a name in a file system.
//! `unsafe` is allowed here, each block with its reason. It occurs only in the mapping and where copied bytes
//! become part of a vector.
//!
//! Design: docs/design/channel.md.

mod bells;
pub mod doorbell;
mod filling;
pub mod frame;
mod handler;
mod handshake;
pub mod limits;
mod link;
pub mod message;
mod meter;
mod parked;
mod region;
pub mod ring;
mod transport;
mod waiting;
pub mod word;

pub use handler::{Channels, Connector, Settings};
pub use meter::{Count, CountKind, Meter};
pub use transport::Bodies;
