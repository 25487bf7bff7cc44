//! The report of a simulation that fails: the command to repeat it, and the last events.
//!
//! The failure happens in a separate process: this test's executable, run for one test by name.

use std::process::Command;

use plimsoll_io::sim::{Faults, SEED_VARIABLE, Sim};

use crate::SECOND;

/// The environment variable that makes [`fails_on_request`] fail in the way that it names.
const ASKED: &str = "SIMULATION_FAILS_ON_REQUEST";
const TEST: &str = "report::fails_on_request";
const SEED: u64 = 4711;

/// Passes, unless [`ASKED`] is set.
#[test]
fn fails_on_request() {
    let Ok(failure) = std::env::var(ASKED) else { return };
    let sim = Sim::new(SEED, Faults::splits());
    let host = sim.host("lonely");
    let io = host.io();
    sim.run(&host, async move {
        io.sleep(SECOND).await;
        assert_ne!(failure, "panic", "the test's own words");
        std::future::pending::<()>().await;
    });
}

/// Runs this executable for the one test. Returns its standard error.
fn report_of(failure: &str) -> String {
    let own = std::env::current_exe().unwrap();
    // Without --nocapture, the test's output goes to the parent's standard output.
    let run = Command::new(own).args([TEST, "--exact", "--nocapture"]).env(ASKED, failure).output().unwrap();
    assert!(!run.status.success(), "it was asked to fail");
    String::from_utf8(run.stderr).unwrap()
}

/// Asserts that `report` contains each of `words`, one after the other.
fn assert_says(report: &str, words: &[&str]) {
    let mut rest = report;
    for word in words {
        let found = rest.split_once(word);
        assert!(found.is_some(), "{word:?} is not in: {report}");
        rest = found.map_or("", |(_, after)| after);
    }
}

#[test]
fn a_failure_is_reported_with_its_seed_its_last_events_and_how_to_see_it_again() {
    let again = format!("again: {SEED_VARIABLE}={SEED} cargo test --workspace {TEST}\n");
    for (failure, why) in [("panic", "the main task panicked"), ("deadlock", "deadlock: nothing is ready")] {
        let report = report_of(failure);
        let heading = format!("simulation of seed {SEED}: {why}");
        // The end of the sleep is the last event: in microseconds, with its host.
        let last =
            [&*heading, "the last events:\n", "0 us  lonely ", "Spawned", "1000000 us  ", "TimersFired"];
        assert_says(&report, &last);
        assert_says(&report, &["TimersFired", &again]);
        assert_eq!(report.matches(&*again).count(), 1, "once: {report}");
        if failure == "panic" {
            assert!(report.contains("the test's own words"), "{report}");
        }
    }
}
