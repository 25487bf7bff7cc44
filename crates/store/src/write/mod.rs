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
mod buffer;
pub(crate) mod claim;
mod commit;
mod digest;
mod id;
pub(crate) mod parts;
mod progress;
pub(crate) mod record;
mod recording;
mod resumable;
pub(crate) mod staging;
mod state;
mod upload;

pub use begin::Begin;
pub(crate) use buffer::BufferBudget;
pub use buffer::{ReceivePipe, ReceivedBytes};
pub use commit::{CancelHandle, CommitGuard, Committed, Terms};
pub use digest::{Algorithm, Expected, FileDigest};
pub use id::UploadId;
pub(crate) use progress::Progress;
#[cfg(feature = "fuzzing")]
pub use record::check_upload_record;
pub(crate) use recording::Recordings;
pub use resumable::{NewUpload, ResumableUpload};
pub(crate) use upload::{LocalUpload, SharedUpload};
