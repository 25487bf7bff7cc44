//! The start: no user sends a request before all users are ready.

use super::*;

#[test]
fn nobody_asks_before_the_last_reference_has_come() {
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
fn if_one_cannot_get_ready_there_is_no_start_and_it_is_told_why() {
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
