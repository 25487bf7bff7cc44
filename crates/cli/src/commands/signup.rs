//! `plimsoll signup`: creates an account on a server.
//!
//! It does not log in. Invariant: a typed password is not echoed, and must be typed twice.

use clap::Args;
use plimsoll_wire::password::BadPassword;
use serde_json::{Value, json};

use super::server_args::ServerArgs;
use crate::output::{print, print_json, text};
use crate::password::{PasswordFrom, typed_for};
use crate::plain_password::check_password_channel;
use crate::{ApiClient, Failure, Runtime};

/// Create an account on a server
#[derive(Args)]
#[command(after_help = "Examples:
  plimsoll signup alice
  plimsoll signup alice --server https://files.example
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
        let (given, name) = (self.password.given()?, self.name.clone());
        let made: Value = self.server.run(runtime, async move |mut server| {
            check_password_channel(&server).await?;
            let password = match given {
                Some(password) => password,
                None => {
                    refuse_early(&mut server.new_connection(), &name).await?;
                    typed_for(&name)?
                }
            };
            Ok(server.post("/api/accounts", &json!({"name": name, "password": password})).await?)
        })?;
        if self.json {
            return print_json(&made);
        }
        let name = made["name"].as_str().unwrap_or(&self.name);
        print(format!("{0} has an account. Log in: plimsoll login {0}\n", text(name.as_bytes())))
    }
}

/// Fails if the server permits no sign-up, or not with this name, before a password must be typed. The server
/// says only for a valid password whether the name is taken.
async fn refuse_early(server: &mut ApiClient, name: &str) -> Result<(), Failure> {
    match server.post::<Value>("/api/accounts", &json!({"name": name, "password": ""})).await {
        Err(failure) if failure.to_string() == BadPassword::Length.to_string() => Ok(()),
        Err(failure) => Err(failure),
        Ok(_) => Ok(()),
    }
}
