//! The client commands' common parts: connection, session, uploads, downloads and messages.
//!
//! It does not parse the command line, nor print results. Invariants: only changes that the server
//! confirmed are reported as done. A password is never an argument, a token never printed.

pub(crate) mod download;
mod failure;
pub(crate) mod limits;
pub(crate) mod listing;
pub(crate) mod local;
pub(crate) mod password;
mod patience;
mod place;
mod progress;
mod run;
pub(crate) mod server;
mod session;
pub(crate) mod shown;
mod state;
mod terminal;
pub(crate) mod together;
mod tried;
pub(crate) mod upload;

pub(crate) use failure::Failure;
pub(crate) use place::Place;
pub(crate) use progress::Progress;
pub(crate) use run::run;
pub(crate) use server::Server;
pub(crate) use session::{InUse, Session};
pub(crate) use tried::{Done, Each, Tried};
