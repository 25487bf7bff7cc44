//! The order to stop while clients send requests: requests in progress are finished, and no connection
//! hangs.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use plimsoll_tests::binary::{Broken, EngineKind, Server, Visitor, until};
use plimsoll_tests::tree::noise;
use plimsoll_tests::{Tree, on_each_engine};
use rustix::process::Signal;

const CLIENTS: usize = 64;
/// The number of stopped servers: whether an order falls between a request's arrival and its reading is
/// chance.
const SERVERS: usize = 5;
/// More than one send, so that an answer can be cut in the middle.
const LARGE_BYTES: usize = 300_000;
/// One send: its clients are mostly between two answers.
const SMALL_BYTES: usize = 1_000;
/// Answers that all clients together receive before the order to stop.
const ANSWERS_BEFORE: usize = 500;
/// The grace period is longer than anything takes here; the end must not need it.
const GRACE: &str = "60s";
const END_TIME: Duration = Duration::from_secs(20);

/// The requests that a client repeats.
#[derive(Clone, Copy)]
struct Habit {
    target: &'static str,
    /// Requests on a connection before the client opens a new one.
    requests: usize,
    /// Requests that it sends before it reads their answers.
    at_once: usize,
}

const HABITS: [Habit; 6] = [
    Habit { target: "/large.bin", requests: usize::MAX, at_once: 1 },
    Habit { target: "/small.bin", requests: usize::MAX, at_once: 1 },
    Habit { target: "/large.bin", requests: 3, at_once: 1 },
    Habit { target: "/small.bin", requests: 1, at_once: 1 },
    Habit { target: "/large.bin", requests: usize::MAX, at_once: 4 },
    Habit { target: "/small.bin", requests: 40, at_once: 8 },
];

/// How a client's last connection ended.
enum End {
    /// Cleanly, between two answers, and then new connections were refused.
    Refused,
    /// By a reset before an answer's first byte, on a new connection: the order came while it waited to be
    /// accepted.
    ResetWhenNew,
    /// By a reset before an answer's first byte, on a keep-alive connection: it was closed while a request
    /// was in transit.
    ResetWhenKept(String),
}

impl End {
    fn reset_when_kept(&self) -> Option<&str> {
        if let End::ResetWhenKept(progress) = self { Some(progress) } else { None }
    }
}

/// Runs one client: it sends requests until the server refuses connections.
fn run(at: SocketAddr, habit: Habit, bytes: &[u8], answers: &AtomicUsize) -> End {
    let request = format!("GET {} HTTP/1.1\r\nHost: test\r\n\r\n", habit.target).repeat(habit.at_once);
    loop {
        let Ok(mut visitor) = Visitor::connect(at) else { return End::Refused };
        for number in 0..habit.requests {
            if number % habit.at_once == 0 {
                // A server that has closed the connection may have sent an answer before that: the read
                // shows it.
                let _ = visitor.send(&request);
            }
            match visitor.reply() {
                Ok(reply) => {
                    assert_eq!(reply.status, 200, "{}", reply.head);
                    assert!(reply.body == bytes, "every byte");
                    answers.fetch_add(1, Ordering::Relaxed);
                    if reply.closes {
                        assert!(visitor.some_body().is_ok_and(|more| more.is_empty()), "a clean end");
                        break;
                    }
                }
                Err(Broken::Ended) => break,
                Err(Broken::Refused(_)) if number == 0 => return End::ResetWhenNew,
                Err(Broken::Refused(error)) => {
                    return End::ResetWhenKept(format!("{}, after {number}: {error}", habit.target));
                }
                Err(Broken::Within(progress)) => panic!("cut off in the middle of an answer: {progress}"),
            }
        }
    }
}

/// Stops one server under load, and returns how its clients ended.
fn stop_one(kind: EngineKind, site: &Path, log: &Path) -> Vec<End> {
    let _ = std::fs::remove_file(log);
    let args = ["--grace", GRACE, "--access-log", log.to_str().unwrap()];
    let mut server = Server::start(kind, site, &args);
    let (at, answers) = (server.at(), AtomicUsize::new(0));
    let files = HABITS.map(|habit| std::fs::read(site.join(&habit.target[1..])).unwrap());
    let ends: Vec<End> = std::thread::scope(|scope| {
        let client = |number: usize| {
            let (habit, bytes) = (HABITS[number % HABITS.len()], &files[number % HABITS.len()]);
            let answers = &answers;
            scope.spawn(move || run(at, habit, bytes, answers))
        };
        let clients: Vec<_> = (0..CLIENTS).map(client).collect();
        until("the clients are at work", || answers.load(Ordering::Relaxed) >= ANSWERS_BEFORE);
        server.signal(Signal::TERM);
        clients.into_iter().map(|client| client.join().expect("every answer was whole")).collect()
    });
    assert_eq!(server.ends_within(END_TIME).code(), Some(0), "{}", server.stderr());
    let logged = std::fs::read_to_string(log).unwrap().lines().count();
    assert!(logged >= answers.into_inner(), "{logged} lines: the log has every answer");
    ends
}

fn requests_in_progress_at_a_stop_are_finished(kind: EngineKind) {
    let folder = tempfile::tempdir().unwrap();
    let (site, log) = (folder.path().join("site"), folder.path().join("access.log"));
    let tree = Tree::new().file("large.bin", noise(41, LARGE_BYTES));
    tree.file("small.bin", noise(43, SMALL_BYTES)).plant(&site);
    let ends: Vec<End> = (0..SERVERS).flat_map(|_| stop_one(kind, &site, &log)).collect();
    let new = ends.iter().filter(|end| matches!(end, End::ResetWhenNew)).count();
    let kept: Vec<&str> = ends.iter().filter_map(End::reset_when_kept).collect();
    println!(
        "{kind}: of {} clients, {new} were reset on a new connection, {} on a kept one",
        ends.len(),
        kept.len()
    );
    assert!(kept.is_empty(), "a kept connection ends cleanly, {} did not: {}", kept.len(), kept[0]);
}

on_each_engine!(alone: requests_in_progress_at_a_stop_are_finished);
