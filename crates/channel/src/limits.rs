//! The bounds of a channel, by name, with their unit last.
//!
//! A protocol's limits are not here: they hold over a channel as over a socket. Invariant: a peer can make
//! nothing grow beyond a bound of this file.

use std::time::Duration;

/// Words of eight bytes before the rings: positions and flags, each on a cache line of its own.
pub const HEADER_WORDS: usize = 128;
/// Words of the smallest ring: the longest frame without bytes, several times.
pub const RING_WORDS_MIN: usize = 16;
/// Bytes of the largest ring.
pub const RING_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Bytes of each of a channel's two rings, unless the operator sets another size. At this size, a copied
/// body still fits into the cache of a core.
pub const RING_BYTES: usize = 64 * 1024;
/// Slots of each direction of a channel, unless the operator sets another number. A slot is a frame of bytes
/// or a passed descriptor that the peer has not taken yet.
pub const SLOTS: usize = 16;
/// The most slots. So many messages with a descriptor fit into the buffer of a Unix socket.
pub const SLOTS_MAX: usize = 64;
/// Bytes of a file from which its descriptor is passed. Fewer are copied: two system calls to pass a
/// descriptor and one to close it cost more.
pub const PASSED_BYTES_MIN: u64 = 16 * 1024;
/// Bytes of a file that are read at a time to be copied into a ring.
pub const COPIED_CHUNK_BYTES: usize = 64 * 1024;
/// Bytes of a doorbell: a page.
pub const DOORBELL_BYTES: usize = 4096;
/// The most channels that share a doorbell. Their marks fill one cache line.
pub const DOORBELL_CHANNELS: usize = 512;
/// Time limit of the handshake.
pub const HANDSHAKE_TIME_MAX: Duration = Duration::from_secs(5);
/// Descriptors in one message: those of the offer.
pub const MESSAGE_FILES_MAX: usize = 3;
