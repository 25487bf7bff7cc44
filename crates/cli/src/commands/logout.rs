//! `plimsoll logout`: ends the session, on the server and on this machine.
//!
//! It ends no other session of the account. Invariants: a session that the server has not ended is not
//! removed here. No other account comes into use.

use clap::Args;
use plimsoll_client::http::Request;
use plimsoll_wire::http::status::Status;
use serde_json::json;

use super::server_args::{SessionArgs, logged_in_at};
use crate::Runtime;
use crate::output::{print, print_json, text};

/// End the session, on the server and here; no other account comes into use
#[derive(Args)]
#[command(after_help = "Examples:
  plimsoll logout
  plimsoll logout --server http://files.example:8080 --account alice

JSON: {\"account\":\"alice\",\"server\":\"http://127.0.0.1:8080\"}")]
pub struct Logout {
    #[command(flatten)]
    session: SessionArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Logout {
    pub(super) fn run(self, runtime: Runtime) -> anyhow::Result<()> {
        let session = self.session.session()?;
        self.session.run(runtime, async |mut server| {
            match server.send_and_discard(Request::new("DELETE", "/api/sessions/current")).await {
                // The session had ended already.
                Err(failure) if failure.status() == Some(Status::UNAUTHORIZED) => Ok(()),
                result => Ok(result?),
            }
        })?;
        session.forget()?;
        if self.json {
            return print_json(&json!({"account": session.account, "server": session.server}));
        }
        let others = logged_in_at(Some(&session.server))?;
        let hint = match others.first() {
            Some(first) => {
                format!("Still logged in there: {}; choose with --account {first}.\n", others.join(", "))
            }
            None => String::new(),
        };
        print(format!("Logged out {} of {}.\n{hint}", text(session.account.as_bytes()), session.server))
    }
}
