//! A panic in the server ends the connection that met it, and nothing else.

use plimsoll_tests::tree::noise;
use plimsoll_tests::{Scenario, Scene, Tree, behaviours};

fn scenario() -> Scenario {
    let tree = Tree::new().file("small.txt", "small\n").file("large.bin", noise(4, 200_000));
    Scenario { tree, panics: true, ..Scenario::default() }
}

const PANIC: &str = "GET /test/panic HTTP/1.1\r\nHost: test\r\n\r\n";

async fn a_panic_ends_its_connection_without_an_answer(scene: Scene) {
    let mut client = scene.connect().await;
    client.push(PANIC);
    assert!(client.expect_abort().await.is_empty());
    scene.until(|| scene.open() == 0).await;
}

async fn a_panic_on_a_kept_connection_takes_back_no_answer(scene: Scene) {
    let mut client = scene.connect().await;
    assert_eq!(client.get("/small.txt").await.text(), "small\n");
    client.push(PANIC);
    assert!(client.expect_abort().await.is_empty());
}

async fn other_connections_go_on_after_a_panic(scene: Scene) {
    let mut others = Vec::new();
    for _ in 0..4 {
        let mut other = scene.connect().await;
        assert_eq!(other.get("/small.txt").await.text(), "small\n");
        others.push(other);
    }
    let mut client = scene.connect().await;
    client.push(PANIC);
    client.expect_abort().await;
    scene.until(|| scene.open() == others.len()).await;
    for other in &mut others {
        assert_eq!(other.get("/small.txt").await.text(), "small\n");
    }
}

async fn an_answer_on_its_way_is_sent_whole_despite_a_panic_elsewhere(scene: Scene) {
    let (mut large, mut slow) = (scene.connect().await, scene.connect().await);
    large.push("GET /large.bin HTTP/1.1\r\nHost: test\r\n\r\n");
    slow.push("GET /test/slow HTTP/1.1\r\nHost: test\r\n\r\n");
    scene.until(|| scene.begun() == 2).await;
    let mut client = scene.connect().await;
    client.push(PANIC);
    client.expect_abort().await;
    assert!(large.answer().await.body == noise(4, 200_000));
    assert_eq!(slow.answer().await.text(), "late\n");
}

async fn the_server_serves_after_many_panics(scene: Scene) {
    for _ in 0..20 {
        let mut client = scene.connect().await;
        client.push(PANIC);
        client.expect_abort().await;
    }
    assert!(scene.get("/large.bin").await.body == noise(4, 200_000));
    scene.until(|| scene.open() == 0).await;
}

behaviours!(scenario and tls;
    a_panic_ends_its_connection_without_an_answer,
    a_panic_on_a_kept_connection_takes_back_no_answer,
    other_connections_go_on_after_a_panic,
    an_answer_on_its_way_is_sent_whole_despite_a_panic_elsewhere,
    the_server_serves_after_many_panics,
);
