//! Every bound of the auth tier that no operator sets, by name, with its unit last.
//!
//! What an operator sets is in `settings.rs`. What must hold: whatever a stranger or an account can make
//! grow has a number here or there.

use std::time::Duration;

use crate::settings::Budget;

/// Bytes of an account's name: it is a folder's name too.
pub const NAME_BYTES_MAX: usize = 64;
/// Bytes of a password: more is no password that a person has.
pub const PASSWORD_BYTES_MAX: usize = 1024;
/// Bytes of a shared path.
pub const PATH_BYTES_MAX: usize = 4096;
/// Sessions of one account; when there is one more, the oldest ends.
pub const SESSIONS_PER_ACCOUNT_MAX: usize = 1000;
/// Shares that one account gives.
pub const SHARES_PER_ACCOUNT_MAX: usize = 10_000;
/// Parts of a shared path: each is one look for a share that covers a path below it.
pub const SHARE_PARTS_MAX: usize = 64;
/// Names that are shown on the way to shares, where only what is below a folder is shared.
pub const NAMES_BELOW_MAX: usize = 256;
/// Memory that a stored hash may ask for, in KiB: one from elsewhere must not take the machine down.
pub const ARGON2_MEMORY_KIB_MAX: u32 = 1024 * 1024;
/// Passes over its memory that a stored hash may ask for.
pub const ARGON2_PASSES_MAX: u32 = 64;
/// Lanes that a stored hash may ask for.
pub const ARGON2_LANES_MAX: u32 = 64;
/// Requests that wait for their turn at the password hashing, in each of two lanes: networks where the
/// account logged in before, and all others. One more is refused, or displaces one of the network that has
/// most.
pub const HASHES_WAITING_MAX: usize = 512;
/// Of the second lane, requests for one account's name.
pub const HASHES_WAITING_PER_NAME_MAX: usize = 64;
/// How long a request waits for its turn. Shorter than [`SLOW_ANSWER_TIME`] by more than a hash takes.
pub const HASH_WAIT_TIME_MAX: Duration = Duration::from_secs(10);
/// When to come back if the directory or the password hashing has too much to do.
pub const BUSY_RETRY_TIME: Duration = Duration::from_secs(1);
/// After this time, one request has somebody look whether another process has changed the directory. Nobody
/// waits for it: the directory has what is left of [`TRUST_TIME`] to come to it.
pub const LOOK_TIME: Duration = Duration::from_millis(250);
/// After this time without such a look, nobody trusts what is remembered before looking.
pub const TRUST_TIME: Duration = Duration::from_secs(1);
/// How far the clocks of two threads may differ: each reads its own once per turn.
pub const CLOCK_SKEW_MAX: Duration = Duration::from_secs(1);
/// Time between two removals of expired sessions and shares.
pub const SWEEP_TIME: Duration = Duration::from_secs(3600);
/// Networks of earlier log-ins that are stored for one account; one more replaces the oldest.
pub const NETWORKS_PER_ACCOUNT_MAX: usize = 32;
/// How long after its last log-in a network is known.
pub const NETWORK_AGE_MAX: Duration = Duration::from_secs(90 * 24 * 3600);
/// Time between two writes of the same network of the same account: a log-in before that stores nothing.
pub const NETWORK_REFRESH_TIME: Duration = Duration::from_secs(24 * 3600);
/// How long a wrong password from a network keeps it from counting as a fresh one for that account.
pub const NETWORK_TRIED_TIME: Duration = Duration::from_secs(24 * 3600);
/// Sets of a bounded table. A set is what one lock guards.
pub const TABLE_SETS: usize = 4096;
/// Entries of one set; when there is one more, the least worth goes.
pub const TABLE_WAYS: usize = 8;
/// Places where changes are noted; two accounts that share one cost each other a question, never more.
pub const CHANGE_PLACES: usize = 4096;
/// Sessions that a directory in a file can end while its disk is full. Each takes 64 bytes, allocated in
/// advance.
pub const REVOKED_SESSIONS_MAX: usize = 512;
/// Bytes that are written to see whether the disk has room for a directory in a file: as many as a log-in may
/// need.
pub const DIRECTORY_PROBE_BYTES: usize = 64 * 1024;
/// How long SQLite waits for another process to finish writing.
pub const DIRECTORY_BUSY_TIME: Duration = Duration::from_secs(5);
/// How often SQLite's file is tried to be set up while others set it up, too.
pub const OPEN_TRIES_MAX: u32 = 100;
/// Prepared statements that are kept: all that there are, and some.
pub const STATEMENTS_KEPT: usize = 64;
/// Changes that are kept in order for fronts elsewhere. Who has missed more takes everything for changed.
pub const JOURNAL_CHANGES_MAX: usize = 4096;
/// Fronts that one auth server knows at a time.
pub const FRONTS_MAX: usize = 256;
/// Bytes of the name that a front gives itself.
pub const FRONT_NAME_BYTES_MAX: usize = 64;
/// How long an auth server waits for a front to say that it has heard of a change: after this time, a front
/// that is cut off does not trust what it remembers any more.
pub const FRONT_WAIT_TIME: Duration = Duration::from_secs(2);
/// How long a front trusts what it remembers after it last asked for changes and was answered. Shorter than
/// [`FRONT_WAIT_TIME`] by more than two clocks that are read once a turn should differ.
pub const FRONT_TRUST_TIME: Duration = Duration::from_millis(1500);
/// How long an auth server lets a front wait for changes before it answers that there are none. The front
/// asks again at once, so this is how often it is known to be there.
pub const WATCH_TIME: Duration = Duration::from_millis(500);
/// How long a front waits before it asks for changes again, after nobody answered.
pub const WATCH_RETRY_TIME: Duration = Duration::from_millis(100);
/// How long a front waits for the answer to a question without a password, its turn to be asked included.
/// Longer than an end may take to be heard of by all fronts.
pub const QUICK_ANSWER_TIME: Duration = Duration::from_secs(5);
/// The same with a password: it may have to wait for its turn to be hashed, and an answer to a wrong one is
/// held back on purpose.
pub const SLOW_ANSWER_TIME: Duration = Duration::from_secs(15);
/// The same for changes. Longer than [`WATCH_TIME`].
pub const WATCH_ANSWER_TIME: Duration = Duration::from_secs(2);
/// How long a front waits for a connection to its auth server.
pub const CONNECT_TIME: Duration = Duration::from_secs(1);
/// Questions of one kind (with a password, or without) that wait in a front for a connection; one more is
/// refused at once.
pub const QUESTIONS_WAITING_MAX: usize = 1024;
/// Connections that a front has to its auth server for questions without a password.
pub const QUICK_CONNECTIONS: usize = 8;
/// The same for questions with one. They are others, so that a flood of wrong passwords is in nobody's way
/// who is signed in.
pub const SLOW_CONNECTIONS: usize = 24;
/// Wrong secrets of a tier that one network may show.
pub const WRONG_SECRETS_PER_NETWORK: Budget = Budget { count: 10, forgiven_after: Duration::from_secs(10) };
/// Wrong secrets of a tier from all networks together, beyond which networks that are not known are slowed.
pub const WRONG_SECRETS: Budget = Budget { count: 1000, forgiven_after: Duration::from_secs(1) };
/// How long a network is known that has shown the secret of a tier.
pub const SECRET_KNOWN_TIME: Duration = Duration::from_secs(24 * 3600);
/// How long a request is slowed before its secret is checked.
pub const SECRET_SLOW_TIME: Duration = Duration::from_secs(1);
/// Requests that are slowed at a time; one more is refused.
pub const SECRETS_SLOWED_MAX: usize = 64;
/// Bytes of a question, and of an answer: an account's shares are the longest.
pub const MESSAGE_BYTES_MAX: usize = 64 * 1024 * 1024;
/// How long a question to a database may take in all, the way there included; then it has failed.
pub const DATABASE_TIME: Duration = Duration::from_secs(5);
/// Of that, how long connecting may take.
pub const DATABASE_CONNECT_TIME: Duration = Duration::from_secs(3);
/// After this time, a database server itself gives up a statement: sooner than we do, so that it does not do
/// what was said to have failed.
pub const DATABASE_STATEMENT_TIME: Duration = Duration::from_secs(4);
/// How long it is not tried to reach a database that could not be reached: all who ask meanwhile are told so
/// at once.
pub const DATABASE_RETRY_TIME: Duration = Duration::from_secs(1);
/// How long making or changing the tables may take, when a server starts.
pub const DATABASE_MIGRATION_TIME: Duration = Duration::from_secs(120);
/// Bytes of one message of a database: the longest row has two of the longest paths in hexadecimal digits.
pub const DATABASE_MESSAGE_BYTES_MAX: usize = 1024 * 1024;
/// Bytes that are received from a database at once.
pub const DATABASE_BLOCK_BYTES: usize = 16 * 1024;
/// Columns of an answer of MySQL: more than any question has.
pub const MYSQL_COLUMNS_MAX: usize = 64;
/// How often MySQL may undo a transaction because two waited for each other; then it has failed.
pub const MYSQL_DEADLOCKS_MAX: u32 = 10;
/// Bytes of a line of Redis's protocol; what is long is told by its length.
pub const REDIS_LINE_BYTES_MAX: usize = 64 * 1024;
/// Answers within answers of Redis.
pub const REDIS_DEPTH_MAX: usize = 4;
/// Connections to a database that a process has open at once.
pub const DATABASE_CONNECTIONS_MAX: u64 = 8;
