//! `/healthz` and `/api/status`: whether the server lives, and what it does.
//!
//! It is not the metrics page. What must hold: asking costs no lock and no file.

use std::sync::Arc;

use plimsoll_wire::http::status::Status;
use serde::Serialize;

use super::answer::{Answer, Body};
use super::counters::Counters;
use super::readiness::Readiness;
use super::site::{HotFigures, HotSet};

/// What a server knows of its own load at the moment.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Load {
    /// Connections that are open.
    pub connections_open: usize,
    /// Connections that may be open.
    pub connections_max: usize,
    /// Connections that were accepted since the start.
    pub connections_accepted: u64,
    /// Connections that were refused: their address had its share of the slots, or no worker came to them.
    pub connections_refused: u64,
    /// Connections that were closed because others needed their slots or workers.
    pub connections_evicted: u64,
    /// Connections that were dropped because of a defect of the server.
    pub connections_panicked: u64,
    /// Whether the server is about to end.
    pub draining: bool,
    /// Time since the start, in seconds.
    pub uptime_seconds: u64,
}

/// Where each tier is that this server has to do with: no address, for strangers read it.
#[derive(Clone, Copy, Default, Serialize)]
pub struct Tiers {
    /// Who speaks with people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub front: Option<Whereabouts>,
    /// Who answers for accounts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auth: Option<Whereabouts>,
    /// Who keeps the files of accounts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub store: Option<Whereabouts>,
}

/// Where a tier is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Whereabouts {
    /// In this process.
    Here,
    /// At another server.
    Elsewhere,
}

/// What a server tells about itself.
pub struct StatusPage {
    /// The version of the program.
    pub version: &'static str,
    /// The kind of engine that serves.
    pub engine: String,
    /// Loops or workers of the engine.
    pub threads: usize,
    /// Where the tiers are.
    pub tiers: Tiers,
    /// Asks for the present load.
    pub load: Box<dyn Fn() -> Load + Send + Sync>,
    /// The counts of answers.
    pub counters: Arc<Counters>,
    /// Files that are kept ready.
    pub hot: Arc<HotSet>,
    /// Settings that only a laboratory wants and that are on, by their names in the configuration.
    pub lab: Vec<&'static str>,
    /// Metrics of operations, as text in Prometheus' format.
    pub operations: Box<dyn Fn() -> String + Send + Sync>,
    /// What must be well before the server takes work.
    pub readiness: Arc<Readiness>,
}

#[derive(Serialize)]
struct Written<'a> {
    version: &'a str,
    engine: &'a str,
    threads: usize,
    tiers: Tiers,
    load: Load,
    answers: Answers,
    sent_bytes: u64,
    dropped_log_lines: u64,
    hot_set: HotFigures,
    lab: &'a [&'static str],
}

#[derive(Serialize)]
struct Answers {
    #[serde(rename = "2xx")]
    succeeded: u64,
    #[serde(rename = "3xx")]
    redirected: u64,
    #[serde(rename = "4xx")]
    refused: u64,
    #[serde(rename = "5xx")]
    failed: u64,
}

impl StatusPage {
    pub(super) fn answer(&self) -> Answer {
        let count = |class| self.counters.answers(class);
        let written = Written {
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
            lab: &self.lab,
        };
        // Numbers and plain names: there is nothing in them that could not be written.
        let body = serde_json::to_vec(&written).unwrap_or_default();
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
