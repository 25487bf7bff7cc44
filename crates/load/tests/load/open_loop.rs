//! Open loops: latencies count from the planned start of a request, regardless of the server's delays.

use super::*;

/// Four seconds at a hundred requests a second, by one user; one answer takes a second.
fn stalled(pace: Pace) -> Outcome {
    let workload = Workload { pace, end: End::After(4 * SECOND), ..workload() };
    let (outcome, _) = run(calm(), workload, |_, number| match number {
        100 => ok(b"late").after(SECOND),
        _ => ok(b"soon"),
    });
    outcome.unwrap()
}

#[test]
fn a_server_that_stalls_is_seen_by_every_request_that_was_planned_meanwhile() {
    let outcome = stalled(Pace::Open { per_second: 100.0 });
    // A hundred of the four hundred requests were planned in the second of the stall, and waited for half a
    // second on average.
    assert!((395..=400).contains(&outcome.requests), "{}", outcome.requests);
    assert!(outcome.latency.p50 < 10 * MS, "{:?}", outcome.latency);
    assert!(outcome.latency.p90 > 500 * MS, "{:?}", outcome.latency);
    assert!(outcome.latency.max >= SECOND, "{:?}", outcome.latency);
    assert!((95..=105).contains(&outcome.generator.without_user), "{}", outcome.generator.without_user);
    assert!(outcome.errors.is_empty());
}

#[test]
fn a_closed_loop_hides_a_stall_because_its_users_send_nothing_meanwhile() {
    let outcome = stalled(Pace::Closed { think: 10 * MS });
    assert!(outcome.latency.p99 < 10 * MS && outcome.latency.max >= SECOND, "{:?}", outcome.latency);
}

#[test]
fn starts_are_on_time_in_even_steps_as_long_as_a_user_is_free() {
    let pace = Pace::Open { per_second: 50.0 };
    let workload = Workload { pace, users: 4, end: End::After(2 * SECOND), ..workload() };
    let (outcome, seen) = run(calm(), workload, |_, _| ok(b"").after(30 * MS));
    let outcome = outcome.unwrap();
    assert_eq!(outcome.generator.without_user, 0);
    assert_eq!(outcome.generator.late.max, Duration::ZERO, "nothing is late in the simulator");
    let came: Vec<Duration> = seen.iter().map(|seen| seen.came).collect();
    assert!(came.windows(2).all(|two| two[1] - two[0] == 20 * MS), "{came:?}");
    // A request starts every 20 ms and takes 30 ms: 1.5 are in progress on average.
    assert!((outcome.littles_law.users - 1.5).abs() < 0.1, "{:?}", outcome.littles_law);
    assert!((outcome.littles_law.ratio - 1.0).abs() < 0.05, "{:?}", outcome.littles_law);
}

#[test]
fn an_open_loop_plans_its_rate_times_its_time_and_no_start_at_the_end() {
    for (rate, seconds, users) in [(10.0, 1, 1), (10.0, 1, 10), (3.0, 2, 2), (0.5, 4, 1), (100.0, 3, 7)] {
        let pace = Pace::Open { per_second: rate };
        let workload = Workload { pace, users, end: End::After(seconds * SECOND), ..workload() };
        let (outcome, seen) = run(calm(), workload, |_, _| ok(b"").after(MS));
        let outcome = outcome.unwrap();
        let planned = (rate * f64::from(seconds)).round();
        assert_eq!((outcome.sent() as f64, seen.len() as f64), (planned, planned), "{rate} {seconds}");
        assert_eq!(outcome.missed, 0);
    }
}

#[test]
fn each_planned_start_is_sent_or_missed_and_each_sent_request_is_in_one_count() {
    let pace = Pace::Open { per_second: 50.0 };
    for (slow, timeout) in [(MS, SECOND), (300 * MS, SECOND), (300 * MS, 200 * MS), (5 * SECOND, 60 * SECOND)]
    {
        let end = End::After(2 * SECOND);
        let workload = Workload { pace, users: 3, end, warm_up: SECOND, timeout, ..workload() };
        let (outcome, seen) = run(calm(), workload, move |_, number| match number % 7 {
            0 => ok(b"").after(slow),
            _ => ok(b"").after(MS),
        });
        let outcome = outcome.unwrap();
        assert_eq!(outcome.sent(), seen.len() as u64, "{outcome:?}");
        assert_eq!(outcome.sent() + outcome.missed, 150, "{outcome:?}");
    }
}
