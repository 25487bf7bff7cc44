//! The write path: from the first byte of an upload to the name that it gets.
//!
//! Every protocol's bytes come this way. Not here: changes that bring no bytes ([`crate::change`]).
//!
//! An upload is a file with a random name in the home's `pending` folder. It is written, its digests are
//! checked, it is synced; then, under the home's lock, conditions and quota are weighed and it is renamed to
//! its path; then the folder is synced; then it is confirmed. One that may be gone on with has a [record]
//! beside it.
//!
//! What must hold: whoever drops an upload leaves nothing behind but what is kept for going on; nothing waits
//! in an async task: all of it is in closures that run to their end.

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
