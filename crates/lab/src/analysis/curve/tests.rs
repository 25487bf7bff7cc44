//! Tests of the curves, with systems whose demands are known.

use super::*;
use crate::results::synthetic::{ModelledProcess, SyntheticPlan, System};
use crate::results::{BEGAN_BUSY, TrialResult};

fn close(found: f64, expected: f64, tolerance: f64) -> bool {
    (found / expected - 1.0).abs() < tolerance
}

fn tiered() -> System {
    let process =
        |name: &str, demand: f64| ModelledProcess { name: name.to_owned(), demand, cores: None, threads: 1 };
    System {
        name: "tiered".to_owned(),
        processes: vec![process("front", 0.0006), process("store", 0.0010)],
        disk: 0.0004,
        lock: 0.0,
        delay: 0.0020,
    }
}

fn curve_of(plan: &SyntheticPlan, system: System) -> Curve {
    curves(&plan.results(&[system]).unwrap()).remove(0)
}

#[test]
fn the_demands_of_a_modelled_system_are_recovered() {
    let results = SyntheticPlan { noise: 0.002, ..SyntheticPlan::default() }.results(&[tiered()]).unwrap();
    let curve = &curves(&results)[0];
    let demands = curve.demands.as_ref().unwrap();
    let found: Vec<(&str, f64)> =
        demands.resources.iter().map(|one| (one.name.as_str(), one.demand)).collect();
    for ((name, found), (expected_name, expected)) in
        found.iter().zip([("CPU of front", 0.0006), ("CPU of store", 0.0010), ("disk sda", 0.0004)])
    {
        assert!(*name == expected_name && close(*found, expected, 0.01), "{name} {found}");
    }
    assert_eq!((found.len(), demands.users, demands.processes.len(), demands.cores.len()), (3, 1, 2, 2));
    assert!(close(demands.delay, 0.0020, 0.02), "{}", demands.delay);
    let bounds = curve.bounds.unwrap();
    assert!(close(bounds.largest_demand, 0.0010, 0.01) && close(bounds.total_demand, 0.0040, 0.01));
}

#[test]
fn the_prediction_from_one_user_is_the_modelled_system_at_many() {
    let results = SyntheticPlan { think_ms: 5, ..SyntheticPlan::default() }.results(&[tiered()]).unwrap();
    let curve = &curves(&results)[0];
    let prediction = curve.prediction.as_ref().unwrap();
    assert_eq!((prediction.points.len(), prediction.errors.len()), (64, 6));
    for error in &prediction.errors {
        assert!(error.throughput.abs() < 0.01 && error.response.unwrap().abs() < 0.01, "{error:?}");
    }
}

#[test]
fn saturation_and_hint_are_those_of_the_bottleneck() {
    let plan = SyntheticPlan { think_ms: 10, ..SyntheticPlan::default() };
    let results = plan.results(&[tiered(), System::simple("lazy", 0.000_001, 0.050)]).unwrap();
    let all = curves(&results);
    let saturation = all[0].saturation.unwrap();
    // (4 ms + 10 ms) / 1 ms.
    assert!(close(saturation.asymptotic.unwrap(), 14.0, 0.02), "{saturation:?}");
    assert_eq!((saturation.users_at_max, saturation.nearly_all), (64, 32));
    assert!(all[0].response_at_saturation.unwrap() > 0.004);
    let hint = all[0].hint.as_ref().unwrap();
    assert_eq!(hint.saturated.len(), 1, "{hint:?}");
    assert!(hint.text().starts_with("CPU of store at 100 %") || hint.text().contains("at 99 %"), "{hint:?}");
    let lazy = all[1].hint.as_ref().unwrap();
    assert!(lazy.text().starts_with("none saturated: waits for a lock"), "{lazy:?}");
}

#[test]
fn a_pinned_process_is_compared_with_its_cores() {
    let mut system = System::simple("pinned", 0.001, 0.0);
    system.processes[0].threads = 8;
    system.processes[0].cores = Some("1".to_owned());
    let results = SyntheticPlan::default().results(&[system]).unwrap();
    let curve = &curves(&results)[0];
    assert_eq!(curve.demands.as_ref().unwrap().resources[0].servers, 1);
    assert_eq!(curve.demands.as_ref().unwrap().resources[0].name, "core 1 of server");
}

#[test]
fn discarded_and_failed_trials_are_in_no_figure() {
    let plan = SyntheticPlan { discarded: 1, users: vec![1, 8], ..SyntheticPlan::default() };
    let mut results = plan.results(&[System::simple("a", 0.001, 0.001)]).unwrap();
    for trial in &mut results.trials {
        match (&mut trial.result, trial.repetition, trial.point["users"].as_str()) {
            (TrialResult::Measured(measured), 1, _) => measured.load.requests_per_second = 1e9,
            (result, 2, "1") | (result, _, "8") => *result = TrialResult::Failed("it hung".to_owned()),
            _ => {}
        }
    }
    let curve = &curves(&results)[0];
    let [first, second] = curve.points.as_slice() else { panic!("two points") };
    let figures = first.figures.as_ref().unwrap();
    assert_eq!((first.failed, figures.throughput.count), (1, 3));
    assert!(close(figures.throughput.mean, 500.0, 0.001), "{figures:?}");
    assert!((second.failed, second.figures.is_none()) == (4, true));
}

/// Has a third of the throughput in the trials that `is_busy` selects by repetition, and their mark.
fn disturb(results: &mut Results, is_busy: impl Fn(u32) -> bool) {
    for trial in results.trials.iter_mut().filter(|trial| is_busy(trial.repetition)) {
        if let TrialResult::Measured(measured) = &mut trial.result {
            measured.load.requests_per_second /= 3.0;
            measured.marks.push(BEGAN_BUSY.to_owned());
        }
    }
}

#[test]
fn repetitions_on_a_busy_machine_count_only_if_fewer_than_two_were_on_an_idle_one() {
    let plan = SyntheticPlan { users: vec![1, 8], ..SyntheticPlan::default() };
    let undisturbed = plan.results(&[System::simple("a", 0.001, 0.001)]).unwrap();
    let first = |is_busy: &dyn Fn(u32) -> bool| {
        let mut results = undisturbed.clone();
        disturb(&mut results, is_busy);
        curves(&results).remove(0).points.remove(0)
    };
    let some = first(&|repetition| repetition <= 3);
    let figures = some.figures.unwrap();
    assert_eq!((some.left_out, figures.throughput.count, figures.marks.len()), (3, 2, 0));
    assert!(close(figures.throughput.mean, 500.0, 0.001), "{figures:?}");
    let most = first(&|repetition| repetition <= 4);
    assert_eq!((most.left_out, most.figures.unwrap().throughput.count), (0, 5));
}

#[test]
fn a_prediction_that_misses_the_measured_throughput_is_not_close() {
    let mut results = SyntheticPlan::default().results(&[tiered()]).unwrap();
    let is_close = |results: &Results| curves(results)[0].prediction.as_ref().unwrap().is_close();
    assert!(is_close(&results));
    for trial in results.trials.iter_mut().filter(|trial| trial.point["users"] == "64") {
        if let TrialResult::Measured(measured) = &mut trial.result {
            measured.load.requests_per_second *= 0.5;
        }
    }
    assert!(!is_close(&results), "64 users have half of what is predicted");
}

#[test]
fn a_contender_without_processes_and_machine_has_no_demands() {
    let mut results = SyntheticPlan::default().results(&[System::simple("a", 0.001, 0.001)]).unwrap();
    for trial in &mut results.trials {
        if let TrialResult::Measured(measured) = &mut trial.result {
            measured.processes.clear();
            measured.machine = None;
        }
    }
    let curve = &curves(&results)[0];
    assert!(curve.demands.is_none() && curve.bounds.is_none() && curve.prediction.is_none());
    assert!(curve.saturation.is_some() && curve.scalability.is_some());
    assert!(curve.points[0].figures.as_ref().unwrap().cpu.is_none());
}

#[test]
fn ratios_are_paired_with_the_reference_of_the_same_repetition() {
    let plan =
        SyntheticPlan { drift: 0.1, has_reference: true, users: vec![1, 4], ..SyntheticPlan::default() };
    let systems = [System::simple("base", 0.001, 0.001), System::simple("fast", 0.0005, 0.0005)];
    let results = plan.results(&systems).unwrap();
    assert_eq!(reference(&results), Some("base"));
    let ratios = paired_ratios(&results, &curves(&results), "base");
    assert_eq!(ratios.len(), 2);
    for ratio in &ratios {
        let throughput = ratio.throughput.unwrap();
        let [low, high] = throughput.interval.unwrap();
        assert!(close(throughput.mean, 2.0, 0.001) && high - low < 0.01, "drift cancels: {throughput:?}");
        assert!(close(ratio.cpu.unwrap().mean, 0.5, 0.01));
    }
}

#[test]
fn a_lock_that_no_probe_sees_is_found_from_the_maximum_throughput_and_predicts_the_other_points() {
    let system = System { lock: 0.008, ..System::simple("server", 0.002, 0.020) };
    let curve = curve_of(&SyntheticPlan::default(), system);
    let demands = curve.demands.as_ref().unwrap();
    let lock = demands.resources.iter().find(|one| one.kind == ResourceKind::Unobserved).unwrap();
    assert!(close(lock.demand, 0.008, 0.01), "{lock:?}");
    assert!(close(demands.delay, 0.020, 0.02), "{demands:?}");
    let errors = &curve.prediction.as_ref().unwrap().errors;
    assert_eq!(errors.iter().map(|error| error.users).collect::<Vec<u32>>(), [2, 4, 8, 16, 32]);
    assert!(errors.iter().all(|error| error.throughput.abs() < 0.01), "{errors:?}");
}

#[test]
fn a_saturated_processor_and_a_rising_throughput_need_no_unobserved_resource() {
    let of_processor = curve_of(&SyntheticPlan::default(), System::simple("server", 0.008, 0.020));
    let rising = SyntheticPlan { users: vec![1, 2, 4], ..SyntheticPlan::default() };
    let of_rising = curve_of(&rising, System { lock: 0.002, ..System::simple("server", 0.001, 0.100) });
    for curve in [of_processor, of_rising] {
        let resources = &curve.demands.as_ref().unwrap().resources;
        assert!(resources.iter().all(|one| one.kind != ResourceKind::Unobserved), "{resources:?}");
    }
}

#[test]
fn demands_whose_bound_a_measured_point_exceeds_have_no_bounds_and_no_prediction() {
    let mut results = SyntheticPlan::default().results(&[tiered()]).unwrap();
    assert!(curves(&results)[0].bounds.is_some());
    for trial in &mut results.trials {
        if let (TrialResult::Measured(measured), "16") = (&mut trial.result, trial.point["users"].as_str()) {
            measured.load.requests_per_second *= 2.0;
        }
    }
    let curve = &curves(&results)[0];
    let contradiction = curve.demands.as_ref().unwrap().contradiction.unwrap();
    assert_eq!((contradiction.users, curve.bounds, &curve.prediction), (16, None, &None));
    assert!(contradiction.throughput > contradiction.bound * 1.1, "{contradiction:?}");
}
