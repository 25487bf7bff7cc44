//! A right that ends while a transfer uses it: the transfer ends, and no byte of it is committed.

use std::time::Duration;

use plimsoll_auth::{Permissions, Settings};
use plimsoll_io::Instant;
use plimsoll_tests::accounts::{PASSWORD, settings};
use plimsoll_tests::tree::noise;
use plimsoll_tests::{Answer, Client, Engine, Person, Scenario, Scene, behaviours, under};
use plimsoll_wire::calendar::{format_rfc3339, since_1970};
use serde_json::json;

fn scenario() -> Scenario {
    Scenario { accounts: Some(settings()), ..Scenario::default() }
}

/// How an account loses a right, and the status that its upload gets.
#[derive(Clone, Copy, Debug)]
enum Loss {
    LogOut,
    NewPassword,
    Disabled,
    NoWritePermission,
}

const LOSSES: [(Loss, u16); 4] =
    [(Loss::LogOut, 401), (Loss::NewPassword, 401), (Loss::Disabled, 401), (Loss::NoWritePermission, 403)];

/// Revokes the right of the session of `person`, on another connection. The revocation is confirmed when
/// this returns.
async fn lose(scene: &Scene, person: &Person, loss: Loss) {
    let (auth, io) = (&scene.accounts().auth, &scene.io);
    let mut again = Person::again(scene, &person.name).await;
    match loss {
        Loss::LogOut => {
            again.token = person.token.clone();
            assert_eq!(again.delete("/api/sessions/current").await.status, 204);
        }
        Loss::NewPassword => {
            let change = json!({ "old": PASSWORD, "new": "another horse" });
            assert_eq!(again.send("PUT", "/api/password", &change).await.status, 204);
        }
        Loss::Disabled => drop(auth.set_enabled(io, &person.name, false).await.expect("an account")),
        Loss::NoWritePermission => {
            let may = Permissions { write: false, ..Permissions::default() };
            auth.set_permissions(io, &person.name, may).await.expect("an account");
        }
    }
}

/// Receives the next answer, and asserts that the server began it soon after `since`. The time of its
/// delivery does not count: the simulator may deliver byte after byte.
async fn answered_soon(scene: &Scene, client: &mut Client, since: Instant) -> Answer {
    client.until_answered().await;
    assert_soon(scene, since);
    client.answer().await
}

/// Asserts that at most a second has passed, or ten on a real machine, which may be loaded.
fn assert_soon(scene: &Scene, since: Instant) {
    let most = Duration::from_secs(if scene.engine == Engine::Simulator { 1 } else { 10 });
    let took = scene.io.now() - since;
    assert!(took <= most, "{took:?}");
}

/// Starts an upload of `length` bytes and sends a few of them.
async fn start(person: &mut Person, method: &str, target: &str, fields: &str, length: usize) {
    let fields = format!("{}{fields}Content-Length: {length}\r\nExpect: 100-continue\r\n", person.field());
    person.client.send(format!("{method} {target} HTTP/1.1\r\nHost: test\r\n{fields}\r\n")).await;
    assert_eq!(person.client.answer().await.status, 100);
    person.client.send("begin").await;
}

async fn until_nothing_is_pending(scene: &Scene, name: &str) {
    while !scene.pending(name).is_empty() {
        scene.io.sleep(Duration::from_millis(5)).await;
    }
}

async fn an_upload_in_progress_ends_when_its_right_does(scene: Scene) {
    for (number, (loss, status)) in LOSSES.into_iter().enumerate() {
        let mut person = Person::new(&scene, &format!("person{number}")).await;
        assert_eq!(person.put("/files/f", "old").await.status, 201);
        start(&mut person, "PUT", "/files/f", "", 1_000_000).await;
        lose(&scene, &person, loss).await;
        let since = scene.io.now();
        let answer = answered_soon(&scene, &mut person.client, since).await;
        assert!(!answer.problem(status).is_empty(), "{loss:?}");
        assert_eq!(answer.field("Connection"), Some("close"));
        until_nothing_is_pending(&scene, &person.name).await;
        assert_eq!(scene.home(&person.name)["f"].as_deref(), Some(&b"old"[..]), "{loss:?}");
    }
}

async fn an_upload_whose_bytes_keep_coming_ends_when_its_right_does(scene: Scene) {
    let mut person = Person::new(&scene, "alice").await;
    start(&mut person, "PUT", "/files/f", "", 1_000_000).await;
    lose(&scene, &person, Loss::LogOut).await;
    for _ in 0..40 {
        person.client.push("more");
        scene.io.sleep(Duration::from_millis(25)).await;
    }
    person.client.answer().await.problem(401);
    assert!(scene.home("alice").is_empty());
}

async fn an_upload_whose_last_bytes_come_after_its_right_has_ended_is_not_committed(scene: Scene) {
    for (number, (loss, status)) in LOSSES.into_iter().enumerate() {
        let mut person = Person::new(&scene, &format!("person{number}")).await;
        assert_eq!(person.put("/files/f", "old").await.status, 201);
        start(&mut person, "PUT", "/files/f", "", 10).await;
        lose(&scene, &person, loss).await;
        person.client.send("ended").await;
        person.client.answer().await.problem(status);
        until_nothing_is_pending(&scene, &person.name).await;
        assert_eq!(scene.home(&person.name)["f"].as_deref(), Some(&b"old"[..]), "{loss:?}");
    }
}

async fn a_resumable_upload_is_not_completed_after_its_right_has_ended(scene: Scene) {
    const TUS: &str = "Tus-Resumable: 1.0.0\r\n";
    for (number, (loss, status)) in LOSSES.into_iter().enumerate() {
        let mut person = Person::new(&scene, &format!("person{number}")).await;
        // The path is `f`, in base64.
        let announced = format!("{TUS}Upload-Length: 10\r\nUpload-Metadata: path Zg==\r\n");
        let answer = person.ask("POST", "/uploads", &announced, "").await;
        let location = answer.field("Location").expect("a location").to_owned();
        let fields = format!("{TUS}Upload-Offset: 0\r\nContent-Type: application/offset+octet-stream\r\n");
        start(&mut person, "PATCH", &location, &fields, 10).await;
        lose(&scene, &person, loss).await;
        let since = scene.io.now();
        person.client.send("ended").await;
        answered_soon(&scene, &mut person.client, since).await.problem(status);
        assert!(scene.home(&person.name).is_empty(), "{loss:?}");
    }
}

/// Creates alice with the folder `docs`, and bob with a share to write to it. Also returns the share's id.
async fn both(scene: &Scene) -> (Person, Person, String) {
    let mut alice = Person::new(scene, "alice").await;
    assert_eq!(alice.ask("MKCOL", "/files/docs", "", "").await.status, 201);
    let bob = Person::new(scene, "bob").await;
    let share = alice.share("/docs", "bob", "write").await;
    (alice, bob, share)
}

async fn an_upload_to_a_share_ends_when_the_share_does(scene: Scene) {
    let (mut alice, mut bob, share) = both(&scene).await;
    start(&mut bob, "PUT", "/shared/alice/docs/a", "", 1_000_000).await;
    assert_eq!(alice.delete(&format!("/api/shares/{share}")).await.status, 204);
    let since = scene.io.now();
    let detail = answered_soon(&scene, &mut bob.client, since).await.problem(403);
    assert!(detail.contains("share"), "{detail}");
    assert_eq!(scene.home("alice").keys().collect::<Vec<_>>(), ["docs"]);
}

async fn an_upload_to_a_share_is_not_committed_after_the_share_has_changed(scene: Scene) {
    let (mut alice, mut bob, share) = both(&scene).await;
    let mut again = Person::again(&scene, "bob").await;
    start(&mut bob, "PUT", "/shared/alice/docs/a", "", 10).await;
    start(&mut again, "PUT", "/shared/alice/docs/b", "", 10).await;
    alice.share("/docs", "bob", "read").await;
    bob.client.send("ended").await;
    bob.client.answer().await.problem(403);
    assert_eq!(alice.delete(&format!("/api/shares/{share}")).await.status, 204);
    again.client.send("ended").await;
    again.client.answer().await.problem(403);
    assert_eq!(scene.home("alice").keys().collect::<Vec<_>>(), ["docs"]);
}

async fn an_upload_goes_on_when_other_rights_change(scene: Scene) {
    let (mut alice, mut bob, _) = both(&scene).await;
    start(&mut bob, "PUT", "/shared/alice/docs/a", "", 10).await;
    Person::new(&scene, "carol").await;
    let hers = alice.share("/docs", "carol", "read").await;
    assert_eq!(alice.delete(&format!("/api/shares/{hers}")).await.status, 204);
    let quota = plimsoll_auth::Quota { bytes: Some(1_000), files: None };
    scene.accounts().auth.set_quota(&scene.io, "bob", quota).await.expect("an account");
    let mut again = Person::again(&scene, "bob").await;
    assert_eq!(again.delete("/api/sessions/current").await.status, 204);
    scene.io.sleep(Duration::from_millis(600)).await;
    bob.client.send("ended").await;
    assert_eq!(bob.client.answer().await.status, 201);
    assert_eq!(alice.get("/files/docs/a").await.text(), "beginended");
}

/// Starts a download that the network's buffers cannot hold, and reads its beginning.
async fn download(scene: &Scene, person: &mut Person, owner: &str, target: &str, file: &str) -> usize {
    let length = if scene.engine == Engine::Simulator { 2_000_000 } else { 24_000_000 };
    // The first upload creates the home.
    assert_eq!(person.put("/files/first", "").await.status, 201);
    scene.write_home(owner, file, &noise(1, length));
    let head = format!("GET {target} HTTP/1.1\r\nHost: test\r\n{}\r\n", person.field());
    person.client.send(head).await;
    person.client.receive().await.expect("bytes").expect("bytes");
    length
}

/// Asserts that the server ends the connection although the client receives nothing, and that the file is
/// incomplete.
async fn expect_cut(scene: &Scene, person: &mut Person, length: usize, open: usize) {
    let since = scene.io.now();
    while (scene.connections)() >= open {
        scene.io.sleep(Duration::from_millis(5)).await;
    }
    assert_soon(scene, since);
    assert!(person.client.expect_abort().await.len() < length);
}

async fn a_download_in_progress_ends_when_its_right_does(scene: Scene) {
    let mut person = Person::new(&scene, "alice").await;
    let length = download(&scene, &mut person, "alice", "/files/large", "large").await;
    let open = (scene.connections)();
    scene.accounts().auth.set_enabled(&scene.io, "alice", false).await.expect("an account");
    expect_cut(&scene, &mut person, length, open).await;
}

async fn a_download_from_a_share_ends_when_the_share_does(scene: Scene) {
    let (mut alice, mut bob, share) = both(&scene).await;
    let length = download(&scene, &mut bob, "alice", "/shared/alice/docs/large", "docs/large").await;
    let open = (scene.connections)();
    assert_eq!(alice.delete(&format!("/api/shares/{share}")).await.status, 204);
    expect_cut(&scene, &mut bob, length, open).await;
}

behaviours!(scenario and spooled and tls;
    an_upload_in_progress_ends_when_its_right_does,
    an_upload_whose_bytes_keep_coming_ends_when_its_right_does,
    an_upload_whose_last_bytes_come_after_its_right_has_ended_is_not_committed,
    a_resumable_upload_is_not_completed_after_its_right_has_ended,
    an_upload_to_a_share_ends_when_the_share_does,
    an_upload_to_a_share_is_not_committed_after_the_share_has_changed,
    an_upload_goes_on_when_other_rights_change,
    a_download_in_progress_ends_when_its_right_does,
    a_download_from_a_share_ends_when_the_share_does,
);

const SESSION_TIME: Duration = Duration::from_secs(60);

fn short_sessions() -> Scenario {
    Scenario { accounts: Some(Settings { session_time: SESSION_TIME, ..settings() }), ..Scenario::default() }
}

/// In the simulator alone, whose clock advances without real waiting.
#[test]
fn an_upload_ends_when_its_session_expires() {
    under(Engine::Simulator, short_sessions, |scene| async move {
        let mut person = Person::new(&scene, "alice").await;
        scene.io.sleep(SESSION_TIME - Duration::from_secs(2)).await;
        start(&mut person, "PUT", "/files/f", "", 1_000_000).await;
        let since = scene.io.now();
        person.client.answer().await.problem(401);
        let took = scene.io.now() - since;
        assert!(took < Duration::from_secs(4), "{took:?}");
        assert!(scene.home("alice").is_empty());
    });
}

/// In the simulator alone, whose clock advances without real waiting.
#[test]
fn a_download_ends_when_its_share_expires() {
    under(Engine::Simulator, scenario, |scene| async move {
        let (mut alice, mut bob, share) = both(&scene).await;
        assert_eq!(alice.delete(&format!("/api/shares/{share}")).await.status, 204);
        let ends = scene.io.wall() + Duration::from_secs(5);
        let expires = format_rfc3339(since_1970(ends));
        let new = json!({ "path": "docs", "with": "bob", "permission": "read", "expires": expires });
        assert_eq!(alice.send("POST", "/api/shares", &new).await.status, 201);
        let length = download(&scene, &mut bob, "alice", "/shared/alice/docs/large", "docs/large").await;
        scene.io.sleep(Duration::from_secs(7)).await;
        assert!(bob.client.expect_abort().await.len() < length);
    });
}
