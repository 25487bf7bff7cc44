//! What one thread has counted: latencies, bytes, errors by kind, and what Little's law needs.
//!
//! It knows neither users nor protocols. What must hold: only whole and right answers are in the latencies
//! and the bytes; two of these add up to what one thread would have counted.

use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use crate::load::failure::Failure;
use crate::load::histogram::Latencies;

/// What was counted.
#[derive(Debug)]
pub(crate) struct Measure {
    /// From the start of a request (the planned one in an open loop) to its last byte.
    pub(crate) latencies: Latencies,
    /// By kind of request, where there is more than one.
    pub(crate) kinds: Vec<Latencies>,
    /// Bytes of bodies, either way.
    pub(crate) bytes: u64,
    /// Bodies that were compared with what they should be.
    pub(crate) verified: u64,
    pub(crate) errors: BTreeMap<String, u64>,
    /// The first error of each kind, in words.
    pub(crate) told: BTreeMap<String, String>,
    /// Time from the real start of requests to their end, of all together.
    pub(crate) service: Duration,
    /// Time between answers and next requests, of all users together.
    pub(crate) between: Duration,
    /// How late requests started that a user was free for: the generator's own delay.
    pub(crate) late: Latencies,
    /// Planned starts for which no user was free.
    pub(crate) without_user: u64,
    /// Planned starts that had no answer by the end.
    pub(crate) missed: u64,
    /// Requests under way, times time.
    pub(crate) under_way: Duration,
    /// How long it was measured.
    pub(crate) time: Duration,
    /// Processor time that the thread used.
    pub(crate) cpu: Duration,
}

/// A whole and right answer.
#[derive(Debug, Default)]
pub(crate) struct Right {
    /// Which kind of request it was.
    pub(crate) kind: usize,
    /// Bytes of the body.
    pub(crate) bytes: u64,
    /// It was compared with what it should be.
    pub(crate) verified: bool,
    /// The body, where it is to be kept, and the name it is kept under.
    pub(crate) kept: Option<(String, Vec<u8>)>,
}

impl Measure {
    /// Nothing yet, of so many kinds of requests.
    ///
    /// # Errors
    /// As [`Latencies::new`].
    pub(crate) fn new(kinds: usize) -> io::Result<Measure> {
        let of_each = if kinds > 1 { kinds } else { 0 };
        Ok(Measure {
            latencies: Latencies::new()?,
            kinds: (0..of_each).map(|_| Latencies::new()).collect::<io::Result<_>>()?,
            bytes: 0,
            verified: 0,
            errors: BTreeMap::new(),
            told: BTreeMap::new(),
            service: Duration::ZERO,
            between: Duration::ZERO,
            late: Latencies::new()?,
            without_user: 0,
            missed: 0,
            under_way: Duration::ZERO,
            time: Duration::ZERO,
            cpu: Duration::ZERO,
        })
    }

    /// Counts an answer: `latency` as it is told, `service` from the real start.
    pub(crate) fn right(&mut self, answer: &Right, latency: Duration, service: Duration) {
        self.latencies.record(latency);
        if let Some(kind) = self.kinds.get_mut(answer.kind) {
            kind.record(latency);
        }
        self.bytes += answer.bytes;
        self.verified += u64::from(answer.verified);
        self.service += service;
    }

    /// Counts an error.
    pub(crate) fn wrong(&mut self, failure: &Failure) {
        let kind = failure.kind();
        self.told.entry(kind.clone()).or_insert_with(|| failure.to_string());
        *self.errors.entry(kind).or_default() += 1;
    }

    /// Errors of all kinds.
    pub(crate) fn wrongs(&self) -> u64 {
        self.errors.values().sum()
    }

    /// Adds what another thread has counted at the same time.
    pub(crate) fn add(&mut self, other: &Measure) {
        self.latencies.add(&other.latencies);
        for (own, others) in self.kinds.iter_mut().zip(&other.kinds) {
            own.add(others);
        }
        self.bytes += other.bytes;
        self.verified += other.verified;
        for (kind, count) in &other.errors {
            *self.errors.entry(kind.clone()).or_default() += count;
        }
        for (kind, words) in &other.told {
            self.told.entry(kind.clone()).or_insert_with(|| words.clone());
        }
        self.service += other.service;
        self.between += other.between;
        self.late.add(&other.late);
        self.without_user += other.without_user;
        self.missed += other.missed;
        self.under_way += other.under_way;
        self.time = self.time.max(other.time);
        self.cpu += other.cpu;
    }
}
