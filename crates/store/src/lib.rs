//! The store: accounts' files on a local file system, and the one write path to them.
//!
//! It knows no protocol, no account and no right: it is given the name of a home, a path in it and a quota.
//!
//! What must hold:
//!
//! 1. A file arrives complete or the old one stays, whatever happens in between. What was answered with
//!    success survives a power cut (unless [`Durability::None`] was asked for).
//! 2. Conditions, quota and the change itself are decided under one lock, the home's.
//! 3. The offset told of an upload is never beyond what is synced.
//! 4. A path becomes a file in `home.rs` and nowhere else, beneath the home and never outside.
#![forbid(unsafe_code)]

pub mod apart;
mod change;
mod condition;
mod digest_slots;
mod durability;
mod edition;
mod error;
mod finished;
mod home;
mod known_digests;
pub mod limits;
mod owner;
mod path;
mod store;
mod sweep;
mod tier;
mod usage;
mod write;

pub use change::{Copied, Depth, Moved, Removed, What};
pub use condition::{Condition, Said};
pub use digest_slots::{DigestSlot, DigestSlots};
pub use durability::Durability;
pub use edition::Edition;
pub use error::{Error, NotResumable};
pub use finished::Completed;
pub use known_digests::KnownDigests;
pub use owner::{FoundHome, NO_ACCOUNT, give_home, homes};
pub use path::{BadPath, Path};
pub use store::Settings;
pub use tier::{End, Files, Home, Store, Upload};
pub use usage::{Quota, Usage};
pub use write::{
    Algorithm, Begin, CommitGuard, Committed, Expected, FileDigest, Filling, KeptUpload, NewUpload, TakeBack,
    Terms, UploadId,
};
