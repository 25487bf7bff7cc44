//! Tests of the comparison, with simulated noise.

use super::*;
use crate::results::TrialResult;
use crate::results::synthetic::{SyntheticPlan, System};

fn plan(seed: u64, users: &[u32], repetitions: u32, noise: f64) -> SyntheticPlan {
    SyntheticPlan {
        users: users.to_vec(),
        repetitions,
        noise,
        drift: 0.05,
        seed,
        has_reference: true,
        ..SyntheticPlan::default()
    }
}

/// Returns a reference of one speed, and two contenders whose speed is divided by `slowness`.
fn systems(slowness: f64) -> [System; 3] {
    [
        System::simple("reference", 0.0010, 0.004),
        System::simple("a", 0.0012 * slowness, 0.004 * slowness),
        System::simple("b", 0.0008 * slowness, 0.005 * slowness),
    ]
}

/// Compares so many pairs of runs. Returns the number of pairs that differ.
fn different_pairs(pairs: u64, slowness: f64, users: &[u32], repetitions: u32, noise: f64) -> usize {
    let run =
        |seed: u64, slowness: f64| plan(seed, users, repetitions, noise).results(&systems(slowness)).unwrap();
    let differs =
        (0..pairs).filter(|pair| compare(&run(2 * pair + 1, 1.0), &run(2 * pair + 2, slowness)).differs());
    differs.count()
}

#[test]
fn equal_runs_show_no_difference_in_20_of_20_pairs() {
    for (users, repetitions, noise) in
        [(&[1, 8, 64][..], 5, 0.02), (&[1, 2, 4, 8, 16, 32, 64][..], 9, 0.015), (&[16][..], 7, 0.01)]
    {
        let found = different_pairs(20, 1.0, users, repetitions, noise);
        assert_eq!(found, 0, "{} points, {repetitions} repetitions, noise {noise}", users.len());
    }
}

#[test]
fn a_run_that_is_5_percent_slower_is_found_in_18_of_20_pairs() {
    for (users, repetitions, noise) in
        [(&[1, 8, 64][..], 5, 0.01), (&[1, 2, 4, 8, 16, 32, 64][..], 5, 0.02), (&[16][..], 9, 0.01)]
    {
        let found = different_pairs(20, 1.05, users, repetitions, noise);
        assert!(found >= 18, "{found}: {} points, {repetitions} repetitions, noise {noise}", users.len());
    }
}

#[test]
fn a_drift_of_the_machine_is_no_difference() {
    let users = [1, 8, 64];
    let one = plan(1, &users, 7, 0.01).results(&systems(1.0)).unwrap();
    let mut other = plan(2, &users, 7, 0.01).results(&systems(1.0)).unwrap();
    for trial in &mut other.trials {
        if let TrialResult::Measured(measured) = &mut trial.result {
            measured.load.requests_per_second *= 0.8;
        }
    }
    let found = compare(&one, &other);
    assert!(!found.differs(), "{}", found.text());
    assert!((found.reference_change.unwrap() + 0.2).abs() < 0.08, "{:?}", found.reference_change);
    assert!(found.text().contains("No difference beyond noise"), "{}", found.text());
}

#[test]
fn a_certain_change_below_the_threshold_is_ignored() {
    let (one, other) = (plan(1, &[4], 9, 0.0002), plan(2, &[4], 9, 0.0002));
    let (one, other) = (one.results(&systems(1.0)).unwrap(), other.results(&systems(1.005)).unwrap());
    let found = compare(&one, &other);
    assert!(found.changes.iter().any(|change| change.probability < FAMILY_LEVEL));
    assert!(!found.differs(), "{}", found.text());
}

#[test]
fn cells_of_one_run_only_are_listed() {
    let one = plan(1, &[1, 2], 3, 0.01).results(&systems(1.0)).unwrap();
    let mut other = plan(2, &[2, 4], 3, 0.01).results(&systems(1.0)).unwrap();
    for trial in other.trials.iter_mut().filter(|trial| trial.contender == "b") {
        trial.result = TrialResult::Failed("it hung".to_owned());
    }
    let found = compare(&one, &other);
    let missing: Vec<(&str, &str, &str)> = found
        .missing
        .iter()
        .map(|cell| (cell.contender.as_str(), cell.point["users"].as_str(), cell.reason.as_str()))
        .collect();
    let few = "fewer than two repetitions that can be compared in one of the runs";
    assert_eq!(
        missing,
        [
            ("a", "1", "only in the first run"),
            ("b", "1", "only in the first run"),
            ("b", "2", few),
            ("a", "4", "only in the second run"),
            ("b", "4", "only in the second run"),
        ]
    );
    assert!(found.text().contains("a at users=4: only in the second run"), "{}", found.text());
}

#[test]
fn latencies_of_open_loops_are_shown_and_only_their_cpu_time_is_tested() {
    let open = |seed| SyntheticPlan { open_percent: vec![50, 90], ..plan(seed, &[1, 8, 64], 5, 0.01) };
    let run = |seed, slowness: f64| open(seed).results(&systems(slowness)).unwrap();
    let equal = (1..=20).filter(|seed| compare(&run(*seed, 1.0), &run(seed + 100, 1.0)).differs());
    assert_eq!(equal.count(), 0);
    let (one, mut other) = (run(1, 1.0), run(2, 1.0));
    for trial in other.open_loops.iter_mut().filter(|trial| trial.contender == "a") {
        if let TrialResult::Measured(measured) = &mut trial.result {
            let seconds = measured.processes[0].user_seconds.unwrap();
            measured.processes[0].user_seconds = Some(seconds * 1.5);
        }
    }
    let found = compare(&one, &other);
    let share = |change: &Change| change.point.as_ref().and_then(|point| point.get("open_loop").cloned());
    let different: Vec<(String, Option<String>)> = found
        .changes
        .iter()
        .filter(|change| change.differs && change.point.is_some())
        .map(|change| (change.contender.clone(), share(change)))
        .collect();
    assert_eq!(different, ["50 %", "90 %"].map(|share| ("a".to_owned(), Some(share.to_owned()))));
    assert!(
        found
            .changes
            .iter()
            .all(|change| { share(change).is_none() || change.figure == ComparedFigure::CpuPerRequest })
    );
    assert_eq!(found.open_loops.len(), 6, "the reference is shown too");
    assert!(found.text().contains("shown and not tested"), "{}", found.text());
}

#[test]
fn all_points_of_a_contender_are_tested_together_once() {
    let (one, other) = (plan(1, &[1, 8, 64], 5, 0.01), plan(2, &[1, 8, 64], 5, 0.01));
    let found = compare(&one.results(&systems(1.0)).unwrap(), &other.results(&systems(1.0)).unwrap());
    let together = found.changes.iter().filter(|change| change.point.is_none());
    assert_eq!(together.count(), 2 * ComparedFigure::ALL.len());
}

#[test]
fn without_a_reference_the_figures_themselves_are_compared() {
    let plan = SyntheticPlan { repetitions: 5, noise: 0.005, ..SyntheticPlan::default() };
    let one = plan.results(&[System::simple("only", 0.001, 0.002)]).unwrap();
    let other = SyntheticPlan { seed: 7, ..plan };
    let other = other.results(&[System::simple("only", 0.0011, 0.0022)]).unwrap();
    let found = compare(&one, &other);
    assert_eq!(found.reference, None);
    assert!(found.differs() && found.text().contains("no reference contender"), "{}", found.text());
    let json = serde_json::to_value(&found).unwrap();
    assert!(json["changes"][0]["figure"] == "throughput" && json["changes"][0]["point"]["users"] == "1");
}

#[test]
fn a_changed_reference_and_a_redefined_contender_are_reported_first() {
    let users = [1, 8];
    let one = plan(1, &users, 5, 0.01).results(&systems(1.0)).unwrap();
    let mut slow = systems(1.0);
    slow[0] = System::simple("reference", 0.0030, 0.012);
    let mut other = plan(2, &users, 5, 0.01).results(&slow).unwrap();
    other.experiment.contenders[1].about = "another one".to_owned();
    other.run.contenders[2].version = "2.0".to_owned();
    let found = compare(&one, &other);
    let text = found.text();
    assert!(text.starts_with("The reference reference itself changed by -6"), "{text}");
    assert!(text.contains("a: its definition differs") && text.contains("b: its version was"), "{text}");
    assert!(!text.contains("e-1") && text.contains("< 0.001"), "{text}");
    assert_eq!(compare(&one, &one).redefined, Vec::<String>::new());
}
