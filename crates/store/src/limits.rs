//! The store's own bounds, by name, with their unit last.
//!
//! They are not settings. What must hold: whatever an account can make grow has a number here, or is under
//! its quota.

use std::time::Duration;

/// Bytes of a path in a home: what the system takes in one call, with room for the folders above the home.
pub const PATH_BYTES_MAX: usize = 3_900;
/// Bytes of one name in a path, as file systems have it.
pub const NAME_BYTES_MAX: usize = 255;
/// Names in one path: how deep a home may be.
pub const PATH_NAMES_MAX: usize = 128;
/// Levels of folders that are looked into when files are counted. No path is that deep: only another program
/// can have made a tree that is.
pub const LEVELS_MAX: usize = 512;
/// Bytes of an upload that are held in memory before they are written: one receive.
pub const HELD_BYTES_MAX: usize = 64 * 1024;
/// As many where they come fast, and there is room for them.
pub const HELD_FAST_BYTES_MAX: usize = 1024 * 1024;
/// How long they may take to come and count as fast: a megabyte in it is ten in a second.
pub const HELD_TIME: Duration = Duration::from_millis(100);
/// Memory, in bytes, that the uploads of a store may take for what is held, beyond one receive each.
pub const HELD_TOGETHER_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Bytes below which a piece of an upload is copied to others, for the block that it came in is much larger.
pub const GATHERED_BYTES: usize = 16 * 1024;
/// Bytes of a file that is replaced whose blocks are freed after the answer, and outside of the home's lock.
pub const FREED_LATER_BYTES: u64 = 64 * 1024;
/// Bytes of an upload that is alone that are worth another thread's while more comes.
pub const AHEAD_BYTES: usize = 128 * 1024;
/// Bytes of an upload after which more are received into a pipe, where they stay with the system until they
/// are in the file: what is smaller is not worth one.
pub const PIPED_FROM_BYTES: u64 = 64 * 1024;
/// Bytes that are read at a time to compute a digest of what is written already.
pub const DIGEST_CHUNK_BYTES: usize = 256 * 1024;
/// Bytes of a file that are read for its digest before others have their turn: milliseconds, from memory.
pub const DIGEST_TURN_BYTES: u64 = 4 * 1024 * 1024;
/// The interval at which a resumable upload is synced and its offset recorded while bytes arrive. A killed
/// server loses the bytes of one interval, and those that arrived during the last sync.
pub const RECORDED_EVERY: Duration = Duration::from_secs(1);
/// Recordings of a store that are in progress at a time: a part of the threads that wait for the disk. On a
/// disk that cannot sync more often, uploads are recorded less often.
pub const RECORDINGS_MAX: usize = 8;
/// Bytes of a file that are copied among the writes, for an upload that begins with them; more is a chore.
pub const COPIED_AT_ONCE_BYTES_MAX: u64 = 1024 * 1024;
/// Bytes of parts that are copied into the whole in one job.
pub const JOINED_AT_ONCE_BYTES: u64 = 8 * 1024 * 1024;
/// Bytes of such a copy that are in memory.
pub const JOIN_BLOCK_BYTES: usize = 256 * 1024;
/// Uploads of one home that are under way or kept.
pub const UPLOADS_PER_HOME_MAX: usize = 1_024;
/// Bytes of the record of a kept upload that are read: a path and a condition, both as they were sent, and
/// two offsets.
pub const RECORD_BYTES_MAX: u64 = 256 * 1024;
/// Bytes that one slice of a copy copies and syncs: other owners wait no longer than that takes.
pub const COPY_SLICE_BYTES: u64 = 8 * 1024 * 1024;
/// Bytes that a file counts for in a slice at least: to make and sync one takes as long as copying these.
pub const COPY_FILE_BYTES_MIN: u64 = 512 * 1024;
/// Entries that one slice of a count comes across, unless a folder has more.
pub const COUNT_SLICE_ENTRIES: usize = 4096;
/// Copies to one home that are under way or wait for their turn; more are refused.
pub const COPIES_PER_HOME_MAX: usize = 8;
/// Homes whose folders are kept open, where as many descriptors can be had.
pub const HOMES_OPEN_MAX: usize = 1_024;
/// The part of them that is closed when there are more: few, since each is counted anew at its next change.
pub const HOMES_CLOSED_PARTS: usize = 64;
/// How long a connection to a store elsewhere may take to be made.
pub const STORE_CONNECT_TIME: Duration = Duration::from_secs(3);
/// How long a store elsewhere may say nothing: one that is at something says so meanwhile.
pub const STORE_SILENT_TIME: Duration = Duration::from_secs(30);
/// How often a store tells a front that what it asked for is under way: well within its silence.
pub const STORE_TELLS_EVERY: Duration = Duration::from_secs(10);
/// How long a store elsewhere may take to answer, all in all.
pub const STORE_ANSWER_TIME: Duration = Duration::from_secs(30);
/// How long it may take for what is weighed against a quota, and so may have to wait until a home is counted:
/// a new folder, an upload that is announced.
pub const STORE_COUNT_TIME: Duration = Duration::from_secs(120);
/// How long it may take for what takes as long as a file or a tree is large: digests, copies, moves,
/// removals, and an upload from its begin to its commit without the time in which its bytes come.
pub const STORE_LONG_ANSWER_TIME: Duration = Duration::from_secs(600);
/// How long nothing may come, or be taken, in the middle of a file on its way from or to a store elsewhere.
pub const STORE_BETWEEN_BYTES_TIME: Duration = Duration::from_secs(30);
/// Connections to a store elsewhere that a thread keeps when nothing is under way on them.
pub const STORE_CONNECTIONS_KEPT_MAX: usize = 64;
/// Files that a front has on their way from or to a store elsewhere at a time: each takes a connection there
/// for as long as a client likes, and two descriptors. More wait.
pub const STORE_TRANSFERS_MAX: usize = 512;
/// Those that wait; more are refused.
pub const STORE_TRANSFERS_WAITING_MAX: usize = 1_024;
/// How long one waits before it is refused.
pub const STORE_TRANSFER_WAIT_TIME: Duration = Duration::from_secs(10);
/// Bytes of the name of a directory of accounts.
pub const DIRECTORY_BYTES_MAX: usize = 64;
/// How long such a connection is kept: less than the store waits for another request on it.
pub const STORE_CONNECTION_KEPT_TIME: Duration = Duration::from_secs(20);
/// Bytes of an answer of a store elsewhere: the listing of a folder of as many entries as are listed, with
/// long names.
pub const STORE_ANSWER_BYTES_MAX: usize = 128 * 1024 * 1024;
/// Bytes of such an answer that a thread reads while its other connections wait: a fraction of a millisecond.
/// Longer ones, which only answers to who looks are, are read where whole folders are.
pub const READ_AT_ONCE_BYTES_MAX: usize = 64 * 1024;
/// Digests of whole files that may be in progress in all; more are refused. A store that has fronts counts
/// those of all fronts, and the program those of all processes of its connections.
pub const DIGESTS_MAX: usize = 64;
/// Of these, digests for one account.
pub const DIGESTS_PER_ACCOUNT_MAX: usize = 4;
/// Bytes of the last frame of an upload, which has digests at most.
pub const ENDING_BYTES_MAX: usize = 4 * 1024;
/// Bytes of a file from which on its digest is remembered.
pub const KNOWN_DIGEST_BYTES_MIN: u64 = 1024 * 1024;
/// Files whose digest is remembered.
pub const KNOWN_DIGESTS_MAX: usize = 4096;
/// Resumable uploads whose digest so far is remembered between two parts.
pub const RUNNING_DIGESTS_MAX: usize = 256;
/// Completed uploads of one home that are remembered, for who has lost the answer; a client has a few under
/// way at a time.
pub const FINISHED_PER_HOME_MAX: usize = 16;
/// Completed uploads that are remembered in all. Each has a path.
pub const FINISHED_UPLOADS_MAX: usize = 1024;
/// How long a completed upload is remembered.
pub const FINISHED_TIME: Duration = Duration::from_secs(1800);
/// How long a connection that sends an upload must have been silent before another connection may resume that
/// upload by its path. A connection that broke without notice is silent; one that still sends is another
/// client.
pub const TAKEN_OVER_TIME: Duration = Duration::from_secs(5);
/// How long an upload is kept for its owner to go on with, from its last byte.
pub const UPLOAD_KEPT_TIME: Duration = Duration::from_secs(24 * 3600);
