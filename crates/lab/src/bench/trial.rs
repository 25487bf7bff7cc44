//! One trial: one contender, one case, one round.
//!
//! It judges nothing. Invariant: a failed trial has no figures, but a reason.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::Result;
use serde::{Deserialize, Serialize};

use super::generator::{self, Figures};
use super::settings::as_float;
use super::syscalls::{self, Tracer};
use super::watch::{self, Shares};
use super::{Case, Programs, Settings};
use crate::contender::{Running, on_core};

/// Duration of the measurement while system calls are counted.
const TRACED_SECONDS: f64 = 0.5;

/// The result of a trial.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Trial {
    /// The case's name.
    pub case: String,
    /// The congestion control.
    pub congestion: String,
    /// The contender's name.
    pub contender: String,
    /// The round: trials with equal case, congestion control and round are comparable.
    pub round: u32,
    /// The figures; None if the trial failed.
    pub measured: Option<Measured>,
    /// The reason why it failed.
    pub fault: Option<String>,
}

/// The figures of a trial.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Measured {
    /// Duration of the measurement in seconds.
    pub seconds: f64,
    /// Complete and correct responses.
    pub requests: u64,
    /// Responses per second.
    pub requests_per_second: f64,
    /// Bytes of bodies per second.
    pub bytes_per_second: f64,
    /// CPU time of the server per request, in microseconds.
    pub cpu_us_per_request: Option<f64>,
    /// Fraction of a core used by the server.
    pub server_share: Option<f64>,
    /// Fraction of a core used by the generator.
    pub generator_share: f64,
    /// Whether the generator limited the figures.
    pub generator_is_the_limit: bool,
    /// Fraction of time that each core was busy.
    pub cores_busy: Vec<f64>,
    /// Median latency, in microseconds.
    pub p50_us: f64,
    /// 99th percentile of latency, in microseconds.
    pub p99_us: f64,
    /// Errors by kind.
    pub errors: BTreeMap<String, u64>,
    /// Number of bodies that were compared with a reference.
    pub verified: u64,
    /// Whether the cores were idle at its start.
    pub settled: bool,
}

/// Counts of a contender's system calls in a case.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Calls {
    /// The case's name.
    pub case: String,
    /// The contender's name.
    pub contender: String,
    /// All calls, per request.
    pub per_request: f64,
    /// Calls by name, per request.
    pub by_name: BTreeMap<String, f64>,
}

/// The environment of a trial.
pub(super) struct Scene<'a> {
    pub(super) settings: &'a Settings,
    pub(super) programs: &'a Programs,
    pub(super) stop: &'a AtomicBool,
}

impl Scene<'_> {
    /// Waits until the cores are idle, at most `settle_seconds`, then puts the load of `case` on a server
    /// and measures.
    pub(super) fn measure(&self, server: &Running, case: &Case, settle_seconds: f64) -> Result<Measured> {
        let settled = watch::settle(Duration::from_secs_f64(settle_seconds), self.stop);
        let seconds = self.settings.seconds * as_float(case.longer());
        let settings = Settings { seconds, ..self.settings.clone() };
        let (figures, shares) = self.load(server, case, &settings)?;
        Ok(joined(figures, shares, settled))
    }

    /// Counts the system calls of a server under the load of `case`. `folder` receives the tracer's output.
    pub(super) fn count(&self, server: &Running, case: &Case, folder: &Path) -> Result<Calls> {
        let file = folder.join("strace");
        let tracer = Tracer::attach(server.group(), &file)?;
        let short = Settings { seconds: TRACED_SECONDS, warm_up_seconds: 0.0, ..self.settings.clone() };
        let loaded = self.load(server, case, &short);
        tracer.detach()?;
        let requests = loaded?.0.requests.max(1);
        let calls = syscalls::read(&std::fs::read_to_string(file)?);
        let each = |calls: u64| ratio(calls, requests);
        Ok(Calls {
            case: case.name.clone(),
            contender: server.contender.name.clone(),
            per_request: each(calls.values().sum()),
            by_name: calls.into_iter().map(|(name, calls)| (name, each(calls))).collect(),
        })
    }

    fn load(&self, server: &Running, case: &Case, settings: &Settings) -> Result<(Figures, Option<Shares>)> {
        let mut command = generator::command(&self.programs.generator, settings, case, server.port);
        let child = on_core(settings.generator_core, &mut command)?;
        let (output, shares) = watch::watch(child, server.group(), settings.seconds, self.stop)?;
        Ok((generator::read(&output.stdout, &output.stderr)?, shares))
    }
}

fn joined(figures: Figures, shares: Option<Shares>, settled: bool) -> Measured {
    let (server, cores) = shares.map_or((None, Vec::new()), |shares| (Some(shares.server), shares.cores));
    let rate = figures.requests_per_second;
    Measured {
        seconds: figures.seconds,
        requests: figures.requests,
        requests_per_second: rate,
        bytes_per_second: figures.bytes_per_second,
        cpu_us_per_request: server.filter(|_| rate > 0.0).map(|share| share * 1e6 / rate),
        server_share: server,
        generator_share: figures.generator.share,
        generator_is_the_limit: figures.generator.is_the_limit,
        cores_busy: cores,
        p50_us: figures.latency_us.p50,
        p99_us: figures.latency_us.p99,
        errors: figures.errors,
        verified: figures.verified,
        settled,
    }
}

#[allow(clippy::cast_precision_loss, reason = "counts far below 2^52")]
fn ratio(calls: u64, requests: u64) -> f64 {
    calls as f64 / requests as f64
}
