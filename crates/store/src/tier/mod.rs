//! The store as everybody else sees it: in this process, or elsewhere.
//!
//! Nothing is decided here. The cut is at what operations ask of a home, so that rights, quotas, conditions
//! and the write path are told once: a home that is here does what it is asked; one elsewhere asks a store
//! ([`crate::apart`]), which does the very same with a home that is there.
//!
//! What must hold: what a home that is here costs, it costs without this: a branch, and nothing on the heap.

mod end;
mod home;
mod store;
mod upload;

pub use end::End;
pub use home::{Files, Home};
pub use store::Store;
pub use upload::Upload;
