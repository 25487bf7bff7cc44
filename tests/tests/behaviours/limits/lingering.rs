//! The time and the bytes that a peer has after its last answer.

use std::time::Duration;

use plimsoll_proto::http::Limits;
use plimsoll_tests::{Scenario, Scene, Tree, behaviours};

const LINGER_TIME: Duration = Duration::from_millis(500);

fn scenario() -> Scenario {
    let limits = Limits { linger_time: LINGER_TIME, ..Limits::default() };
    Scenario { tree: Tree::new().file("small.txt", "small\n"), limits, ..Scenario::default() }
}

async fn whoever_does_not_end_after_its_last_answer_is_cut_off(scene: Scene) {
    let mut client = scene.connect().await;
    client.push("no request\r\n\r\n");
    client.answer().await.problem(400);
    client.expect_end().await;
    scene.until(|| scene.open() == 0).await;
}

async fn whoever_sends_without_end_after_its_last_answer_is_cut_off(scene: Scene) {
    let mut client = scene.connect().await;
    client.push("no request\r\n\r\n");
    client.answer().await.problem(400);
    client.expect_end().await;
    while scene.open() > 0 {
        client.push(vec![b'x'; 10_000]);
        scene.io.sleep(LINGER_TIME / 10).await;
    }
}

behaviours!(scenario;
    whoever_does_not_end_after_its_last_answer_is_cut_off,
    whoever_sends_without_end_after_its_last_answer_is_cut_off,
);
