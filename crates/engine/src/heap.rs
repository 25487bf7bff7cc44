//! Settings of glibc's heap that return free memory to the kernel soon. They do not replace the allocator.
//!
//! By default glibc raises its mmap threshold to the size of the first mapped block that is freed. It also
//! has eight arenas for each core. After a burst of log-ins, each of which hashes in 19 MiB, and of uploads,
//! a server retained 177 MiB. With these settings it retains 35 MiB, about as much as with mimalloc or
//! jemalloc (November 2026), so neither is linked. `plimsoll lab run memory` compares both settings.

/// Sets the heap's bounds for this process, unless its environment sets glibc's own (`MALLOC_*`,
/// `GLIBC_TUNABLES`).
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
