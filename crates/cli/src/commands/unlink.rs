//! `plimsoll unlink`: ends public links.
//!
//! It deletes no file. Invariant: a link is named by its id, because a path may have several.

use clap::Args;
use plimsoll_client::http::Request;
use serde_json::json;

use super::server_args::SessionArgs;
use crate::output::print_json;
use crate::{Runtime, WrongUsage};

/// End a public link; it ends at once
#[derive(Args)]
#[command(after_help = "Examples:
  plimsoll unlink 5f3a...            the id that plimsoll links shows

JSON: {\"ended\":[\"5f3a...\"]}")]
pub struct Unlink {
    /// The id of the link
    #[arg(value_name = "ID")]
    id: String,
    #[command(flatten)]
    session: SessionArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Unlink {
    pub(super) fn run(self, runtime: Runtime) -> anyhow::Result<()> {
        let id = self.id;
        if id.is_empty() || !id.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
            return Err(WrongUsage("give the id that plimsoll links shows".to_owned()).into());
        }
        let target = format!("/api/links/{id}");
        self.session.run(runtime, async move |mut server| {
            Ok(server.send_and_discard(Request::new("DELETE", &target)).await?)
        })?;
        if self.json { print_json(&json!({"ended": [id]})) } else { Ok(()) }
    }
}
