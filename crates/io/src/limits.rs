//! Every bound that the contract itself sets, by name, with its unit last.
//!
//! It is not where a protocol keeps its limits: those stand beside the protocol. What must hold: whatever
//! a peer can make grow has a number here or there.

use std::time::Duration;

/// Memory of a lease for a request head or a command line: room for the usual head in one receive.
pub const HEAD_BLOCK_BYTES: usize = 8 * 1024;
/// Memory of a lease for a body: large enough that a receive call is cheap beside the copy it makes.
pub const BODY_BLOCK_BYTES: usize = 64 * 1024;
/// Free blocks that a pool keeps for reuse; more are given back to the allocator.
pub const POOL_KEPT_BLOCKS_MAX: usize = 32;
/// Bytes that one connection may receive in one turn before others have theirs.
pub const TURN_RECEIVE_BYTES_MAX: usize = 256 * 1024;
/// Receives that one connection may make in one turn before others have theirs.
pub const TURN_RECEIVES_MAX: u32 = 16;
/// Bytes that one call throws away, where the system drops them without a copy.
pub const DISCARD_BYTES_MAX: usize = 1024 * 1024;
/// Bytes after which a connection sends no more in a turn, until others have had theirs; and of a file in one
/// call, so it may be twice as many. A file's chunk.
pub const TURN_SEND_BYTES_MAX: u64 = 1024 * 1024;
/// Memory segments that one system call sends together.
pub const GATHER_SEGMENTS_MAX: usize = 16;
/// How long an answer about files is waited for: a disk or a server of files that hangs holds nobody for
/// ever.
pub const FILES_TIME_MAX: Duration = Duration::from_secs(60);
/// Empty pipes that are kept for bytes that go from one stream to another, or to a file.
pub const PIPES_KEPT_MAX: usize = 16;
/// How often bytes go through memory, after the system had no pipe for them, before it is asked for one
/// again.
pub const PIPES_REFUSED_ASKS: u32 = 1_000;
/// Bytes that a pipe has room for: as many as a Unix socket has.
pub const PIPE_BYTES: usize = 1024 * 1024;
/// Bytes that are worth a pipe: fewer are received and sent sooner than the system is asked to move them.
pub const PIPED_BYTES_MIN: u64 = 16 * 1024;
/// Bytes that [`crate::Stream::finish`] reads and drops while it waits for the peer's end. Many clients send
/// all of an upload before they look for an answer: one that is refused early and cut off while it still
/// sends never hears why. To read and drop is cheap and takes turns; the deadline mostly ends it before this.
pub const LINGER_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Bytes of one name in a folder, as Linux has it.
pub const NAME_BYTES_MAX: usize = 255;
/// Entries of a folder that one slice of a listing reads, puts in order or writes: one or two milliseconds.
pub const LISTING_SLICE_ENTRIES: usize = 1024;
