//! Counters and sizes of the cache, for a status page and `/metrics`.
//!
//! It writes no page. Invariant: reading takes no lock that a request holds for long.

use std::sync::atomic::{AtomicU64, Ordering};

use super::ResponseCache;
use crate::cache::fetch::FetchFigures;
use crate::cache::store::IndexFigures;

/// Counters of requests.
#[derive(Debug, Default)]
pub struct CacheCounts {
    /// Requests answered from the cache without the origin.
    pub hits: AtomicU64,
    /// Requests that fetched an object, or waited for its fetch.
    pub misses: AtomicU64,
    /// Requests answered from the cache after a validation.
    pub validated: AtomicU64,
    /// Requests answered with a stale object, while it is validated or because the origin failed.
    pub stale: AtomicU64,
    /// Requests that went past the cache.
    pub bypassed: AtomicU64,
    /// Objects that were stored.
    pub stored: AtomicU64,
    /// Objects that were purged or invalidated.
    pub purged: AtomicU64,
    /// Objects that were dropped because the origin's file had changed.
    pub changed: AtomicU64,
    /// Errors of the disk.
    pub disk_errors: AtomicU64,
}

/// Counters and sizes, for a status page.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize)]
pub struct CacheFigures {
    /// Requests answered from the cache without the origin.
    pub hits: u64,
    /// Requests that fetched an object, or waited for its fetch.
    pub misses: u64,
    /// Requests answered from the cache after a validation.
    pub validated: u64,
    /// Requests answered with a stale object.
    pub stale: u64,
    /// Requests that went past the cache.
    pub bypassed: u64,
    /// Objects that were stored.
    pub stored: u64,
    /// Objects that were purged or invalidated.
    pub purged: u64,
    /// Objects that were dropped because the origin's file had changed.
    pub changed: u64,
    /// Errors of the disk.
    pub disk_errors: u64,
    /// Hits, stale answers and validations among all requests but those past the cache; 0 without any.
    pub hit_ratio: f64,
    /// Sizes of the index.
    pub index: IndexFigures,
    /// Fetches.
    pub fetches: FetchFigures,
}

impl ResponseCache {
    /// Returns counters and sizes.
    #[must_use]
    pub fn figures(&self) -> CacheFigures {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let counts = &self.counts;
        let (hits, misses) = (read(&counts.hits), read(&counts.misses));
        let (validated, stale) = (read(&counts.validated), read(&counts.stale));
        let used = hits + validated + stale;
        CacheFigures {
            hits,
            misses,
            validated,
            stale,
            bypassed: read(&counts.bypassed),
            stored: read(&counts.stored),
            purged: read(&counts.purged),
            changed: read(&counts.changed),
            disk_errors: read(&counts.disk_errors),
            // Counts below 2^52 are exact.
            hit_ratio: if used == 0 { 0.0 } else { used as f64 / (used + misses) as f64 },
            index: self.index.figures(),
            fetches: self.fetches.figures(),
        }
    }
}
