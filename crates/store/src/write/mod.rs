//! The write path: from the first byte of an upload to the name that it gets.
//!
//! The bytes of every protocol take it. Changes without bytes are not here ([`crate::change`]).
//!
//! An upload is a staging file with a random name in the home's `pending` folder. It is written, its
//! digests are checked, and it is synced. Then, under the home's lock, conditions and quota are checked and
//! it is renamed to its path. Then the folder is synced, and the upload is confirmed. A resumable upload
//! has a [record] next to its file.
//!
//! Invariants: dropping an upload leaves nothing behind but resumable state. Async tasks never block:
//! blocking work is in closures that run to their end.

mod begin;
pub(crate) mod claim;
mod commit;
mod digest;
mod held;
mod id;
mod kept;
mod parts;
pub(crate) mod record;
mod recording;
mod upload;
pub(crate) mod written;

pub use begin::Begin;
pub use commit::{CommitGuard, Committed, TakeBack, Terms};
pub use digest::{Algorithm, Expected, FileDigest};
pub use held::Filling;
pub(crate) use held::HeldTogether;
pub use id::UploadId;
pub use kept::{KeptUpload, NewUpload};
pub(crate) use recording::Recordings;
pub(crate) use upload::Upload;
