//! The arguments that name the server and the account, for all client commands.
//!
//! It sends no request. Invariants: an argument overrides the environment, which overrides the last login.
//! A token is sent only to the server that issued it.

use std::future::Future;
use std::time::Duration;

use anyhow::{Context as _, bail};
use clap::Args;
use plimsoll_client::http::{BadUrl, Url};

use crate::output::text;
use crate::trust::TrustArgs;
use crate::{AccountsInUse, ApiClient, Runtime, Session};

/// The default server.
const SERVER: &str = "http://127.0.0.1:8080";

/// The argument that names the server.
#[derive(Args)]
pub(super) struct ServerArgs {
    /// The server; default: that of the last login, else http://127.0.0.1:8080
    #[arg(long, value_name = "URL", env = "PLIMSOLL_SERVER", value_parser = server_url)]
    server: Option<Url>,

    #[command(flatten)]
    trust: TrustArgs,
}

/// The arguments that name the server and the account.
#[derive(Args)]
pub(super) struct SessionArgs {
    #[command(flatten)]
    server: ServerArgs,

    /// The account; default: that of the last login, until it logs out
    #[arg(long, value_name = "NAME", env = "PLIMSOLL_ACCOUNT")]
    account: Option<String>,
}

impl ServerArgs {
    /// Runs a command without a session.
    pub(super) fn run<T: 'static, F: Future<Output = anyhow::Result<T>> + 'static>(
        &self,
        runtime: Runtime,
        command: impl FnOnce(ApiClient) -> F + 'static,
    ) -> anyhow::Result<T> {
        self.run_within(None, runtime, command)
    }

    /// As [`ServerArgs::run`], for `time_max` at most, if there is a limit.
    pub(super) fn run_within<T: 'static, F: Future<Output = anyhow::Result<T>> + 'static>(
        &self,
        time_max: Option<Duration>,
        runtime: Runtime,
        command: impl FnOnce(ApiClient) -> F + 'static,
    ) -> anyhow::Result<T> {
        let url = match &self.server {
            Some(url) => url.clone(),
            None => AccountsInUse::load()?.server.as_deref().unwrap_or(SERVER).parse()?,
        };
        runtime.run((url, self.trust.clone()), None, time_max, command)
    }
}

impl SessionArgs {
    /// Returns the session that the command uses.
    pub(super) fn session(&self) -> anyhow::Result<Session> {
        let server = self.server.server.as_ref().map(ToString::to_string);
        match Session::find(server.as_deref(), self.account.as_deref())? {
            Some(session) => Ok(session),
            None => bail!(self.no_session(server)?),
        }
    }

    /// Returns the error that no session is in use, with the next step.
    fn no_session(&self, server: Option<String>) -> anyhow::Result<String> {
        let server = server.or(AccountsInUse::load()?.server);
        let at = server.as_deref().map(|server| format!(" at {server}")).unwrap_or_default();
        if let Some(name) = self.account.as_deref().map(|name| text(name.as_bytes())) {
            return Ok(format!("Not logged in{at} as {name}. Log in first: plimsoll login {name}"));
        }
        let others = logged_in_at(server.as_deref())?;
        let Some(first) = others.first() else {
            return Ok(format!("Not logged in{at}. Log in first: plimsoll login NAME"));
        };
        Ok(format!(
            "No account is in use{at}. Still logged in: {}. Choose with --account {first}, or log in: \
             plimsoll login NAME",
            others.join(", ")
        ))
    }

    /// Runs a command with its session.
    pub(super) fn run<T: 'static, F: Future<Output = anyhow::Result<T>> + 'static>(
        &self,
        runtime: Runtime,
        command: impl FnOnce(ApiClient) -> F + 'static,
    ) -> anyhow::Result<T> {
        let session = self.session()?;
        let url = session.server.parse().context("the session that is remembered names no server")?;
        runtime.run((url, self.server.trust.clone()), Some(session), None, command)
    }
}

/// Returns the names of the accounts that are logged in at `server`.
pub(super) fn logged_in_at(server: Option<&str>) -> anyhow::Result<Vec<String>> {
    let all = Session::all()?.into_iter();
    Ok(all
        .filter(|session| Some(session.server.as_str()) == server)
        .map(|session| text(session.account.as_bytes()))
        .collect())
}

/// Parses a server's URL; `HOST`, `HOST:PORT` and `HOST/PATH` are HTTP.
fn server_url(typed: &str) -> Result<Url, BadUrl> {
    let has_scheme = typed.contains("://") || typed.starts_with("unix:");
    if has_scheme { typed.parse() } else { format!("http://{typed}").parse() }
}
