//! Every bound of the auth tier that an operator cannot set, by name, with its unit last.
//!
//! The operator's settings are in `settings.rs`. Invariant: everything that a client can make grow has a
//! bound here or there.

use std::time::Duration;

/// Bytes of an account's name: it is also the name of a folder.
pub const NAME_BYTES_MAX: usize = 64;
/// Bytes of a password.
pub const PASSWORD_BYTES_MAX: usize = plimsoll_wire::limits::PASSWORD_BYTES_MAX;
/// Bytes of a shared path.
pub const PATH_BYTES_MAX: usize = 4096;
/// Sessions of one account; when there is one more, the oldest ends.
pub const SESSIONS_PER_ACCOUNT_MAX: usize = 1000;
/// Shares that one account gives.
pub const SHARES_PER_ACCOUNT_MAX: usize = 10_000;
/// Accounts on one page of an operator's list.
pub const ACCOUNTS_PER_PAGE_MAX: usize = 100;
/// Public links that one account gives.
pub const LINKS_PER_ACCOUNT_MAX: usize = 10_000;
/// Files that a public link for uploads permits, unless its owner sets another number.
pub const LINK_UPLOADS_DEFAULT: u64 = 1_000;
/// Bytes that a public link for uploads permits, unless its owner sets another number.
pub const LINK_UPLOAD_BYTES_DEFAULT: u64 = 10 << 30;
/// How long a grant is valid: for this time after the password or a counted download, a visitor is not
/// asked or counted again.
pub const LINK_GRANT_TIME: Duration = Duration::from_secs(12 * 3600);
/// Bytes of a grant that a visitor presents; a longer one is none.
pub const LINK_GRANT_BYTES_MAX: usize = 128;
/// Locks that an account holds in its own home. A mounted file system locks every file that it is copying.
pub const LOCKS_OF_OWNER_MAX: usize = 2_000;
/// Locks that one account holds in the home of another.
pub const LOCKS_PER_HOLDER_MAX: usize = 100;
/// Locks in one home that other accounts than its owner hold. So its owner can always take locks, and a list
/// of a home's locks has a bounded size.
pub const LOCKS_OF_OTHERS_MAX: usize = 900;
/// Shared locks that overlap with a new one, which counts, too: locks of the same path, deep locks of the
/// folders above it and, if it is deep, locks below it. Each is described in each listing of what it covers.
pub const LOCKS_MEETING_MAX: usize = 16;
/// Bytes of the path of a lock.
pub const LOCK_PATH_BYTES_MAX: usize = 2048;
/// Bytes of the element `owner` of a lock.
pub const LOCK_OWNER_BYTES_MAX: usize = 1024;
/// How long a lock holds that is not refreshed. A client that asks for more gets this.
pub const LOCK_TIME_MAX: Duration = Duration::from_secs(3600);
/// How long a lock holds at least: one that has ended when it is returned is useless.
pub const LOCK_TIME_MIN: Duration = Duration::from_secs(1);
/// Attempts to add a lock. Between two, locks are removed whose holders have lost the right to them.
pub const LOCK_ATTEMPTS: usize = 2;
/// Parts of a shared path: each costs one lookup when a path below it is resolved.
pub const SHARE_PARTS_MAX: usize = 64;
/// Names that are listed on the way to shares, where only paths below a folder are shared.
pub const NAMES_BELOW_MAX: usize = 256;
/// Memory that a stored hash may demand, in KiB: an imported hash must not exhaust the machine.
pub const ARGON2_MEMORY_KIB_MAX: u32 = 1024 * 1024;
/// Passes over its memory that a stored hash may demand.
pub const ARGON2_PASSES_MAX: u32 = 64;
/// Lanes that a stored hash may demand.
pub const ARGON2_LANES_MAX: u32 = 64;
/// Requests that wait for a permit of the password hashing, in each of three queues: clients with a known
/// network, password or session; others in networks without a recent failure; and the rest. One more is
/// refused, or displaces one of the network that has most.
pub const HASHES_WAITING_MAX: usize = 512;
/// Of the second queue, and of the third, requests for one account's name.
pub const HASHES_WAITING_PER_NAME_MAX: usize = 64;
/// How long a request waits for its permit. Shorter than [`SLOW_ANSWER_TIME`] by more than a hash takes.
pub const HASH_WAIT_TIME_MAX: Duration = Duration::from_secs(10);
/// When to retry if a queue is full or the directory is unavailable.
pub const BUSY_RETRY_TIME: Duration = Duration::from_secs(1);
/// After this time, one request starts a poll of the directory for other processes' changes. No request
/// waits for it: the poll has until [`POLL_TRUST_TIME`] to complete.
pub const LOOK_TIME: Duration = Duration::from_millis(250);
/// After this time without a poll, no cached identity is trusted before the next one.
pub const POLL_TRUST_TIME: Duration = Duration::from_secs(1);
/// How far the clocks of two threads may differ: each reads its own once per turn.
pub const CLOCK_SKEW_MAX: Duration = Duration::from_secs(1);
/// Time between two removals of expired sessions and shares.
pub const SWEEP_TIME: Duration = Duration::from_secs(3600);
/// Networks of earlier log-ins that are stored for one account; one more replaces the oldest.
pub const NETWORKS_PER_ACCOUNT_MAX: usize = 32;
/// How long a network is known after its last log-in.
pub const NETWORK_AGE_MAX: Duration = Duration::from_secs(90 * 24 * 3600);
/// Time between two writes of the same network of the same account: a log-in before that stores nothing.
pub const NETWORK_REFRESH_TIME: Duration = Duration::from_secs(24 * 3600);
/// How long a wrong password keeps a network from counting as fresh for that account.
pub const NETWORK_TRIED_TIME: Duration = Duration::from_secs(24 * 3600);
/// How long a wrong password moves the requests of its network behind those of other networks, at the
/// hashing. A network with one guess per such time is not moved.
pub const NETWORK_FAILED_TIME: Duration = Duration::from_secs(10 * 60);
/// Number of change counters. Accounts that share a counter are invalidated together, which costs one
/// extra request.
pub const CHANGE_PLACES: usize = 4096;
/// Sessions that a directory in a file can end while its disk is full. Each takes 64 bytes, allocated in
/// advance.
pub const REVOKED_SESSIONS_MAX: usize = 512;
/// Bytes that are written to check that the disk has room for a directory in a file: as many as a log-in
/// may need.
pub const DIRECTORY_PROBE_BYTES: usize = 64 * 1024;
/// How long SQLite waits for another process to finish writing.
pub const DIRECTORY_BUSY_TIME: Duration = Duration::from_secs(5);
/// Attempts to set up a SQLite file while other processes set it up, too.
pub const OPEN_TRIES_MAX: u32 = 100;
/// Prepared statements that are cached: more than the program uses.
pub const STATEMENTS_KEPT: usize = 64;
/// How long a front waits for the response to a request without a password, its time in the queue
/// included. Longer than all fronts may take to acknowledge that a right ended.
pub const QUICK_ANSWER_TIME: Duration = Duration::from_secs(5);
/// The same with a password: it may wait for its permit to be hashed.
pub const SLOW_ANSWER_TIME: Duration = Duration::from_secs(15);
/// How long a front waits for a connection to its auth server.
pub const CONNECT_TIME: Duration = Duration::from_secs(1);
/// Requests of one kind (with a password, or without) that wait in a front for a connection. One more is
/// refused, or displaces one of the network that has most.
pub const REQUESTS_WAITING_MAX: usize = 1024;
/// Connections that a front has to its auth server for requests without a password.
pub const QUICK_CONNECTIONS: usize = 8;
/// The same for requests with one. They are separate, so that a flood of wrong passwords does not delay
/// clients that are logged in.
pub const SLOW_CONNECTIONS: usize = 24;
/// Bytes of a response: an account's shares are the longest.
pub const MESSAGE_BYTES_MAX: usize = 64 * 1024 * 1024;
/// How long a database call may take in all, connecting included; then it has failed.
pub const DATABASE_TIME: Duration = Duration::from_secs(5);
/// Of that, how long connecting may take.
pub const DATABASE_CONNECT_TIME: Duration = Duration::from_secs(3);
/// After this time, a database server itself aborts a statement. It is shorter than our own timeout, so
/// that a call that we report as failed is not executed later.
pub const DATABASE_STATEMENT_TIME: Duration = Duration::from_secs(4);
/// How long after a failed connection no other is tried. Requests fail at once meanwhile.
pub const DATABASE_RETRY_TIME: Duration = Duration::from_secs(1);
/// How long creating or upgrading the tables may take, when a server starts.
pub const DATABASE_MIGRATION_TIME: Duration = Duration::from_secs(120);
/// Bytes that a database may send in one call: more than the largest list of accounts has.
pub const DATABASE_REPLY_BYTES_MAX: usize = 256 * 1024 * 1024;
/// Threads of one connection that wait for the C library to resolve a host's name: a call that gave up
/// leaves its thread there until the library gives up, too.
pub const DATABASE_RESOLVER_THREADS_MAX: usize = 8;
/// How long one attempt to take the lock for an upgrade waits for its owner.
pub const MIGRATION_LOCK_WAIT_TIME: Duration = Duration::from_secs(1);
/// Attempts to take that lock within this time, in a store that cannot wait for it by itself.
pub const MIGRATION_LOCK_ATTEMPTS: u32 = 10;
/// How long a lock on a Redis directory holds after its owner's last step of an upgrade.
pub const REDIS_MIGRATION_LOCK_TIME: Duration = Duration::from_secs(10);
/// Rows that are read from a store at once for a dump or a move, and written at once.
pub const TRANSFER_ROWS: usize = 200;
/// Bytes of a line of a dump: an account's password hash and a share's longest path fit in it.
pub const DUMP_LINE_BYTES_MAX: u64 = 64 * 1024;
/// Bytes of one message of a database: the longest row has two of the longest paths in hexadecimal digits.
pub const DATABASE_MESSAGE_BYTES_MAX: usize = 1024 * 1024;
/// Bytes that are received from a database in one system call.
pub const DATABASE_BLOCK_BYTES: usize = 16 * 1024;
/// Columns of a MySQL result: more than any statement has.
pub const MYSQL_COLUMNS_MAX: usize = 64;
/// Attempts at a transaction that MySQL rolls back because of deadlocks; then it has failed.
pub const MYSQL_DEADLOCKS_MAX: u32 = 10;
/// How long a change waits for the replicas of Redis that a URL demands with `wait=`.
pub const DATABASE_REPLICATION_TIME: Duration = Duration::from_secs(2);
/// How long a check takes whether Sentinels still name the same master, if they do not respond.
pub const SENTINEL_CHECK_TIME: Duration = Duration::from_millis(250);
/// Redirections that are followed to the master in a Redis Cluster.
pub const REDIS_REDIRECTIONS_MAX: u32 = 4;
/// Connections to a database that a process has open at once.
pub const DATABASE_CONNECTIONS_MAX: u64 = 8;

/// The largest packet of the MySQL protocol, in bytes.
pub const MYSQL_PACKET_BYTES_MAX: u32 = 16 * 1024 * 1024 - 1;
