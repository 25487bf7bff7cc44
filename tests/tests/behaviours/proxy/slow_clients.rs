//! Slow clients, and few connections to the origin: others are served all the same.

use std::time::Duration;

use plimsoll_io::Address;
use plimsoll_proxy::Settings;
use plimsoll_tests::proxy::plain;
use plimsoll_tests::tree::noise;
use plimsoll_tests::{Client, Scenario, Scene, Tree, behaviours};

/// More than the buffers of both connections, and than a spool has in memory.
const LARGE: usize = 3 << 20;
/// Longer than a proxy waits for a slow client.
const SLOW: Duration = Duration::from_secs(1);

fn one_connection(origin: &Address) -> Settings {
    Settings { origin_connections: 1, ..plain(origin) }
}

fn scenario() -> Scenario {
    let tree = Tree::new().file("small.txt", "small\n").file("large.bin", noise(7, LARGE));
    Scenario { tree, proxy: Some(one_connection), is_large: true, ..Scenario::default() }
}

/// Returns a client that has requested the large file and takes none of it.
async fn slow(scene: &Scene) -> Client {
    let mut client = scene.connect().await;
    client.send("GET /large.bin HTTP/1.1\r\nHost: test\r\n\r\n").await;
    scene.io.sleep(SLOW).await;
    client
}

async fn slow_clients_keep_no_connection_to_the_origin(scene: Scene) {
    let mut clients = [slow(&scene).await, slow(&scene).await, slow(&scene).await];
    assert_eq!(scene.get("/small.txt").await.text(), "small\n");
    for client in &mut clients {
        let large = client.answer().await;
        assert!(large.body == noise(7, LARGE), "{} bytes", large.body.len());
        assert_eq!(client.get("/small.txt").await.text(), "small\n", "on the same connection");
    }
}

async fn a_client_that_sends_a_short_body_slowly_keeps_no_connection_to_the_origin(scene: Scene) {
    let mut slow = scene.connect().await;
    slow.send("PUT /test/echo HTTP/1.1\r\nHost: test\r\nContent-Length: 5\r\n\r\nhe").await;
    scene.io.sleep(SLOW).await;
    assert_eq!(scene.get("/small.txt").await.text(), "small\n");
    slow.send("llo").await;
    assert_eq!(slow.answer().await.text(), "hello");
}

async fn requests_wait_for_a_connection_and_are_answered_in_turn(scene: Scene) {
    let mut clients = Vec::new();
    for _ in 0..5 {
        let mut client = scene.connect().await;
        client.send("GET /small.txt HTTP/1.1\r\nHost: test\r\n\r\n").await;
        clients.push(client);
    }
    for client in &mut clients {
        assert_eq!(client.answer().await.text(), "small\n");
    }
}

async fn a_request_that_waits_too_long_is_refused_and_may_be_sent_again(scene: Scene) {
    let mut uploading = scene.connect().await;
    // A longer body is sent to the origin as it comes.
    let length = 100_000;
    uploading
        .send(format!("PUT /test/echo HTTP/1.1\r\nHost: test\r\nContent-Length: {length}\r\n\r\nhe"))
        .await;
    scene.io.sleep(SLOW).await;
    let mut waiting = scene.connect().await;
    let refused = waiting.get("/small.txt").await;
    assert_eq!((refused.status, refused.field("Retry-After")), (503, Some("2")));
    drop(uploading);
    scene.io.sleep(SLOW).await;
    assert_eq!(waiting.get("/small.txt").await.text(), "small\n");
}

behaviours!(scenario and tls;
    slow_clients_keep_no_connection_to_the_origin,
    a_client_that_sends_a_short_body_slowly_keeps_no_connection_to_the_origin,
    requests_wait_for_a_connection_and_are_answered_in_turn,
);

/// Processes share no connections.
mod busy {
    use super::*;

    behaviours!(scenario but process and tls; a_request_that_waits_too_long_is_refused_and_may_be_sent_again);
}

/// Clients of responses that the cache has whole before they do.
mod of_the_cache {
    use plimsoll_proto::http::Limits;
    use plimsoll_proxy::cache::response_cache::CacheSizes;
    use plimsoll_tests::Engine;

    use super::super::cached;
    use super::*;

    const SEND_TIME: Duration = Duration::from_secs(2);

    fn caching(origin: &Address) -> Settings {
        let sizes = CacheSizes { disk_bytes_max: 256 << 20, memory_bytes_max: 4 << 20, passed_files_max: 0 };
        Settings { origin_connections: 1, ..cached::with_cache(&cached::new_folder(), sizes, origin) }
    }

    fn scenario() -> Scenario {
        Scenario { proxy: Some(caching), is_large: true, ..cached::scenario() }
    }

    fn impatient() -> Scenario {
        let proxy = |origin: &Address| {
            let limits = Limits { send_time: SEND_TIME, ..Limits::default() };
            Settings { limits, ..caching(origin) }
        };
        Scenario { proxy: Some(proxy), ..scenario() }
    }

    /// Requests a response of more bytes than the kernel takes for a client that reads nothing.
    async fn begin(scene: &Scene) -> (Client, usize) {
        let size = if scene.engine == Engine::Simulator { 400_000 } else { 20_000_000 };
        let fields = format!("X-Fields: Cache-Control: max-age=0 | ETag: \"a\"\r\nX-Size: {size}\r\n");
        let mut client = scene.connect().await;
        client.send(format!("GET /large HTTP/1.1\r\nHost: test\r\n{fields}\r\n")).await;
        (client, size)
    }

    async fn slow_clients_of_cached_responses_get_all_of_them_without_an_origin(scene: Scene) {
        // Recorded, and then validated.
        for status in ["plimsoll; fwd=uri-miss; stored", "plimsoll; fwd=stale; fwd-status=304"] {
            let (mut slow, size) = begin(&scene).await;
            scene.io.sleep(SLOW).await;
            assert_eq!(scene.get("/small").await.body.len(), 20);
            let large = slow.answer().await;
            assert_eq!((cached::cache_status(&large), large.body.len()), (status, size));
            let _whole = cached::number_of(&large);
            assert_eq!(slow.get("/small").await.body.len(), 20, "on the same connection");
        }
    }

    async fn a_client_that_takes_nothing_of_a_cached_response_is_cut_off(scene: Scene) {
        for _ in ["recorded", "validated"] {
            let began = scene.io.now();
            let (mut stuck, size) = begin(&scene).await;
            scene.until(|| scene.open() == 1).await;
            scene.until(|| scene.open() == 0).await;
            let passed = scene.io.now() - began;
            assert!(passed >= SEND_TIME, "after {passed:?} already");
            assert!(stuck.expect_abort().await.len() < size);
        }
    }

    behaviours!(scenario but process and tls;
        slow_clients_of_cached_responses_get_all_of_them_without_an_origin,
    );

    mod cut_off {
        use super::{a_client_that_takes_nothing_of_a_cached_response_is_cut_off, behaviours, impatient};

        behaviours!(impatient but process and tls;
            a_client_that_takes_nothing_of_a_cached_response_is_cut_off,
        );
    }
}
