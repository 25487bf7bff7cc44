//! The client commands: the account's log-in, its files on the server, and its shares.
//!
//! It does not know the server's crates, and no event loop: the binary passes one in ([`Runtime`]).
//! Invariants: only changes that the server confirmed are reported as done. A password is never an argument,
//! a token never printed.
#![forbid(unsafe_code)]

mod api_client;
mod commands;
mod download;
mod errors;
mod failure;
mod limits;
mod listing;
mod local;
pub mod output;
mod parallel;
mod password;
mod plain_password;
mod progress;
mod remote_path;
mod results;
mod retry;
mod runtime;
mod session;
mod state;
mod terminal;
mod trust;
mod upload;

use api_client::ApiClient;
pub use commands::ClientCommand;
pub use errors::{AlreadyReported, WrongUsage};
use failure::Failure;
pub use password::{PasswordFrom, typed_for};
pub use plain_password::warn_of_plain_password;
use progress::Progress;
use remote_path::RemotePath;
use results::{Done, Failures, PathResults};
pub use runtime::{BlockOn, Runtime};
use session::{AccountsInUse, Session};
