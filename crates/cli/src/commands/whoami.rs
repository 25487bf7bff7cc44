//! `plimsoll whoami`: shows the account, and how much of its quota is used.
//!
//! It changes nothing. Invariant: an unlimited quota is printed as `none`.

use clap::Args;
use serde_json::Value;

use super::server_args::SessionArgs;
use crate::Runtime;
use crate::output::{columns, files as files_of, print, print_json, size, text};

/// Show which account is logged in where, and how much it stores
#[derive(Args)]
#[command(after_help = "Examples:
  plimsoll whoami
  plimsoll whoami --json

JSON: {\"account\":\"alice\",\"quota\":{\"bytes\":...,\"files\":...},
       \"usage\":{\"bytes\":...,\"files\":...,\"folders\":...},\"permissions\":{...}}")]
pub struct Whoami {
    #[command(flatten)]
    session: SessionArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Whoami {
    pub(super) fn run(self, runtime: Runtime) -> anyhow::Result<()> {
        let (server, known): (String, Value) = self.session.run(runtime, async |mut server| {
            let known = server.get("/api/whoami").await?;
            Ok((server.url.to_string(), known))
        })?;
        if self.json {
            return print_json(&known);
        }
        let number = |of: &str, what: &str| known[of][what].as_u64();
        let told = |of: &str| {
            let files = number(of, "files").map(files_of);
            let parts: Vec<String> = number(of, "bytes").map(size).into_iter().chain(files).collect();
            if parts.is_empty() { "none".to_owned() } else { parts.join(", ") }
        };
        let row = |name: &str, value: String| vec![name.to_owned(), value];
        let account = text(known["account"].as_str().unwrap_or_default().as_bytes());
        let rows = [
            row("account", account),
            row("server", server),
            row("usage", told("usage")),
            row("quota", told("quota")),
        ];
        print(columns(&rows, &[]))
    }
}
