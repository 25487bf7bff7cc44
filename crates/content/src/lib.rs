//! How a file or folder is served, whatever the protocol: lookup, hot cache, conditions, ranges, encodings,
//! listings, walks through folders, and pages.
//!
//! It has no conversation: protocols turn its results into their own responses. It checks no permission.
//! Invariants: a name is opened only beneath its root; hidden names of a public folder are not found (except
//! `.well-known`); metadata and bytes of a response come from one open file.
#![forbid(unsafe_code)]

mod cache_rules;
mod encoding;
mod fields;
mod hot_cache;
pub mod limits;
mod listing;
mod lookup;
mod media;
mod multistatus;
pub mod page;
mod prefetch;
mod selection;
mod site;
mod visibility;
mod walk;

use plimsoll_io::Stat;

pub use self::cache_rules::CacheRules;
pub use self::fields::FileFields;
pub use self::hot_cache::{HotCache, HotFigures, HotSettings};
pub use self::listing::{BadPage, ListingForm, ListingRow, ListingView, ListingWriter, Order, page_of};
pub use self::lookup::{
    Found, LocalSource, Lookup, OpenFile, Representation, Source, not_found_page, open, part_of,
};
pub use self::multistatus::{EntryLock, PropertyWriter};
pub use self::prefetch::{Candidate, Count, Prefetched, candidates};
pub use self::selection::{Selected, select};
pub use self::site::{Site, is_hidden};
pub use self::visibility::{Visibility, is_displayed};
pub use self::walk::{Walk, WalkEntry};

/// Returns the entity tag of a file. It changes whenever the file does, because no program can set the time
/// of change.
pub fn etag(stat: &Stat) -> String {
    format!("\"{:x}-{:x}-{:x}\"", stat.inode, stat.changed.as_nanos(), stat.size)
}
