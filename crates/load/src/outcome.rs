//! The figures of a trial, and the signs of a distorted measurement.
//!
//! Nothing is measured or printed here ([`crate::format`] formats the figures). Invariants: names in
//! the JSON are stable, since programs read them; rates count only complete and correct responses.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use crate::histogram::Latencies;
use crate::limits::SHARE_OF_A_LIMIT;
use crate::measure::{Measure, UserTime};
use crate::workload::{Connections, Pace, Workload};

/// The figures of a trial.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The URL of the workload.
    pub url: String,
    /// Number of users.
    pub users: usize,
    /// `closed` or `open`.
    pub pace: &'static str,
    /// `kept` or `new`.
    pub connections: &'static str,
    /// Duration of the measurement.
    pub time: Duration,
    /// The time of the measurement on the machine's clock; the simulator has no such clock.
    pub window: Option<Window>,
    /// From the first to the last first request of the users after the common start, warm-up included.
    pub start_spread: Duration,
    /// Complete and correct responses.
    pub requests: u64,
    /// Bytes of their bodies.
    pub bytes: u64,
    /// Errors by kind; kinds without errors are absent.
    pub errors: BTreeMap<String, u64>,
    /// Checks after the response that failed, by kind: of uploads, and of bodies that are saved.
    pub failed_checks: BTreeMap<String, u64>,
    /// The message of the first error of each kind.
    pub messages: BTreeMap<String, String>,
    /// Number of bodies that were compared with a reference.
    pub verified: u64,
    /// Requests in progress at the end that got no response within the final wait.
    pub unanswered: u64,
    /// Planned starts for which no user was free by the end, in an open loop that ends by time.
    pub missed: u64,
    /// Requests that ended in the warm-up.
    pub in_warm_up: u64,
    /// Requests that ended after the measured time, with or without an error.
    pub after_end: u64,
    /// From the start of a request, the planned one in an open loop, to its response's last byte.
    pub latency: Spread,
    /// Full TLS handshakes: their number, and how long they took.
    pub full_handshakes: (u64, Spread),
    /// TLS handshakes that resumed a session.
    pub resumed_handshakes: (u64, Spread),
    /// By kind of request, if there are several: its name, its count, and its latency.
    pub kinds: Vec<(&'static str, u64, Spread)>,
    /// The time of each user, if each has a number of requests; in the order of their numbers.
    pub users_each: Vec<UserTime>,
    /// Little's law.
    pub littles_law: LittlesLaw,
    /// The generator's own cost.
    pub generator: Generator,
}

/// The measured window on CLOCK_MONOTONIC, with which another process can align its samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// The earliest begin over all threads.
    pub from: Duration,
    /// The latest end over all threads.
    pub to: Duration,
}

/// The distribution of a duration.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[allow(missing_docs, reason = "each is a quantile, by its name")]
pub struct Spread {
    pub mean: Duration,
    pub p50: Duration,
    pub p90: Duration,
    pub p95: Duration,
    pub p99: Duration,
    pub p999: Duration,
    pub max: Duration,
}

/// Little's law: the mean number of users in a system equals their arrival rate times the mean time that
/// each stays. A trial whose figures violate it missed a part of the time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LittlesLaw {
    /// Users of a closed loop; mean number of requests in progress of an open one.
    pub users: f64,
    /// Rate times time, divided by that number; ideally 1. The time is latency plus think time in a closed
    /// loop, and the time since the real start in an open one.
    pub ratio: f64,
}

/// The cost of the generator itself.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Generator {
    /// CPU time of its threads during the measurement.
    pub cpu: Duration,
    /// Fraction of a core used by its busiest thread.
    pub share: f64,
    /// In an open loop: delays of planned starts for which a user was free.
    pub late: Spread,
    /// In an open loop: planned starts for which no user was free.
    pub without_user: u64,
}

impl From<&Latencies> for Spread {
    fn from(latencies: &Latencies) -> Spread {
        let at = |share| latencies.quantile(share);
        Spread {
            mean: latencies.mean(),
            p50: at(0.5),
            p90: at(0.9),
            p95: at(0.95),
            p99: at(0.99),
            p999: at(0.999),
            max: latencies.max(),
        }
    }
}

impl Spread {
    fn json(&self) -> Value {
        let microseconds = |time: Duration| time.as_nanos() as f64 / 1e3;
        json!({
            "mean": microseconds(self.mean), "p50": microseconds(self.p50), "p90": microseconds(self.p90),
            "p95": microseconds(self.p95), "p99": microseconds(self.p99), "p999": microseconds(self.p999),
            "max": microseconds(self.max),
        })
    }
}

impl Generator {
    /// Returns whether the generator may have limited the figures.
    #[must_use]
    pub fn is_the_limit(&self) -> bool {
        self.share >= SHARE_OF_A_LIMIT
    }
}

impl Outcome {
    /// Computes the figures. `share` is the fraction of a core used by the busiest thread.
    pub(crate) fn new(workload: &Workload, measure: &Measure, share: f64, unanswered: u64) -> Outcome {
        let (pace, littles_law) = match workload.pace {
            Pace::Closed { .. } => ("closed", closed_law(workload.users, measure)),
            Pace::Open { .. } => ("open", open_law(measure)),
        };
        Outcome {
            url: workload.place.url(),
            users: workload.users,
            pace,
            connections: if workload.connections == Connections::Kept { "kept" } else { "new" },
            time: measure.time,
            window: None,
            start_spread: measure.first_starts.map_or(Duration::ZERO, |starts| starts.to - starts.from),
            requests: measure.latencies.count(),
            bytes: measure.bytes,
            errors: measure.errors.clone(),
            failed_checks: measure.failed_checks.clone(),
            messages: measure.messages.clone(),
            verified: measure.verified,
            unanswered,
            missed: measure.missed,
            in_warm_up: measure.in_warm_up,
            after_end: measure.after_end,
            latency: Spread::from(&measure.latencies),
            full_handshakes: counted(&measure.handshakes.0),
            resumed_handshakes: counted(&measure.handshakes.1),
            kinds: kinds(workload, measure),
            users_each: {
                let mut users = measure.users.clone();
                users.sort_unstable_by_key(|user| user.user);
                users
            },
            littles_law,
            generator: Generator {
                cpu: measure.cpu,
                share,
                late: Spread::from(&measure.late),
                without_user: measure.without_user,
            },
        }
    }

    /// Sets the measured window. `engine_start` is the start of the engine's clock on CLOCK_MONOTONIC.
    pub(crate) fn with_window(mut self, measure: &Measure, engine_start: Duration) -> Outcome {
        self.window = measure.window.map(|window| Window {
            from: engine_start + window.from.since_start(),
            to: engine_start + window.to.since_start(),
        });
        self
    }

    /// Returns whether there was no error.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.errors.is_empty() && self.failed_checks.is_empty()
    }

    /// Returns the number of all requests that were sent: each is in one of its summands.
    #[must_use]
    pub fn sent(&self) -> u64 {
        let errors: u64 = self.errors.values().sum();
        self.requests + errors + self.in_warm_up + self.after_end + self.unanswered
    }

    /// Returns correct responses per second.
    #[must_use]
    pub fn requests_per_second(&self) -> f64 {
        per_second(self.requests, self.time)
    }

    /// Returns bytes of their bodies per second.
    #[must_use]
    pub fn bytes_per_second(&self) -> f64 {
        per_second(self.bytes, self.time)
    }

    fn kinds_json(&self) -> Value {
        let kinds = self.kinds.iter().map(|(name, count, latency)| {
            ((*name).to_owned(), json!({ "requests": count, "latency_us": latency.json() }))
        });
        Value::Object(kinds.collect())
    }

    fn users_json(&self) -> Value {
        let users = self.users_each.iter().map(|user| {
            let seconds = user.time.as_secs_f64();
            json!({
                "user": user.user, "seconds": seconds, "requests": user.requests, "bytes": user.bytes,
                "errors": user.errors,
            })
        });
        users.collect()
    }

    /// Returns the figures as JSON.
    #[must_use]
    pub fn json(&self) -> Value {
        json!({
            "url": self.url,
            "users": self.users,
            "loop": self.pace,
            "connections": self.connections,
            "seconds": self.time.as_secs_f64(),
            "requests": self.requests,
            "bytes": self.bytes,
            "errors": self.errors,
            "failed_checks": self.failed_checks,
            "warm_up_requests": self.in_warm_up,
            "requests_after_end": self.after_end,
            "unanswered": self.unanswered,
            "missed_starts": self.missed,
            "sent": self.sent(),
            "requests_per_second": self.requests_per_second(),
            "bytes_per_second": self.bytes_per_second(),
            "verified": self.verified,
            "latency_us": self.latency.json(),
            "tls_handshakes": {
                "full": self.full_handshakes.0,
                "resumed": self.resumed_handshakes.0,
                "full_us": self.full_handshakes.1.json(),
                "resumed_us": self.resumed_handshakes.1.json(),
            },
            "kinds": self.kinds_json(),
            "users_each": self.users_json(),
            "littles_law": {"users": self.littles_law.users, "ratio": self.littles_law.ratio},
            "generator": {
                "cpu_seconds": self.generator.cpu.as_secs_f64(),
                "share": self.generator.share,
                "is_the_limit": self.generator.is_the_limit(),
                "late_us": self.generator.late.json(),
                "starts_without_user": self.generator.without_user,
            },
            "window": self.window.map(|window| json!({
                "from": window.from.as_secs_f64(), "to": window.to.as_secs_f64(),
            })),
            "starts": {"spread_seconds": self.start_spread.as_secs_f64()},
        })
    }
}

fn counted(latencies: &Latencies) -> (u64, Spread) {
    (latencies.count(), Spread::from(latencies))
}

/// Returns the figures of each kind of request.
fn kinds(workload: &Workload, measure: &Measure) -> Vec<(&'static str, u64, Spread)> {
    let kinds = workload.ask.kinds().into_iter().zip(measure.kinds.iter().map(counted));
    kinds.map(|(name, (count, latency))| (name, count, latency)).collect()
}

fn per_second(count: u64, time: Duration) -> f64 {
    if time.is_zero() { 0.0 } else { count as f64 / time.as_secs_f64() }
}

/// N = X (R + Z). The rate times the mean equals the sum divided by the time.
fn closed_law(users: usize, measure: &Measure) -> LittlesLaw {
    let latency = measure.latencies.mean().as_secs_f64() * measure.latencies.count() as f64;
    let users = users as f64;
    let whole = measure.time.as_secs_f64() * users;
    LittlesLaw { users, ratio: ratio(latency + measure.between.as_secs_f64(), whole) }
}

fn open_law(measure: &Measure) -> LittlesLaw {
    let in_progress = measure.in_progress.as_secs_f64();
    let users = ratio(in_progress, measure.time.as_secs_f64());
    LittlesLaw { users, ratio: ratio(measure.service.as_secs_f64(), in_progress) }
}

fn ratio(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::CorrectResponse;

    const MS: Duration = Duration::from_millis(1);

    /// Returns ten seconds in which each of `users` waited 30 ms and thought 70 ms, repeatedly.
    fn measured(users: u32) -> Measure {
        let mut measure = Measure::new(1).unwrap();
        for _ in 0..users * 100 {
            measure.right(&CorrectResponse { bytes: 5, ..CorrectResponse::default() }, 30 * MS, 30 * MS);
            measure.between += 70 * MS;
            measure.in_progress += 30 * MS;
        }
        measure.time = 10_000 * MS;
        measure
    }

    #[test]
    fn a_closed_loop_keeps_littles_law_if_everything_was_measured() {
        let law = closed_law(8, &measured(8));
        assert!((law.ratio - 1.0).abs() < 1e-9 && law.users == 8.0, "{law:?}");
        // Two users without records: their requests failed, or were never counted.
        let law = closed_law(10, &measured(8));
        assert!((law.ratio - 0.8).abs() < 1e-9, "{law:?}");
    }

    #[test]
    fn an_open_loop_keeps_littles_law_by_the_mean_number_in_progress() {
        let law = open_law(&measured(8));
        assert!((law.users - 2.4).abs() < 1e-9 && (law.ratio - 1.0).abs() < 1e-9, "{law:?}");
    }

    #[test]
    fn of_nothing_no_figure_is_infinite_or_no_number() {
        let nothing = Measure::new(1).unwrap();
        assert_eq!((closed_law(1, &nothing).ratio, open_law(&nothing).ratio), (0.0, 0.0));
        assert!(per_second(0, Duration::ZERO) == 0.0);
    }
}
