//! How a command runs: one future, on this thread.
//!
//! It is not the command. What must hold: what the engine says is told like any other error.

use std::future::Future;

use anyhow::Context as _;
use plimsoll_client::http::Url;
use plimsoll_engine::{Kind, block_on};

use super::server::Server;
use super::session::Session;

/// Runs `command` with the server at `url`, and the session that it is to show.
pub(crate) fn run<T: 'static, F: Future<Output = anyhow::Result<T>> + 'static>(
    url: Url,
    session: Option<Session>,
    command: impl FnOnce(Server) -> F,
) -> anyhow::Result<T> {
    block_on(Kind::Epoll, |io| command(Server::new(&io, url, session))).context("cannot run the command")?
}
