//! `/readyz`: whether the server is ready for traffic, by named checks.
//!
//! It is not `/healthz`, which reports that the process lives. Invariants: the checks run once per
//! [`READY_CACHE_TIME`] at most, in all processes of a server together, however often clients ask. A check
//! that hangs counts as failed. The response names the failed check and nothing else of the machine.

use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use plimsoll_io::{Cells, Io};
use plimsoll_wire::http::status::Status;

use super::answer::{Answer, Body};
use super::limits::{READY_CACHE_TIME, READY_CHECK_TIME_MAX, RETRY_AFTER_SECONDS};
use super::problem::problem;

/// One run of a check; true if it passed. The reason of a failure goes to the log.
pub type CheckRun = Pin<Box<dyn Future<Output = bool>>>;

/// The detail for the client if a check timed out.
const TIMED_OUT: &str = "A check of the server's own takes too long.";

/// A condition for taking traffic.
pub struct Check {
    name: &'static str,
    detail: &'static str,
    run_check: Box<dyn Fn(&Io) -> CheckRun + Send + Sync>,
}

impl Check {
    /// Creates a check that runs `run_check`. `name` is for the log; `detail` is the detail for the client if
    /// it fails.
    pub fn new(
        name: &'static str,
        detail: &'static str,
        run_check: impl Fn(&Io) -> CheckRun + Send + Sync + 'static,
    ) -> Check {
        Check { name, detail, run_check: Box::new(run_check) }
    }

    /// Runs the check; returns its failure, if it failed.
    async fn run(&self, io: &Io) -> Option<CheckFailure> {
        let deadline = io.deadline();
        deadline.after(READY_CHECK_TIME_MAX);
        let (failure, reason) = match deadline.within((self.run_check)(io)).await {
            Ok(true) => return None,
            Ok(false) => (CheckFailure::Failed, self.detail),
            Err(_) => (CheckFailure::TimedOut, TIMED_OUT),
        };
        tracing::warn!(check = self.name, reason, "not ready");
        Some(failure)
    }
}

/// The failure of a check.
#[derive(Clone, Copy)]
enum CheckFailure {
    Failed,
    TimedOut,
}

/// All checks, and their latest result.
pub struct Readiness {
    checks: Vec<Check>,
    /// One cell: see [`LatestResult`].
    latest: Cells,
}

/// The latest result, and when the checks were started. The lower bits of its cell are an [`Outcome`], the
/// bits above are the milliseconds since 1970. Zero means no result yet.
///
/// It is wall-clock time because threads and processes share it; each may have a monotonic clock of its own.
#[derive(Clone, Copy, PartialEq, Eq)]
struct LatestResult(u64);

/// Bits of an outcome.
const OUTCOME_BITS: u32 = 8;

/// 0 if ready; otherwise 1 + [`FAILURES_PER_CHECK`] × the index of the failed check + the kind of failure.
type Outcome = u64;

/// Number of ways in which a check can fail.
const FAILURES_PER_CHECK: u64 = 2;

impl LatestResult {
    fn new(started: SystemTime, outcome: Outcome) -> LatestResult {
        let since = started.duration_since(UNIX_EPOCH).unwrap_or_default();
        let millis = u64::try_from(since.as_millis()).unwrap_or(u64::MAX >> OUTCOME_BITS);
        LatestResult(millis << OUTCOME_BITS | outcome)
    }

    fn outcome(self) -> Outcome {
        self.0 & ((1 << OUTCOME_BITS) - 1)
    }

    /// Whether the result is recent enough. A clock that was set back does not make it valid for longer.
    fn is_recent(self, now: SystemTime) -> bool {
        let started = UNIX_EPOCH + Duration::from_millis(self.0 >> OUTCOME_BITS);
        now.duration_since(started).is_ok_and(|since| since < READY_CACHE_TIME)
    }
}

impl Readiness {
    /// The number of cells for the latest result.
    pub const CELLS: usize = 1;

    /// Creates a readiness that requires all of `checks`.
    pub fn new(checks: Vec<Check>) -> Readiness {
        Readiness::with_shared_result(Cells::own(Readiness::CELLS), checks)
    }

    /// As [`Readiness::new`], with the latest result in `latest`, one cell. Other processes with the same
    /// cell and the same checks do not run them again.
    pub fn with_shared_result(latest: Cells, checks: Vec<Check>) -> Readiness {
        Readiness { checks, latest }
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
        let (started, latest) = (io.wall(), LatestResult(self.cell().load(Ordering::SeqCst)));
        if latest.0 != 0 && (latest.is_recent(started) || !self.claim_run(latest, started)) {
            return self.detail_of(latest.outcome());
        }
        let outcome = self.run(io).await;
        self.cell().store(LatestResult::new(started, outcome).0, Ordering::SeqCst);
        self.detail_of(outcome)
    }

    /// Whether this caller is to run the checks. Other callers get the previous result meanwhile.
    fn claim_run(&self, latest: LatestResult, started: SystemTime) -> bool {
        let next = LatestResult::new(started, latest.outcome()).0;
        self.cell().compare_exchange(latest.0, next, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }

    async fn run(&self, io: &Io) -> Outcome {
        for (check, number) in self.checks.iter().zip(0..) {
            if let Some(failure) = check.run(io).await {
                return 1 + FAILURES_PER_CHECK * number + failure as Outcome;
            }
        }
        0
    }

    fn detail_of(&self, outcome: Outcome) -> Result<(), &'static str> {
        let Some(failure) = outcome.checked_sub(1) else { return Ok(()) };
        let check =
            usize::try_from(failure / FAILURES_PER_CHECK).ok().and_then(|number| self.checks.get(number));
        let is_too_long = failure % FAILURES_PER_CHECK == CheckFailure::TimedOut as Outcome;
        Err(check.filter(|_| !is_too_long).map_or(TIMED_OUT, |check| check.detail))
    }

    fn cell(&self) -> &AtomicU64 {
        &self.latest[0]
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, AtomicUsize};

    use plimsoll_io::sim::{Faults, Sim};

    use super::*;

    /// Runs `run` with the `Io` of a simulated host.
    fn simulated<F: Future<Output = ()> + 'static>(run: impl FnOnce(Io) -> F) {
        let sim = Sim::new(0, Faults::none());
        let host = sim.host("server");
        let io = host.io();
        sim.run(&host, run(io));
        assert!(sim.panics().is_empty(), "{:?}", sim.panics());
    }

    #[test]
    fn a_failed_check_is_reported_until_it_passes_again() {
        let passes = Arc::new(AtomicBool::new(false));
        let shared = Arc::clone(&passes);
        let check = Check::new("data", "No data.", move |_| {
            let passes = shared.load(Ordering::Relaxed);
            Box::pin(async move { passes })
        });
        simulated(|io| async move {
            let readiness = Readiness::new(vec![check]);
            let refused = readiness.answer(&io).await;
            assert_eq!(refused.status(), Status::SERVICE_UNAVAILABLE);
            assert!(String::from_utf8_lossy(&refused.head).contains("Retry-After: "));
            let Body::Bytes(body) = refused.body else { panic!("a problem has a body") };
            assert!(String::from_utf8_lossy(&body).contains("No data."));
            passes.store(true, Ordering::Relaxed);
            io.sleep(READY_CACHE_TIME).await;
            assert_eq!(readiness.answer(&io).await.status(), Status::OK);
        });
    }

    #[test]
    fn checks_run_once_per_cache_time_however_many_requests_arrive() {
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
            io.sleep(READY_CACHE_TIME).await;
            readiness.answer(&io).await;
            assert_eq!(runs.load(Ordering::Relaxed), 2);
        });
    }

    #[test]
    fn processes_that_share_the_result_run_the_checks_once_and_respond_alike() {
        let runs = Arc::<AtomicUsize>::default();
        let page: &'static [AtomicU64] = Box::leak(Box::new([AtomicU64::new(0)]));
        let of_process = |runs: Arc<AtomicUsize>| {
            let well = Check::new("well", "Not well.", |_| Box::pin(async { true }));
            let data = Check::new("data", "No data.", move |_| {
                runs.fetch_add(1, Ordering::Relaxed);
                Box::pin(async { false })
            });
            Readiness::with_shared_result(Cells::Page(page), vec![well, data])
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
    fn a_check_that_hangs_counts_as_failed() {
        let check = Check::new("stuck", "Stuck.", |_| Box::pin(std::future::pending()));
        simulated(|io| async move {
            let started = io.now();
            let answer = Readiness::new(vec![check]).answer(&io).await;
            assert_eq!(answer.status(), Status::SERVICE_UNAVAILABLE);
            assert!(io.now() < started + 2 * READY_CHECK_TIME_MAX);
        });
    }
}
