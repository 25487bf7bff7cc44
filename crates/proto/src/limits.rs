//! Limits that all protocols share.
//!
//! The limits of one protocol are not here, but in its own module.

use std::time::Duration;

/// How long a proxy may take to send its header of the PROXY protocol. The specification asks for at least 3
/// seconds, which cover a retransmission of TCP.
pub const PROXY_HEADER_TIME_MAX: Duration = Duration::from_secs(5);
/// How long a client that is refused at once may take to close its side. Closing earlier could reset the
/// connection before the client has the refusal.
pub const REFUSED_LINGER_TIME: Duration = Duration::from_secs(1);

/// Bytes that are pushed at a time where the transport copies them.
pub const COPIED_PART_BYTES_MAX: usize = 64 * 1024;
/// Bytes in memory that may be unsent on a connection before more are generated, read or received for it, or
/// before its next request is parsed.
pub const UNSENT_BYTES_MAX: u64 = 64 * 1024;
/// Bytes per read of a file, where the transport cannot send files.
pub const FILE_CHUNK_BYTES: usize = 64 * 1024;
/// Bytes of a file that are brought into the page cache at a time. A check whether they are cached costs one
/// call per 256 KiB and one wakeup. Sending them takes a hundred microseconds or more.
pub const FILE_PART_BYTES: u64 = 1024 * 1024;
/// Unsent bytes of a file below which its next part is prepared, so that the connection does not run dry.
pub const FILE_AHEAD_BYTES: u64 = 256 * 1024;
/// How long a part is assumed to stay in the page cache after a check. Files in demand do stay.
/// A check for each request costs two system calls and the first access to the file's bytes: 9 % of the
/// server's time at 100 KB.
pub const FILE_CACHED_TIME: Duration = Duration::from_secs(1);
/// How long to wait for a part, however overloaded the disk is.
pub const FILE_PART_TIME_MAX: Duration = Duration::from_secs(600);
/// How long to wait before the next attempt if the disk's queue is full.
pub const FILE_PART_RETRY_TIME: Duration = Duration::from_millis(200);

/// Bytes per second that a client without valid credentials receives of a response. A client that receives
/// fewer counts as stalled when slots run short.
pub const RECEIVED_BYTES_PER_SECOND_MIN: u64 = 16 * 1024;

/// Bytes of an archive that are generated at a time.
pub const ARCHIVE_CHUNK_BYTES: usize = 256 * 1024;
/// Bytes in memory of an archive's directory, which follows its files: those of some 400,000 entries. An
/// archive with more is aborted.
pub const ARCHIVE_DIRECTORY_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// Bytes of generated bodies (listings, directories of archives) in the memory of a process. Further ones
/// are refused: otherwise clients that request listings and never read them would fill the memory.
pub const GENERATED_BYTES_MAX: u64 = 256 * 1024 * 1024;
/// Bytes of a generated body that is sent regardless of the others. The number of connections bounds these.
pub const GENERATED_SMALL_BYTES: u64 = 32 * 1024;
/// HTTP: bytes of the answer to a challenge of an ACME server: a token and a digest.
pub const CHALLENGE_BYTES_MAX: usize = 1024;
