//! The engines' own bounds, by name, with their unit last.
//!
//! They are not settings; what an operator may set is in [`crate::Plan`]. What must hold: whatever can
//! queue, grow or be tried again has a number here.

use std::num::NonZeroU64;
use std::time::Duration;

/// How much later than asked the system may wake a thread that serves connections, in nanoseconds.
pub const TIMER_SLACK_NANOSECONDS: NonZeroU64 = NonZeroU64::new(5_000).unwrap();
/// Events taken from the kernel in one wait.
pub const EVENTS_MAX: usize = 512;
/// Bytes of a block of memory from which on it is mapped for itself, and unmapped when it is freed. The
/// pieces of a transfer are smaller: each would cost a page fault for every 4 KiB.
pub const HEAP_BLOCK_BYTES_MAX: usize = 1024 * 1024;
/// Free bytes at the end of a heap that stay with the process.
pub const HEAP_SPARE_BYTES_MAX: usize = 2 * 1024 * 1024;
/// Connections that a listener hands out in one turn.
pub const ACCEPTS_PER_TURN_MAX: u32 = 16;
/// Connections that are taken out of the kernel's queue after the order to stop.
pub const ACCEPTS_AT_STOP_MAX: usize = 1024;
/// Connections that wait in the kernel to be accepted; the system caps it at net.core.somaxconn.
pub const BACKLOG_MAX: i32 = 65_535;
/// Bytes that a Unix socket holds for its peer, as asked for: the system takes twice that, and counts by it.
pub const UNIX_SEND_BYTES: usize = 512 * 1024;
/// Bytes of a file, in one call, from which on packets are held back until they are full: two calls more, for
/// less work at 1 MB (0.88 of the time) and none at 300 KB (1.03).
pub const CORKED_FROM_BYTES: u64 = 512 * 1024;
/// How long accepting pauses when the system has no descriptor or memory for another connection.
pub const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// How often accepting looks again when as many connections are open as may be.
pub const FULL_PAUSE: Duration = Duration::from_millis(20);
/// How often accepting looks again where connections are about to leave their slots to others.
pub const EVICTION_PAUSE: Duration = Duration::from_millis(1);
/// Protocols that share the slots of a server.
pub const SERVICES_MAX: usize = 4;
/// The part of all slots that each protocol with a listener has to itself.
pub const SERVICE_PART: usize = 8;
/// The part of all slots that only clients have that have authenticated.
pub const AUTHENTICATED_PART: usize = 4;
/// The part of all slots that is kept free by closing connections, so that a new one need not wait.
pub const SPARE_PART: usize = 32;
/// Slots that are kept free at most.
pub const SPARE_SLOTS_MAX: usize = 1024;
/// The part of all slots that one address has while slots run short.
pub const ADDRESS_PART: usize = 16;
/// Slots that one address has at least while slots run short: those of a few browsers.
pub const ADDRESS_SHARE_MIN: usize = 16;
/// How long a client that has not authenticated may take nothing of a response, and keep its slot where
/// others need it.
pub const STALLED_TIME: Duration = Duration::from_secs(15);
/// Reads that drop the bytes of a refused client. Closing a socket with unread bytes resets the connection,
/// and the client could lose the refusal.
pub const REFUSED_READS_MAX: usize = 4;
/// Bytes of such a read.
pub const REFUSED_READ_BYTES: usize = 16 * 1024;
/// How long a connection waits for a worker before another one is closed for it that keeps a worker waiting.
pub const WORKER_WAIT_MAX: Duration = Duration::from_secs(1);
/// Threads that open and read files for an engine that must not block.
pub const FILE_THREADS: usize = 4;
/// File operations that wait for such a thread; more are refused, which a client sees as 503.
pub const FILE_JOBS_MAX: usize = 4096;
/// Threads that write files for an engine that must not block. They wait for the disk more than they work,
/// and those that wait together are synced together.
pub const WRITE_THREADS: usize = 32;
/// Writes that wait for such a thread; each holds what it writes in memory.
pub const WRITE_JOBS_MAX: usize = 1024;
/// Threads that ask the directory of accounts: one for each connection to a database. Those that wait for a
/// commit there wait together.
pub const DIRECTORY_THREADS: usize = 8;
/// Questions to the directory that wait; more are refused, which a client sees as 503.
pub const DIRECTORY_JOBS_MAX: usize = 4096;
/// Passwords that wait to be hashed, for each thread that hashes (one per core); more are refused, which a
/// client sees as 503. At some 30 ms each the last waits about two seconds.
pub const PASSWORD_JOBS_PER_THREAD_MAX: usize = 64;
/// Threads that read whole folders. One owner has all but one at most.
pub const LISTING_THREADS: usize = 2;
/// Folders that wait to be read; more are refused, which a client sees as 503.
pub const LISTING_JOBS_MAX: usize = 1024;
/// Of these, folders for one account, or for the guests of one address.
pub const LISTING_JOBS_PER_OWNER_MAX: usize = 64;
/// Listings of folders larger than one slice that are in the making at a time: some 25 MB of memory each for
/// the largest folders. Small folders are listed beside them.
pub const LISTINGS_RESUMED_MAX: usize = 16;
/// The same for one account, or for the guests of one address.
pub const LISTINGS_RESUMED_PER_OWNER_MAX: usize = 1;
/// Threads for work as long as a file or a tree is large. One owner has all but one at most.
pub const CHORE_THREADS: usize = 2;
/// Such work that waits for a thread; more is refused, which a client sees as 503.
pub const CHORE_JOBS_MAX: usize = 1024;
/// Of this, work for one account.
pub const CHORE_JOBS_PER_OWNER_MAX: usize = 128;
/// Workers of the engine `pool` for each core, unless the operator says how many: they wait for slow clients
/// more than they work.
pub const WORKERS_PER_CORE: usize = 16;
/// Connections that wait for a worker, for each worker there is: as many short requests are answered in
/// about a second. More wait in the kernel, or are refused.
pub const QUEUE_PER_WORKER_MAX: usize = 64;
/// How long a connection waits for a worker where those who would have to wait are refused.
pub const QUEUE_TIME_MAX: Duration = Duration::from_secs(1);
/// How often those who wait are looked at there.
pub const QUEUE_LOOK_PAUSE: Duration = Duration::from_millis(100);
/// Connections that are being told that they are refused; more wait until some have gone.
pub const REFUSALS_MAX: usize = 256;
/// How long after the grace those can be told so who no worker came to.
pub const LAST_WORD_TIME: Duration = Duration::from_secs(1);
/// Connections of one worker of which nothing is left but to wait for their end, the one served among them:
/// with so many it takes no other.
pub const ENDING_PER_WORKER_MAX: usize = 64;
/// Stack of a thread that serves one connection, in bytes: protocol futures live on the heap.
pub const CONNECTION_STACK_BYTES: usize = 256 * 1024;
/// Connections of the engine `process`, each of which is a process, where the system would allow more.
pub const PROCESSES_MAX: u64 = 4096;
/// Cells of a shared page by which those processes report what they do: one each.
pub const PROCESS_CELLS: usize = 4096;
/// Processes and threads that are left of those that the system allows, for the server itself and for
/// others.
pub const PROCESSES_RESERVED: u64 = 64;
/// How long after the grace a connection's process may take to end by itself before it is killed.
pub const OWN_END_TIME: Duration = Duration::from_secs(1);
/// How long a killed process is waited for: one that waits for a broken disk does not end.
pub const KILLED_TIME: Duration = Duration::from_secs(5);
/// How much later than the last of its processes the fork master may end before it is killed.
pub const MASTER_END_TIME: Duration = Duration::from_secs(3);
/// How long a trouble that stays is told of once: the system has no process or descriptor more.
pub const TOLD_ONCE_TIME: Duration = Duration::from_secs(60);
/// How long the fork master may take to do what it is told, such as to read the configuration again.
pub const ORDER_TIME_MAX: Duration = Duration::from_secs(60);
/// How often a lookup is tried again when folders are renamed while it runs.
pub const LOOKUP_TRIES_MAX: u32 = 8;
/// Of so many bytes of a file, one tells whether they are in memory: systems read ahead by a good part of
/// it. Each look is a call; of a megabyte that is in memory, they cost less than two percent of sending it.
pub const READ_AHEAD_STEP_BYTES: usize = 256 * 1024;
/// What reads past the system's cache are aligned to: no disk has larger blocks.
pub const DIRECT_BLOCK_BYTES: usize = 4096;
/// Bytes that are read at a time to have them in memory.
pub const READ_AHEAD_CHUNK_BYTES: usize = 128 * 1024;
/// Descriptors that are not for connections: listeners, logs, folders, the engine's own. Pipes, and one for
/// each thread that writes, come on top.
pub const DESCRIPTORS_RESERVED: u64 = 64;
/// Pipes that a process has for bytes that go from one stream to another, or to a file, two descriptors each;
/// bytes that find none go through memory.
pub const PIPES_MAX: u64 = 32;
/// Open files that a process may have for each of those pipes: with fewer, it has fewer pipes.
pub const OPEN_FILES_PER_PIPE: u64 = 512;

/// How many pipes a process has that may have so many open files.
pub fn pipes_of(open_files: u64) -> u64 {
    PIPES_MAX.min(open_files / OPEN_FILES_PER_PIPE)
}

/// Bytes that a copy by hand holds in memory.
pub const COPY_CHUNK_BYTES: usize = 128 * 1024;
/// Operations that a ring's turn hands over together; more are handed over at once.
pub const RING_SUBMISSIONS: u32 = 1024;
/// Completions that the kernel has room for in a ring; it keeps more in memory of its own, and none is lost.
pub const RING_COMPLETIONS: u32 = 4096;
/// Blocks of a ring into which request heads are received: a power of two. Each is replaced as it is used,
/// so this bounds how many are received together, not how many are held.
pub const RING_HEAD_BLOCKS: u16 = 128;
/// The same for bodies, whose blocks are larger.
pub const RING_BODY_BLOCKS: u16 = 16;
/// Accepts that a ring has under way for one listener of the server: as many connections may have been
/// accepted without being served yet.
pub const RING_ACCEPTS: usize = 8;
/// Bytes that are copied together so that they leave in one send; what is longer is sent from where it is.
pub const GATHERED_BYTES_MAX: usize = 16 * 1024;
/// How long the end of a ring waits for its operations, all of which have been cancelled.
pub const RING_END_TIME: Duration = Duration::from_secs(5);
/// How long a ring pauses that the kernel refuses to enter, so that it does not spin.
pub const RING_FAILED_PAUSE: Duration = Duration::from_millis(100);
