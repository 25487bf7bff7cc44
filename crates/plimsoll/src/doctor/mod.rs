//! The doctor: looks at this machine as a server would use it, one check a file.
//!
//! It mends nothing. What must hold: what it finds wrong comes with the command that mends it now and the one
//! that makes it last; what it cannot find out is not said to be well.

mod announced;
mod auth_server;
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
mod queue;
mod report;
mod space;

pub(crate) use report::{as_json, as_text};

use serde::Serialize;

use crate::config::Config;

/// How a check went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Verdict {
    Ok,
    /// The server runs, but not as well or as safely as it could.
    Warn,
    /// The server will not run, or will lose what is entrusted to it.
    Fail,
}

/// What a check saw, and what mends it.
#[derive(Debug, Serialize)]
pub(crate) struct Finding {
    pub(crate) check: &'static str,
    pub(crate) verdict: Verdict,
    pub(crate) seen: String,
    /// What mends it until the next restart.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) now: Option<String>,
    /// What makes that last.
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

    /// With what mends it.
    fn mend(mut self, now: impl Into<String>, lasting: impl Into<String>) -> Finding {
        self.now = Some(now.into());
        self.lasting = Some(lasting.into());
        self
    }
}

/// Every check, in the order in which it is told.
const CHECKS: [fn(&Config) -> Vec<Finding>; 18] = [
    kernel::check,
    open_files::check,
    processes::check,
    queue::check,
    outgoing::check,
    congestion::check,
    ports::check,
    data_ports::check,
    announced::check,
    data_folder::check,
    exposure::check,
    homes::check,
    directory::check,
    auth_server::check,
    disk::check,
    space::check,
    clock::check,
    memory::check,
];

/// Looks at everything that a server with this configuration needs.
pub(crate) fn examine(config: &Config) -> Vec<Finding> {
    CHECKS.iter().flat_map(|check| check(config)).collect()
}
