//! Which server, and which account: the arguments that every command of a person has.
//!
//! It asks no server. What must hold: what is typed counts more than the environment, that more than the
//! last login; a token goes to the server that gave it, and to no other.

use std::future::Future;

use anyhow::{Context as _, bail};
use clap::Args;
use plimsoll_client::http::Url;

use crate::person::{self, Server, Session};

/// The server when nothing says which.
const SERVER: &str = "http://127.0.0.1:8080";

/// Which server.
#[derive(Args)]
pub(super) struct AtServer {
    /// The server; else that of the last login, else http://127.0.0.1:8080
    #[arg(long, value_name = "URL", env = "PLIMSOLL_SERVER")]
    server: Option<Url>,
}

/// Which server, and as whom.
#[derive(Args)]
pub(super) struct At {
    #[command(flatten)]
    at: AtServer,

    /// The account, where several are logged in; else that of the last login
    #[arg(long, value_name = "NAME", env = "PLIMSOLL_ACCOUNT")]
    account: Option<String>,
}

impl AtServer {
    /// Runs a command without a session.
    pub(super) fn run<T: 'static, F: Future<Output = anyhow::Result<T>> + 'static>(
        &self,
        command: impl FnOnce(Server) -> F,
    ) -> anyhow::Result<T> {
        let url = match &self.server {
            Some(url) => url.clone(),
            None => {
                Session::last(None, None)?.map_or_else(|| SERVER.to_owned(), |last| last.server).parse()?
            }
        };
        person::run(url, None, command)
    }
}

impl At {
    /// The session that is meant.
    pub(super) fn session(&self) -> anyhow::Result<Session> {
        let server = self.at.server.as_ref().map(ToString::to_string);
        match Session::last(server.as_deref(), self.account.as_deref())? {
            Some(session) => Ok(session),
            None => bail!(
                "Not logged in{}{}. Log in first: plimsoll login {}",
                server.map(|server| format!(" at {server}")).unwrap_or_default(),
                self.account.as_ref().map(|name| format!(" as {name}")).unwrap_or_default(),
                self.account.as_deref().unwrap_or("NAME")
            ),
        }
    }

    /// Runs a command with the session that is meant.
    pub(super) fn run<T: 'static, F: Future<Output = anyhow::Result<T>> + 'static>(
        &self,
        command: impl FnOnce(Server) -> F,
    ) -> anyhow::Result<T> {
        let session = self.session()?;
        let url = session.server.parse().context("the session that is remembered names no server")?;
        person::run(url, Some(session), command)
    }
}
