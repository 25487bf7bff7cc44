//! The store's own limits, by name, with their unit last.
//!
//! They are not settings. Invariant: everything that an account can make grow is bounded here or by its
//! quota.

use std::time::Duration;

/// Bytes of a path in a home: the kernel's limit for one call, less room for the folders above the home.
pub const PATH_BYTES_MAX: usize = 3_900;
/// Bytes of one name in a path, the usual limit of file systems.
pub const NAME_BYTES_MAX: usize = 255;
/// Names in one path: how deep a home may be.
pub const PATH_NAMES_MAX: usize = 128;
/// Entries of a page of another store's listing that is written in parts.
pub const STREAMED_PAGE_ENTRIES: usize = 10_000;
/// Levels of folders that a count descends. No path is that deep: only another program can create such a
/// tree.
pub const LEVELS_MAX: usize = 512;
/// Bytes of an upload that are buffered in memory before they are written: one receive.
pub const BUFFERED_BYTES_MAX: usize = 64 * 1024;
/// The same for an upload that is received fast, while the store has memory for it.
pub const BUFFERED_FAST_BYTES_MAX: usize = 1024 * 1024;
/// The time within which the buffer must fill to count as fast: a megabyte in it is ten in a second.
pub const BUFFERED_TIME: Duration = Duration::from_millis(100);
/// Memory, in bytes, that the uploads of a store may take for buffered bytes, beyond one receive each.
pub const BUFFERED_TOGETHER_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Bytes below which a piece of an upload is copied together with others: the block that received it is
/// much larger.
pub const GATHERED_BYTES: usize = 16 * 1024;
/// Size in bytes from which the blocks of a replaced file are freed after the response, outside the home's
/// lock.
pub const FREED_LATER_BYTES: u64 = 64 * 1024;
/// Buffered bytes of the only active upload from which another thread writes them while more are received.
pub const AHEAD_BYTES: usize = 128 * 1024;
/// Bytes of an upload after which more are received into a pipe, where they stay in the kernel until they
/// are in the file. Smaller uploads are not worth a pipe.
pub const PIPED_FROM_BYTES: u64 = 64 * 1024;
/// Bytes of a stored file that are read at a time to compute a digest.
pub const DIGEST_CHUNK_BYTES: usize = 256 * 1024;
/// Bytes of a file that are read for its digest before other work gets its turn: milliseconds, from memory.
pub const DIGEST_STEP_BYTES: u64 = 4 * 1024 * 1024;
/// The interval at which a resumable upload is synced and its offset recorded while bytes arrive. A killed
/// server loses the bytes of one interval, and those that arrived during the last sync.
pub const RECORDED_EVERY: Duration = Duration::from_secs(1);
/// Recordings of a store that are in progress at a time: a fraction of the threads that wait for the disk.
/// On a disk that cannot sync more often, uploads are recorded less often.
pub const RECORDINGS_MAX: usize = 8;
/// Bytes of a file that are copied as ordinary write work, for an upload that begins with them. More are
/// copied as long-running work.
pub const COPIED_AT_ONCE_BYTES_MAX: u64 = 1024 * 1024;
/// Bytes of partial uploads that one job copies into the joined file.
pub const JOINED_AT_ONCE_BYTES: u64 = 8 * 1024 * 1024;
/// Bytes of such a copy that are in memory.
pub const JOIN_BLOCK_BYTES: usize = 256 * 1024;
/// Uploads of one home that are in progress or resumable.
pub const UPLOADS_PER_HOME_MAX: usize = 1_024;
/// Bytes of an upload of unannounced length that must fit into the quota when it begins: a client for which
/// there is no room is refused before it sends anything.
pub const BEGUN_BYTES: u64 = 1;
/// Bytes of the record of a resumable upload that are read: a path and a condition, both as they were sent,
/// and two offsets.
pub const RECORD_BYTES_MAX: u64 = 256 * 1024;
/// Bytes that one slice of a copy copies and syncs: other owners wait no longer than that takes.
pub const COPY_SLICE_BYTES: u64 = 8 * 1024 * 1024;
/// Bytes that a file counts for in a slice at least: creating and syncing one takes as long as copying
/// these.
pub const COPY_FILE_BYTES_MIN: u64 = 512 * 1024;
/// Entries that one slice of a count reads, unless a folder has more.
pub const COUNT_SLICE_ENTRIES: usize = 4096;
/// Copies to one home that are running or queued; more are refused.
pub const COPIES_PER_HOME_MAX: usize = 8;
/// The default time for which removed entries stay in the trash.
pub const TRASH_TIME: Duration = Duration::from_secs(30 * 24 * 3600);
/// Entries of a home's trash; beyond them, the oldest are dropped. Each takes about 100 bytes of memory while
/// its home is open. A client that removes a tree file by file makes as many entries.
pub const TRASH_ENTRIES_MAX: usize = 10_000;
/// Entries of the trash that are dropped with the home locked at a time, when they expire or at their owner's
/// request, and that are deleted between two syncs.
pub const TRASH_DROPPED_AT_ONCE: usize = 100;
/// Interval at which the trash of a home in use is searched for expired entries.
pub const TRASH_CLEANED_EVERY: Duration = Duration::from_secs(900);
/// Entries of the trash in one page of its listing.
pub const TRASH_PAGE_MAX: usize = 1_000;
/// Bytes that the trash frees at least when a write finds the disk full: further writes follow.
pub const DISK_ROOM_BYTES_MIN: u64 = 1024 * 1024;
/// How often one write is repeated after the trash has freed space. A file system may free it late, or not at
/// all: the whole trash is not deleted in vain.
pub const DISK_ROOM_ATTEMPTS_MAX: usize = 3;
/// Homes whose folders are kept open, if enough descriptors are available.
pub const HOMES_OPEN_MAX: usize = 1_024;
/// Divisor for the fraction of them that is closed when there are more. It is a small fraction, because
/// each home is counted again at its next change.
pub const HOMES_CLOSED_PARTS: usize = 64;
/// Timeout for connecting to a remote store.
pub const STORE_CONNECT_TIME: Duration = Duration::from_secs(3);
/// Time for which a remote store may send nothing, and for which a transfer may make no progress. While it
/// works on a request, it sends interim responses.
pub const STORE_SILENT_TIME: Duration = Duration::from_secs(30);
/// Interval of a store's interim responses to a front, well within [`STORE_SILENT_TIME`].
pub const STORE_TELLS_EVERY: Duration = plimsoll_rpc::limits::INTERIM_RESPONSE_INTERVAL;
/// Time that a remote store may take to respond, in all.
pub const STORE_ANSWER_TIME: Duration = Duration::from_secs(30);
/// The same for requests that are checked against a quota, and so may wait until a home is counted: a new
/// folder, an announced upload.
pub const STORE_COUNT_TIME: Duration = Duration::from_secs(120);
/// The same for requests that take as long as a file or a tree is large: digests, copies, moves, removals,
/// counts, listings. For an upload it covers begin and commit, without the time in which its bytes are
/// received.
pub const STORE_LONG_ANSWER_TIME: Duration = Duration::from_secs(600);
/// Idle connections to a remote store that all threads keep.
pub const STORE_CONNECTIONS_IDLE_MAX: usize = STORE_TRANSFERS_MAX;
/// File transfers between a front and a remote store at a time. Each takes two descriptors and a
/// connection, for as long as its client takes. More wait.
pub const STORE_TRANSFERS_MAX: usize = 512;
/// Of these, transfers of one account: a client may take them as slowly as it likes.
pub const STORE_TRANSFERS_PER_OWNER_MAX: usize = STORE_TRANSFERS_MAX / 4;
/// Transfers that wait; more are refused.
pub const STORE_TRANSFERS_WAITING_MAX: usize = 1_024;
/// Time for which a transfer waits before it is refused.
pub const STORE_TRANSFER_WAIT_TIME: Duration = Duration::from_secs(10);
/// Bytes of the name of a directory of accounts.
pub const DIRECTORY_BYTES_MAX: usize = 64;
/// Bytes of a remote store's response: the listing of a folder with the maximum number of entries, with
/// long names.
pub const STORE_ANSWER_BYTES_MAX: usize = 128 * 1024 * 1024;
/// Digests of whole files that may be in progress in all; more are refused. A storage server counts those
/// of all its fronts. Under the engine `process`, the program counts those of all processes of its
/// connections.
pub const DIGESTS_MAX: usize = 64;
/// Of these, digests for one account.
pub const DIGESTS_PER_ACCOUNT_MAX: usize = 4;
/// Bytes of the last frame of an upload, which contains digests at most.
pub const ENDING_BYTES_MAX: usize = 4 * 1024;
/// Size in bytes from which a file's digest is cached.
pub const KNOWN_DIGEST_BYTES_MIN: u64 = 1024 * 1024;
/// Files whose digest is cached.
pub const KNOWN_DIGESTS_MAX: usize = 4096;
/// Resumable uploads whose running digest is cached between two parts.
pub const RUNNING_DIGESTS_MAX: usize = 256;
/// Completed uploads of one home that are remembered, for clients that lost the response. A client has a
/// few in progress at a time.
pub const FINISHED_PER_HOME_MAX: usize = 16;
/// Completed uploads that are remembered in all. Each has a path.
pub const FINISHED_UPLOADS_MAX: usize = 1024;
/// Bytes of a client's metadata that are remembered of a completed upload. Longer ones are not.
pub const FINISHED_METADATA_BYTES_MAX: usize = 1024;
/// How long a completed upload is remembered.
pub const FINISHED_TIME: Duration = Duration::from_secs(1800);
/// How long a connection that sends an upload must have been silent before another one may resume that
/// upload by its path. A connection that broke without notice is silent; one that still sends is another
/// client.
pub const TAKEN_OVER_TIME: Duration = Duration::from_secs(5);
/// The default time for which an interrupted upload stays resumable, from the last update of its record.
pub const UPLOAD_KEPT_TIME: Duration = Duration::from_secs(24 * 3600);

/// Bytes of the file: a number, a blank, the name of a directory.
pub const OWNER_FILE_BYTES_MAX: usize = 32 + DIRECTORY_BYTES_MAX;
