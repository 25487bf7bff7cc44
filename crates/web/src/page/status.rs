//! The operator's page about the server: its load, its tiers, its certificates, and the latencies of
//! operations.
//!
//! It has the figures of `/api/status` and `/metrics`. Invariant: only an account that may read those gets
//! them.

use std::time::Duration;

use maud::{Markup, html};
use plimsoll_content::page::{rounded_size, time};
use plimsoll_operations::{Error, Failure, OperationFigures};
use plimsoll_proto::http::{Answer, StatusDocument, TierLocation};
use plimsoll_wire::calendar::since_1970;
use plimsoll_wire::http::status::Status;

use super::frame::{Frame, Section};
use super::texts::Language;
use crate::refusal::Refusal;
use crate::{RoutedRequest, credentials, may_read_status};

pub(super) async fn show(ask: RoutedRequest<'_, '_>) -> Result<Answer, Refusal> {
    let caller = credentials::caller(ask.web, ask.request).await?;
    let account = &caller.identity.account;
    if !may_read_status(account.permissions) {
        return Err(Error::NotPermitted("read the server's figures").into());
    }
    let operations = &ask.web.operations;
    let free = operations.store().free_bytes(caller.io()).await;
    let (meter, document) = (operations.audit_log().meter(), ask.status.document());
    let (figures, failures) = (meter.figures(), meter.failures());
    let frame = Frame::new(ask.request, Section::Operate, Some(account));
    let language = frame.language;
    let content = html! {
        h1 { (language.text("status")) }
        @if account.permissions.administer {
            p { a href="/app/operate" { (language.text("operate.accounts")) } }
        }
        (facts(&server(language, &document, free)))
        section { h2 { (language.text("status.operations")) } (latencies(language, &figures)) }
        @if account.permissions.administer {
            section { h2 { (language.text("status.errors")) } (errors(language, &failures)) }
        }
        @if !document.certificates.is_empty() {
            section { h2 { (language.text("status.certificates")) } (certificates(language, &document)) }
        }
    };
    Ok(frame.answer(Status::OK, language.text("status"), &content))
}

/// A term and its text.
type Fact<'a> = (&'a str, String);

fn facts(facts: &[Fact<'_>]) -> Markup {
    html! { dl.facts { @for (term, text) in facts { div { dt { (term) } dd { (text) } } } } }
}

/// Describes the server as a whole.
fn server<'a>(language: &'a Language, status: &StatusDocument<'_>, free: Option<u64>) -> Vec<Fact<'a>> {
    let (load, answers, hot) = (&status.load, &status.answers, &status.hot_set);
    let count = |key, values: &[(&str, u64)]| {
        let values: Vec<_> = values.iter().map(|(name, value)| (*name, value.to_string())).collect();
        let values: Vec<_> = values.iter().map(|(name, value)| (*name, &**value)).collect();
        language.fill(key, &values)
    };
    let [open, max] = [load.connections_open, load.connections_max].map(|count| count as u64);
    let refused = load.connections_refused + load.connections_evicted;
    let mut facts = vec![
        (language.text("status.version"), status.version.to_owned()),
        (language.text("status.engine"), format!("{}, {}", status.engine, status.threads)),
        (language.text("status.uptime"), uptime(language, load.uptime_seconds)),
        (language.text("status.tiers"), tiers(language, status)),
        (
            language.text("status.connections"),
            count("status.of-connections", &[("open", open), ("max", max), ("refused", refused)]),
        ),
        (
            language.text("status.responses"),
            count(
                "status.of-responses",
                &[
                    ("succeeded", answers.succeeded + answers.redirected),
                    ("refused", answers.refused),
                    ("failed", answers.failed),
                ],
            ),
        ),
        (language.text("status.sent"), rounded_size(status.sent_bytes)),
        (
            language.text("status.hot"),
            language.fill(
                "status.of-hot",
                &[
                    ("files", &hot.entries.to_string()),
                    ("used", &rounded_size(hot.bytes)),
                    ("max", &rounded_size(hot.bytes_max)),
                    ("share", &percent(hot.hits, hot.hits + hot.misses)),
                ],
            ),
        ),
    ];
    if let Some(free) = free {
        facts.push((language.text("status.free"), rounded_size(free)));
    }
    if !status.lab.is_empty() {
        facts.push((language.text("status.lab"), status.lab.join(", ")));
    }
    facts
}

fn percent(part: u64, whole: u64) -> String {
    let percent = u128::from(part) * 100 / u128::from(whole.max(1));
    format!("{percent} %")
}

fn uptime(language: &Language, seconds: u64) -> String {
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3_600 % 24, seconds / 60 % 60);
    let [days, hours, minutes] = [days, hours, minutes].map(|number| number.to_string());
    language.fill("status.time", &[("days", &days), ("hours", &hours), ("minutes", &minutes)])
}

fn tiers(language: &Language, status: &StatusDocument<'_>) -> String {
    let named = [("auth", status.tiers.auth), ("store", status.tiers.store)];
    let texts = named.into_iter().filter_map(|(name, at)| {
        let key = match at? {
            TierLocation::Local => "status.here",
            TierLocation::Remote => "status.elsewhere",
        };
        Some(format!("{name}: {}", language.text(key)))
    });
    texts.collect::<Vec<_>>().join(", ")
}

fn latencies(language: &Language, figures: &[OperationFigures]) -> Markup {
    html! {
        table.figures {
            thead {
                tr {
                    th scope="col" { (language.text("status.operation")) }
                    th scope="col" { (language.text("status.count")) }
                    th scope="col" { (language.text("status.failures")) }
                    th scope="col" { "50 %" }
                    th scope="col" { "95 %" }
                    th scope="col" { "99 %" }
                }
            }
            tbody {
                @for of in figures {
                    tr {
                        th scope="row" { (of.operation.name()) }
                        td { (of.count) }
                        td { (of.failed) }
                        @for time in of.percentiles { td { (latency_text(time)) } }
                    }
                }
            }
        }
        p.quiet { (language.text("status.latencies")) }
    }
}

/// Returns a time with its unit, to three digits or fewer.
fn latency_text(time: Duration) -> String {
    match time.as_micros() {
        micros @ ..1_000 => format!("{micros} µs"),
        micros @ ..10_000 => format!("{}.{} ms", micros / 1_000, micros % 1_000 / 100),
        micros @ ..1_000_000 => format!("{} ms", micros / 1_000),
        micros => format!("{}.{} s", micros / 1_000_000, micros % 1_000_000 / 100_000),
    }
}

/// Returns the list of failed operations, without their paths: those are their accounts' own.
fn errors(language: &Language, failures: &[Failure]) -> Markup {
    html! {
        @if failures.is_empty() { p { (language.text("status.no-errors")) } }
        @else {
            ul.rows {
                @for failure in failures {
                    li {
                        span {
                            bdi { (failure.account) } " "
                            span.quiet lang="en" {
                                (failure.operation) ": " (failure.reason) ", " (failure.protocol) ", "
                                bdi { (failure.peer) }
                            }
                        }
                        span.quiet { (time(since_1970(failure.time))) }
                    }
                }
            }
        }
    }
}

fn certificates(language: &Language, status: &StatusDocument<'_>) -> Markup {
    html! {
        ul.rows {
            @for certificate in &status.certificates {
                li {
                    span { bdi { (certificate.names.join(", ")) } }
                    span.quiet {
                        (language.fill("status.days", &[("days", &certificate.days_left.to_string())]))
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_has_a_unit_and_three_digits_or_fewer() {
        let shown = |micros| latency_text(Duration::from_micros(micros));
        assert_eq!([0, 999, 1_000, 9_999].map(shown), ["0 µs", "999 µs", "1.0 ms", "9.9 ms"]);
        assert_eq!([10_000, 999_999, 50_000_000].map(shown), ["10 ms", "999 ms", "50.0 s"]);
    }

    #[test]
    fn a_share_of_nothing_is_zero() {
        assert_eq!(
            (percent(0, 0), percent(1, 3), percent(3, 3)),
            ("0 %".into(), "33 %".into(), "100 %".into())
        );
    }
}
