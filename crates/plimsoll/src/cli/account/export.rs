//! `plimsoll account export`: writes all accounts as JSON lines, with their password hashes.
//!
//! Sessions, shares and files are not included. Invariants: only the user can read the file. A failed
//! export leaves no incomplete file.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;
use plimsoll_auth::Exported;
use plimsoll_cli::output::{print, print_json};
use serde_json::json;

use super::directory_args::{DirectoryArgs, unanswered};

/// Write all accounts, with the hashes of their passwords, as JSON lines
#[derive(Args)]
#[command(after_help = "Examples:
  plimsoll account export accounts.jsonl
  plimsoll account export | ssh other plimsoll account import -

Keep the file secret, because it lets a reader guess passwords offline; only you can read it. It has
no sessions and no shares.
A line: {\"name\":\"alice\",\"password\":\"$argon2id$...\",\"quota\":{...},\"permissions\":{...},
         \"enabled\":true}
JSON, with a file: {\"accounts\":3,\"file\":\"accounts.jsonl\"}")]
pub(crate) struct Export {
    /// The file, which must not exist; - or nothing is standard output
    file: Option<PathBuf>,
    #[command(flatten)]
    at: DirectoryArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Export {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let accounts = self.at.run(async |at| at.auth.export(&at.io).await.map_err(unanswered))?;
        let lines = lines(&accounts)?;
        let Some(file) = self.file.filter(|file| file.as_os_str() != "-") else {
            return print(lines);
        };
        write(&file, &lines).with_context(|| match file.exists() {
            true => format!("{} is there already; name another file, or remove it", file.display()),
            false => format!("cannot write {}", file.display()),
        })?;
        if self.json {
            return print_json(&json!({"accounts": accounts.len(), "file": file}));
        }
        print(format!("Accounts in {}: {}\n", file.display(), accounts.len()))
    }
}

fn lines(accounts: &[Exported]) -> serde_json::Result<Vec<u8>> {
    let mut lines = Vec::new();
    for account in accounts {
        serde_json::to_writer(&mut lines, account)?;
        lines.push(b'\n');
    }
    Ok(lines)
}

fn write(path: &Path, lines: &[u8]) -> io::Result<()> {
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    // An incomplete file is removed, because it could be mistaken for all accounts.
    write_all(file, lines).inspect_err(|_| drop(std::fs::remove_file(path)))
}

fn write_all(mut file: File, lines: &[u8]) -> io::Result<()> {
    file.write_all(lines)?;
    file.sync_all()
}
