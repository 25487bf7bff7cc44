//! The proxy's cache: a shared cache by RFC 9111.
//!
//! Not here: sockets, and the relay of a request to the origin. The policy is pure; the store reaches
//! files through [`plimsoll_io::Fs`] only. Invariants: a response to one person is never served to
//! another; a body enters the cache only when all of it was received; memory and disk are bounded in bytes.

pub mod fetch;
pub mod limits;
pub mod opening;
pub mod policy;
pub mod recorder;
pub mod response_cache;
pub mod store;
