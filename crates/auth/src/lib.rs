//! The auth tier: accounts, sessions, rights, and the limits on guessing.
//!
//! [`Auth`] is the handle that protocols hold. Behind it, what is asked is data ([`ask`]), the keeper
//! answers, and a [`directory`] stores. It is not a protocol and not an engine: it knows no request, and
//! what blocks goes through [`plimsoll_io::Io`].
//!
//! What must hold:
//!
//! 1. A password is stored only as an Argon2id hash, a token only as a hash; neither is ever printed.
//! 2. Unknown name, wrong password and disabled account get one answer, in one time.
//! 3. What ends (a session, a share, a permission) has ended at the next request in this process, and within
//!    a second where another process ended it.
//! 4. Every table that a stranger can fill has a bounded size.
//! 5. Every method may be dropped at any await: what changes the directory is one piece of work.
#![forbid(unsafe_code)]

mod account;
pub mod ask;
mod asking;
mod attempts;
mod auth;
mod changes;
mod courier;
pub mod desk;
pub mod directory;
mod error;
mod flights;
mod hash_turns;
mod hex;
mod journal;
mod keeper;
pub mod limits;
pub mod names;
mod networks;
mod passwords;
mod remembered;
mod remote;
mod secret;
mod sessions;
mod settings;
mod shares;
mod table;
mod tier_secret;
mod time;

pub use account::{Account, Change, Exported, Permissions, Quota};
pub use asking::asking;
pub use attempts::Source;
pub use auth::{Auth, GrantBasis};
pub use changes::Topic;
pub use courier::{CHANGES, QUESTIONS, hand_on, try_out};
#[cfg(feature = "mysql")]
pub use directory::MysqlDirectory;
#[cfg(feature = "postgres")]
pub use directory::PostgresDirectory;
#[cfg(feature = "redis")]
pub use directory::RedisDirectory;
pub use directory::{Directory, MemoryDirectory, SqliteDirectory};
pub use error::Error;
pub use networks::NetworkHash;
pub use remembered::Fingerprint;
pub use remote::Place;
pub use secret::Secret;
pub use sessions::{Identity, LogIn, SessionId};
pub use settings::{Argon2Settings, Attempts, Budget, Settings, SignUp};
pub use shares::{Grant, NewShare, Permission, Share};
pub use tier_secret::{SecretRefused, TierSecret};
