//! `plimsoll uploads`: lists interrupted uploads, and discards them.
//!
//! It resumes none (`plimsoll put` does). Invariant: each printed upload has the id that `--rm` needs.

use anyhow::anyhow;
use clap::Args;
use plimsoll_client::http::Request;
use plimsoll_wire::http::status::Status;
use plimsoll_wire::http::tus::VERSION;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::server_args::SessionArgs;
use crate::Runtime;
use crate::WrongUsage;
use crate::output::{columns, print, print_json, size, text, time};

/// List interrupted uploads, and discard one with --rm
#[derive(Args)]
#[command(after_help = "Examples:
  plimsoll uploads
  plimsoll uploads --rm 5f3a...     the id that the list shows

To resume an upload, type the same plimsoll put again. Until then its bytes count against the quota.
JSON: {\"uploads\":[{\"id\":\"...\",\"path\":\"/a.iso\",\"length\":9000000,\"offset\":4194304,
       \"created\":\"...\",\"expires\":\"...\",\"url\":\"/uploads/...\"}]}; with --rm {\"id\":\"...\"}")]
pub struct Uploads {
    /// Discard the upload of this id, with its received bytes
    #[arg(long, value_name = "ID")]
    rm: Option<String>,
    #[command(flatten)]
    session: SessionArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// UploadList uploads, as the server sends them.
#[derive(Serialize, Deserialize)]
struct UploadList {
    uploads: Vec<Value>,
}

/// An upload, as the server sends it.
#[derive(Deserialize)]
struct PendingUpload {
    id: String,
    path: String,
    length: Option<u64>,
    offset: u64,
    expires: String,
}

impl Uploads {
    pub(super) fn run(self, runtime: Runtime) -> anyhow::Result<()> {
        if let Some(id) = self.rm {
            return discard(&self.session, runtime, &id, self.json);
        }
        let all: UploadList =
            self.session.run(runtime, async |mut server| Ok(server.get("/uploads").await?))?;
        if self.json {
            return print_json(&all);
        }
        let rows = all.uploads.into_iter().map(|upload| Ok(row(&serde_json::from_value(upload)?)));
        print(columns(&rows.collect::<anyhow::Result<Vec<_>>>()?, &[]))
    }
}

fn row(upload: &PendingUpload) -> Vec<String> {
    let whole = upload.length.map_or_else(|| "?".to_owned(), size);
    vec![
        text(upload.id.as_bytes()),
        format!("{} of {whole}", size(upload.offset)),
        format!("until {}", time(&upload.expires)),
        text(upload.path.as_bytes()),
    ]
}

fn discard(session: &SessionArgs, runtime: Runtime, id: &str, json: bool) -> anyhow::Result<()> {
    if id.is_empty() || !id.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return Err(WrongUsage("give --rm the id that plimsoll uploads shows".to_owned()).into());
    }
    let target = format!("/uploads/{id}");
    session.run(runtime, async move |mut server| {
        let discarded =
            server.send_and_discard(Request::new("DELETE", &target).field("Tus-Resumable", VERSION)).await;
        discarded.map_err(|failure| match failure.status() {
            Some(Status::NOT_FOUND) => {
                anyhow!("There is no such upload. See those there are: plimsoll uploads")
            }
            _ => failure.into(),
        })
    })?;
    if json { print_json(&json!({"id": id})) } else { print(format!("The upload {id} is discarded.\n")) }
}
