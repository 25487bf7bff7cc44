//! The time limit without a request.

use std::time::Duration;

use plimsoll_proto::http::Limits;
use plimsoll_tests::{Scenario, Scene, Tree, behaviours};

use super::assert_passed;

const IDLE_TIME: Duration = Duration::from_millis(1200);

fn scenario() -> Scenario {
    let limits = Limits { idle_time: IDLE_TIME, ..Limits::default() };
    Scenario { tree: Tree::new().file("small.txt", "small\n"), limits, ..Scenario::default() }
}

async fn an_idle_connection_is_ended_without_a_word(scene: Scene) {
    let mut kept = scene.connect().await;
    assert_eq!(kept.get("/small.txt").await.text(), "small\n");
    let mut fresh = scene.connect().await;
    let connected = scene.io.now();
    fresh.expect_end().await;
    // The server may have accepted the connection some time before its client returns from `connect`.
    assert_passed(&scene, connected, IDLE_TIME - Duration::from_millis(20));
    kept.expect_end().await;
    drop((fresh, kept));
    scene.until(|| scene.open() == 0).await;
}

async fn requests_renew_the_idle_time(scene: Scene) {
    let mut client = scene.connect().await;
    let began = scene.io.now();
    for _ in 0..6 {
        assert_eq!(client.get("/small.txt").await.text(), "small\n");
        scene.io.sleep(IDLE_TIME / 5).await;
    }
    assert!(scene.io.now() - began > IDLE_TIME);
}

async fn a_slow_answer_is_not_idleness(scene: Scene) {
    let mut client = scene.connect().await;
    for _ in 0..5 {
        client.push("GET /test/slow HTTP/1.1\r\nHost: test\r\n\r\n");
    }
    for _ in 0..5 {
        assert_eq!(client.answer().await.text(), "late\n");
    }
}

behaviours!(scenario and tls;
    an_idle_connection_is_ended_without_a_word,
    requests_renew_the_idle_time,
    a_slow_answer_is_not_idleness,
);
