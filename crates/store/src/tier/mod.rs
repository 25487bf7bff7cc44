//! The store as other crates see it: in this process, or another implementation.
//!
//! It decides nothing. The tiers are separated at the operations on a home, so that permissions, quotas,
//! conditions and the write path are written once. A home in this process executes an operation
//! (`LocalHome::execute`). Another one implements [`crate::backend`].
//!
//! Invariant: for a home in this process, the separation costs an allocation for an operation or the start of
//! an upload, and none for a read or for the bytes of an upload.

mod end;
mod home;
mod listing;
mod location;
mod store;
mod upload;

pub use end::End;
pub use home::Home;
pub use listing::ListingStream;
pub use location::{Location, Opened};
pub use store::Store;
pub use upload::Upload;
