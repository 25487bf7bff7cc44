//! `plimsoll login`: starts a session and stores it.
//!
//! It prints no token. Invariant: the token is stored where only the user can read it.

use clap::Args;
use serde::Deserialize;
use serde_json::json;

use super::server_args::ServerArgs;
use crate::Runtime;
use crate::Session;
use crate::output::{print, print_json, text, time};
use crate::password::PasswordFrom;
use crate::plain_password::check_password_channel;

/// Log in to a server; later commands use this account there
#[derive(Args)]
#[command(after_help = "Examples:
  plimsoll login alice
  plimsoll login alice --server https://files.example
  PLIMSOLL_PASSWORD=... plimsoll login alice --json

The session is stored in $XDG_STATE_HOME/plimsoll, or else in ~/.local/state/plimsoll, readable
only by you.
JSON: {\"account\":\"alice\",\"server\":\"http://127.0.0.1:8080\",\"expires\":\"2026-12-20T13:40:05Z\"}")]
pub struct Login {
    /// The name of the account
    name: String,
    #[command(flatten)]
    server: ServerArgs,
    #[command(flatten)]
    password: PasswordFrom,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// A session, as the server sends it.
#[derive(Deserialize)]
struct Begun {
    token: String,
    expires: String,
    account: String,
}

impl Login {
    pub(super) fn run(self, runtime: Runtime) -> anyhow::Result<()> {
        let Login { name, server, password, json } = self;
        let session = server.run(runtime, async move |mut server| {
            check_password_channel(&server).await?;
            let body = json!({"name": name, "password": password.get(&name)?});
            let Begun { token, expires, account } = server.post("/api/sessions", &body).await?;
            Ok(Session::begun(server.url.to_string(), account, token, expires))
        })?;
        session.save()?;
        let Session { server, account, expires, .. } = &session;
        if json {
            return print_json(&json!({"account": account, "server": server, "expires": expires}));
        }
        print(format!(
            "Logged in as {} at {server}, until {} UTC.\n",
            text(account.as_bytes()),
            time(expires)
        ))
    }
}
