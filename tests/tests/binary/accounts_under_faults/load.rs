//! The load: concurrent test users, their requests, and the permitted outcomes.
//!
//! A request must be answered within the stated time, even if a fault occurs behind the server. The outcome
//! is success, an explicit refusal, or (if the server itself is killed) a broken connection.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use plimsoll_tests::binary::{Reply, Server, Visitor, until};

use super::person::Person;
use crate::durable::chance::Chance;

/// The number of test users.
pub(super) const PEOPLE: usize = 4;
/// The allowance for a loaded machine beyond a stated time. It is less than the shortest stated time, so
/// that two waits in sequence are too long.
const ALLOWANCE: Duration = Duration::from_secs(4);

/// The outcome is unknown: the request got a temporary refusal, or its connection broke.
pub(super) struct Unknown;

/// A load: its servers, its permitted outcomes, and its counts.
pub(super) struct Load {
    fronts: Vec<SocketAddr>,
    /// The statuses with which a correct request may be refused.
    refusals: &'static [u16],
    /// The stated time plus the allowance.
    within: Duration,
    may_break: AtomicBool,
    is_over: AtomicBool,
    confirmed: AtomicUsize,
    refused: AtomicUsize,
    longest_ms: AtomicU64,
}

/// All test users.
pub(super) struct People(pub(super) Vec<Person>);

impl People {
    pub(super) fn new(seed: u64) -> People {
        let person = |number: usize| {
            let chance = Chance::new(seed.wrapping_add(number as u64 * 7919));
            Person::new(format!("person-{number}"), chance)
        };
        People((1..=PEOPLE).map(person).collect())
    }

    /// Runs all users concurrently with `meanwhile`, until that returns.
    pub(super) fn live<T>(&mut self, load: &Load, meanwhile: impl FnOnce() -> T) -> T {
        let done = std::thread::scope(|scope| {
            let _over = Over(load);
            for person in &mut self.0 {
                scope.spawn(move || person.live(load));
            }
            meanwhile()
        });
        load.print_progress();
        done
    }
}

/// Ends the load when dropped, also in a panic: otherwise the users would run for ever.
struct Over<'a>(&'a Load);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.is_over.store(true, Ordering::SeqCst);
    }
}

impl Load {
    /// Creates a load on these fronts, which refuse with one of `refusals`. Each answer must arrive within
    /// `stated` plus the allowance.
    pub(super) fn at(servers: &[&Server], stated: Duration, refusals: &'static [u16]) -> Load {
        Load {
            fronts: servers.iter().map(|server| server.at()).collect(),
            refusals,
            within: stated + ALLOWANCE,
            may_break: AtomicBool::new(false),
            is_over: AtomicBool::new(false),
            confirmed: AtomicUsize::new(0),
            refused: AtomicUsize::new(0),
            longest_ms: AtomicU64::new(0),
        }
    }

    /// Prints the figures of the load.
    fn print_progress(&self) {
        let (confirmed, refused) =
            (self.confirmed.load(Ordering::SeqCst), self.refused.load(Ordering::SeqCst));
        let longest = self.longest_ms.load(Ordering::SeqCst);
        println!("{confirmed} confirmed, {refused} refused, the longest wait was {longest} ms");
    }

    /// From this call on, connections may break: the server is about to be killed.
    pub(super) fn may_break(&self) {
        self.may_break.store(true, Ordering::SeqCst);
    }

    pub(super) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::SeqCst)
    }

    pub(super) fn fronts(&self) -> usize {
        self.fronts.len()
    }

    /// Waits until `more` further requests were confirmed.
    pub(super) fn until_confirmed(&self, more: usize) {
        self.until_confirmed_while(more, || ());
    }

    /// The same, and repeats `step` meanwhile.
    pub(super) fn until_confirmed_while(&self, more: usize, step: impl FnMut()) {
        self.until("confirmed", &self.confirmed, more, step);
    }

    /// Waits until `more` further requests were refused.
    pub(super) fn until_refused(&self, more: usize) {
        self.until("refused", &self.refused, more, || ());
    }

    fn until(&self, condition: &str, count: &AtomicUsize, more: usize, mut step: impl FnMut()) {
        let before = count.load(Ordering::SeqCst);
        let seen = || {
            step();
            count.load(Ordering::SeqCst) >= before + more
        };
        until(&format!("{more} more requests are {condition}"), seen);
    }

    /// Sends one request to a front, and returns its answer, or [`Unknown`].
    pub(super) fn ask(
        &self,
        front: usize,
        visitors: &mut [Option<Visitor>],
        (method, target, fields, body): (&str, &str, &str, &[u8]),
    ) -> Result<Reply, Unknown> {
        let begun = Instant::now();
        let visitor = visitors[front].take().map_or_else(|| self.visit(front), Ok);
        let answered = visitor.and_then(|mut visitor| {
            let reply = visitor.ask(method, target, fields, body).map_err(|broken| format!("{broken:?}"))?;
            if !reply.closes {
                visitors[front] = Some(visitor);
            }
            Ok(reply)
        });
        let took = begun.elapsed();
        self.longest_ms.fetch_max(u64::try_from(took.as_millis()).unwrap_or(u64::MAX), Ordering::SeqCst);
        assert!(took <= self.within, "{method} {target}: {answered:?} after {took:?}");
        match answered {
            Ok(reply) => self.note_reply(method, target, reply),
            Err(broken) => {
                let may_break = self.may_break.load(Ordering::SeqCst);
                assert!(may_break, "{method} {target}: no answer after {took:?}: {broken}");
                Err(Unknown)
            }
        }
    }

    fn visit(&self, front: usize) -> Result<Visitor, String> {
        let visitor = Visitor::connect(self.fronts[front]).map_err(|error| error.to_string())?;
        visitor.stream.set_read_timeout(Some(self.within)).map_err(|error| error.to_string())?;
        Ok(visitor)
    }

    fn note_reply(&self, method: &str, target: &str, reply: Reply) -> Result<Reply, Unknown> {
        let status = reply.status;
        if status < 500 {
            self.confirmed.fetch_add(usize::from(status < 300), Ordering::SeqCst);
            return Ok(reply);
        }
        assert!(self.refusals.contains(&status), "{method} {target}: {} {}", reply.head, reply.text());
        let is_told_when = status != 503 || reply.field("Retry-After").is_some();
        assert!(is_told_when, "{method} {target}: it says when to come back: {}", reply.head);
        self.refused.fetch_add(1, Ordering::SeqCst);
        Err(Unknown)
    }
}
