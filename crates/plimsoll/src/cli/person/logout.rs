//! `plimsoll logout`: ends the session, at the server and here.
//!
//! It ends no other session of the account. What must hold: a session that the server could not be told of
//! is not forgotten here.

use clap::Args;
use plimsoll_client::http::Request;
use plimsoll_wire::http::status::Status;
use serde_json::json;

use super::at::At;
use crate::person::shown::{print, print_json};

/// End the session, at the server and here
#[derive(Args)]
#[command(after_help = "Examples:
  plimsoll logout
  plimsoll logout --server http://files.example:8080 --account alice

JSON: {\"account\":\"alice\",\"server\":\"http://127.0.0.1:8080\"}")]
pub(crate) struct Logout {
    #[command(flatten)]
    at: At,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Logout {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let session = self.at.session()?;
        self.at.run(async |mut server| {
            match server.tell(Request::new("DELETE", "/api/sessions/current")).await {
                // It had ended already.
                Err(failure) if failure.status() == Some(Status::UNAUTHORIZED) => Ok(()),
                told => Ok(told?),
            }
        })?;
        session.forget()?;
        if self.json {
            return print_json(&json!({"account": session.account, "server": session.server}));
        }
        print(format!("Logged out of {}.\n", session.server))
    }
}
