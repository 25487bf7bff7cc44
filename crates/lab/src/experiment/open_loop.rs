//! Open-loop trials: requests at planned times, at a share of the maximum throughput of the closed loops.
//!
//! It computes no rate: that needs the measured closed loops. Invariant: an experiment with such trials has
//! closed loops before them.

use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};

use super::Experiment;
use super::load::RATE;

/// The open-loop trials of an experiment.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct OpenLoops {
    /// The rates in percent of the maximum throughput (Xmax) of the same contender and case.
    pub percent: Vec<u32>,
}

/// The rate of an open-loop trial.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct OpenLoop {
    /// In percent of the maximum throughput of the closed loops.
    pub percent: u32,
    /// In requests a second; none until the closed loops have been measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<f64>,
}

impl OpenLoop {
    /// Returns it in a few words.
    pub fn text(&self) -> String {
        format!("open loop at {} % of Xmax", self.percent)
    }
}

impl Experiment {
    pub(super) fn check_open_loops(&self) -> Result<()> {
        let percent = &self.open_loop.percent;
        for (at, one) in percent.iter().enumerate() {
            ensure!(
                (1..=100).contains(one),
                "`open_loop.percent` has {one}: write whole percent from 1 to 100, such as [50, 70, 90]"
            );
            ensure!(!percent[..at].contains(one), "`open_loop.percent` has {one} twice");
        }
        let is_open = self.load.0.contains_key(RATE) || self.variables().contains(&RATE);
        ensure!(
            percent.is_empty() || !is_open,
            "`open_loop` takes its rates from closed loops: leave `rate` out of `load` and of the sweep"
        );
        Ok(())
    }
}
