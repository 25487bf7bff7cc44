//! The store as other crates see it: in this process, or remote.
//!
//! It decides nothing. The tiers are separated at the operations on a home, so that permissions, quotas,
//! conditions and the write path are written once. A home in this process executes an operation. A remote
//! home sends it to a store ([`crate::remote`]), which executes it on a home in its process.
//!
//! Invariant: for a home in this process, the separation costs only a branch, and nothing on the heap.

mod end;
mod home;
mod location;
mod store;
mod upload;

pub use end::End;
pub use home::Home;
pub use location::{Location, Opened};
pub use store::Store;
pub use upload::Upload;
