//! `plimsoll signup`: creates an account on a server.
//!
//! It does not log in. Invariant: a typed password is not echoed, and must be typed twice.

use clap::Args;
use serde_json::{Value, json};

use super::at::AtServer;
use crate::person::password::PasswordFrom;
use crate::person::shown::{print, print_json, text};

/// Create an account on a server
#[derive(Args)]
#[command(after_help = "Examples:
  plimsoll signup alice
  plimsoll signup alice --server http://files.example:8080
  plimsoll signup alice --password-file ./password --json

JSON: {\"name\":\"alice\",\"quota\":{\"bytes\":...,\"files\":...},\"permissions\":{...}}")]
pub(crate) struct Signup {
    /// The name of the account
    name: String,
    #[command(flatten)]
    at: AtServer,
    #[command(flatten)]
    password: PasswordFrom,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Signup {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let body = json!({"name": self.name, "password": self.password.choose(&self.name)?});
        let made: Value =
            self.at.run(async move |mut server| Ok(server.post("/api/accounts", &body).await?))?;
        if self.json {
            return print_json(&made);
        }
        let name = made["name"].as_str().unwrap_or(&self.name);
        print(format!("{0} has an account. Log in: plimsoll login {0}\n", text(name.as_bytes())))
    }
}
