//! The figures of a proxy and its origins: for `/metrics` in Prometheus' text format, and for `/api/status`.
//!
//! It serves no page. Invariant: reading takes no lock that a request holds while it waits.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use plimsoll_client::http::limits::HEAD;
use plimsoll_wire::metrics::Metric;

use crate::cache::response_cache::CacheFigures;
use crate::limits;
use crate::origin::Origin;
use crate::settings::Settings;

/// A figure of an origin: its name, its kind, its help, and its value.
type Figure = (&'static str, &'static str, &'static str, fn(&Origin) -> &AtomicU64);

const FIGURES: [Figure; 7] = [
    ("requests_active", "gauge", "Requests in progress at an origin.", |origin| &origin.counts.active),
    ("requests_total", "counter", "Requests that were sent to an origin, also again.", |origin| {
        &origin.counts.requests
    }),
    ("failures_total", "counter", "Requests without a whole response.", |origin| &origin.counts.failures),
    ("retries_total", "counter", "Requests that were sent again.", |origin| &origin.counts.retries),
    ("connections_total", "counter", "Connections that were opened.", |origin| &origin.counts.connections),
    ("connections_reused_total", "counter", "Requests on a connection that had carried another.", |origin| {
        &origin.counts.reused
    }),
    ("connections_idle", "gauge", "Connections that wait for a request.", |origin| &origin.counts.idle),
];

/// The limits that bound what clients and origins can make grow.
const LIMITS: [(&str, u64); 6] = [
    ("attempts_max", limits::ATTEMPTS_MAX as u64),
    ("idle_connections_max", limits::IDLE_CONNECTIONS_MAX as u64),
    ("relay_ahead_bytes_max", limits::RELAY_AHEAD_BYTES_MAX),
    ("replay_bytes_max", limits::REPLAY_BYTES_MAX as u64),
    ("response_head_bytes_max", HEAD.bytes_max as u64),
    ("interim_responses_max", limits::INTERIM_RESPONSES_MAX as u64),
];

/// Returns the metrics in Prometheus' text format.
#[must_use]
pub fn metrics(settings: &Settings) -> String {
    let mut text = String::new();
    for (name, kind, help, value) in FIGURES {
        write_each(settings, &mut text, (name, kind, help), |origin| value(origin).load(Ordering::Relaxed));
    }
    let waiting = ("requests_waiting", "gauge", "Requests that wait for a connection.");
    write_each(settings, &mut text, waiting, |origin| origin.admission.waiting() as u64);
    let (spooled, spool_max) = (settings.spool.bytes(), settings.spool.bytes_max());
    for (name, help, value) in [
        ("spool_bytes", "Bytes of responses that wait in files for slow clients.", spooled),
        ("spool_bytes_max", "The limit of that.", spool_max),
        (
            "origin_connections_max",
            "Connections to one origin that may be in use.",
            settings.origin_connections as u64,
        ),
    ] {
        Metric::new(&mut text, format!("plimsoll_proxy_{name}"), "gauge", help).value(value);
    }
    let failures = limits::FAILURES_MAX;
    let help = format!("0 after {failures} failures in a row to connect, until a connection is accepted.");
    let up = ("origin_up", "gauge", help.as_str());
    write_each(settings, &mut text, up, |origin| u64::from(!origin.is_failing()));
    let help = "Time from a request to the head of its response.";
    let mut latency = Metric::new(&mut text, "plimsoll_proxy_first_byte_seconds", "histogram", help);
    for origin in origins(settings) {
        origin.counts.first_byte.write(&mut latency, origin.key());
    }
    if let Some(cache) = settings.open_cache() {
        write_cache(&cache.figures(), &mut text);
    }
    let mut limit =
        Metric::new(&mut text, "plimsoll_proxy_limit", "gauge", "A limit of the proxy, by its name.");
    for (name, value) in LIMITS {
        limit.series(&[("name", name)], value);
    }
    text
}

/// Returns the figures as a JSON object.
#[must_use]
pub fn status(settings: &Settings) -> serde_json::Value {
    let of_origin = |origin: &Arc<Origin>| {
        let mut figures: serde_json::Map<_, _> = FIGURES
            .iter()
            .map(|(name, _, _, value)| ((*name).to_owned(), value(origin).load(Ordering::Relaxed).into()))
            .collect();
        figures.insert("origin".to_owned(), origin.key().to_string().into());
        figures.insert("requests_waiting".to_owned(), origin.admission.waiting().into());
        figures.insert("up".to_owned(), (!origin.is_failing()).into());
        serde_json::Value::from(figures)
    };
    let limits: serde_json::Map<_, _> =
        LIMITS.iter().map(|(name, value)| ((*name).to_owned(), (*value).into())).collect();
    serde_json::json!({
        "origins": settings.origins.origins().iter().map(of_origin).collect::<Vec<_>>(),
        "forward": settings.forward.origins().map(of_origin).collect::<Vec<_>>(),
        "limits": limits,
        "origin_connections_max": settings.origin_connections,
        "spool_bytes": settings.spool.bytes(),
        "spool_bytes_max": settings.spool.bytes_max(),
        "cache": settings.open_cache().map(|cache| cache.figures()),
    })
}

/// Writes the figures of the cache.
fn write_cache(figures: &CacheFigures, text: &mut String) {
    let CacheFigures { index, fetches, .. } = figures;
    for (name, kind, help, value) in [
        ("hits_total", "counter", "Requests answered from the cache without the origin.", figures.hits),
        ("misses_total", "counter", "Requests whose response was fetched.", figures.misses),
        ("validated_total", "counter", "Requests answered after a validation.", figures.validated),
        ("stale_total", "counter", "Requests answered with a stale response.", figures.stale),
        ("bypassed_total", "counter", "Requests that went past the cache.", figures.bypassed),
        ("stored_total", "counter", "Responses that were stored.", figures.stored),
        ("purged_total", "counter", "Responses that were purged or invalidated.", figures.purged),
        (
            "changed_total",
            "counter",
            "Responses dropped because the origin's file had changed.",
            figures.changed,
        ),
        ("disk_errors_total", "counter", "Errors of the cache's disk.", figures.disk_errors),
        ("joined_total", "counter", "Requests that waited for the fetch of another.", fetches.joined),
        ("fetches", "gauge", "Fetches in progress.", fetches.in_progress),
        ("memory_objects", "gauge", "Responses in memory.", index.memory_objects),
        ("memory_bytes", "gauge", "Their bytes.", index.memory_bytes),
        ("memory_bytes_max", "gauge", "The limit of that.", index.memory_bytes_max),
        ("disk_objects", "gauge", "Responses on disk.", index.disk_objects),
        ("disk_bytes", "gauge", "Their bytes.", index.disk_bytes),
        ("disk_bytes_max", "gauge", "The limit of that.", index.disk_bytes_max),
        ("passed_objects", "gauge", "Responses in open files of the origin.", index.passed_objects),
        ("passed_objects_max", "gauge", "The limit of that.", index.passed_objects_max),
        (
            "passed_bytes",
            "gauge",
            "Their bytes, a small file counted as passed_bytes_max by passed_objects_max.",
            index.passed_bytes,
        ),
        ("passed_bytes_max", "gauge", "The limit of that.", index.passed_bytes_max),
    ] {
        Metric::new(text, format!("plimsoll_proxy_cache_{name}"), kind, help).value(value);
    }
    let help = "Share of requests answered from the cache.";
    let ratio = Metric::new(text, "plimsoll_proxy_cache_hit_ratio", "gauge", help);
    ratio.value(format_args!("{:.4}", figures.hit_ratio));
}

/// Writes a metric, by its name, kind and help, with a value of each origin.
fn write_each(
    settings: &Settings,
    text: &mut String,
    (name, kind, help): (&str, &str, &str),
    value: impl Fn(&Origin) -> u64,
) {
    let mut metric = Metric::new(text, format!("plimsoll_proxy_{name}"), kind, help);
    for origin in origins(settings) {
        metric.series(&[("origin", origin.key())], value(origin));
    }
}

fn origins(settings: &Settings) -> impl Iterator<Item = &Arc<Origin>> {
    settings.origins.origins().iter().chain(settings.forward.origins())
}
