//! `/metrics`: what was counted, in Prometheus' text format.
//!
//! It counts nothing itself. What must hold: strangers do not see it unless the operator says so; a proxy on
//! this machine is not taken for this machine.

use std::fmt::Write as _;

use plimsoll_io::Peer;
use plimsoll_proto::http::{Answer, Body, Request, StatusPage};
use plimsoll_wire::http::status::Status;

use crate::Ask;
use crate::refusal::Refusal;

/// Fields by which a proxy says for whom it asks.
const FORWARDED: [&str; 3] = ["Forwarded", "X-Forwarded-For", "X-Real-IP"];

pub(crate) fn answer(ask: &Ask<'_, '_>, status: &StatusPage) -> Result<Answer, Refusal> {
    if !ask.web.settings.metrics_open && !is_local(ask.request) {
        return Err(Refusal::new(
            Status::FORBIDDEN,
            "Metrics are for the server's own machine. Ask there, or have its operator open them.",
        ));
    }
    let mut text = ask.web.operations.recorder().meter().text();
    write_server(&mut text, status);
    let answer = Answer::new(Status::OK).field("Content-Type", "text/plain; version=0.0.4; charset=utf-8");
    Ok(answer.field("Cache-Control", "no-store").body(Body::Bytes(text.into_bytes())))
}

fn is_local(request: &Request<'_>) -> bool {
    let is_here = match request.peer {
        Peer::Ip(ip, _) => ip.to_canonical().is_loopback(),
        Peer::Unix => true,
    };
    is_here && FORWARDED.iter().all(|name| request.head.named(request.block, name).is_none())
}

/// What the server as a whole has done.
fn write_server(text: &mut String, status: &StatusPage) {
    let (load, counters, hot) = ((status.load)(), &status.counters, status.hot.figures());
    let _ = writeln!(text, "# HELP plimsoll_answers_total HTTP answers, by the first digit of their status.");
    let _ = writeln!(text, "# TYPE plimsoll_answers_total counter");
    for class in 2..=5 {
        let _ = writeln!(text, "plimsoll_answers_total{{class=\"{class}xx\"}} {}", counters.answers(class));
    }
    for (name, kind, help, value) in [
        ("sent_bytes_total", "counter", "Bytes of bodies that were sent over HTTP.", counters.sent_bytes()),
        ("dropped_log_lines_total", "counter", "Log lines that were lost.", counters.dropped_log_lines()),
        ("hot_set_hits_total", "counter", "Files sent without looking for their name.", hot.hits),
        ("hot_set_misses_total", "counter", "Files looked up by their name.", hot.misses),
        ("hot_set_entries", "gauge", "Files that are kept ready.", hot.entries),
        ("hot_set_bytes", "gauge", "What they take of the budget; an open file, its share.", hot.bytes),
        ("hot_set_bytes_max", "gauge", "The budget of the files kept ready.", hot.bytes_max),
        ("connections_accepted_total", "counter", "Connections accepted.", load.connections_accepted),
        ("connections_refused_total", "counter", "Connections refused.", load.connections_refused),
        ("connections_evicted_total", "counter", "Connections closed for others.", load.connections_evicted),
        ("connections_panicked_total", "counter", "Connections lost to a defect.", load.connections_panicked),
        ("connections_open", "gauge", "Connections that are open.", load.connections_open as u64),
        ("connections_max", "gauge", "Connections that may be open.", load.connections_max as u64),
        ("draining", "gauge", "1 while the server is about to end.", u64::from(load.draining)),
        ("uptime_seconds", "gauge", "Seconds since the start.", load.uptime_seconds),
    ] {
        let _ = writeln!(text, "# HELP plimsoll_{name} {help}\n# TYPE plimsoll_{name} {kind}");
        let _ = writeln!(text, "plimsoll_{name} {value}");
    }
}
