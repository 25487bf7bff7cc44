//! The store: accounts' files on a local file system, and the only write path to them.
//!
//! It knows no protocol, account or permission: callers pass the name of a home, a path in it and a quota.
//!
//! Invariants:
//!
//! 1. After any failure, a file is either complete or unchanged. A confirmed change survives a power cut,
//!    unless [`Durability::None`] is set.
//! 2. Conditions and quota are checked, and the change is made, under one lock, the home's.
//! 3. The offset reported for an upload never exceeds the bytes that are synced.
//! 4. A path is resolved beneath the home's folder, never outside it. Visible names are changed only in
//!    folders that `LocalHome::place` (`home.rs`) has opened.
#![forbid(unsafe_code)]

pub mod backend;
mod change;
mod condition;
mod digest_slots;
mod durability;
mod error;
mod finished;
mod generation;
/// Checks of private code, for the fuzzer.
#[cfg(feature = "fuzzing")]
pub mod fuzzing {
    pub use crate::trash::check_trash_record;
    pub use crate::write::check_upload_record;
}
mod home;
mod json;
mod known_digests;
pub mod limits;
mod local;
mod owner;
mod path;
pub mod remote;
mod store;
mod stored;
mod sweep;
mod tier;
mod trash;
mod usage;
mod volumes;
mod write;

pub use change::{Copied, Depth, Disposal, MoveResult, RemovalKind, Removed};
pub use condition::{Condition, ConditionText, ParseCondition};
pub use durability::Durability;
pub use error::{Error, NotResumable};
pub use finished::Completed;
pub use generation::Generation;
pub use owner::{FoundHome, HomeOwner, NO_ACCOUNT, give_home, homes};
pub use path::{BadPath, Path, is_name};
pub use store::Settings;
pub use stored::{Stored, stored};
pub use tier::{End, Home, ListingStream, Location, Opened, Store, Upload};
pub use trash::{TrashId, TrashInfo, TrashPage, TrashedEntry};
pub use usage::{Quota, Usage};
pub use volumes::STAGING;
pub use write::{
    Algorithm, Begin, CancelHandle, CommitGuard, Committed, Expected, FileDigest, NewUpload, ReceivePipe,
    ReceivedBytes, ResumableUpload, Terms, UploadId,
};
