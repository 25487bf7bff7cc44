//! Runs the generator: a process that puts load on one server and prints figures as JSON.
//!
//! It is always `plimsoll load`, so that all figures come from one generator. Invariant: its figures are
//! adopted unchanged, including that it was the limit itself.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result};
use serde::Deserialize;

use super::{Case, Settings};

/// The part of the output of `plimsoll load --json` that the benchmark uses.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Figures {
    /// Complete and correct responses.
    pub(super) requests: u64,
    /// Responses per second.
    pub(super) requests_per_second: f64,
    /// Bytes of bodies per second.
    pub(super) bytes_per_second: f64,
    /// Duration of the measurement in seconds.
    pub(super) seconds: f64,
    /// Errors by kind.
    #[serde(default)]
    pub(super) errors: BTreeMap<String, u64>,
    /// Number of bodies that were compared with a reference.
    #[serde(default)]
    pub(super) verified: u64,
    /// Latencies.
    pub(super) latency_us: Latency,
    /// The generator's own cost.
    pub(super) generator: GeneratorCost,
}

/// Latencies in microseconds.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(super) struct Latency {
    /// The median.
    pub(super) p50: f64,
    /// The 99th percentile.
    pub(super) p99: f64,
}

/// The generator's own cost.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(super) struct GeneratorCost {
    /// Fraction of a core.
    pub(super) share: f64,
    /// Whether the generator limited the figures.
    pub(super) is_the_limit: bool,
}

/// The command that puts the load of `case` on the server at `port`.
pub(super) fn command(program: &Path, settings: &Settings, case: &Case, port: u16) -> Command {
    let mut command = Command::new(program);
    let url = format!("http://127.0.0.1:{port}/{}/f{{}}", case.size);
    command.args(["load", &url, "--json", "--connections", case.connections.name()]);
    command.args(["--files", &format!("0..{}", case.files), "-u", &settings.users.to_string()]);
    command.args(["-d", &milliseconds(settings.seconds)]);
    command.args(["--warm-up", &milliseconds(settings.warm_up_seconds)]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Parses the generator's output, which has figures even after errors.
pub(super) fn read(stdout: &[u8], stderr: &[u8]) -> Result<Figures> {
    serde_json::from_slice(stdout)
        .with_context(|| format!("the generator gave no figures: {}", String::from_utf8_lossy(stderr).trim()))
}

fn milliseconds(seconds: f64) -> String {
    format!("{:.0}ms", seconds * 1000.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_read_from_the_generators_json_and_more_of_it_does_no_harm() {
        let text = br#"{"url":"http://a/","users":64,"loop":"closed","seconds":2.0,"requests":10,"bytes":1,
            "errors":{"reset":2},"requests_per_second":5.0,"bytes_per_second":0.5,"verified":3,
            "latency_us":{"mean":1,"p50":2,"p90":3,"p99":4,"p999":5,"max":6},
            "littles_law":{"users":64,"ratio":1.0},
            "generator":{"cpu_seconds":1.9,"share":0.95,"is_the_limit":true}}"#;
        let figures = read(text, b"").unwrap();
        assert_eq!((figures.requests, figures.errors["reset"], figures.verified), (10, 2, 3));
        assert!(figures.generator.is_the_limit && figures.latency_us.p99 > 3.9);
    }

    #[test]
    fn who_gives_no_figures_is_quoted() {
        let error = read(b"", b"plimsoll: connection refused\n").unwrap_err();
        assert!(error.to_string().ends_with("plimsoll: connection refused"), "{error}");
    }
}
