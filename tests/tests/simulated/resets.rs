//! Connections that are reset anywhere, and reproducible runs.

use plimsoll_channel::Bodies;
use plimsoll_io::sim::Faults;
use plimsoll_tests::Scenario;
use plimsoll_tests::under::every_seed;

use crate::crowd::{run, run_against, scenario};

#[test]
fn without_resets_every_answer_arrives_and_is_right() {
    for seed in every_seed().take(50) {
        assert_eq!(run(seed, Faults::splits()).broken, 0, "seed {seed}");
    }
}

#[test]
fn responses_that_arrive_despite_resets_are_right_and_nothing_is_left() {
    let (mut whole, mut broken) = (0, 0);
    for (seed, per_mille) in every_seed().zip([20, 5, 1].into_iter().cycle()) {
        let outcome = run(seed, Faults::resets(per_mille));
        whole += outcome.whole;
        broken += outcome.broken;
    }
    // Otherwise the faults are too many or too few to show anything. (A single seed may be either.)
    assert!(whole + broken < 100 || (whole > 0 && broken > 0), "{whole} whole, {broken} broken");
}

#[test]
fn a_connection_that_is_reset_at_once_leaves_nothing() {
    for seed in every_seed().take(50) {
        run(seed, Faults::resets(500));
    }
}

#[test]
fn the_same_seed_makes_the_same_run() {
    for faults in [Faults::none(), Faults::splits(), Faults::resets(20)] {
        for seed in every_seed().take(10) {
            assert_eq!(run(seed, faults).digest, run(seed, faults).digest, "seed {seed}");
        }
    }
}

#[test]
fn another_seed_makes_another_run() {
    assert_ne!(run(1, Faults::splits()).digest, run(2, Faults::splits()).digest);
}

#[test]
fn a_channel_that_breaks_anywhere_has_no_wrong_answer_and_leaves_nothing() {
    let (mut whole, mut broken) = (0, 0);
    let rates = [20, 5, 1].into_iter().cycle().zip([Bodies::Passed, Bodies::Copied].into_iter().cycle());
    for (seed, (per_mille, bodies)) in every_seed().zip(rates) {
        let outcome =
            run_against(seed, Faults::resets(per_mille), &Scenario { channel: Some(bodies), ..scenario() });
        whole += outcome.whole;
        broken += outcome.broken;
    }
    assert!(whole + broken < 100 || (whole > 0 && broken > 0), "{whole} whole, {broken} broken");
}

#[test]
fn without_resets_every_answer_arrives_over_a_channel() {
    for (seed, bodies) in every_seed().take(50).zip([Bodies::Passed, Bodies::Copied].into_iter().cycle()) {
        let outcome = run_against(seed, Faults::splits(), &Scenario { channel: Some(bodies), ..scenario() });
        assert_eq!(outcome.broken, 0, "seed {seed}");
    }
}
