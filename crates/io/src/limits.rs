//! The bounds that the contract itself sets, by name, with the unit last.
//!
//! A protocol does not keep its limits here: those are with the protocol. Invariant: every resource that
//! a peer can make grow has a bound here or there.

use std::time::Duration;

/// Memory of a lease for a request head or a command line: enough for the usual head in one receive.
pub const HEAD_BLOCK_BYTES: usize = 8 * 1024;
/// Memory of a lease for a body: so large that the cost of the receive call is small beside the copy.
pub const BODY_BLOCK_BYTES: usize = 64 * 1024;
/// Free blocks that a pool keeps for reuse; further blocks return to the allocator.
pub const POOL_KEPT_BLOCKS_MAX: usize = 32;
/// Bytes that one connection may receive in one turn before others have theirs.
pub const TURN_RECEIVE_BYTES_MAX: usize = 256 * 1024;
/// Receives that one connection may make in one turn before others have theirs.
pub const TURN_RECEIVES_MAX: u32 = 16;
/// Bytes that one call discards, where the kernel drops them without a copy.
pub const DISCARD_BYTES_MAX: usize = 1024 * 1024;
/// Bytes after which a connection sends no more in a turn. It also bounds one call that sends part of a
/// file, so a turn may send twice as many. Files are sent in chunks of this size.
pub const TURN_SEND_BYTES_MAX: u64 = 1024 * 1024;
/// Memory segments that one system call sends together.
pub const GATHER_SEGMENTS_MAX: usize = 16;
/// Time limit for the result of a file operation, so that a disk or a file server that hangs blocks no
/// task for ever.
pub const FILES_TIME_MAX: Duration = Duration::from_secs(60);
/// Empty pipes that are kept for reuse, to splice bytes between streams or into a file.
pub const PIPES_KEPT_MAX: usize = 16;
/// Number of transfers that are copied through memory after the kernel had no pipe left, before the next
/// attempt to create one.
pub const PIPES_REFUSED_ASKS: u32 = 1_000;
/// Capacity of a pipe in bytes: as large as the buffer of a Unix socket.
pub const PIPE_BYTES: usize = 1024 * 1024;
/// Bytes from which on a pipe pays: copying fewer through memory is faster than the calls that move
/// them.
pub const PIPED_BYTES_MIN: u64 = 16 * 1024;
/// Bytes that [`crate::Stream::finish`] reads and drops while it waits for the peer's end. Many clients
/// send a whole upload before they read the response: a client that is cut off while it sends never
/// receives the refusal. Reading and dropping is cheap and takes turns; the deadline mostly ends it
/// before this bound.
pub const LINGER_BYTES_MAX: usize = 64 * 1024 * 1024;
/// How often a wait for a slow peer checks whether the peer has received anything.
pub const PROGRESS_CHECK_TIME: Duration = Duration::from_secs(2);
/// Bytes of one name in a folder, Linux's limit.
pub const NAME_BYTES_MAX: usize = 255;
/// Entries of a folder that one slice of a listing reads, sorts or writes: one or two milliseconds.
pub const LISTING_SLICE_ENTRIES: usize = 1024;
/// Bytes of one part of a listing that is written while it is read. Each part waits for its turn again.
pub const LISTING_PART_BYTES: usize = 128 * 1024;
