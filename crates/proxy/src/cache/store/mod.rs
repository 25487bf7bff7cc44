//! Storage: objects in memory and on disk, and the index of both.
//!
//! Not here: when a stored response may be used ([`super::policy`]). Invariants: memory and disk are
//! bounded in bytes; an object is immutable.

mod disk;
mod file_format;
mod index;
mod object;
mod slices;
mod stored_file;

pub use disk::{Disk, FoundObject, ObjectWriter};
pub use index::{Index, IndexFigures, Lookup, PurgeTarget};
pub use object::{Content, Object};
pub use slices::PartialHead;
pub use stored_file::StoredFile;
