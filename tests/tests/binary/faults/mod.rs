//! Bad input and faults on a server with accounts: each gives a clear error or a clean end, and nothing is
//! left behind.

mod few_descriptors;
pub(crate) mod full_disk;
mod half_way;
mod left;
mod links;
mod many_files;
mod mounts;
mod names;
mod read_only_disk;
mod two_writers;
