//! Large files of accounts on a storage server: the front relays every byte, or aborts.

use std::time::Duration;

use plimsoll_tests::accounts::settings;
use plimsoll_tests::tree::noise;
use plimsoll_tests::{Client, Engine, Person, Scenario, Scene, behaviours};

fn scenario() -> Scenario {
    Scenario { accounts: Some(settings()), remote: true, is_large: true, ..Scenario::default() }
}

/// Returns contents that are larger than all buffers between the store's disk and a client.
fn large(scene: &Scene) -> Vec<u8> {
    noise(5, if scene.engine == Engine::Simulator { 1_000_000 } else { 24 << 20 })
}

/// Creates an account with the large file in its home.
async fn with_large_file(scene: &Scene) -> (Person, Vec<u8>) {
    let mut alice = Person::new(scene, "alice").await;
    let contents = large(scene);
    alice.put("/files/large", "").await;
    scene.write_home("alice", "large", &contents);
    (alice, contents)
}

/// Requests the large file, and reads only the head of the response.
async fn begin(scene: &Scene, alice: &Person) -> Client {
    let mut client = scene.connect().await;
    client.send(format!("GET /files/large HTTP/1.1\r\nHost: test\r\n{}\r\n", alice.field())).await;
    assert_eq!(client.answer_to_head().await.status, 200);
    client
}

async fn slow_and_fast_clients_receive_every_byte(scene: Scene) {
    let (mut alice, contents) = with_large_file(&scene).await;
    let mut slow = begin(&scene, &alice).await;
    for _ in 0..2 {
        assert!(alice.get("/files/large").await.body == contents);
    }
    for part in contents.chunks(contents.len().div_ceil(16)) {
        scene.io.sleep(Duration::from_millis(10)).await;
        assert!(slow.body(part.len()).await.unwrap() == part);
    }
    slow.send(format!("GET /files/large HTTP/1.1\r\nHost: test\r\n{}\r\n", alice.field())).await;
    assert!(slow.answer().await.body == contents, "the next response of the connection");
}

async fn clients_that_abort_take_only_their_own_downloads_along(scene: Scene) {
    let (mut alice, contents) = with_large_file(&scene).await;
    let mut kept = begin(&scene, &alice).await;
    for parts in [0, 1, 4] {
        let mut gone = begin(&scene, &alice).await;
        gone.body(contents.len() / 8 * parts).await.unwrap();
        drop(gone);
    }
    assert!(kept.body(contents.len()).await.unwrap() == contents);
    assert!(alice.get("/files/large").await.body == contents);
}

async fn a_source_that_ends_early_is_an_abort(scene: Scene) {
    let (mut alice, contents) = with_large_file(&scene).await;
    let mut client = begin(&scene, &alice).await;
    scene.write_home("alice", "large", &contents[..10]);
    let received = client.expect_abort().await;
    assert!(received.len() < contents.len() && contents.starts_with(&received), "{}", received.len());
    assert!(alice.get("/files/large").await.body == contents[..10]);
}

async fn a_large_upload_is_stored_byte_for_byte(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    let contents = large(&scene);
    assert_eq!(alice.put("/files/large", &contents).await.status, 201);
    let mut slow = scene.connect().await;
    let length = contents.len();
    let head = format!("PUT /files/slow HTTP/1.1\r\nHost: test\r\nContent-Length: {length}\r\n");
    slow.send(format!("{head}{}\r\n", alice.field())).await;
    for part in contents.chunks(length.div_ceil(16)) {
        scene.io.sleep(Duration::from_millis(10)).await;
        slow.send(part).await;
    }
    assert_eq!(slow.answer().await.status, 201);
    let home = scene.home("alice");
    assert!(home["large"].as_ref() == Some(&contents) && home["slow"].as_ref() == Some(&contents));
}

behaviours!(scenario but process and tls;
    slow_and_fast_clients_receive_every_byte,
    clients_that_abort_take_only_their_own_downloads_along,
    a_source_that_ends_early_is_an_abort,
    a_large_upload_is_stored_byte_for_byte,
);
