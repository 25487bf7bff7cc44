//! Transfers: large files, many at once, and files that change while they are sent.

use std::sync::LazyLock;

use plimsoll_tests::tree::noise;
use plimsoll_tests::{Client, Engine, LOOKED_UP_EACH_TIME, Scenario, Scene, Tree, behaviours};

const COUNT: usize = 16;

fn scenario() -> Scenario {
    let tree = (0..COUNT).fold(Tree::new(), |tree, at| tree.file(name(at), contents(at)));
    let tree = tree.file("small.txt", "small\n");
    Scenario { tree, hot: LOOKED_UP_EACH_TIME, ..Scenario::default() }
}

fn name(at: usize) -> String {
    format!("file-{at}.bin")
}

fn contents(at: usize) -> Vec<u8> {
    noise(at as u64, 3_000 + 701 * at)
}

/// Writes `large.bin` and returns its bytes: more than the kernel's buffers between server and client, or a
/// simulated kernel's, hold.
fn put_large(scene: &Scene) -> &'static [u8] {
    static REAL: LazyLock<Vec<u8>> = LazyLock::new(|| noise(99, 20_000_000));
    let bytes = if scene.engine == Engine::Simulator { &REAL[..400_000] } else { &REAL[..] };
    scene.write("large.bin", bytes);
    bytes
}

/// Requests the large file and reads only its head.
async fn begin(client: &mut Client, len: usize) {
    client.send("GET /large.bin HTTP/1.1\r\nHost: test\r\n\r\n").await;
    // Received bytes of the body stay buffered: an answer to HEAD is a head alone.
    let answer = client.answer_to_head().await;
    assert_eq!((answer.status, answer.field("Content-Length")), (200, Some(&*len.to_string())));
}

/// Reads `len` bytes of a body in progress.
async fn rest(client: &mut Client, len: usize) -> Vec<u8> {
    client.body(len).await.expect("all of it")
}

async fn a_large_file_arrives_byte_for_byte(scene: Scene) {
    let all = put_large(&scene);
    let len = if scene.engine == Engine::Simulator { all.len() } else { 3_000_000 };
    scene.truncate("large.bin", len);
    let mut client = scene.connect().await;
    assert!(client.get("/large.bin").await.body == all[..len]);
    assert_eq!(client.get("/small.txt").await.text(), "small\n");
}

async fn many_downloads_at_once_do_not_mix(scene: Scene) {
    let mut clients = Vec::new();
    for _ in 0..COUNT {
        clients.push(scene.connect().await);
    }
    for round in 0..2 {
        for (at, client) in clients.iter_mut().enumerate() {
            let target = name((at + round) % COUNT);
            client.push(format!("GET /{target} HTTP/1.1\r\nHost: test\r\n\r\n"));
        }
        // In reverse order of the requests: no answer depends on another client's reading.
        for (at, client) in clients.iter_mut().enumerate().rev() {
            let answer = client.answer().await;
            assert!(answer.body == contents((at + round) % COUNT), "connection {at}, round {round}");
        }
    }
}

async fn a_client_that_stops_reading_delays_no_other(scene: Scene) {
    let all = put_large(&scene);
    let mut slow = scene.connect().await;
    begin(&mut slow, all.len()).await;
    for at in 0..COUNT {
        assert!(scene.get(&format!("/{}", name(at))).await.body == contents(at));
    }
    assert!(rest(&mut slow, all.len()).await == all);
}

async fn a_client_that_goes_away_takes_only_its_own_download_along(scene: Scene) {
    let all = put_large(&scene);
    let mut kept = scene.connect().await;
    begin(&mut kept, all.len()).await;
    let mut gone = scene.connect().await;
    begin(&mut gone, all.len()).await;
    drop(gone);
    assert!(rest(&mut kept, all.len()).await == all);
    scene.until(|| (scene.connections)() == 1).await;
}

async fn a_file_that_shrinks_while_it_is_sent_is_never_ended_as_if_it_were_whole(scene: Scene) {
    let all = put_large(&scene);
    for len in [0, 8192] {
        scene.write("large.bin", all);
        let mut client = scene.connect().await;
        begin(&mut client, all.len()).await;
        scene.truncate("large.bin", len);
        let came = client.expect_abort().await;
        assert!(came.len() < all.len(), "{} bytes of a file that was cut to {len}", came.len());
    }
    assert_eq!(scene.get("/small.txt").await.text(), "small\n");
}

async fn a_file_that_is_replaced_while_it_is_sent_arrives_as_it_was(scene: Scene) {
    let all = put_large(&scene);
    let mut client = scene.connect().await;
    begin(&mut client, all.len()).await;
    scene.remove("large.bin");
    scene.write("large.bin", b"another one\n");
    assert_eq!(scene.get("/large.bin").await.text(), "another one\n");
    assert!(rest(&mut client, all.len()).await == all);
    assert_eq!(client.get("/large.bin").await.text(), "another one\n");
}

async fn a_file_that_grows_while_it_is_sent_ends_where_it_was_said_to(scene: Scene) {
    let all = put_large(&scene);
    let mut client = scene.connect().await;
    begin(&mut client, all.len()).await;
    scene.truncate("large.bin", all.len() + 100_000);
    assert!(rest(&mut client, all.len()).await == all);
    assert_eq!(client.get("/small.txt").await.text(), "small\n");
}

behaviours!(scenario and tls;
    a_large_file_arrives_byte_for_byte,
    many_downloads_at_once_do_not_mix,
    a_client_that_stops_reading_delays_no_other,
    a_client_that_goes_away_takes_only_its_own_download_along,
    a_file_that_shrinks_while_it_is_sent_is_never_ended_as_if_it_were_whole,
    a_file_that_is_replaced_while_it_is_sent_arrives_as_it_was,
    a_file_that_grows_while_it_is_sent_ends_where_it_was_said_to,
);
