//! Bounds of the hot cache, of listings and of prefetching, by name, with the unit last.
//!
//! The settings of an operator are not here. Invariant: every table and listing in memory has a bound here.

use std::time::Duration;

/// Files up to this size are read as soon as they are looked up, so that they leave in one send with the head
/// of the response.
pub const SMALL_FILE_BYTES_MAX: usize = 4 * 1024;
/// Files up to this size are cached as bytes, larger ones as descriptors.
pub const HOT_BODY_BYTES_MAX: usize = 32 * 1024;
/// Bytes of memory for a cache entry besides its name and the file's bytes: the entry, its response fields,
/// its share of the table, and the overhead of six allocations.
pub const HOT_ENTRY_BYTES: u64 = 1024;
/// Expected bytes of an entry, to lay out the table.
pub const HOT_ENTRY_BYTES_USUAL: u64 = 8 * 1024;
/// Evicted files that wait to be closed by a thread that may block on a disk.
pub const HOT_CLOSING_FILES_MAX: usize = 64;
/// Minimum time that an unused file stays in the hot cache; the maximum is twice that. A removed file
/// releases its space when it is closed.
pub const HOT_IDLE_TIME: Duration = Duration::from_secs(10);
/// Interval at which the open files of the hot cache are checked: a removed or replaced file is closed, so
/// that its blocks are free within this time. A check is one fstat(2) per file.
pub const HOT_CHECK_TIME: Duration = Duration::from_secs(1);
/// Files that are considered for prefetching.
pub const PREFETCH_FILES_MAX: usize = 1_000_000;
/// Depth of the folders that are searched for them.
pub const PREFETCH_LEVELS_MAX: usize = 128;
/// Entries of a folder that is listed without pages.
pub const LISTING_ENTRIES_MAX: usize = 100_000;
/// Entries of a page of a listing without a `limit`.
pub const LISTING_PAGE_ENTRIES: usize = 1_000;
/// Maximum entries of a page of a listing.
pub const LISTING_PAGE_ENTRIES_MAX: usize = 10_000;
/// Entries of a folder that a walk lists at a time.
pub const WALK_PAGE_ENTRIES: usize = 8 * 1024;
/// Entries that a walk keeps of the folders that it is in, besides a page. Others are listed again.
pub const WALK_ENTRIES_MAX: usize = 16 * 1024;
/// Bytes of a site's own page for a path that is not found.
pub const NOT_FOUND_PAGE_BYTES_MAX: u64 = 256 * 1024;

/// How many folders the breadcrumbs name: the links of all on a very deep path would outgrow the listing.
pub const BREADCRUMBS_MAX: usize = 32;
