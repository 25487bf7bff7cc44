//! `plimsoll lab model`: the arguments of the model server.
//!
//! Not here: the server itself. Invariants: it listens on loopback unless another address is given.

use std::net::SocketAddr;

use clap::Args;
use plimsoll_lab::model_server::{Demands, serve};

/// Serve HTTP with known service demands, to check what the laboratory finds
#[derive(Args)]
#[command(after_help = "Examples:
  plimsoll lab model --demands spin=4ms,sleep=20ms
  plimsoll lab run calibration                         compare the analysis with 20 known systems

Times are exponentially distributed. The processor and the lock serve one request at a time.")]
pub(super) struct Model {
    /// Where to listen
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8080")]
    listen: SocketAddr,
    /// Mean times of a request, such as spin=4ms,lock=2ms,sleep=20ms; also: constant
    #[arg(long, value_name = "DEMANDS")]
    demands: Demands,
}

impl Model {
    pub(super) fn run(&self) -> anyhow::Result<()> {
        serve(self.listen, &self.demands)
    }
}
