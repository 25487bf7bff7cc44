//! The order to stop: requests in progress are finished, and nothing new begins.

use std::time::Duration;

use plimsoll_tests::tree::noise;
use plimsoll_tests::{Answer, Client, Engine, Scenario, Scene, Tree, behaviours};

fn scenario() -> Scenario {
    let tree = Tree::new().file("small.txt", "small\n").file("medium.bin", noise(5, 50_000));
    let tree = tree.file("large.bin", noise(5, 200_000));
    Scenario { tree, ..Scenario::default() }
}

const SMALL: &str = "GET /small.txt HTTP/1.1\r\nHost: test\r\n\r\n";
const UNTIL_STOP: &str = "GET /test/until-stop HTTP/1.1\r\nHost: test\r\n\r\n";

/// Receives the connection's last answer, which says `Connection: close`, and then the end.
async fn last_answer(client: &mut Client) -> Answer {
    let answer = client.answer().await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.field("Connection"), Some("close"));
    client.expect_end().await;
    answer
}

/// Returns a connection with the head of an upload of ten bytes sent, on which the server waits for the
/// body.
async fn begun_upload(scene: &Scene) -> Client {
    let mut client = scene.connect().await;
    let fields = "Content-Length: 10\r\nExpect: 100-continue\r\n";
    client.push(format!("PUT /test/echo HTTP/1.1\r\nHost: test\r\n{fields}\r\n"));
    assert_eq!(client.answer().await.status, 100);
    client
}

/// Waits until connections are refused.
async fn nobody_connects(scene: &Scene) {
    // A connection accepted before the listener closes ends soon.
    while scene.io.connect(&scene.at).await.is_ok() {
        scene.io.sleep(Duration::from_millis(5)).await;
    }
}

async fn an_idle_connection_ends_at_once(scene: Scene) {
    let mut client = scene.connect().await;
    assert_eq!(client.get("/small.txt").await.text(), "small\n");
    let ordered = scene.io.now();
    scene.stop.order();
    client.expect_end().await;
    if scene.engine == Engine::Simulator {
        assert!(scene.io.now() - ordered < Duration::from_millis(50));
    }
    drop(client);
    scene.until(|| scene.open() == 0).await;
}

async fn a_connection_without_a_request_ends_at_once(scene: Scene) {
    let mut client = scene.connect().await;
    scene.until(|| scene.open() == 1).await;
    scene.stop.order();
    client.expect_end().await;
    drop(client);
    scene.until(|| scene.open() == 0).await;
}

async fn a_request_that_was_begun_is_answered(scene: Scene) {
    let mut client = scene.connect().await;
    client.push(UNTIL_STOP);
    scene.until(|| scene.begun() == 1).await;
    scene.stop.order();
    assert_eq!(last_answer(&mut client).await.text(), "the last\n");
    drop(client);
    scene.until(|| scene.open() == 0).await;
}

async fn an_answer_that_was_begun_is_sent_whole(scene: Scene) {
    let mut client = scene.connect().await;
    client.push("GET /large.bin HTTP/1.1\r\nHost: test\r\n\r\n");
    scene.until(|| scene.begun() == 1).await;
    scene.stop.order();
    assert!(client.answer().await.body == noise(5, 200_000));
    client.expect_end().await;
}

async fn a_head_that_was_begun_may_be_completed(scene: Scene) {
    let mut client = scene.connect().await;
    let (begun, rest) = SMALL.split_at(20);
    client.push([SMALL, begun].concat());
    assert_eq!(client.answer().await.text(), "small\n");
    if scene.engine == Engine::Simulator {
        // In the simulator, one write can arrive in pieces.
        scene.io.sleep(Duration::from_secs(3)).await;
    }
    scene.stop.order();
    scene.io.sleep(Duration::from_millis(20)).await;
    client.push(rest);
    assert_eq!(last_answer(&mut client).await.text(), "small\n");
    drop(client);
    scene.until(|| scene.open() == 0).await;
}

async fn a_body_that_was_begun_may_be_completed(scene: Scene) {
    let mut client = begun_upload(&scene).await;
    client.send("half ").await;
    scene.stop.order();
    scene.io.sleep(Duration::from_millis(20)).await;
    client.push("done\n");
    assert_eq!(last_answer(&mut client).await.text(), "half done\n");
    drop(client);
    scene.until(|| scene.open() == 0).await;
}

async fn new_connections_are_refused_while_others_are_finished(scene: Scene) {
    let mut client = begun_upload(&scene).await;
    scene.stop.order();
    nobody_connects(&scene).await;
    client.push("still here");
    assert_eq!(last_answer(&mut client).await.text(), "still here");
    drop(client);
    scene.until(|| scene.open() == 0).await;
}

async fn every_connection_ends_by_itself(scene: Scene) {
    let (mut idle, mut begun, mut halfway) = (Vec::new(), Vec::new(), Vec::new());
    for count in 1..=5 {
        let mut client = scene.connect().await;
        assert_eq!(client.get("/small.txt").await.text(), "small\n");
        idle.push(client);
        let mut client = scene.connect().await;
        client.push(UNTIL_STOP);
        begun.push(client);
        halfway.push(begun_upload(&scene).await);
        scene.until(|| scene.begun() == 3 * count).await;
    }
    scene.stop.order();
    for client in &mut idle {
        client.expect_end().await;
    }
    for client in &mut begun {
        assert_eq!(last_answer(client).await.text(), "the last\n");
    }
    for client in &mut halfway {
        client.push("0123456789");
        assert_eq!(last_answer(client).await.text(), "0123456789");
    }
    drop((idle, begun, halfway));
    scene.until(|| scene.open() == 0).await;
}

/// "If the server receives additional data from the client on a fully closed connection, such as another
/// request sent by the client before receiving the server's response, the server's TCP stack will send a
/// reset packet", which can erase the answer (RFC 9112, section 9.6).
async fn a_client_that_sends_on_still_reads_the_last_answer(scene: Scene) {
    let mut client = scene.connect().await;
    client.push(UNTIL_STOP);
    scene.until(|| scene.begun() == 1).await;
    scene.stop.order();
    for _ in 0..20 {
        client.push(SMALL);
        scene.io.sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(last_answer(&mut client).await.text(), "the last\n");
}

/// As above, where the server takes all requests for answered.
async fn a_client_that_sends_on_still_reads_the_answer_before_the_end(scene: Scene) {
    let mut client = scene.connect().await;
    client.push("GET /medium.bin HTTP/1.1\r\nHost: test\r\n\r\n");
    scene.until(|| scene.begun() == 1).await;
    scene.io.sleep(Duration::from_millis(50)).await;
    scene.stop.order();
    for _ in 0..20 {
        client.push(SMALL);
        scene.io.sleep(Duration::from_millis(5)).await;
    }
    assert!(client.answer().await.body == noise(5, 50_000));
    // The next request may have been received before the order took effect.
    match client.try_answer(true).await {
        Ok(answer) => {
            assert_eq!((answer.text(), answer.field("Connection")), ("small\n".to_owned(), Some("close")));
            client.expect_end().await;
        }
        Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::UnexpectedEof),
    }
}

async fn requests_pipelined_behind_the_last_response_are_not_answered(scene: Scene) {
    let mut client = scene.connect().await;
    client.push([UNTIL_STOP, SMALL].concat());
    scene.until(|| scene.begun() == 1).await;
    scene.stop.order();
    assert_eq!(last_answer(&mut client).await.text(), "the last\n");
    assert_eq!(scene.begun(), 1);
}

behaviours!(scenario and tls;
    an_idle_connection_ends_at_once,
    a_connection_without_a_request_ends_at_once,
    a_request_that_was_begun_is_answered,
    an_answer_that_was_begun_is_sent_whole,
    a_head_that_was_begun_may_be_completed,
    a_body_that_was_begun_may_be_completed,
    new_connections_are_refused_while_others_are_finished,
    every_connection_ends_by_itself,
    a_client_that_sends_on_still_reads_the_last_answer,
    a_client_that_sends_on_still_reads_the_answer_before_the_end,
    requests_pipelined_behind_the_last_response_are_not_answered,
);
