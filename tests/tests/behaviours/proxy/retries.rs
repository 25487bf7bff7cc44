//! Connections to an origin: kept alive, found closed, and the requests that are sent again.

use plimsoll_tests::{Scene, behaviours};

use super::origin::{ONCE_LINK, scripted_scenario as scenario};

async fn a_connection_to_the_origin_carries_many_requests(scene: Scene) {
    let mut client = scene.connect().await;
    for number in 1..=5 {
        assert_eq!(client.get("/count").await.text(), number.to_string());
    }
}

async fn a_connection_that_the_origin_has_closed_is_not_used_again(scene: Scene) {
    let mut client = scene.connect().await;
    for _ in 0..3 {
        assert_eq!(client.get("/stale").await.text(), "stale");
        assert_eq!(client.get("/count").await.text(), "1");
    }
}

async fn a_request_without_a_response_on_a_used_connection_is_sent_again(scene: Scene) {
    let mut client = scene.connect().await;
    for _ in 0..4 {
        assert_eq!(client.get("/once").await.text(), "1");
    }
}

async fn a_request_that_is_not_idempotent_is_never_sent_again(scene: Scene) {
    let mut client = scene.connect().await;
    let post = "POST /once HTTP/1.1\r\nHost: test\r\nContent-Length: 0\r\n\r\n";
    client.send(post).await;
    assert_eq!(client.answer().await.text(), "1");
    client.send(post).await;
    assert!(!client.answer().await.problem(502).is_empty());
    client.send(post).await;
    assert_eq!(client.answer().await.text(), "1");
}

/// The origin may have counted the download.
async fn a_request_of_a_public_link_is_never_sent_again(scene: Scene) {
    let mut client = scene.connect().await;
    assert_eq!(client.get(ONCE_LINK).await.text(), "1");
    assert!(!client.get(ONCE_LINK).await.problem(502).is_empty());
    assert_eq!(client.get(ONCE_LINK).await.text(), "1");
}

async fn a_small_body_is_sent_again_with_its_request(scene: Scene) {
    let mut client = scene.connect().await;
    for _ in 0..3 {
        assert_eq!(client.get("/stale").await.text(), "stale");
        let echo = client.ask("PUT", "/upload", "", "hello").await;
        assert_eq!((echo.status, echo.text()), (200, "hello".to_owned()));
    }
}

behaviours!(scenario and tls;
    a_connection_to_the_origin_carries_many_requests,
    a_connection_that_the_origin_has_closed_is_not_used_again,
    a_request_without_a_response_on_a_used_connection_is_sent_again,
    a_request_that_is_not_idempotent_is_never_sent_again,
    a_request_of_a_public_link_is_never_sent_again,
    a_small_body_is_sent_again_with_its_request,
);
