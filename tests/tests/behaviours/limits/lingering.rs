//! The limits of time and bytes for a peer after its last answer.

use std::future::Future;
use std::time::Duration;

use plimsoll_io::limits::{BODY_BLOCK_BYTES, LINGER_BYTES_MAX};
use plimsoll_io::sim::{Faults, WINDOW_BYTES_MAX};
use plimsoll_io::{Instant, Segment};
use plimsoll_proto::http::Limits;
use plimsoll_tests::accounts::settings;
use plimsoll_tests::under::{every_seed, simulated};
use plimsoll_tests::{Client, Engine, Scenario, Scene, Tree, behaviours, under};

const LINGER_TIME: Duration = Duration::from_millis(500);

fn scenario() -> Scenario {
    let limits = Limits { linger_time: LINGER_TIME, ..Limits::default() };
    Scenario { tree: Tree::new().file("small.txt", "small\n"), limits, ..Scenario::default() }
}

/// Returns a client that has been refused and has received the end.
async fn refused(scene: &Scene) -> Client {
    let mut client = scene.connect().await;
    client.push("no request\r\n\r\n");
    client.answer().await.problem(400);
    client.expect_end().await;
    client
}

/// Asserts, in the simulator, that the linger time has passed since `from`, when the client saw the
/// server's end. It was renewed once at most: while a client receives parts of its answer, the time
/// restarts.
fn assert_lingered(scene: &Scene, from: Instant) {
    if scene.engine == Engine::Simulator {
        let (passed, known) = (scene.io.now() - from, Duration::from_millis(20));
        assert!(passed >= LINGER_TIME - known, "after {passed:?} already");
        assert!(passed < 2 * LINGER_TIME + Duration::from_millis(100), "only after {passed:?}");
    }
}

async fn a_client_that_does_not_end_after_its_last_response_is_cut_off(scene: Scene) {
    let client = refused(&scene).await;
    let ended = scene.io.now();
    scene.until(|| scene.open() == 0).await;
    assert_lingered(&scene, ended);
    drop(client);
}

async fn bytes_do_not_prolong_the_time_after_the_last_answer(scene: Scene) {
    let mut client = refused(&scene).await;
    let ended = scene.io.now();
    while scene.open() > 0 {
        client.push("x");
        scene.io.sleep(LINGER_TIME / 10).await;
    }
    if scene.engine == Engine::Simulator {
        assert!(scene.io.now() - ended < 3 * LINGER_TIME, "only after {:?}", scene.io.now() - ended);
    }
}

behaviours!(scenario and tls;
    a_client_that_does_not_end_after_its_last_response_is_cut_off,
    bytes_do_not_prolong_the_time_after_the_last_answer,
);

/// So much time that only the limit of bytes ends the connection.
const PATIENT_TIME: Duration = Duration::from_secs(3000);
/// The bytes that a client sends in one piece.
const PIECE: &[u8] = &[b'x'; 32 * 1024];

fn patient() -> Scenario {
    let limits = Limits { linger_time: PATIENT_TIME, ..Limits::default() };
    Scenario { limits, ..Scenario::default() }
}

/// Returns the most bytes in transit between two processes: on a real machine, a generous estimate.
fn under_way_max(scene: &Scene) -> usize {
    if scene.engine == Engine::Simulator { WINDOW_BYTES_MAX + BODY_BLOCK_BYTES } else { 64 << 20 }
}

async fn a_client_that_sends_without_end_after_its_last_response_is_cut_off(scene: Scene) {
    let mut client = refused(&scene).await;
    let (mut sent, most) = (0, LINGER_BYTES_MAX + under_way_max(&scene));
    // The kernel has taken a piece when nothing is unsent.
    loop {
        client.stream.tx.push(Segment::Static(PIECE));
        if client.stream.tx.drain(0).await.is_err() {
            break;
        }
        sent += PIECE.len();
        assert!(sent <= most, "{sent} bytes were taken after the last answer");
    }
    let least = LINGER_BYTES_MAX - PIECE.len();
    assert!(sent >= least, "who has sent {sent} bytes has not read its answer yet, perhaps");
    scene.until(|| scene.open() == 0).await;
}

/// So much that a client that writes all of it before it reads is still writing when it is refused.
const UPLOAD_BYTES: usize = 9_000_000;

fn with_accounts() -> Scenario {
    Scenario { accounts: Some(settings()), ..Scenario::default() }
}

async fn a_large_upload_that_is_refused_hears_why(scene: Scene) {
    let mut client = scene.connect().await;
    let field = format!("Authorization: Bearer {}\r\nContent-Length: {UPLOAD_BYTES}\r\n", "0".repeat(32));
    client.push(format!("PUT /files/large HTTP/1.1\r\nHost: test\r\n{field}\r\n"));
    for _ in 0..UPLOAD_BYTES.div_ceil(PIECE.len()) {
        client.stream.tx.push(Segment::Static(PIECE));
        client.stream.tx.drain(0).await.expect("the server takes all of it");
    }
    assert!(!client.answer().await.problem(401).is_empty());
    client.expect_end().await;
}

/// Megabytes are slow in the simulator: few seeds are enough.
const FEW_SEEDS: usize = 3;

fn under_each<F: Future<Output = ()> + 'static>(scenario: fn() -> Scenario, behaviour: fn(Scene) -> F) {
    under(Engine::Epoll, scenario, behaviour);
    under(Engine::Thread, scenario, behaviour);
    under(Engine::Uring, scenario, behaviour);
    for seed in every_seed().take(FEW_SEEDS) {
        simulated(seed, Faults::splits(), &scenario(), behaviour);
    }
}

#[test]
fn a_client_that_sends_without_end_is_cut_off() {
    under_each(patient, a_client_that_sends_without_end_after_its_last_response_is_cut_off);
}

#[test]
fn a_refusal_is_heard() {
    under_each(with_accounts, a_large_upload_that_is_refused_hears_why);
}
