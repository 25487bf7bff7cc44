//! The time limit of a request head.

use std::time::Duration;

use plimsoll_proto::http::Limits;
use plimsoll_tests::{Scenario, Scene, Tree, behaviours};

use super::{SMALL, assert_408, assert_late};

const HEAD_TIME: Duration = Duration::from_millis(800);

fn scenario() -> Scenario {
    let limits = Limits { head_time: HEAD_TIME, ..Limits::default() };
    Scenario { tree: Tree::new().file("small.txt", "small\n"), limits, ..Scenario::default() }
}

async fn a_head_that_takes_too_long_is_refused(scene: Scene) {
    let (mut empty, mut half) = (scene.connect().await, scene.connect().await);
    empty.push("\r\n");
    half.push("GET /small.txt HTTP/1.1\r\nHost: test\r\n");
    assert_408(&mut empty).await;
    assert_408(&mut half).await;
}

async fn the_next_head_has_a_time_of_its_own(scene: Scene) {
    let mut client = scene.connect().await;
    for _ in 0..2 {
        assert_eq!(client.get("/small.txt").await.text(), "small\n");
        scene.io.sleep(HEAD_TIME * 3 / 5).await;
    }
    client.push("G");
    assert_late(&scene, &mut client, HEAD_TIME).await;
}

async fn bytes_that_come_do_not_prolong_the_time_for_a_head(scene: Scene) {
    let mut client = scene.connect().await;
    // A limit that each byte renewed would never be reached.
    for byte in SMALL.bytes().take(6) {
        client.push([byte]);
        scene.io.sleep(HEAD_TIME / 3).await;
    }
    assert_408(&mut client).await;
}

behaviours!(scenario and tls;
    a_head_that_takes_too_long_is_refused,
    the_next_head_has_a_time_of_its_own,
    bytes_that_come_do_not_prolong_the_time_for_a_head,
);
