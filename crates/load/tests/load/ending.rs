//! The end of a trial, and the requests that count then.

use super::*;

#[test]
fn so_many_requests_are_sent_as_were_asked_for_and_all_are_counted() {
    for seed in 0..SEEDS {
        for connections in [Connections::Kept, Connections::New] {
            let workload = Workload { users: 7, connections, end: End::Requests(100), ..workload() };
            let (outcome, seen) = run((seed, Faults::splits()), workload, |_, _| ok(b"abc"));
            let outcome = outcome.unwrap();
            assert_eq!((outcome.requests, outcome.bytes, seen.len()), (100, 300, 100), "seed {seed}");
            assert_eq!(outcome.unanswered, 0, "seed {seed}");
        }
    }
}

#[test]
fn a_closed_loop_keeps_littles_law() {
    let think = 70 * MS;
    let workload = Workload {
        users: 10,
        pace: Pace::Closed { think },
        end: End::After(20 * SECOND),
        warm_up: SECOND,
        ..workload()
    };
    let (outcome, _) = run((3, Faults::splits()), workload, |_, _| ok(b"abc").after(30 * MS));
    let outcome = outcome.unwrap();
    assert!((outcome.littles_law.ratio - 1.0).abs() < 0.02, "{:?}", outcome.littles_law);
    let rate = 10.0 / (outcome.latency.mean + think).as_secs_f64();
    assert!((outcome.requests_per_second() / rate - 1.0).abs() < 0.02, "{outcome:?}");
    assert_eq!(outcome.time, 20 * SECOND);
}

#[test]
fn nothing_of_the_warm_up_counts() {
    let workload = Workload { warm_up: 5 * SECOND, end: End::After(SECOND), ..workload() };
    // The first nine requests take half a second each; later ones take 1 ms.
    let (outcome, _) = run(calm(), workload, |_, number| match number {
        0..9 => ok(b"slow").after(500 * MS),
        _ => ok(b"quick").after(MS),
    });
    let outcome = outcome.unwrap();
    assert!(outcome.latency.max < 10 * MS, "{:?}", outcome.latency);
    assert!(outcome.requests > 500, "{}", outcome.requests);
}

#[test]
fn users_that_think_do_not_hold_the_end_up() {
    let pace = Pace::Closed { think: 1000 * SECOND };
    let workload = Workload { users: 3, pace, end: End::After(2 * SECOND), ..workload() };
    let (outcome, _) = run(calm(), workload, |_, _| ok(b"abc"));
    let outcome = outcome.unwrap();
    // A simulation that runs for an hour fails, so this shows that the trial does not wait for thinking
    // users.
    assert_eq!((outcome.time, outcome.requests), (2 * SECOND, 3), "each asks once, and thinks");
}

#[test]
fn every_upload_has_a_name_of_its_own() {
    let mut workload = Workload { users: 4, ask: Requests::Upload { bytes: 5000 }, ..workload() };
    workload.end = End::Requests(200);
    workload.place.pattern = "/in/".to_owned();
    let created = b"HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n";
    let (outcome, seen) = run((5, Faults::splits()), workload, move |_, _| Act::bytes(created));
    let outcome = outcome.unwrap();
    assert_eq!((outcome.requests, outcome.bytes), (200, 1_000_000));
    let mut lines: Vec<String> = seen.into_iter().map(|seen| seen.line).collect();
    assert!(lines.iter().all(|line| line.starts_with("PUT /in/load-")), "{}", lines[0]);
    lines.sort_unstable();
    lines.dedup();
    assert_eq!(lines.len(), 200);
}

#[test]
fn each_user_sends_its_number_of_requests_and_has_its_time() {
    let files = Files::Listed(["/a", "/b", "http://localhost/c"].map(str::to_owned).to_vec());
    for seed in 0..SEEDS {
        let mut workload = Workload {
            users: 4,
            ask: Requests::Download(files.clone()),
            pick: Pick::OfUser,
            end: End::RequestsEach(5),
            ..workload()
        };
        workload.place.pattern = "{}".to_owned();
        let (outcome, seen) = run((seed, Faults::none()), workload, |line, _| {
            ok(b"abc").after(if line.contains("/b ") { 20 * MS } else { 10 * MS })
        });
        let outcome = outcome.unwrap();
        let lines = |target: &str| seen.iter().filter(|seen| seen.line.contains(target)).count();
        assert_eq!((lines("GET /a "), lines("GET /b "), lines("GET http://localhost/c ")), (10, 5, 5));
        let each: Vec<(u64, u64, u64)> =
            outcome.users_each.iter().map(|user| (user.user, user.requests, user.bytes)).collect();
        assert_eq!(each, [(0, 5, 15), (1, 5, 15), (2, 5, 15), (3, 5, 15)]);
        let time = |user: usize| outcome.users_each[user].time;
        assert!(time(1) >= 100 * MS && time(0) >= 50 * MS && time(0) < time(1), "{:?}", outcome.users_each);
        assert_eq!(outcome.users_each.iter().map(|user| user.time).max(), Some(outcome.time));
    }
}

#[test]
fn requests_in_progress_at_the_end_and_in_the_warm_up_are_counted_as_that() {
    for seed in 0..SEEDS {
        let workload = Workload { users: 20, warm_up: SECOND, end: End::After(SECOND), ..workload() };
        let (outcome, seen) = run((seed, Faults::splits()), workload, |_, _| ok(b"abc").after(30 * MS));
        let outcome = outcome.unwrap();
        assert_eq!(outcome.sent(), seen.len() as u64, "{outcome:?}");
        // Each user has a request in progress at the end, which is answered soon after it.
        assert_eq!((outcome.after_end, outcome.unanswered), (20, 0), "{outcome:?}");
        assert!(outcome.in_warm_up > 0 && outcome.requests > 0, "{outcome:?}");
    }
}
