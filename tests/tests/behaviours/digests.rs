//! Digests of whole files: they take time in proportion to the file's size, and delay no other request.

use std::time::Duration;

use plimsoll_store::limits::DIGESTS_PER_ACCOUNT_MAX;
use plimsoll_tests::accounts::settings;
use plimsoll_tests::{Client, Engine, Person, Scenario, Scene, behaviours, under};

fn scenario() -> Scenario {
    Scenario { accounts: Some(settings()), ..Scenario::default() }
}

const WANTED: &str = "Want-Repr-Digest: sha-256=1\r\n";
/// The digest of `hello`.
const DIGEST: &str = "sha-256=:LPJNul+wow4m6DsqxbninhsWHlwfp0JecwQzYpOLmCQ=:";

/// Requests a digest without waiting for it.
fn want(client: &mut Client, person: &Person, path: &str) {
    client.push(format!("HEAD {path} HTTP/1.1\r\nHost: test\r\n{}{WANTED}\r\n", person.field()));
}

async fn the_next_request_may_come_while_a_digest_is_made(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    alice.put("/files/a", "hello").await;
    let mut client = scene.connect().await;
    for pause in 0..5 {
        want(&mut client, &alice, "/files/a");
        // In two pieces, so that one arrives with the first request and one later.
        client.push("GET /files/a HTTP/1.1\r\nHo");
        scene.io.sleep(Duration::from_millis(pause)).await;
        client.push(format!("st: test\r\n{}\r\n", alice.field()));
        assert_eq!(client.answer_to_head().await.field("Repr-Digest"), Some(DIGEST));
        assert_eq!(client.answer().await.text(), "hello");
    }
}

async fn a_client_that_ended_its_side_gets_a_response(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    alice.put("/files/a", "hello").await;
    let mut client = scene.connect().await;
    want(&mut client, &alice, "/files/a");
    client.stream.tx.finish();
    let answer = client.answer_to_head().await;
    assert_eq!((answer.status, answer.field("Content-Length")), (200, Some("5")));
    assert!(answer.field("Repr-Digest").is_none_or(|digest| digest == DIGEST));
}

behaviours!(scenario and remote and tls;
    the_next_request_may_come_while_a_digest_is_made,
    a_client_that_ended_its_side_gets_a_response,
);

/// A sparse file that takes much longer to read than any step here may take.
const LARGE_BYTES: u64 = 64 << 30;
/// The bound of all steps together, also on a slow machine: reading the large file takes longer.
const PATIENCE: Duration = Duration::from_secs(10);

async fn digests_of_large_files_hold_nobody_up(scene: Scene) {
    let (mut alice, mut bob) = (Person::new(&scene, "alice").await, Person::new(&scene, "bob").await);
    alice.put("/files/large", "").await;
    let large = std::fs::OpenOptions::new().write(true).open(scene.home_folder("alice").join("large"));
    large.unwrap().set_len(LARGE_BYTES).unwrap();
    bob.put("/files/a", "hello").await;
    let connections = scene.open();
    let mut wanting = Vec::new();
    for _ in 0..DIGESTS_PER_ACCOUNT_MAX {
        let mut client = scene.connect().await;
        want(&mut client, &alice, "/files/large");
        wanting.push(client);
    }
    // One more is refused as soon as the others have begun.
    let began = scene.io.now();
    scene.io.sleep(Duration::from_millis(500)).await;
    let refused = alice.ask("HEAD", "/files/large", WANTED, "").await;
    assert!(refused.status == 503 && refused.field("Retry-After").is_some());
    // A download waits for no digest.
    let range = format!("{WANTED}Range: bytes=0-4\r\n");
    let came = alice.ask("GET", "/files/large", &range, "").await;
    assert_eq!((came.status, came.field("Repr-Digest"), came.body.len()), (206, None, 5));
    assert_eq!(bob.get("/files/").await.status, 200);
    assert_eq!(bob.ask("HEAD", "/files/a", WANTED, "").await.field("Repr-Digest"), Some(DIGEST));
    // A digest is aborted when its client is gone.
    drop(wanting);
    scene.until(|| scene.open() == connections).await;
    alice.put("/files/a", "hello").await;
    assert_eq!(alice.ask("HEAD", "/files/a", WANTED, "").await.field("Repr-Digest"), Some(DIGEST));
    assert!(scene.io.now() - began < PATIENCE, "only after {:?}", scene.io.now() - began);
}

/// Under the real engines alone: a simulated disk keeps every byte in memory.
#[test]
fn a_digest_yields_to_other_work_and_ends_with_its_client() {
    under(Engine::Epoll, scenario, digests_of_large_files_hold_nobody_up);
    under(Engine::Thread, scenario, digests_of_large_files_hold_nobody_up);
    under(Engine::Uring, scenario, digests_of_large_files_hold_nobody_up);
}
