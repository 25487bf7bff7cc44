//! `plimsoll doctor`: the arguments and the output.
//!
//! It checks nothing itself ([`crate::doctor`] does). Invariants: the exit code is 0 if no check fails,
//! else 1. Each printed remedy can be typed.

use clap::Args;
use clap::builder::Resettable;
use plimsoll_cli::output::{print, print_json_text};

use crate::config::Configured;
use crate::doctor::{self, Verdict};

/// Check the set-up of this machine, and print remedies
#[derive(Args)]
#[command(after_help = "Examples:
  plimsoll doctor
  plimsoll doctor --config /etc/plimsoll/plimsoll.toml
  plimsoll doctor --data /srv/plimsoll --http :80 --json

It takes the flags of `plimsoll serve`. It removes the file that it writes to measure the disk.")]
pub(crate) struct Doctor {
    #[command(flatten)]
    configured: Configured,

    /// Print JSON, an array with an object for each check
    #[arg(long, help_heading = Resettable::Reset)]
    json: bool,
}

impl Doctor {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let findings = doctor::examine(&self.configured.load()?.config);
        match self.json {
            true => print_json_text(&doctor::as_json(&findings)?)?,
            false => print(doctor::as_text(&findings))?,
        }
        let failed = findings.iter().filter(|finding| finding.verdict == Verdict::Fail).count();
        anyhow::ensure!(failed == 0, "checks that failed: {failed}; the lines above have the fixes");
        Ok(())
    }
}
