//! The settings of glibc's heap: free memory returns to the kernel soon.
//!
//! By default glibc takes the first freed block of a size as a hint to keep all later ones, and has eight
//! heaps for each core. After a burst of log-ins, each of which hashes in 19 MiB, and of uploads, a server
//! kept 177 MiB. With these settings it keeps 35, about as much as with mimalloc or jemalloc
//! (docs/performance.md), so neither is linked.

/// Sets the bounds of the heap for this process, unless its environment has settings of its own.
#[cfg(target_env = "gnu")]
pub fn bound_heap() {
    use crate::limits::{HEAP_BLOCK_BYTES_MAX, HEAP_SPARE_BYTES_MAX};

    let is_setting = |name: &str| name.starts_with("MALLOC_") || name == "GLIBC_TUNABLES";
    if std::env::vars_os().any(|(name, _)| name.to_str().is_some_and(is_setting)) {
        return;
    }
    let heaps = std::thread::available_parallelism().map_or(1, usize::from);
    let bounds = [
        (libc::M_ARENA_MAX, heaps),
        (libc::M_MMAP_THRESHOLD, HEAP_BLOCK_BYTES_MAX),
        (libc::M_TRIM_THRESHOLD, HEAP_SPARE_BYTES_MAX),
    ];
    for (parameter, value) in bounds {
        // SAFETY: it takes two integers and locks the heap itself. It may refuse: then the default holds.
        unsafe { libc::mallopt(parameter, libc::c_int::try_from(value).unwrap_or(libc::c_int::MAX)) };
    }
}

/// Does nothing: another C library has another heap.
#[cfg(not(target_env = "gnu"))]
pub fn bound_heap() {}
