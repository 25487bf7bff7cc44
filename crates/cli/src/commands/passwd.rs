//! `plimsoll passwd`: changes the account's password.
//!
//! It does not end its own session; the server ends all others. Invariant: neither password is an argument.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;

use super::server_args::SessionArgs;
use crate::Runtime;
use crate::api_client::json as request;
use crate::output::{print, print_json};
use crate::password::{PasswordFrom, choose_new};
use crate::plain_password::check_password_channel;

/// Change the password; every other session of the account ends
#[derive(Args)]
#[command(after_help = "Examples:
  plimsoll passwd
  plimsoll passwd --password-file ./old --new-password-file ./new

JSON: {\"account\":\"alice\"}")]
pub struct Passwd {
    #[command(flatten)]
    session: SessionArgs,
    #[command(flatten)]
    password: PasswordFrom,
    /// The file whose first line is the new password; default: $PLIMSOLL_NEW_PASSWORD, else a prompt asks
    /// for it
    #[arg(long, value_name = "FILE")]
    new_password_file: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Passwd {
    pub(super) fn run(self, runtime: Runtime) -> anyhow::Result<()> {
        let Passwd { session, password, new_password_file, json: is_json } = self;
        let account = session.session()?.account;
        let name = account.clone();
        session.run(runtime, async move |mut server| {
            check_password_channel(&server).await?;
            let old = password.get(&name)?;
            let new = choose_new(new_password_file.as_deref(), &name)?;
            let change = request("PUT", "/api/password", &json!({"old": old, "new": new}))?;
            Ok(server.send_and_discard(change).await?)
        })?;
        if is_json {
            return print_json(&json!({"account": account}));
        }
        print("The password is changed. Every other session of the account has ended.\n")
    }
}
