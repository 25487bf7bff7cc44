//! `plimsoll lab agent`: the part of the laboratory on the machine of a contender.
//!
//! The laboratory starts it; it is no command for people. Invariant: a signal ends everything that it
//! started.

use std::io::{self, BufReader};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use clap::Args;
use plimsoll_lab::agent::serve;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

/// Handle the requests of a laboratory on standard input
#[derive(Args)]
pub(super) struct AgentServer {}

impl AgentServer {
    #[allow(clippy::unused_self, reason = "a command without arguments")]
    pub(super) fn run(self) -> anyhow::Result<()> {
        let ending = Arc::new(AtomicBool::new(false));
        for signal in [SIGHUP, SIGINT, SIGTERM] {
            signal_hook::flag::register(signal, Arc::clone(&ending))?;
        }
        serve(BufReader::new(io::stdin()), io::stdout().lock(), &ending)
    }
}
