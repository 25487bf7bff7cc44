//! A person's side: what the commands that speak to a server have in common.
//!
//! It is not what is typed, nor what is printed for it (the command line). What must hold: nothing is
//! reported as done that the server did not confirm; a password is never an argument, a token never printed.

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
