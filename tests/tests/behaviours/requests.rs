//! Requests and their answers on one connection: kept, pipelined, closed.

use plimsoll_tests::tree::noise;
use plimsoll_tests::{Scenario, Scene, Tree, behaviours};

fn scenario() -> Scenario {
    let tree = Tree::new().file("small.txt", "small\n").file("large.bin", noise(1, 300_000));
    Scenario { tree, ..Scenario::default() }
}

async fn a_file_is_sent_whole(scene: Scene) {
    let answer = scene.get("/large.bin").await;
    assert_eq!(answer.status, 200);
    assert!(answer.body == noise(1, 300_000));
    assert_eq!(answer.field("Connection"), Some("close"));
}

async fn a_connection_is_kept_for_the_next_request(scene: Scene) {
    let mut client = scene.connect().await;
    for _ in 0..3 {
        assert_eq!(client.get("/small.txt").await.text(), "small\n");
        assert!(client.get("/large.bin").await.body == noise(1, 300_000));
    }
}

async fn pipelined_requests_are_answered_in_their_order(scene: Scene) {
    let mut client = scene.connect().await;
    let one = "GET /small.txt HTTP/1.1\r\nHost: test\r\n\r\nHEAD /large.bin HTTP/1.1\r\nHost: test\r\n\r\n";
    client.push(one.repeat(20));
    for _ in 0..20 {
        assert_eq!(client.answer().await.text(), "small\n");
        assert_eq!(client.answer_to_head().await.field("Content-Length"), Some("300000"));
    }
}

behaviours!(scenario; a_file_is_sent_whole, a_connection_is_kept_for_the_next_request, pipelined_requests_are_answered_in_their_order);
