//! Bounds of the cache, by name, with the unit last.
//!
//! The operator's sizes are not here. Invariant: everything that a client or an origin can make the cache
//! store, or wait for, has a bound here.

use std::time::Duration;

/// Field names in the Vary of a stored response. A response with more is not stored.
pub const VARY_NAMES_MAX: usize = 16;
/// Upper bound of a delta-seconds value (RFC 9111, section 1.2.2): a larger one is read as this.
pub const DELTA_SECONDS_MAX: u64 = 1 << 31;
/// Upper bound of a heuristic freshness lifetime (RFC 9111, section 4.2.2): the tenth of the age of an old
/// file would be months.
pub const HEURISTIC_TIME_MAX: Duration = Duration::from_secs(24 * 3600);
/// Freshness lifetime of a negative response (404, 405, 410, 414, 501) without an explicit one. Short, so
/// that a file that is created at the origin soon appears.
pub const NEGATIVE_TIME: Duration = Duration::from_secs(5);
/// Resources that one response may invalidate: its target, Location and Content-Location.
pub const INVALIDATED_URIS_MAX: usize = 3;
/// Metadata of a file on disk: the head of a response is shorter than 64 KiB, its URI than 16 KiB.
pub const METADATA_BYTES_MAX: u64 = 128 << 10;
/// Files on disk. A cache with larger objects has fewer.
pub const FILES_MAX: usize = 200_000;
/// Bytes of a stored body with a checksum of their own.
pub const CHECKED_BLOCK_BYTES: u64 = 64 << 10;
/// Bytes of memory for an object besides its URI, fields and content: its structures, its share of the
/// tables, and the overhead of the allocations.
pub const OBJECT_BYTES: u64 = 640;
/// Parts of the index with a lock each.
pub const INDEX_SHARDS: usize = 16;
/// Stored responses for one URI. With more, the oldest is dropped.
pub const VARIANTS_MAX: usize = 64;
/// Time for which requests for a URI do not wait for each other, after a response to it was not cacheable.
pub const HIT_FOR_MISS_TIME: Duration = Duration::from_secs(60);
/// URIs for which that is noted.
pub const HIT_FOR_MISS_MARKS_MAX: usize = 10_000;
/// How long a request waits for the first byte of a response that another request fetches. Then it proceeds
/// alone: a field that selects no response may have made that fetch slow.
pub const FOLLOW_TIME_MAX: Duration = Duration::from_secs(2);
/// Validations of stale responses in progress while their clients have the stale response. With more, a
/// later request validates.
pub const REFRESHES_MAX: usize = 64;
/// Bytes of a slice of a partial object. The last slice is shorter.
pub const SLICE_BYTES: u64 = 1 << 20;
/// Bytes of an object that is stored in memory; a larger one has a file.
pub const MEMORY_OBJECT_BYTES_MAX: usize = 64 << 10;
/// An object may have this part of the budget on disk: one of more would evict too many others.
pub const OBJECT_SHARE: u64 = 8;
/// Part of each budget for objects that are used again. The rest, for new objects, has room for two of the
/// largest. With room for none, each new object would evict one that is used again.
pub const HOT_SHARE: f64 = 0.75;
/// Bodies that are being received may take this part of the budget on disk, besides the stored ones.
pub const RECORDING_SHARE: u64 = 2;
/// Files of objects that stay open between requests.
pub const OPEN_FILES_MAX: usize = 256;
/// Files that an origin has passed and that stay open, as the contents of objects. The process's limit of
/// open files may allow fewer.
pub const PASSED_FILES_MAX: u64 = 1024;
/// The least age of a file's last change, when it is requested, for its descriptor to be kept. Two changes
/// within one tick of the kernel have the same ctime.
pub const FILE_TIME_TICK: Duration = Duration::from_millis(20);
/// Interval at which passed files are checked. One that was changed, replaced or removed is closed, so that
/// its blocks become free. A check is one fstat(2) per file.
pub const PASSED_CHECK_TIME: Duration = Duration::from_secs(1);
/// Time for which nothing is written to disk after an error of the disk.
pub const DISK_RETRY_TIME: Duration = Duration::from_secs(10);
/// Bytes of a fetched body that are written to its file at a time.
pub const RECORD_BYTES_MAX: usize = 256 << 10;
/// Resources that are remembered as invalidated while the cache is not open. With more, it is emptied when it
/// opens.
pub const MISSED_INVALIDATIONS_MAX: usize = 4096;
/// Time for which a request waits until the cache is open. After it, the request is forwarded without.
pub const OPENING_TIME_MAX: Duration = Duration::from_secs(2);
