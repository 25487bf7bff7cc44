//! `plimsoll lab list`: the experiments and contenders that come with the program.
//!
//! It runs none. Invariant: every listed experiment can be parsed, which a test checks.

use clap::Args;
use clap::builder::Resettable;
use plimsoll_cli::output::{print, print_json};
use plimsoll_lab::experiment::{Experiment, built_in as built_in_contenders};

/// The experiments, by their names.
pub(super) const EXPERIMENTS: [(&str, &str); 34] = [
    ("account", include_str!("../../../../../lab/experiments/account.toml")),
    ("beside-large-files", include_str!("../../../../../lab/experiments/beside-large-files.toml")),
    ("calibration", include_str!("../../../../../lab/experiments/calibration.toml")),
    ("connections", include_str!("../../../../../lab/experiments/connections.toml")),
    ("fairness", include_str!("../../../../../lab/experiments/fairness.toml")),
    ("memory", include_str!("../../../../../lab/experiments/memory.toml")),
    ("peers", include_str!("../../../../../lab/experiments/peers.toml")),
    ("saturation-ftp", include_str!("../../../../../lab/experiments/saturation-ftp.toml")),
    ("saturation-http", include_str!("../../../../../lab/experiments/saturation-http.toml")),
    ("store", include_str!("../../../../../lab/experiments/store.toml")),
    ("tls", include_str!("../../../../../lab/experiments/tls.toml")),
    ("tls-ftp", include_str!("../../../../../lab/experiments/tls-ftp.toml")),
    ("000-cores", include_str!("../../../../../lab/experiments/000-cores.toml")),
    ("000-get", include_str!("../../../../../lab/experiments/000-get.toml")),
    ("000-network", include_str!("../../../../../lab/experiments/000-network.toml")),
    ("000-new", include_str!("../../../../../lab/experiments/000-new.toml")),
    ("000-prefetch", include_str!("../../../../../lab/experiments/000-prefetch.toml")),
    ("001-blocks", include_str!("../../../../../lab/experiments/001-blocks.toml")),
    ("001-memory", include_str!("../../../../../lab/experiments/001-memory.toml")),
    ("001-table-1", include_str!("../../../../../lab/experiments/001-table-1.toml")),
    ("001-table-2", include_str!("../../../../../lab/experiments/001-table-2.toml")),
    ("001-table-3", include_str!("../../../../../lab/experiments/001-table-3.toml")),
    ("001-table-3-100mbit", include_str!("../../../../../lab/experiments/001-table-3-100mbit.toml")),
    ("001-table-4", include_str!("../../../../../lab/experiments/001-table-4.toml")),
    ("002-clients", include_str!("../../../../../lab/experiments/002-clients.toml")),
    ("002-cold", include_str!("../../../../../lab/experiments/002-cold.toml")),
    ("002-download", include_str!("../../../../../lab/experiments/002-download.toml")),
    ("002-upload", include_str!("../../../../../lab/experiments/002-upload.toml")),
    ("003-advanced", include_str!("../../../../../lab/experiments/003-advanced.toml")),
    ("003-proxy-one-core", include_str!("../../../../../lab/experiments/003-proxy-one-core.toml")),
    ("003-proxy-two-cores", include_str!("../../../../../lab/experiments/003-proxy-two-cores.toml")),
    ("003-simple", include_str!("../../../../../lab/experiments/003-simple.toml")),
    ("003-slots", include_str!("../../../../../lab/experiments/003-slots.toml")),
    ("003-throughput", include_str!("../../../../../lab/experiments/003-throughput.toml")),
];

/// Show the experiments and contenders that come with plimsoll
#[derive(Args)]
#[command(after_help = "Examples:
  plimsoll lab list
  plimsoll lab list --json")]
pub(super) struct List {
    /// Print JSON
    #[arg(long, help_heading = Resettable::Reset)]
    json: bool,
}

/// Returns the text of an experiment that comes with the program.
pub(super) fn built_in(name: &str) -> Option<&'static str> {
    EXPERIMENTS.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}

impl List {
    pub(super) fn run(self) -> anyhow::Result<()> {
        let experiments = EXPERIMENTS
            .iter()
            .map(|(_, text)| Experiment::parse(text))
            .collect::<anyhow::Result<Vec<_>>>()?;
        let contenders = built_in_contenders()?;
        if self.json {
            let experiments: Vec<_> = experiments
                .iter()
                .map(|one| {
                    let trials = one.trials().len();
                    serde_json::json!({ "name": one.name, "about": one.about, "trials": trials })
                })
                .collect();
            return print_json(&serde_json::json!({ "experiments": experiments, "contenders": contenders }));
        }
        let mut text = String::from("experiments (plimsoll lab run NAME)\n");
        for one in &experiments {
            text.push_str(&format!("  {:<18} {:>4} trials  {}\n", one.name, one.trials().len(), one.about));
        }
        text.push_str("\ncontenders (like = \"NAME\" in an experiment file)\n");
        for one in &contenders {
            text.push_str(&format!("  {:<18} {}\n", one.name, one.about));
            if !one.variables.is_empty() {
                text.push_str(&format!("  {:<18} needs the variables {}\n", "", one.variables.join(", ")));
            }
        }
        print(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_experiment_that_comes_with_the_program_has_no_mistake() {
        for (name, text) in EXPERIMENTS {
            let experiment = super::super::checked(std::path::Path::new(name), text).unwrap();
            assert_eq!(experiment.name, name);
            assert!(!experiment.about.is_empty());
        }
    }
}
