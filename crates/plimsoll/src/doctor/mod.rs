//! The doctor: checks whether this machine suits a server, with one check in each file.
//!
//! It fixes nothing. Invariants: each fault is reported with a command that fixes it now, and a setting
//! that makes the fix permanent. A check that could not run is never reported as good.

mod acme;
mod announced;
mod certificates;
mod clock;
mod congestion;
mod data_folder;
mod data_ports;
mod directory;
mod disk;
mod exposure;
mod homes;
mod kernel;
mod memory;
mod open_files;
mod outgoing;
mod ports;
mod processes;
mod proxies;
mod queue;
mod report;
mod space;
mod tier_servers;

pub(crate) use announced::own_addresses;
pub(crate) use report::{as_json, as_text};

use serde::Serialize;

use crate::config::Config;

/// The result of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Verdict {
    Ok,
    /// The server runs, but not as well or as safely as it could.
    Warn,
    /// The server will not run, or will lose data.
    Fail,
}

/// The result of a check, with its remedy.
#[derive(Debug, Serialize)]
pub(crate) struct Finding {
    pub(crate) check: &'static str,
    pub(crate) verdict: Verdict,
    pub(crate) seen: String,
    /// The remedy until the next restart.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) now: Option<String>,
    /// The permanent remedy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) lasting: Option<String>,
}

impl Finding {
    fn ok(check: &'static str, seen: impl Into<String>) -> Finding {
        Finding { check, verdict: Verdict::Ok, seen: seen.into(), now: None, lasting: None }
    }

    fn warn(check: &'static str, seen: impl Into<String>) -> Finding {
        Finding { verdict: Verdict::Warn, ..Finding::ok(check, seen) }
    }

    fn fail(check: &'static str, seen: impl Into<String>) -> Finding {
        Finding { verdict: Verdict::Fail, ..Finding::ok(check, seen) }
    }

    /// Adds the remedy.
    fn with_fix(mut self, now: impl Into<String>, lasting: impl Into<String>) -> Finding {
        self.now = Some(now.into());
        self.lasting = Some(lasting.into());
        self
    }
}

/// All checks, in the order of the report.
const CHECKS: [fn(&Config) -> Vec<Finding>; 21] = [
    kernel::check,
    open_files::check,
    processes::check,
    queue::check,
    outgoing::check,
    congestion::check,
    ports::check,
    data_ports::check,
    announced::check,
    certificates::check,
    acme::check,
    data_folder::check,
    exposure::check,
    proxies::check,
    homes::check,
    directory::check,
    tier_servers::check,
    disk::check,
    space::check,
    clock::check,
    memory::check,
];

/// Runs every check for a server with this configuration.
pub(crate) fn examine(config: &Config) -> Vec<Finding> {
    CHECKS.iter().flat_map(|check| check(config)).collect()
}
