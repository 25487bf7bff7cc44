//! The start: no user sends a request before all users are ready.

use super::*;

#[test]
fn no_user_starts_before_the_last_reference_is_received() {
    for seed in 0..SEEDS {
        let workload = Workload {
            users: 5,
            ask: Requests::Download(Files::Numbered { first: 0, count: 12 }),
            checked: Checked::OneIn(4),
            end: End::Requests(60),
            ..workload()
        };
        let (outcome, seen) = run((seed, Faults::splits()), workload, |line, number| {
            let answer = ok(line.as_bytes());
            // The response to one of the reference downloads before the start is delayed.
            if number < 12 && line.contains("/7 ") { answer.after(3 * SECOND) } else { answer }
        });
        assert_eq!(outcome.unwrap().requests, 60, "seed {seed}");
        let (before, after) = seen.split_at(12);
        let mut fetched: Vec<&str> = before.iter().map(|seen| seen.line.as_str()).collect();
        fetched.sort_unstable();
        fetched.dedup();
        assert_eq!(fetched.len(), 12, "seed {seed}: each file is fetched once: {fetched:?}");
        let ready = before.iter().map(|seen| seen.answered).max().unwrap();
        assert!(after.iter().all(|seen| seen.came > ready), "seed {seed}: somebody asked before {ready:?}");
        assert_eq!(after.len(), 60, "seed {seed}");
    }
}

#[test]
fn a_user_that_cannot_get_ready_prevents_the_start_with_the_reason() {
    let workload = Workload {
        users: 5,
        ask: Requests::Download(Files::Numbered { first: 0, count: 12 }),
        checked: Checked::All,
        ..workload()
    };
    let (outcome, seen) = run(calm(), workload, |line, _| match line.contains("/7 ") {
        true => Act::bytes(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"),
        false => ok(b"there"),
    });
    assert!(outcome.unwrap_err().contains("404"));
    assert!(seen.len() <= 12);
}

#[test]
fn users_take_files_by_the_rule_that_was_asked_for() {
    let workload = Workload {
        users: 3,
        ask: Requests::Download(Files::Numbered { first: 0, count: 30 }),
        pick: Pick::Each { offset: 10 },
        end: End::Requests(30),
        ..workload()
    };
    let (outcome, seen) = run(calm(), workload, |_, _| ok(b"x"));
    assert_eq!(outcome.unwrap().requests, 30);
    let mut asked: Vec<String> = seen.into_iter().map(|seen| seen.line).collect();
    asked.sort_unstable();
    asked.dedup();
    assert_eq!(asked.len(), 30, "each file once");
}

#[test]
fn users_of_a_closed_loop_start_at_the_same_time() {
    for seed in 0..SEEDS {
        let workload = Workload { users: 7, end: End::Requests(50), ..workload() };
        let (outcome, _) = run((seed, Faults::splits()), workload, |_, _| ok(b"x").after(MS));
        let outcome = outcome.unwrap();
        assert_eq!(outcome.start_spread, Duration::ZERO, "seed {seed}");
        assert_eq!(outcome.json()["starts"]["spread_seconds"], 0.0);
        assert!(outcome.json()["window"].is_null(), "the simulator has no clock of the machine");
    }
}

#[test]
fn the_spread_of_starts_includes_first_requests_of_the_warm_up() {
    let pace = Pace::Open { per_second: 50.0 };
    let workload = Workload { pace, users: 4, warm_up: 10 * SECOND, end: End::After(SECOND), ..workload() };
    let (outcome, _) = run(calm(), workload, |_, _| ok(b"x").after(30 * MS));
    let outcome = outcome.unwrap();
    // The four users take the first four planned starts, 20 ms from each other.
    assert_eq!(outcome.start_spread, 60 * MS);
    assert!(!outcome.text().contains("spread over"), "an open loop plans its starts: {}", outcome.text());
}

#[test]
fn a_spread_of_starts_above_one_percent_has_a_note() {
    let workload = Workload { users: 2, end: End::After(10 * SECOND), ..workload() };
    let (outcome, _) = run(calm(), workload, |_, _| ok(b"x").after(MS));
    let mut outcome = outcome.unwrap();
    outcome.start_spread = 100 * MS;
    assert!(!outcome.text().contains("spread over"), "{}", outcome.text());
    outcome.start_spread = 150 * MS;
    let note =
        "note: the first requests of the users were spread over 150.00 ms, 1.5 % of the measured time\n";
    assert!(outcome.text().contains(note), "{}", outcome.text());
}
