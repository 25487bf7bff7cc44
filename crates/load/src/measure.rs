//! The counts of one thread: latencies, bytes, errors by kind, and the sums for Little's law.
//!
//! It knows neither users nor protocols. Invariants: latencies and bytes include only complete and correct
//! responses; the sum of two measures equals that of one thread with the requests of both.

use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use plimsoll_io::Instant;
use plimsoll_tls::Handshake;

use crate::failure::Failure;
use crate::histogram::Latencies;

/// The counts of a thread.
#[derive(Debug)]
pub(crate) struct Measure {
    /// From the start of a request (the planned one in an open loop) to its response's last byte.
    pub(crate) latencies: Latencies,
    /// Latencies by kind of request, if there are several.
    pub(crate) kinds: Vec<Latencies>,
    /// Full TLS handshakes, and those that resumed a session.
    pub(crate) handshakes: (Latencies, Latencies),
    /// Bytes of bodies, in either direction.
    pub(crate) bytes: u64,
    /// Number of bodies that were compared with a reference.
    pub(crate) verified: u64,
    pub(crate) errors: BTreeMap<String, u64>,
    /// Checks after the response that failed, by kind: of uploads, and of bodies that are saved.
    pub(crate) failed_checks: BTreeMap<String, u64>,
    /// The message of the first error of each kind.
    pub(crate) messages: BTreeMap<String, String>,
    /// Sum of the times from the real start of requests to their end.
    pub(crate) service: Duration,
    /// Sum of the times between responses and next requests, of all users.
    pub(crate) between: Duration,
    /// Delays of planned starts for which a user was free: the generator's own delay.
    pub(crate) late: Latencies,
    /// Planned starts for which no user was free.
    pub(crate) without_user: u64,
    /// Planned starts for which no user was free by the end.
    pub(crate) missed: u64,
    /// Requests that ended in the warm-up, or are none of those whose number ends the trial.
    pub(crate) in_warm_up: u64,
    /// Requests that ended after the measured time, with or without an error.
    pub(crate) after_end: u64,
    /// Integral over time of the number of requests in progress.
    pub(crate) in_progress: Duration,
    /// Duration of the measurement.
    pub(crate) time: Duration,
    /// Begin and end of the measurement.
    pub(crate) window: Option<Interval>,
    /// From the earliest to the latest first request of the users, warm-up included.
    pub(crate) first_starts: Option<Interval>,
    /// CPU time of the thread.
    pub(crate) cpu: Duration,
    /// The time of each user, if each has a number of requests.
    pub(crate) users: Vec<UserTime>,
}

/// An interval on the engine's clock, which all threads share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Interval {
    pub(crate) from: Instant,
    pub(crate) to: Instant,
}

impl Interval {
    /// Returns the smallest interval that contains both.
    fn hull(self, other: Interval) -> Interval {
        Interval { from: self.from.min(other.from), to: self.to.max(other.to) }
    }
}

/// How long a user took for its requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UserTime {
    /// The number of the user, from 0.
    pub user: u64,
    /// The time from the common start to the end of its last request.
    pub time: Duration,
    /// Complete and correct responses.
    pub requests: u64,
    /// Bytes of their bodies.
    pub bytes: u64,
    /// Requests without such a response.
    pub errors: u64,
}

impl UserTime {
    /// Counts the result of a request.
    pub(crate) fn count(&mut self, asked: &Result<CorrectResponse, Failure>) {
        match asked {
            Ok(right) => (self.requests, self.bytes) = (self.requests + 1, self.bytes + right.bytes),
            Err(_) => self.errors += 1,
        }
    }
}

/// A complete and correct response.
#[derive(Debug, Default)]
pub(crate) struct CorrectResponse {
    /// Index of the kind of request.
    pub(crate) kind: usize,
    /// Length of the body in bytes.
    pub(crate) bytes: u64,
    /// Whether it was compared with a reference.
    pub(crate) verified: bool,
    /// The TLS handshakes for it: on a new connection, and on its data connection.
    pub(crate) handshakes: Vec<Handshake>,
    /// The body, if it is to be saved, and the name to save it under.
    pub(crate) kept: Option<(String, Vec<u8>)>,
}

impl Measure {
    /// Creates an empty measure for this many kinds of requests.
    ///
    /// # Errors
    /// Like [`Latencies::new`].
    pub(crate) fn new(kinds: usize) -> io::Result<Measure> {
        let of_each = if kinds > 1 { kinds } else { 0 };
        Ok(Measure {
            latencies: Latencies::new()?,
            kinds: (0..of_each).map(|_| Latencies::new()).collect::<io::Result<_>>()?,
            handshakes: (Latencies::new()?, Latencies::new()?),
            bytes: 0,
            verified: 0,
            errors: BTreeMap::new(),
            failed_checks: BTreeMap::new(),
            messages: BTreeMap::new(),
            service: Duration::ZERO,
            between: Duration::ZERO,
            late: Latencies::new()?,
            without_user: 0,
            missed: 0,
            in_warm_up: 0,
            after_end: 0,
            in_progress: Duration::ZERO,
            time: Duration::ZERO,
            window: None,
            first_starts: None,
            cpu: Duration::ZERO,
            users: Vec::new(),
        })
    }

    /// Counts a response. `latency` is the reported one, `service` counts from the real start.
    pub(crate) fn right(&mut self, answer: &CorrectResponse, latency: Duration, service: Duration) {
        self.latencies.record(latency);
        if let Some(kind) = self.kinds.get_mut(answer.kind) {
            kind.record(latency);
        }
        for handshake in &answer.handshakes {
            match handshake.is_resumed {
                false => self.handshakes.0.record(handshake.time),
                true => self.handshakes.1.record(handshake.time),
            }
        }
        self.bytes += answer.bytes;
        self.verified += u64::from(answer.verified);
        self.service += service;
    }

    /// Counts a request that has failed.
    pub(crate) fn wrong(&mut self, failure: &Failure) {
        let kind = self.message_kind(failure);
        *self.errors.entry(kind).or_default() += 1;
    }

    /// Counts a check that failed after its request was counted.
    pub(crate) fn failed_check(&mut self, failure: &Failure) {
        let kind = self.message_kind(failure);
        *self.failed_checks.entry(kind).or_default() += 1;
    }

    /// Returns the kind of a failure, and records the first message of its kind.
    fn message_kind(&mut self, failure: &Failure) -> String {
        let kind = failure.kind();
        self.messages.entry(kind.clone()).or_insert_with(|| failure.to_string());
        kind
    }

    /// Records the first request of a user.
    pub(crate) fn first_start(&mut self, at: Instant) {
        self.first_starts = hull(self.first_starts, Some(Interval { from: at, to: at }));
    }

    /// Returns the number of errors of all kinds.
    pub(crate) fn wrongs(&self) -> u64 {
        self.errors.values().sum()
    }

    /// Adds the counts of another thread over the same time.
    pub(crate) fn add(&mut self, other: &Measure) {
        self.latencies.add(&other.latencies);
        for (own, others) in self.kinds.iter_mut().zip(&other.kinds) {
            own.add(others);
        }
        self.handshakes.0.add(&other.handshakes.0);
        self.handshakes.1.add(&other.handshakes.1);
        self.bytes += other.bytes;
        self.verified += other.verified;
        for (kind, count) in &other.errors {
            *self.errors.entry(kind.clone()).or_default() += count;
        }
        for (kind, count) in &other.failed_checks {
            *self.failed_checks.entry(kind.clone()).or_default() += count;
        }
        for (kind, message) in &other.messages {
            self.messages.entry(kind.clone()).or_insert_with(|| message.clone());
        }
        self.service += other.service;
        self.between += other.between;
        self.late.add(&other.late);
        self.without_user += other.without_user;
        self.missed += other.missed;
        self.in_warm_up += other.in_warm_up;
        self.after_end += other.after_end;
        self.in_progress += other.in_progress;
        self.time = self.time.max(other.time);
        self.window = hull(self.window, other.window);
        self.first_starts = hull(self.first_starts, other.first_starts);
        self.cpu += other.cpu;
        self.users.extend_from_slice(&other.users);
    }
}

/// Returns the smallest interval that contains all of the given ones.
fn hull(own: Option<Interval>, other: Option<Interval>) -> Option<Interval> {
    own.into_iter().chain(other).reduce(Interval::hull)
}
