//! `plimsoll trash`: lists deleted files and folders, restores them, and deletes them for good.
//!
//! Nothing is moved to the trash here (`plimsoll rm` does). Invariant: each printed entry has the id that the
//! other commands need.

use clap::{Args, ValueEnum};
use plimsoll_client::http::Request;
use plimsoll_wire::http::status::Status;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::server_args::SessionArgs;
use crate::output::{columns, print, print_json, size, text, time};
use crate::{ApiClient, Failure, Runtime, WrongUsage};

/// List, restore or delete for good what is in the trash
#[derive(Args)]
#[command(after_help = "Examples:
  plimsoll trash                        what is in it, the newest first
  plimsoll trash restore 0193...        to where it was
  plimsoll trash restore 0193... copy.txt
  plimsoll trash rm 0193...
  plimsoll trash empty

The server drops the oldest entries when their time is over, or when their space is needed.
JSON: {\"entries\":[{\"id\":\"...\",\"path\":\"/a.txt\",\"url\":\"/files/a.txt\",\"kind\":\"file\",
       \"size\":5,\"deleted\":\"...\",\"expires\":\"...\"}]};
       restore {\"path\":\"/a.txt\",...}; rm {\"ids\":[\"...\"]}")]
pub struct Trash {
    /// The action: list, restore with an id and perhaps a path, rm with ids, or empty
    #[arg(value_enum, default_value = "list", hide_possible_values = true)]
    action: Action,
    /// The id that the list shows, and for restore the path that the entry gets
    #[arg(value_name = "ID")]
    ids: Vec<String>,
    #[command(flatten)]
    session: SessionArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The action on the trash.
#[derive(Clone, Copy, ValueEnum)]
enum Action {
    List,
    Restore,
    Rm,
    Empty,
}

/// A page of entries, and the id for requesting the next page.
#[derive(Deserialize)]
struct Page {
    entries: Vec<Value>,
    next: Option<String>,
}

/// All entries, as the server sends them.
#[derive(Serialize)]
struct Entries {
    entries: Vec<Value>,
}

/// An entry, as the server sends it.
#[derive(Deserialize)]
struct Entry {
    id: String,
    path: String,
    kind: String,
    size: u64,
    deleted: String,
    expires: String,
}

impl Trash {
    pub(super) fn run(self, runtime: Runtime) -> anyhow::Result<()> {
        let Trash { action, ids, session, json } = self;
        match (action, &*ids) {
            (Action::List, []) => {
                let entries = session.run(runtime, async |mut server| fetch(&mut server).await)?;
                if json { print_json(&entries) } else { print_entries(entries) }
            }
            (Action::Restore, [id]) => restore(&session, runtime, (id, None), json),
            (Action::Restore, [id, path]) => restore(&session, runtime, (id, Some(path)), json),
            (Action::Rm, [_, ..]) => delete(&session, runtime, &ids, json),
            (Action::Empty, []) => {
                session.run(runtime, async |mut server| {
                    Ok(server.send_and_discard(Request::new("DELETE", "/api/trash")).await?)
                })?;
                if json { print_json(&json!({})) } else { Ok(()) }
            }
            _ => {
                Err(WrongUsage("type list, restore ID, restore ID PATH, rm ID..., or empty".to_owned())
                    .into())
            }
        }
    }
}

fn restore(
    session: &SessionArgs,
    runtime: Runtime,
    (id, path): (&str, Option<&String>),
    json: bool,
) -> anyhow::Result<()> {
    let (target, id) = (format!("{}/restore", target_of(id)?), id.to_owned());
    let body = path.map_or_else(|| json!({}), |path| json!({"path": path}));
    let restored: Value = session.run(runtime, async move |mut server| {
        server.post(&target, &body).await.map_err(|failure| explained(failure, &id))
    })?;
    let path = restored["path"].as_str().unwrap_or_default();
    if json { print_json(&restored) } else { print(format!("Restored to {}\n", text(path.as_bytes()))) }
}

fn delete(session: &SessionArgs, runtime: Runtime, ids: &[String], json: bool) -> anyhow::Result<()> {
    let targets = ids.iter().map(|id| target_of(id)).collect::<anyhow::Result<Vec<_>>>()?;
    let named = ids.to_vec();
    session.run(runtime, async move |mut server| {
        for (target, id) in targets.iter().zip(&named) {
            let deleted = server.send_and_discard(Request::new("DELETE", target)).await;
            deleted.map_err(|failure| explained(failure, id))?;
        }
        Ok(())
    })?;
    if json { print_json(&json!({"ids": ids})) } else { Ok(()) }
}

fn target_of(id: &str) -> anyhow::Result<String> {
    if id.is_empty() || !id.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return Err(WrongUsage("give the id that plimsoll trash shows".to_owned()).into());
    }
    Ok(format!("/api/trash/{id}"))
}

/// Adds the next step to a failure that is about one entry.
fn explained(failure: Failure, id: &str) -> anyhow::Error {
    match failure.status() {
        Some(Status::NOT_FOUND) => {
            anyhow::anyhow!("There is no {id} in the trash. See what is there: plimsoll trash")
        }
        Some(Status::CONFLICT) => anyhow::anyhow!(
            "Something else has that path now. Restore it to another: plimsoll trash restore {id} PATH"
        ),
        _ => failure.into(),
    }
}

/// Requests all entries, page by page.
async fn fetch(server: &mut ApiClient) -> anyhow::Result<Entries> {
    let mut all = Entries { entries: Vec::new() };
    let mut page: Page = server.get("/api/trash").await?;
    loop {
        all.entries.append(&mut page.entries);
        let is_id = |next: &String| next.bytes().all(|byte| byte.is_ascii_alphanumeric());
        let Some(next) = page.next.filter(is_id) else { return Ok(all) };
        page = server.get(&format!("/api/trash?after={next}")).await?;
    }
}

fn print_entries(entries: Entries) -> anyhow::Result<()> {
    let row = |entry: Value| {
        let entry: Entry = serde_json::from_value(entry)?;
        let slash = if entry.kind == "folder" { "/" } else { "" };
        Ok(vec![
            text(entry.id.as_bytes()),
            size(entry.size),
            format!("deleted {}", time(&entry.deleted)),
            format!("until {}", time(&entry.expires)),
            format!("{}{slash}", text(entry.path.as_bytes())),
        ])
    };
    let rows = entries.entries.into_iter().map(row).collect::<anyhow::Result<Vec<_>>>()?;
    print(columns(&rows, &[1]))
}
