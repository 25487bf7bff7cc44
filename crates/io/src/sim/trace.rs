//! The events of a simulation: the last ones for a person, and a digest of all of them for a test.
//!
//! It is not a log: events are formatted only on request. Invariant: the digest depends on every event
//! and its order, and on nothing that differs between two runs of one seed.

use std::collections::VecDeque;
use std::fmt::Write;

use crate::time::Instant;

/// Events that are kept to be printed; older ones are in the digest alone.
pub const TRACE_EVENTS_KEPT: usize = 400;

/// The host number of events that concern all hosts.
pub(super) const NOBODY: u32 = u32::MAX;

/// The type of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Happened {
    Spawned,
    Polled,
    Ended,
    Panicked,
    TimersFired,
    Listening,
    Connecting,
    Connected,
    Refused,
    BacklogFull,
    Accepted,
    Pushed,
    Taken,
    Arrived,
    EndArrived,
    Received,
    HeldBack,
    ToldEnd,
    ToldError,
    Finished,
    Closed,
    ResetSent,
    ResetArrived,
    FileTooShort,
    JobWaits,
    JobRefused,
    JobRuns,
    JobPanicked,
    Stopping,
    PowerCut,
}

/// One event: small, and copied into the ring.
#[derive(Clone, Copy, Debug)]
pub(super) struct TraceEntry {
    pub(super) at: Instant,
    pub(super) host: u32,
    /// The connection's or task's number, 0 for none.
    pub(super) subject: u32,
    pub(super) happened: Happened,
    pub(super) amount: u64,
}

/// The ring of the last events and the digest of all.
pub(super) struct Trace {
    last: VecDeque<TraceEntry>,
    digest: u64,
    count: u64,
}

impl Trace {
    pub(super) fn new() -> Trace {
        Trace { last: VecDeque::with_capacity(TRACE_EVENTS_KEPT), digest: 0xcbf2_9ce4_8422_2325, count: 0 }
    }

    pub(super) fn add(&mut self, entry: TraceEntry) {
        let nanos = u64::try_from(entry.at.since_start().as_nanos()).unwrap_or(u64::MAX);
        self.fold(nanos);
        self.fold(u64::from(entry.host) << 32 | u64::from(entry.subject));
        self.fold(entry.happened as u64);
        self.fold(entry.amount);
        self.count += 1;
        if self.last.len() == TRACE_EVENTS_KEPT {
            self.last.pop_front();
        }
        self.last.push_back(entry);
    }

    pub(super) fn digest(&self) -> u64 {
        self.digest
    }

    /// Returns the last events, a line each; `hosts` are the names by number.
    pub(super) fn lines(&self, hosts: &[String]) -> String {
        let mut lines = String::new();
        let forgotten = self.count - self.last.len() as u64;
        if forgotten > 0 {
            lines.push_str(&format!("{forgotten} earlier events are not kept\n"));
        }
        for entry in &self.last {
            let host = hosts.get(entry.host as usize).map_or("-", String::as_str);
            // Writing to a string cannot fail.
            let _ = writeln!(lines, "{}", entry.line(host));
        }
        lines
    }

    fn fold(&mut self, number: u64) {
        self.digest = (self.digest ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    }
}

impl TraceEntry {
    fn line(&self, host: &str) -> String {
        let micros = self.at.since_start().as_micros();
        let subject = match self.happened {
            _ if self.subject == 0 => String::new(),
            Happened::Spawned | Happened::Polled | Happened::Ended | Happened::Panicked => {
                format!("task {}", self.subject)
            }
            _ => format!("connection {}", self.subject),
        };
        let line = format!("{micros:>10} us  {host:<8} {subject:<15} {:?} {}", self.happened, self.amount);
        line.trim_end_matches(" 0").to_owned()
    }
}
