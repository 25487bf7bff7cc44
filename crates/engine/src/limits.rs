//! The engines' own bounds, by name, with their unit last.
//!
//! They are not settings; those that an operator may set are in [`crate::Plan`]. Invariant: everything that
//! can queue, grow or be retried has a bound here.

use std::num::NonZeroU64;
use std::time::Duration;

/// How much later than requested the kernel may wake a thread that serves connections, in nanoseconds.
pub const TIMER_SLACK_NANOSECONDS: NonZeroU64 = NonZeroU64::new(5_000).unwrap();
/// Events taken from the kernel in one wait.
pub const EVENTS_MAX: usize = 512;
/// Size in bytes from which a block of memory gets a mapping of its own, which is unmapped when it is freed.
/// The pieces of a transfer are smaller: a mapping would cost each a page fault for every 4 KiB.
pub const HEAP_BLOCK_BYTES_MAX: usize = 1024 * 1024;
/// Free bytes at the end of a heap that stay with the process.
pub const HEAP_SPARE_BYTES_MAX: usize = 2 * 1024 * 1024;
/// Connections that a listener hands out in one turn.
pub const ACCEPTS_PER_TURN_MAX: u32 = 16;
/// Connections that are accepted from the kernel's queue after the order to stop.
pub const ACCEPTS_AT_STOP_MAX: usize = 1024;
/// Connections that wait in the kernel to be accepted; the kernel caps it at net.core.somaxconn.
pub const BACKLOG_MAX: i32 = 65_535;
/// Requested send buffer of a Unix socket, in bytes. The kernel doubles it, and counts its overhead against
/// that.
pub const UNIX_SEND_BYTES: usize = 512 * 1024;
/// Bytes of a file, in one call, from which the socket is corked (TCP_CORK). That costs two calls more. It
/// takes 0.88 of the time at 1 MB, and gains nothing at 300 KB (1.03).
pub const CORKED_FROM_BYTES: u64 = 512 * 1024;
/// How long accepting pauses when the kernel has no descriptor or memory for another connection.
pub const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// How often accepting polls for a free slot when all slots are taken.
pub const FULL_PAUSE: Duration = Duration::from_millis(20);
/// How often accepting polls for a free slot when connections have been evicted and are about to end.
pub const EVICTION_PAUSE: Duration = Duration::from_millis(1);
/// Protocols that share the slots of a server.
pub const SERVICES_MAX: usize = 4;
/// Divisor: each protocol with a listener has this part of all slots reserved.
pub const SERVICE_PART: usize = 8;
/// Divisor: this part of all slots is reserved for clients that have authenticated.
pub const AUTHENTICATED_PART: usize = 4;
/// Divisor: this part of all slots is kept free by eviction, so that a new connection need not wait.
pub const SPARE_PART: usize = 32;
/// Upper bound of the slots that are kept free.
pub const SPARE_SLOTS_MAX: usize = 1024;
/// Divisor: one address may have this part of all slots while slots run short.
pub const ADDRESS_PART: usize = 16;
/// Slots that one address may have at least while slots run short: enough for a few browsers.
pub const ADDRESS_SHARE_MIN: usize = 16;
/// How long an unauthenticated client may receive a response below the minimum rate before it may be
/// evicted.
pub const STALLED_TIME: Duration = Duration::from_secs(15);
/// Reads that drop the bytes of a refused client. Closing a socket with unread bytes resets the connection,
/// and the client could lose the refusal.
pub const REFUSED_READS_MAX: usize = 4;
/// Bytes of such a read.
pub const REFUSED_READ_BYTES: usize = 16 * 1024;
/// How long a connection waits for a worker before another connection that holds one is evicted.
pub const WORKER_WAIT_MAX: Duration = Duration::from_secs(1);
/// Threads that open and read files for an engine that must not block.
pub const FILE_THREADS: usize = 4;
/// File operations that wait for such a thread; more are refused, which a client sees as 503.
pub const FILE_JOBS_MAX: usize = 4096;
/// Threads that write files for an engine that must not block. They wait for the disk more than they work,
/// and concurrent waits share one sync.
pub const WRITE_THREADS: usize = 32;
/// Writes that wait for such a thread; each holds its bytes in memory.
pub const WRITE_JOBS_MAX: usize = 1024;
/// Threads that query the account directory: one for each connection to a database. Concurrent waits for a
/// commit share it.
pub const DIRECTORY_THREADS: usize = 8;
/// Queries to the directory that wait for a thread; more are refused, which a client sees as 503.
pub const DIRECTORY_JOBS_MAX: usize = 4096;
/// Passwords that wait to be hashed, for each hashing thread (one per core). More are refused, which a
/// client sees as 503. At some 30 ms each, the last waits about two seconds.
pub const PASSWORD_JOBS_PER_THREAD_MAX: usize = 64;
/// Threads that read whole folders. One owner has all but one at most.
pub const LISTING_THREADS: usize = 2;
/// Folders that wait to be read; more are refused, which a client sees as 503.
pub const LISTING_JOBS_MAX: usize = 1024;
/// Of these, folders for one account, or for the guests of one address.
pub const LISTING_JOBS_PER_OWNER_MAX: usize = 64;
/// Listings of folders larger than one slice that may be in progress at a time. Each takes some 25 MB of
/// memory for the largest folders. Small folders are listed alongside.
pub const LISTINGS_RESUMED_MAX: usize = 16;
/// The same for one account, or for the guests of one address.
pub const LISTINGS_RESUMED_PER_OWNER_MAX: usize = 1;
/// Threads for work that takes time in proportion to a file or a tree. One owner has all but one at most.
pub const CHORE_THREADS: usize = 2;
/// Such work that waits for a thread; more is refused, which a client sees as 503.
pub const CHORE_JOBS_MAX: usize = 1024;
/// Of this, work for one account.
pub const CHORE_JOBS_PER_OWNER_MAX: usize = 128;
/// Workers of the engine `pool` for each core, unless the operator sets a number. They wait for slow clients
/// more than they work.
pub const WORKERS_PER_CORE: usize = 16;
/// Connections that wait for a worker, for each worker: as many short requests are answered in about a
/// second. More wait in the kernel, or are refused.
pub const QUEUE_PER_WORKER_MAX: usize = 64;
/// How long a connection waits for a worker before it is refused, where the policy is to refuse.
pub const QUEUE_TIME_MAX: Duration = Duration::from_secs(1);
/// How often waiting connections are checked against that time.
pub const QUEUE_CHECK_PAUSE: Duration = Duration::from_millis(100);
/// Refusals that are being sent at a time; more wait until some have ended.
pub const REFUSALS_MAX: usize = 256;
/// How long after the grace period refusals may be sent to connections that never got a worker.
pub const LAST_WORD_TIME: Duration = Duration::from_secs(1);
/// Connections of one worker that only wait for their end, the one being served included. A worker with so
/// many takes no other.
pub const ENDING_PER_WORKER_MAX: usize = 64;
/// Stack of a thread that serves one connection, in bytes: protocol futures live on the heap.
pub const CONNECTION_STACK_BYTES: usize = 256 * 1024;
/// Connections of the engine `process`, each of which is a process, where the kernel would allow more.
pub const PROCESSES_MAX: u64 = 4096;
/// Cells of a shared page by which those processes report their state: one each.
pub const PROCESS_CELLS: usize = 4096;
/// Processes and threads that are left of the kernel's limit, for the server itself and for other programs.
pub const PROCESSES_RESERVED: u64 = 64;
/// How long after the grace period a connection's process may take to end by itself before it is killed.
pub const OWN_END_TIME: Duration = Duration::from_secs(1);
/// How long a killed process is waited for: a process that waits for a broken disk does not end.
pub const KILLED_TIME: Duration = Duration::from_secs(5);
/// How much later than the last of its processes the fork master may end before it is killed.
pub const MASTER_END_TIME: Duration = Duration::from_secs(3);
/// How long a lasting error is not logged again, such as a lack of processes or descriptors.
pub const LOG_REPEAT_PAUSE: Duration = Duration::from_secs(60);
/// How long the fork master may take to carry out an order, such as to reload the configuration.
pub const ORDER_TIME_MAX: Duration = Duration::from_secs(60);
/// How often a lookup is retried when folders are renamed while it runs.
pub const LOOKUP_TRIES_MAX: u32 = 8;
/// One byte is probed per so many bytes of a file, to find whether they are in the page cache: the kernel
/// reads ahead by a good part of it. Each probe is a system call. For a cached megabyte, the probes cost
/// less than two percent of sending it.
pub const READ_AHEAD_STEP_BYTES: usize = 256 * 1024;
/// Alignment of reads that bypass the page cache: no disk has larger blocks.
pub const DIRECT_BLOCK_BYTES: usize = 4096;
/// Bytes that are read at a time to bring them into the page cache.
pub const READ_AHEAD_CHUNK_BYTES: usize = 128 * 1024;
/// Descriptors that are not for connections: listeners, logs, folders, the engine's own. Pipes, and one
/// descriptor for each writing thread, come on top.
pub const DESCRIPTORS_RESERVED: u64 = 64;
/// Pipes of a process that splice bytes from a stream to another stream or to a file, two descriptors each.
/// Without a free pipe, bytes are copied through memory.
pub const PIPES_MAX: u64 = 32;
/// Permitted open files for each of those pipes: a process with a lower limit has fewer pipes.
pub const OPEN_FILES_PER_PIPE: u64 = 512;

/// Returns how many pipes a process may have, given its limit of open files.
pub fn pipes_of(open_files: u64) -> u64 {
    PIPES_MAX.min(open_files / OPEN_FILES_PER_PIPE)
}

/// Bytes of the buffer of a copy through user space.
pub const COPY_CHUNK_BYTES: usize = 128 * 1024;
/// Operations that one turn of a ring submits together; with more, a submission follows at once.
pub const RING_SUBMISSIONS: u32 = 1024;
/// Completions that the ring has room for; the kernel queues more in its own memory, and none is lost.
pub const RING_COMPLETIONS: u32 = 4096;
/// Blocks of a ring into which request heads are received: a power of two. Each is replaced as it is used,
/// so this bounds how many are received together, not how many are leased.
pub const RING_HEAD_BLOCKS: u16 = 128;
/// The same for bodies, whose blocks are larger.
pub const RING_BODY_BLOCKS: u16 = 16;
/// Accepts that a ring has in progress for one listener of the server: as many connections may have been
/// accepted without being served yet.
pub const RING_ACCEPTS: usize = 8;
/// Bytes that are gathered by copying, to leave in one send; longer pieces are sent from where they are.
pub const GATHERED_BYTES_MAX: usize = 16 * 1024;
/// How long the end of a ring waits for its operations, all of which have been cancelled.
pub const RING_END_TIME: Duration = Duration::from_secs(5);
/// How long a ring pauses when the kernel refuses `io_uring_enter`, so that it does not spin.
pub const RING_FAILED_PAUSE: Duration = Duration::from_millis(100);
