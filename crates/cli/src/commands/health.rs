//! `plimsoll health`: checks whether a server answers, for containers and supervisors.
//!
//! It needs no session and stores nothing. Invariant: it ends within [`HEALTH_TIME_MAX`].

use anyhow::bail;
use clap::Args;
use plimsoll_client::http::Request;

use super::server_args::ServerArgs;
use crate::limits::HEALTH_TIME_MAX;
use crate::output::{print, print_json};
use crate::{ApiClient, Runtime};

/// Check whether a server answers
#[derive(Args)]
#[command(after_help = "Examples:
  plimsoll health
  plimsoll health --ready --server http://127.0.0.1:8080

It exits with 0 if the server answers within 5 seconds, else with 1.

JSON: {\"healthy\":true}")]
pub struct Health {
    /// Check whether it is ready for traffic too: a server that drains, or has a full disk, is not
    #[arg(long)]
    ready: bool,
    #[command(flatten)]
    server: ServerArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Health {
    pub(super) fn run(self, runtime: Runtime) -> anyhow::Result<()> {
        let target = if self.ready { "/readyz" } else { "/healthz" };
        let json = self.json;
        self.server.run(runtime, async move |server| {
            check(server, target).await?;
            if json { print_json(&serde_json::json!({"healthy": true})) } else { print("ok\n") }
        })
    }
}

/// Sends a request to the page of a check.
async fn check(mut server: ApiClient, target: &str) -> anyhow::Result<()> {
    let deadline = server.io.deadline();
    deadline.after(HEALTH_TIME_MAX);
    match deadline.within(server.send_and_discard(Request::new("GET", target))).await {
        Ok(answered) => Ok(answered?),
        Err(_) => bail!("{} did not answer within {HEALTH_TIME_MAX:?}", server.url),
    }
}
