//! The figures of channels for operators: in `/metrics` and in `/api/status`, of a server and of a proxy.
//!
//! It counts nothing. Invariant: a server on which no channel was ever set up shows zeros, not nothing.

use std::collections::BTreeMap;

use plimsoll_channel::{Count, CountKind, Settings};
use plimsoll_wire::metrics::Metric;

/// The unit behind the name of a time in `/api/status`.
const STATUS_UNIT: &str = "microseconds";

/// Returns the metrics of channels in Prometheus' text format.
pub(crate) fn metrics(settings: &Settings) -> String {
    let mut text = String::new();
    for (count, name) in Count::ALL {
        let (value, help) = (settings.meter.get(count), count.help());
        let (kind, suffix, value) = match count.kind() {
            CountKind::Gauge => ("gauge", "", value.to_string()),
            CountKind::Total => ("counter", "_total", value.to_string()),
            CountKind::Microseconds => {
                ("counter", "_seconds_total", format!("{}.{:06}", value / 1_000_000, value % 1_000_000))
            }
        };
        Metric::new(&mut text, format!("plimsoll_channel_{name}{suffix}"), kind, help).value(value);
    }
    let help = "A limit of each connection by shared memory.";
    let mut limit = Metric::new(&mut text, "plimsoll_channel_limit", "gauge", help);
    for (name, value) in limits(settings) {
        limit.series(&[("name", name)], value);
    }
    text
}

/// Returns the counts and limits of channels.
pub(crate) fn figures(settings: &Settings) -> BTreeMap<String, u64> {
    let counts = Count::ALL.into_iter().map(|(count, name)| {
        let is_time = count.kind() == CountKind::Microseconds;
        let name = if is_time { format!("{name}_{STATUS_UNIT}") } else { name.to_owned() };
        (name, settings.meter.get(count))
    });
    counts.chain(limits(settings).map(|(name, value)| (name.to_owned(), value))).collect()
}

fn limits(settings: &Settings) -> [(&'static str, u64); 2] {
    [("ring_bytes", settings.ring_bytes as u64), ("slots_max", settings.slots as u64)]
}
