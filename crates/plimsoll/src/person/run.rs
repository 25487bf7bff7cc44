//! Runs a command: one future, on this thread.
//!
//! It is not the command. Invariant: an error of the engine is reported like any other.

use std::future::Future;

use anyhow::Context as _;
use plimsoll_client::http::Url;
use plimsoll_engine::{Kind, block_on};

use super::server::Server;
use super::session::Session;

/// Runs `command` with the server at `url` and the session for its requests.
pub(crate) fn run<T: 'static, F: Future<Output = anyhow::Result<T>> + 'static>(
    url: Url,
    session: Option<Session>,
    command: impl FnOnce(Server) -> F,
) -> anyhow::Result<T> {
    block_on(Kind::Epoll, |io| command(Server::new(&io, url, session))).context("cannot run the command")?
}
