//! `plimsoll signup`: creates an account on a server.
//!
//! It does not log in. Invariant: a typed password is not echoed, and must be typed twice.

use clap::Args;
use serde_json::{Value, json};

use super::server_args::ServerArgs;
use crate::Runtime;
use crate::output::{print, print_json, text};
use crate::password::PasswordFrom;

/// Create an account on a server
#[derive(Args)]
#[command(after_help = "Examples:
  plimsoll signup alice
  plimsoll signup alice --server http://files.example:8080
  plimsoll signup alice --password-file ./password --json

JSON: {\"name\":\"alice\",\"quota\":{\"bytes\":...,\"files\":...},\"permissions\":{...}}")]
pub struct Signup {
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

impl Signup {
    pub(super) fn run(self, runtime: Runtime) -> anyhow::Result<()> {
        let body = json!({"name": self.name, "password": self.password.choose(&self.name)?});
        let made: Value = self
            .server
            .run(runtime, async move |mut server| Ok(server.post("/api/accounts", &body).await?))?;
        if self.json {
            return print_json(&made);
        }
        let name = made["name"].as_str().unwrap_or(&self.name);
        print(format!("{0} has an account. Log in: plimsoll login {0}\n", text(name.as_bytes())))
    }
}
