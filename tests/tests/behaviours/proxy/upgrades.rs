//! 100-continue, and connections that change to WebSocket.

use plimsoll_tests::{Scene, behaviours};

use super::origin::scripted_scenario as scenario;

const UPGRADE: &str = "GET /echo-tunnel HTTP/1.1\r\nHost: test\r\nConnection: keep-alive, Upgrade\r\n\
                       Upgrade: websocket\r\nSec-WebSocket-Key: a\r\n\r\n";

async fn a_client_waits_for_the_continue_of_the_origin(scene: Scene) {
    let mut client = scene.connect().await;
    for _ in 0..2 {
        client
            .send("PUT /continue HTTP/1.1\r\nHost: test\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n")
            .await;
        assert_eq!(client.answer().await.status, 100);
        client.send("hello").await;
        assert_eq!(client.answer().await.text(), "hello");
    }
}

async fn a_refusal_before_the_body_ends_the_connection(scene: Scene) {
    let mut client = scene.connect().await;
    client
        .send("PUT /refuse-body HTTP/1.1\r\nHost: test\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n")
        .await;
    let answer = client.answer().await;
    assert_eq!((answer.status, answer.field("Connection")), (413, Some("close")));
    client.expect_end().await;
}

async fn an_upgraded_connection_carries_bytes_both_ways(scene: Scene) {
    let mut client = scene.connect().await;
    client.send(UPGRADE).await;
    let answer = client.answer().await;
    assert_eq!(answer.status, 101);
    assert_eq!(answer.field("Upgrade"), Some("websocket"));
    assert_eq!(answer.field("Connection"), Some("upgrade"));
    assert_eq!(answer.field("Sec-WebSocket-Accept"), Some("yes"));
    assert_eq!(client.body(5).await.unwrap(), b"hello");
    for len in [1, 100, 100_000] {
        client.push(vec![b'a'; len]);
        assert_eq!(client.body(len).await.unwrap(), vec![b'A'; len]);
    }
    client.stream.tx.finish();
    client.expect_end().await;
    scene.until(|| scene.open() == 0).await;
}

async fn bytes_that_follow_the_request_at_once_are_carried(scene: Scene) {
    let mut client = scene.connect().await;
    client.push(format!("{UPGRADE}early"));
    assert_eq!(client.answer().await.status, 101);
    assert_eq!(client.body(10).await.unwrap(), b"helloEARLY");
}

async fn a_change_to_another_protocol_than_the_requested_one_gets_502(scene: Scene) {
    for target in ["/tunnel-h2c", "/tunnel-both", "/tunnel-nothing"] {
        let mut client = scene.connect().await;
        client.send(UPGRADE.replace("/echo-tunnel", target)).await;
        assert!(!client.answer().await.problem(502).is_empty(), "{target}");
    }
}

async fn a_client_that_leaves_ends_its_tunnel(scene: Scene) {
    let mut client = scene.connect().await;
    client.send(UPGRADE).await;
    assert_eq!(client.answer().await.status, 101);
    drop(client);
    scene.until(|| scene.open() == 0).await;
}

behaviours!(scenario and tls;
    a_client_waits_for_the_continue_of_the_origin,
    a_refusal_before_the_body_ends_the_connection,
    an_upgraded_connection_carries_bytes_both_ways,
    bytes_that_follow_the_request_at_once_are_carried,
    a_change_to_another_protocol_than_the_requested_one_gets_502,
    a_client_that_leaves_ends_its_tunnel,
);
