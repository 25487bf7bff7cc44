//! `/readyz`: whether the server should be given work, by named checks.
//!
//! It is not `/healthz`, which says that the process lives. What must hold: however often it is asked, the
//! checks run once in [`READY_TIME`] at most; a check that hangs counts as failed; what a peer is told names
//! what is wrong and nothing of the machine.

use std::pin::Pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use plimsoll_io::Io;
use plimsoll_wire::http::status::Status;

use super::answer::{Answer, Body};
use super::limits::{READY_CHECK_TIME_MAX, READY_TIME, RETRY_AFTER_SECONDS};
use super::problem::problem;

/// One run of a check: well, or what is wrong in a sentence for the peer. The reason goes to the log.
pub type Asked = Pin<Box<dyn Future<Output = Result<(), &'static str>>>>;

/// Something that must be well before the server takes work.
pub struct Check {
    name: &'static str,
    ask: Box<dyn Fn(&Io) -> Asked + Send + Sync>,
}

impl Check {
    /// Calls `ask` in every run; `name` is for the log.
    pub fn new(name: &'static str, ask: impl Fn(&Io) -> Asked + Send + Sync + 'static) -> Check {
        Check { name, ask: Box::new(ask) }
    }

    async fn run(&self, io: &Io) -> Result<(), &'static str> {
        let deadline = io.deadline();
        deadline.after(READY_CHECK_TIME_MAX);
        let outcome = match deadline.within((self.ask)(io)).await {
            Ok(outcome) => outcome,
            Err(_) => Err("A check of the server's own takes too long."),
        };
        if let Err(reason) = outcome {
            tracing::warn!(check = self.name, reason, "not ready");
        }
        outcome
    }
}

/// All checks, and what they said last.
#[derive(Default)]
pub struct Readiness {
    checks: Vec<Check>,
    last: Mutex<Option<Last>>,
}

#[derive(Clone, Copy)]
struct Last {
    /// By the time of day, because all threads share it: each may have a clock of its own.
    begun: SystemTime,
    outcome: Result<(), &'static str>,
}

impl Last {
    /// Whether it is from a moment ago; a clock that was put back does not make it hold for longer.
    fn holds_at(&self, now: SystemTime) -> bool {
        now.duration_since(self.begun).is_ok_and(|since| since < READY_TIME)
    }
}

impl Readiness {
    /// Ready when all of `checks` are well.
    pub fn new(checks: Vec<Check>) -> Readiness {
        Readiness { checks, last: Mutex::default() }
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

    /// What the checks say, or said a moment ago.
    async fn outcome(&self, io: &Io) -> Result<(), &'static str> {
        let (begun, last) = (io.wall(), *self.lock());
        match last {
            Some(last) if last.holds_at(begun) => return last.outcome,
            // Whoever asks while the checks run is told what they said before.
            Some(last) => *self.lock() = Some(Last { begun, ..last }),
            None => {}
        }
        let outcome = self.run(io).await;
        *self.lock() = Some(Last { begun, outcome });
        outcome
    }

    async fn run(&self, io: &Io) -> Result<(), &'static str> {
        for check in &self.checks {
            check.run(io).await?;
        }
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, Option<Last>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

    use plimsoll_io::sim::{Faults, Sim};

    use super::*;

    /// Runs `asked` with the Io of a simulated host.
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
        let check = Check::new("data", move |_| {
            let outcome = if looked.load(Ordering::Relaxed) { Ok(()) } else { Err("No data.") };
            Box::pin(async move { outcome })
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
        let check = Check::new("counted", move |_| {
            counted.fetch_add(1, Ordering::Relaxed);
            Box::pin(async { Ok(()) })
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
    fn a_check_that_hangs_has_failed() {
        let check = Check::new("stuck", |_| Box::pin(std::future::pending()));
        simulated(|io| async move {
            let begun = io.now();
            let answer = Readiness::new(vec![check]).answer(&io).await;
            assert_eq!(answer.status(), Status::SERVICE_UNAVAILABLE);
            assert!(io.now() < begun + 2 * READY_CHECK_TIME_MAX);
        });
    }
}
