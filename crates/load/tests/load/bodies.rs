//! Bodies: correct, wrong or truncated, with each framing.

use std::collections::BTreeSet;

use super::*;

/// Returns the errors of `requests` for one file, equal for all seeds. With all bodies verified, request
/// number 0 at the server is the reference download before the start.
fn errors_of(
    checked: Checked,
    requests: u64,
    script: impl Fn(&str, usize) -> Act + Send + Sync + Clone + 'static,
) -> Errors {
    let mut found = errors_by_seed(checked, requests, script);
    assert_eq!(found.len(), 1, "{found:?}");
    found.pop_first().unwrap()
}

type Errors = Vec<(String, u64)>;

fn errors_by_seed(
    checked: Checked,
    requests: u64,
    script: impl Fn(&str, usize) -> Act + Send + Sync + Clone + 'static,
) -> BTreeSet<Errors> {
    let mut found = BTreeSet::new();
    for seed in 0..SEEDS {
        let workload = Workload { checked, end: End::Requests(requests), ..workload() };
        let (outcome, _) = run((seed, Faults::splits()), workload, script.clone());
        let outcome = outcome.unwrap();
        let errors: Errors = outcome.errors.into_iter().collect();
        let wrong: u64 = errors.iter().map(|(_, count)| count).sum();
        assert_eq!(outcome.requests + wrong, requests, "seed {seed}: {errors:?}");
        found.insert(errors);
    }
    found
}

fn one(kind: &str) -> Errors {
    vec![(kind.to_owned(), 1)]
}

const BODY: [u8; 3000] = [b'a'; 3000];

#[test]
fn one_wrong_byte_is_found_where_all_are_verified() {
    let errors = errors_of(Checked::All, 20, |_, number| {
        let mut body = BODY;
        if number == 10 {
            body[2999] = b'b';
        }
        ok(&body)
    });
    assert_eq!(errors, one("wrong_body"));
}

#[test]
fn a_wrong_length_is_found_also_where_the_body_is_thrown_away() {
    let errors = errors_of(Checked::OneIn(u64::MAX), 20, |_, number| {
        ok(if number == 10 { &BODY[..2999] } else { &BODY })
    });
    assert_eq!(errors, one("wrong_body"));
}

#[test]
fn a_body_that_ends_early_is_an_error_however_it_ends() {
    for then in [Then::Ends, Then::Breaks] {
        for checked in [Checked::None, Checked::All] {
            let errors = errors_by_seed(checked, 20, move |_, number| {
                let mut act = ok(&BODY);
                if number == 10 {
                    act.answer.truncate(1500);
                    act.then = then;
                }
                act
            });
            assert!(errors.contains(&one("short_body")), "{errors:?}");
            // Bytes in flight when the connection broke may be lost, including the head.
            let others = errors.iter().filter(|errors| **errors != one("short_body"));
            assert!(
                others.into_iter().all(|other| then == Then::Breaks && *other == one("broken")),
                "{errors:?}"
            );
        }
    }
}

#[test]
fn more_than_was_announced_is_no_answer() {
    let found = errors_by_seed(Checked::All, 20, |_, number| {
        let mut act = ok(&BODY);
        if number == 20 {
            act.answer.extend_from_slice(b"HTTP/1.1 200 OK\r\n");
        }
        act
    });
    // The extra bytes may arrive after the response, when the trial has already ended.
    assert!(found.contains(&one("malformed")), "{found:?}");
    assert!(found.iter().all(|errors| errors.is_empty() || *errors == one("malformed")), "{found:?}");
}

#[test]
fn answers_are_taken_however_they_are_framed() {
    let answers: [(&[u8], Then); 6] = [
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n",
            Then::Goes,
        ),
        (b"HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabcde", Then::Goes),
        (
            b"HTTP/1.1 103 Early Hints\r\nContent-Length: 9\r\n\r\n\
              HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabcde",
            Then::Goes,
        ),
        (b"HTTP/1.0 200 OK\r\n\r\nabcde", Then::Ends),
        (b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nabcde", Then::Ends),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabcde", Then::Goes),
    ];
    for checked in [Checked::All, Checked::None] {
        let errors = errors_of(checked, 20, move |_, number| {
            let (answer, then) = answers[number % answers.len()];
            Act::bytes(answer).then(then)
        });
        assert_eq!(errors, Vec::new(), "{checked:?}");
    }
}

#[test]
fn each_kind_of_error_has_its_own_name_and_the_user_goes_on() {
    let no = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 4\r\n\r\nbusy";
    let script = move |_: &str, number: usize| match number {
        5 => Act::bytes(no),
        6 => Act::bytes(b"what?\r\n\r\n"),
        7 => Act::bytes(b"").then(Then::Ends),
        8 => ok(b"").after(100 * SECOND),
        _ => ok(&BODY),
    };
    let kinds = ["broken", "malformed", "status_503", "timeout"];
    let expected: Errors = kinds.iter().map(|kind| ((*kind).to_owned(), 1)).collect();
    assert_eq!(errors_of(Checked::None, 20, script), expected);
}
