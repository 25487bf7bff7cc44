//! Storage: objects in memory, on disk and in open files of the origin, and the index of all.
//!
//! Not here: when a stored response may be used ([`super::policy`]). Invariants: memory, disk and
//! open files are bounded; an object is immutable.

mod checksums;
mod disk;
mod evictors;
mod file_format;
mod folder;
mod index;
mod object;
mod passed_file;
mod slices;
mod stored_file;

pub use disk::{Checksums, Disk, FoundObject, ObjectWriter};
pub use evictors::{CacheSizes, IndexFigures};
pub use folder::{CacheFolder, Claim, Claimant, check as check_folder, mark as mark_folder};
pub use index::{Index, Lookup, PurgeTarget};
pub use object::{Content, Object};
pub use passed_file::PassedFile;
pub use slices::PartialHead;
pub use stored_file::StoredFile;
