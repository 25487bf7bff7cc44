//! The figures of channels for operators: in `/metrics` and in `/api/status`.
//!
//! It counts nothing. Invariant: a server on which no channel was ever set up shows zeros, not nothing.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use plimsoll_channel::limits::PASSED_FILES_MAX;
use plimsoll_channel::{Count, Settings};

/// Returns the metrics of channels in Prometheus' text format.
pub(crate) fn metrics(settings: &Settings) -> String {
    let mut text = String::new();
    for (count, name) in Count::ALL {
        let (kind, suffix) = if count == Count::Open { ("gauge", "") } else { ("counter", "_total") };
        let (name, value) = (format!("plimsoll_channel_{name}{suffix}"), settings.meter.get(count));
        let help = count.help();
        let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}");
    }
    text
}

/// Returns the counts and limits of channels.
pub(crate) fn figures(settings: &Settings) -> BTreeMap<&'static str, u64> {
    let counts = Count::ALL.map(|(count, name)| (name, settings.meter.get(count)));
    let limits = [("ring_bytes", settings.ring_bytes as u64), ("slots_max", PASSED_FILES_MAX as u64)];
    counts.into_iter().chain(limits).collect()
}
