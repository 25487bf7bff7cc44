//! `/readyz`: whether the server is ready for traffic, by named checks.
//!
//! It is not `/healthz`, which reports that the process lives. Invariants: the checks run once per
//! [`READY_TIME`] at most, in all processes of a server together, however often clients ask. A check that
//! hangs counts as failed. The response names the failed check and nothing else of the machine.

use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use plimsoll_io::{Cells, Io};
use plimsoll_wire::http::status::Status;

use super::answer::{Answer, Body};
use super::limits::{READY_CHECK_TIME_MAX, READY_TIME, RETRY_AFTER_SECONDS};
use super::problem::problem;

/// One run of a check; true if it passed. The reason of a failure goes to the log.
pub type Asked = Pin<Box<dyn Future<Output = bool>>>;

/// The detail for the client if a check timed out.
const TOO_LONG: &str = "A check of the server's own takes too long.";

/// A condition for taking traffic.
pub struct Check {
    name: &'static str,
    told: &'static str,
    ask: Box<dyn Fn(&Io) -> Asked + Send + Sync>,
}

impl Check {
    /// Creates a check that runs `ask`. `name` is for the log; `told` is the detail for the client if it
    /// fails.
    pub fn new(
        name: &'static str,
        told: &'static str,
        ask: impl Fn(&Io) -> Asked + Send + Sync + 'static,
    ) -> Check {
        Check { name, told, ask: Box::new(ask) }
    }

    /// Runs the check; returns its failure, if it failed.
    async fn run(&self, io: &Io) -> Option<Wrong> {
        let deadline = io.deadline();
        deadline.after(READY_CHECK_TIME_MAX);
        let (wrong, reason) = match deadline.within((self.ask)(io)).await {
            Ok(true) => return None,
            Ok(false) => (Wrong::NotWell, self.told),
            Err(_) => (Wrong::TooLong, TOO_LONG),
        };
        tracing::warn!(check = self.name, reason, "not ready");
        Some(wrong)
    }
}

/// The failure of a check.
#[derive(Clone, Copy)]
enum Wrong {
    NotWell,
    TooLong,
}

/// All checks, and their latest result.
pub struct Readiness {
    checks: Vec<Check>,
    /// One cell: see [`Last`].
    last: Cells,
}

/// The latest result, and when the checks were started. The lower bits of its cell are an [`Outcome`], the
/// bits above are the milliseconds since 1970. Zero means no result yet.
///
/// It is wall-clock time because threads and processes share it; each may have a monotonic clock of its own.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Last(u64);

/// Bits of an outcome.
const OUTCOME_BITS: u32 = 8;

/// 0 if ready; otherwise 1 + [`EACH_CHECK`] × the index of the failed check + the kind of failure.
type Outcome = u64;

/// Number of ways in which a check can fail.
const EACH_CHECK: u64 = 2;

impl Last {
    fn new(begun: SystemTime, outcome: Outcome) -> Last {
        let since = begun.duration_since(UNIX_EPOCH).unwrap_or_default();
        let millis = u64::try_from(since.as_millis()).unwrap_or(u64::MAX >> OUTCOME_BITS);
        Last(millis << OUTCOME_BITS | outcome)
    }

    fn outcome(self) -> Outcome {
        self.0 & ((1 << OUTCOME_BITS) - 1)
    }

    /// Whether the result is recent enough. A clock that was set back does not make it valid for longer.
    fn holds_at(self, now: SystemTime) -> bool {
        let begun = UNIX_EPOCH + Duration::from_millis(self.0 >> OUTCOME_BITS);
        now.duration_since(begun).is_ok_and(|since| since < READY_TIME)
    }
}

impl Readiness {
    /// The number of cells for the latest result.
    pub const CELLS: usize = 1;

    /// Creates a readiness that requires all of `checks`.
    pub fn new(checks: Vec<Check>) -> Readiness {
        Readiness::noted_in(Cells::own(Readiness::CELLS), checks)
    }

    /// As [`Readiness::new`], with the latest result in `last`, one cell. Other processes with the same cell
    /// and the same checks do not run them again.
    pub fn noted_in(last: Cells, checks: Vec<Check>) -> Readiness {
        Readiness { checks, last }
    }

    pub(super) async fn answer(&self, io: &Io) -> Answer {
        let outcome = match io.is_stopping() {
            true => Err("The server is about to end."),
            false => self.outcome(io).await,
        };
        match outcome {
            Ok(()) => Answer::new(Status::OK)
                .field("Content-Type", "text/plain")
                .field("Cache-Control", "no-store")
                .body(Body::Bytes(b"ready\n".to_vec())),
            Err(reason) => problem(Status::SERVICE_UNAVAILABLE, reason)
                .field("Cache-Control", "no-store")
                .field_display("Retry-After", RETRY_AFTER_SECONDS),
        }
    }

    /// Returns the result of the checks, which may be cached.
    async fn outcome(&self, io: &Io) -> Result<(), &'static str> {
        let (begun, last) = (io.wall(), Last(self.cell().load(Ordering::SeqCst)));
        if last.0 != 0 && (last.holds_at(begun) || !self.is_ours(last, begun)) {
            return self.told(last.outcome());
        }
        let outcome = self.run(io).await;
        self.cell().store(Last::new(begun, outcome).0, Ordering::SeqCst);
        self.told(outcome)
    }

    /// Whether this caller is to run the checks. Other callers get the previous result meanwhile.
    fn is_ours(&self, last: Last, begun: SystemTime) -> bool {
        let next = Last::new(begun, last.outcome()).0;
        self.cell().compare_exchange(last.0, next, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }

    async fn run(&self, io: &Io) -> Outcome {
        for (check, number) in self.checks.iter().zip(0..) {
            if let Some(wrong) = check.run(io).await {
                return 1 + EACH_CHECK * number + wrong as Outcome;
            }
        }
        0
    }

    fn told(&self, outcome: Outcome) -> Result<(), &'static str> {
        let Some(wrong) = outcome.checked_sub(1) else { return Ok(()) };
        let check = usize::try_from(wrong / EACH_CHECK).ok().and_then(|number| self.checks.get(number));
        let is_too_long = wrong % EACH_CHECK == Wrong::TooLong as Outcome;
        Err(check.filter(|_| !is_too_long).map_or(TOO_LONG, |check| check.told))
    }

    fn cell(&self) -> &AtomicU64 {
        &self.last[0]
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, AtomicUsize};

    use plimsoll_io::sim::{Faults, Sim};

    use super::*;

    /// Runs `asked` with the `Io` of a simulated host.
    fn simulated<F: Future<Output = ()> + 'static>(asked: impl FnOnce(Io) -> F) {
        let sim = Sim::new(0, Faults::none());
        let host = sim.host("server");
        let io = host.io();
        sim.run(&host, asked(io));
        assert!(sim.panics().is_empty(), "{:?}", sim.panics());
    }

    #[test]
    fn what_is_wrong_is_told_and_seen_to_be_mended() {
        let is_well = Arc::new(AtomicBool::new(false));
        let looked = Arc::clone(&is_well);
        let check = Check::new("data", "No data.", move |_| {
            let is_well = looked.load(Ordering::Relaxed);
            Box::pin(async move { is_well })
        });
        simulated(|io| async move {
            let readiness = Readiness::new(vec![check]);
            let refused = readiness.answer(&io).await;
            assert_eq!(refused.status(), Status::SERVICE_UNAVAILABLE);
            assert!(String::from_utf8_lossy(&refused.head).contains("Retry-After: "));
            let Body::Bytes(body) = refused.body else { panic!("a problem has a body") };
            assert!(String::from_utf8_lossy(&body).contains("No data."));
            is_well.store(true, Ordering::Relaxed);
            io.sleep(READY_TIME).await;
            assert_eq!(readiness.answer(&io).await.status(), Status::OK);
        });
    }

    #[test]
    fn checks_run_once_in_a_while_however_often_it_is_asked() {
        let runs = Arc::<AtomicUsize>::default();
        let counted = Arc::clone(&runs);
        let check = Check::new("counted", "Not counted.", move |_| {
            counted.fetch_add(1, Ordering::Relaxed);
            Box::pin(async { true })
        });
        simulated(|io| async move {
            let readiness = Readiness::new(vec![check]);
            for _ in 0..100 {
                assert_eq!(readiness.answer(&io).await.status(), Status::OK);
            }
            assert_eq!(runs.load(Ordering::Relaxed), 1);
            io.sleep(READY_TIME).await;
            readiness.answer(&io).await;
            assert_eq!(runs.load(Ordering::Relaxed), 2);
        });
    }

    #[test]
    fn processes_that_share_what_was_said_run_the_checks_once_and_tell_the_same() {
        let runs = Arc::<AtomicUsize>::default();
        let page: &'static [AtomicU64] = Box::leak(Box::new([AtomicU64::new(0)]));
        let of_process = |runs: Arc<AtomicUsize>| {
            let well = Check::new("well", "Not well.", |_| Box::pin(async { true }));
            let data = Check::new("data", "No data.", move |_| {
                runs.fetch_add(1, Ordering::Relaxed);
                Box::pin(async { false })
            });
            Readiness::noted_in(Cells::Page(page), vec![well, data])
        };
        let processes = [0; 20].map(|_| of_process(Arc::clone(&runs)));
        simulated(|io| async move {
            for process in &processes {
                let answer = process.answer(&io).await;
                assert_eq!(answer.status(), Status::SERVICE_UNAVAILABLE);
                let Body::Bytes(body) = answer.body else { panic!("a problem has a body") };
                assert!(String::from_utf8_lossy(&body).contains("No data."));
            }
            assert_eq!(runs.load(Ordering::Relaxed), 1);
        });
    }

    #[test]
    fn a_check_that_hangs_has_failed() {
        let check = Check::new("stuck", "Stuck.", |_| Box::pin(std::future::pending()));
        simulated(|io| async move {
            let begun = io.now();
            let answer = Readiness::new(vec![check]).answer(&io).await;
            assert_eq!(answer.status(), Status::SERVICE_UNAVAILABLE);
            assert!(io.now() < begun + 2 * READY_CHECK_TIME_MAX);
        });
    }
}
