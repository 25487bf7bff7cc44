//! The binary's limits.
//!
//! The operator's limits are not here but in `config`.

use std::time::Duration;

/// Time that the doctor spends on timed writes to a disk.
pub(crate) const SYNCS_TIME_MAX: Duration = Duration::from_secs(3);
/// Bytes that the doctor reads of the response of a server that has a configured address.
pub(crate) const PROBE_ANSWER_BYTES_MAX: u64 = 4096;
/// How long the doctor waits for the addresses of a name.
pub(crate) const NAME_LOOKUP_TIME: Duration = Duration::from_secs(5);
/// The send buffer of the socket for log lines of connection processes, in bytes. The kernel may allow less
/// (`net.core.wmem_max`).
pub(crate) const LINES_IN_TRANSIT_BYTES_MAX: usize = 1024 * 1024;
/// The most empty pieces that this buffer can have: each takes more than 1/4096 of its memory.
pub(crate) const EMPTY_PIECES_MAX: u32 = 4096;
/// How long a connection process waits for space in this buffer.
pub(crate) const LINES_ROOM_TIME_MAX: Duration = Duration::from_secs(1);
/// Bytes of one piece of log lines; a larger one would not fit the socket even if it were empty.
pub(crate) const PIECE_BYTES_MAX: usize = 128 * 1024;
/// The most threads of a server: more loops than any machine has cores for, and the most workers of a pool.
pub(crate) const THREADS_MAX: usize = 1024;
/// The most names of homes in one log line; the doctor lists all.
pub(crate) const NAMES_SHOWN_MAX: usize = 10;
/// Longer commands of the greeting are not aligned, so that the others stay short.
pub(crate) const ALIGNED_COMMAND_CHARS_MAX: usize = 64;
/// How long binding an address in use is retried. A killed server with open connections under io_uring leaves
/// its sockets to the kernel, which closed them 2 to 93 ms after the process had ended.
pub(crate) const BIND_TIME_MAX: Duration = Duration::from_secs(1);
/// The capacity of a log writer's queue, in pieces. A piece has one line or several.
pub(crate) const QUEUED_PIECES_MAX: usize = 1024;
/// A write of log lines takes more pieces from the queue until it has this many bytes.
pub(crate) const GATHERED_BYTES_MAX: usize = 64 * 1024;
/// Round trips to a database, of which `plimsoll doctor` reports the shortest.
pub(crate) const DOCTOR_ROUND_TRIPS: usize = 5;
/// A longer round trip to a database is a warning.
pub(crate) const DOCTOR_ROUND_TRIP_TIME: Duration = Duration::from_millis(10);
/// Passes over one home, until one finds nothing changed. A later pass takes as long as a look at all names.
pub(crate) const BACKUP_PASSES_MAX: usize = 5;
/// Copies of the accounts, until the files have not changed around one.
pub(crate) const BACKUP_ROUNDS_MAX: usize = 3;
/// Bytes of a file with a certificate chain or a private key.
pub(crate) const CERTIFICATE_FILE_BYTES_MAX: u64 = 1024 * 1024;
/// How often the files of certificates are polled for changes.
pub(crate) const CERTIFICATE_POLL_TIME: Duration = Duration::from_secs(10);
/// A certificate with fewer days left is reported, unless it is valid for a short time anyway.
pub(crate) const CERTIFICATE_WARNING_DAYS: i64 = 21;
/// The longest time for which deleted files stay in the trash, in days: a hundred years.
pub(crate) const TRASH_DAYS_MAX: i64 = 36_500;
