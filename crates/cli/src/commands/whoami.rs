//! `plimsoll whoami`: shows the account, and how much of its quota is used.
//!
//! It changes nothing. Invariant: an unlimited quota is printed as `none`.

use clap::Args;
use serde_json::{Value, json};

use super::server_args::SessionArgs;
use crate::Runtime;
use crate::output::{columns, files as files_of, print, print_json, size, text};

/// Show which account is logged in where, and how much it stores
#[derive(Args)]
#[command(after_help = "Examples:
  plimsoll whoami
  plimsoll whoami --json

JSON: {\"account\":\"alice\",\"quota\":{\"bytes\":...,\"files\":...},
       \"usage\":{\"bytes\":...,\"files\":...,\"folders\":...},\"trash\":{...},\"permissions\":{...},
       \"uploads\":{\"count\":1,\"bytes\":9000000}}")]
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
            let mut known: Value = server.get("/api/whoami").await?;
            // A server that keeps no uploads has no such list.
            if let Ok(list) = server.get("/uploads").await {
                known["uploads"] = held(&list);
            }
            Ok((server.url.to_string(), known))
        })?;
        if self.json {
            return print_json(&known);
        }
        let number = |of: &str, unit: &str| known[of][unit].as_u64();
        let amounts = |of: &str| {
            let files = number(of, "files").map(files_of);
            let parts: Vec<String> = number(of, "bytes").map(size).into_iter().chain(files).collect();
            if parts.is_empty() { "none".to_owned() } else { parts.join(", ") }
        };
        let row = |name: &str, value: String| vec![name.to_owned(), value];
        let account = text(known["account"].as_str().unwrap_or_default().as_bytes());
        let rows = [
            row("account", account),
            row("server", server),
            row("usage", amounts("usage")),
            row("trash", amounts("trash")),
            row("quota", amounts("quota")),
            row("uploads", uploads_line(&known["uploads"])),
        ];
        print(columns(&rows, &[]))
    }
}

/// Returns the number of interrupted uploads, and the bytes that they take from the quota.
fn held(list: &Value) -> Value {
    let uploads = list["uploads"].as_array().map(Vec::as_slice).unwrap_or_default();
    let bytes = |upload: &Value| upload["length"].as_u64().or(upload["offset"].as_u64()).unwrap_or_default();
    let all: u64 = uploads.iter().map(bytes).fold(0, u64::saturating_add);
    json!({"count": uploads.len(), "bytes": all})
}

fn uploads_line(uploads: &Value) -> String {
    match (uploads["count"].as_u64().unwrap_or_default(), uploads["bytes"].as_u64().unwrap_or_default()) {
        (0, _) => "none".to_owned(),
        (count, bytes) => {
            format!("{count} interrupted, {} that count against the quota: plimsoll uploads", size(bytes))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interrupted_uploads_count_with_their_announced_length() {
        let list = json!({"uploads": [{"length": 2048, "offset": 1}, {"length": null, "offset": 1024}]});
        assert_eq!(held(&list), json!({"count": 2, "bytes": 3072}));
        let line = "2 interrupted, 3.00 KiB that count against the quota: plimsoll uploads";
        assert_eq!(uploads_line(&held(&list)), line);
        assert_eq!(uploads_line(&held(&json!({"uploads": []}))), "none");
    }
}
