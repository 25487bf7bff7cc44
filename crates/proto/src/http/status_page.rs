//! `/healthz` and `/api/status`: whether the server lives, and its activity.
//!
//! It is not the metrics page. Invariant: a request takes no lock and opens no file.

use std::collections::BTreeMap;
use std::sync::Arc;

use plimsoll_wire::http::status::Status;
use serde::Serialize;

use super::answer::{Answer, Body};
use super::counters::Counters;
use super::readiness::Readiness;
use plimsoll_content::{HotCache, HotFigures};

/// The current load of a server.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Load {
    /// Connections that are open.
    pub connections_open: usize,
    /// The limit on open connections.
    pub connections_max: usize,
    /// Connections that were accepted since the start.
    pub connections_accepted: u64,
    /// Connections that were refused: their address was above its limit, or no worker was free.
    pub connections_refused: u64,
    /// Connections that were closed because others needed their slots or workers.
    pub connections_evicted: u64,
    /// Connections that were dropped because of a bug of the server.
    pub connections_panicked: u64,
    /// Whether the server is shutting down.
    pub draining: bool,
    /// Time since the start, in seconds.
    pub uptime_seconds: u64,
}

/// The location of each tier that this server uses, without addresses: the response is public.
#[derive(Clone, Copy, Default, Serialize)]
pub struct Tiers {
    /// The tier that clients connect to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub front: Option<TierLocation>,
    /// The tier that has the accounts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auth: Option<TierLocation>,
    /// The tier that has the files of accounts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub store: Option<TierLocation>,
}

/// The location of a tier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum TierLocation {
    /// In this process.
    #[serde(rename = "here")]
    Local,
    /// On another server.
    #[serde(rename = "elsewhere")]
    Remote,
}

/// A certificate of the listeners.
#[derive(Clone, Debug, Serialize)]
pub struct CertificateStatus {
    /// The names and addresses for which it is valid.
    pub names: Vec<String>,
    /// Whole days until its end; negative after that.
    pub days_left: i64,
}

/// The source of a server's status.
pub struct StatusPage {
    /// The version of the program.
    pub version: &'static str,
    /// The name of the engine.
    pub engine: String,
    /// Event loops or workers of the engine.
    pub threads: usize,
    /// The locations of the tiers.
    pub tiers: Tiers,
    /// Returns the current load.
    pub load: Box<dyn Fn() -> Load + Send + Sync>,
    /// The counters of responses.
    pub counters: Arc<Counters>,
    /// The hot cache.
    pub hot: Arc<HotCache>,
    /// Settings for a laboratory that are on, by their names in the configuration.
    pub lab: Vec<&'static str>,
    /// Returns the metrics of operations in Prometheus' text format.
    pub operations: Box<dyn Fn() -> String + Send + Sync>,
    /// Returns the counts and limits of channels, by name.
    pub channel: Box<dyn Fn() -> BTreeMap<String, u64> + Send + Sync>,
    /// Returns the certificates of the listeners.
    pub certificates: Box<dyn Fn() -> Vec<CertificateStatus> + Send + Sync>,
    /// Returns the figures of a proxy and its origins.
    pub proxy: Option<Box<dyn Fn() -> serde_json::Value + Send + Sync>>,
    /// The checks of `/readyz`.
    pub readiness: Arc<Readiness>,
}

/// The activity of a server at one moment.
#[derive(Serialize)]
pub struct StatusDocument<'a> {
    /// The version of the program.
    pub version: &'a str,
    /// The name of the engine.
    pub engine: &'a str,
    /// Event loops or workers of the engine.
    pub threads: usize,
    /// The locations of the tiers.
    pub tiers: Tiers,
    /// The current load.
    pub load: Load,
    /// Responses since the start.
    pub answers: Answers,
    /// Bytes of responses since the start.
    pub sent_bytes: u64,
    /// Lines of the access log that were lost.
    pub dropped_log_lines: u64,
    /// The hot cache.
    pub hot_set: HotFigures,
    /// The counts and limits of channels, by name.
    pub channel: BTreeMap<String, u64>,
    /// Settings for a laboratory that are on.
    pub lab: &'a [&'static str],
    /// The certificates of the listeners.
    pub certificates: Vec<CertificateStatus>,
    /// The figures of a proxy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proxy: Option<serde_json::Value>,
}

/// Responses, by the first digit of their status.
#[derive(Serialize)]
pub struct Answers {
    /// Successful ones.
    #[serde(rename = "2xx")]
    pub succeeded: u64,
    /// Redirects, and conditions that hold.
    #[serde(rename = "3xx")]
    pub redirected: u64,
    /// Refused requests.
    #[serde(rename = "4xx")]
    pub refused: u64,
    /// Errors of the server.
    #[serde(rename = "5xx")]
    pub failed: u64,
}

impl StatusPage {
    /// Returns the activity now.
    pub fn document(&self) -> StatusDocument<'_> {
        let count = |class| self.counters.answers(class);
        StatusDocument {
            version: self.version,
            engine: &self.engine,
            threads: self.threads,
            tiers: self.tiers,
            load: (self.load)(),
            answers: Answers {
                succeeded: count(2),
                redirected: count(3),
                refused: count(4),
                failed: count(5),
            },
            sent_bytes: self.counters.sent_bytes(),
            dropped_log_lines: self.counters.dropped_log_lines(),
            hot_set: self.hot.figures(),
            channel: (self.channel)(),
            lab: &self.lab,
            certificates: (self.certificates)(),
            proxy: self.proxy.as_ref().map(|figures| figures()),
        }
    }

    pub(super) fn answer(&self) -> Answer {
        // Numbers and strings always serialise.
        let body = serde_json::to_vec(&self.document()).unwrap_or_default();
        Answer::new(Status::OK)
            .field("Content-Type", "application/json")
            .field("Cache-Control", "no-store")
            .body(Body::Bytes(body))
    }
}

pub(super) fn healthy() -> Answer {
    let answer =
        Answer::new(Status::OK).field("Content-Type", "text/plain").field("Cache-Control", "no-store");
    answer.body(Body::Bytes(b"ok\n".to_vec()))
}
