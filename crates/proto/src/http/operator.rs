//! `/metrics`, `/api/status` and `/purge`, which are for operators: the access checks, and the text of the
//! metrics.
//!
//! This module counts nothing. Invariant: a page of another site in an operator's browser reads and changes
//! nothing.

use plimsoll_io::Peer;
use plimsoll_wire::host::{is_localhost, parse_address};
use plimsoll_wire::http::head::Method;
use plimsoll_wire::http::status::Status;
use plimsoll_wire::metrics::Metric;

use super::answer::{Answer, Body};
use super::local_request::host_of;
use super::problem::problem;
use super::request::Request;
use super::status_page::StatusPage;

/// Returns the response to a client that may not read metrics and status.
pub fn operators_only() -> Answer {
    const DETAIL: &str = "Metrics and status of plimsoll are for programs on its own machine, for the \
                          addresses of --metrics, and for accounts with the right operate \
                          (plimsoll account permit NAME +operate).";
    problem(Status::FORBIDDEN, DETAIL).field("Cache-Control", "no-store")
}

/// The names, beside IP addresses and `localhost`, by which clients may request the operators' pages at an
/// address of `--metrics`.
///
/// A browser on the operator's machine reaches that address for any page. The page's own name can be made to
/// resolve to it (DNS rebinding), and then appears in Host; a page under its real name sends an Origin.
#[derive(Clone, Debug, Default)]
pub struct OperatorHosts(Vec<String>);

impl OperatorHosts {
    /// Creates the set of these names.
    pub fn new(names: impl IntoIterator<Item = String>) -> OperatorHosts {
        OperatorHosts(names.into_iter().collect())
    }

    /// Returns the refusal of a request whose Host is another name, or that a page of another site has sent.
    pub(super) fn refusal(&self, request: &Request<'_>) -> Option<Answer> {
        const FOREIGN_HOST: &str = "Host must be an IP address, localhost, or a name in the setting \
                                    operator_hosts: a page in a browser could use any other.";
        const FOREIGN_PAGE: &str = "A page of another site must not change anything here. Send no Origin and \
                                    no Sec-Fetch-Site, as programs do.";
        let forbidden = |detail| Some(problem(Status::FORBIDDEN, detail).field("Cache-Control", "no-store"));
        let authority = request.head.authority(request.block);
        // No page reaches a Unix socket.
        if *request.peer != Peer::Unix && !authority.is_some_and(|authority| self.contain(authority)) {
            return forbidden(FOREIGN_HOST);
        }
        let is_change = !matches!(request.method(), Method::Get | Method::Head);
        if is_change && is_of_other_site(request, authority) { forbidden(FOREIGN_PAGE) } else { None }
    }

    /// Whether an authority is an IP address, `localhost` or one of the names.
    fn contain(&self, authority: &[u8]) -> bool {
        host_of(authority).is_some_and(|host| {
            is_localhost(host)
                || parse_address(host).is_some()
                || self.0.iter().any(|name| name.eq_ignore_ascii_case(host))
        })
    }
}

/// Whether a browser has sent a request for a page of another site.
fn is_of_other_site(request: &Request<'_>, authority: Option<&[u8]>) -> bool {
    let is_own = |origin: &[u8]| {
        let of_origin = origin.strip_prefix(b"http://").or_else(|| origin.strip_prefix(b"https://"));
        of_origin.is_some() && of_origin == authority
    };
    request.head.fields(request.block).any(|(name, value)| {
        (name.eq_ignore_ascii_case(b"Origin") && !is_own(value))
            || (name.eq_ignore_ascii_case(b"Sec-Fetch-Site") && !matches!(value, b"same-origin" | b"none"))
    })
}

/// Returns the metrics in Prometheus' text format.
pub(super) fn metrics(status: &StatusPage) -> Answer {
    let mut text = (status.operations)();
    write_server(&mut text, status);
    let answer = Answer::new(Status::OK).field("Content-Type", "text/plain; version=0.0.4; charset=utf-8");
    answer.field("Cache-Control", "no-store").body(Body::Bytes(text.into_bytes()))
}

/// Writes the metrics of the server as a whole.
fn write_server(text: &mut String, status: &StatusPage) {
    let (load, counters, hot) = ((status.load)(), &status.counters, status.hot.figures());
    let help = "HTTP answers, by the first digit of their status.";
    let mut answers = Metric::new(text, "plimsoll_answers_total", "counter", help);
    for class in 2..=5 {
        answers.series(&[("class", &format!("{class}xx"))], counters.answers(class));
    }
    for (name, kind, help, value) in [
        ("sent_bytes_total", "counter", "Bytes of bodies that were sent over HTTP.", counters.sent_bytes()),
        ("dropped_log_lines_total", "counter", "Log lines that were lost.", counters.dropped_log_lines()),
        ("hot_set_hits_total", "counter", "Files sent without looking for their name.", hot.hits),
        ("hot_set_misses_total", "counter", "Files looked up by their name.", hot.misses),
        ("hot_set_entries", "gauge", "Files that are kept ready.", hot.entries),
        (
            "hot_set_bytes",
            "gauge",
            "Bytes of the budget that these files take; an open file takes its share.",
            hot.bytes,
        ),
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
        Metric::new(text, format!("plimsoll_{name}"), kind, help).value(value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operators_pages_have_an_address_or_a_configured_name() {
        let hosts = OperatorHosts::new(["Metrics.example".to_owned()]);
        for authority in [
            "127.0.0.1:9100",
            "192.0.2.1",
            "[2001:db8::1]:9100",
            "localhost:1",
            "metrics.example",
            "METRICS.example:80",
        ] {
            assert!(hosts.contain(authority.as_bytes()), "{authority}");
        }
        for authority in
            ["", "evil.example:9100", "metrics.example.evil", "localhost.evil", "127.0.0.1.evil", "[::1"]
        {
            assert!(!hosts.contain(authority.as_bytes()), "{authority}");
        }
    }
}
