//! The auth tier: accounts, sessions, rights, and the limits on guessing.
//!
//! [`Auth`] is the handle that protocols hold. Requests to the tier are data ([`request`]). The account
//! service answers them from a [`directory`], which stores accounts. The crate is neither a protocol nor
//! an engine: it knows no HTTP or FTP request, and its blocking calls go through [`plimsoll_io::Io`].
//!
//! Invariants:
//!
//! 1. A password is stored only as an Argon2id hash, a token only as a hash. Neither is ever printed.
//! 2. An unknown name, a wrong password and a disabled account get the same error after the same time.
//! 3. A session, share or permission that ends has ended at the next request in this process. It has
//!    ended within a second if another process ended it.
//! 4. Every table that an unauthenticated client can fill has a bounded size.
//! 5. Every method may be dropped at any await: each change of the directory is a single job.
#![forbid(unsafe_code)]

mod account;
mod attempts;
mod auth;
mod changes;
pub mod directory;
mod error;
mod flights;
mod hash_queue;
pub mod limits;
mod links;
mod locks;
pub mod names;
mod networks;
mod passwords;
mod remembered;
pub mod request;
mod rpc_client;
mod rpc_server;
mod service;
mod sessions;
mod settings;
mod shares;

pub use account::{Account, Change, Exported, Permissions, Quota};
pub use auth::{Auth, GrantBasis, HomeLocks, LinkVisit};
pub use changes::Topic;
#[cfg(feature = "mysql")]
pub use directory::MysqlDirectory;
#[cfg(feature = "postgres")]
pub use directory::PostgresDirectory;
#[cfg(feature = "redis")]
pub use directory::RedisDirectory;
pub use directory::{Directory, DirectoryMeter, MemoryDirectory, SqliteDirectory};
pub use error::Error;
pub use links::{FileVersion, Link, LinkAccess, LinkPermission, NewLink, PresentedLink, link_of_token};
pub use locks::{Lock, NewLock};
pub use networks::NetworkHash;
pub use remembered::Fingerprint;
pub use rpc_client::{CHANGES_PATH, REQUESTS_PATH, check_server, forwarder};
pub use rpc_server::AuthServer;
pub use sessions::{Identity, LogIn, SessionId};
pub use settings::{Argon2Settings, Attempts, Settings, SignUp};
pub use shares::{Grant, NewShare, Permission, Share};

pub use plimsoll_rpc::{Budget, Secret, ServerAddress, Source};
