//! `plimsoll health`: checks whether a server answers, for containers and supervisors.
//!
//! It needs no session and stores nothing. Invariant: it ends within [`HEALTH_TIME_MAX`], unless it asks a
//! person at a terminal whether to trust the server.

use clap::Args;
use plimsoll_client::http::Request;

use super::server_args::ServerArgs;
use crate::Runtime;
use crate::limits::HEALTH_TIME_MAX;
use crate::output::{print, print_json};

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
        self.server.run_within(Some(HEALTH_TIME_MAX), runtime, async move |mut server| {
            server.send_and_discard(Request::new("GET", target)).await?;
            if json { print_json(&serde_json::json!({"healthy": true})) } else { print("ok\n") }
        })
    }
}
