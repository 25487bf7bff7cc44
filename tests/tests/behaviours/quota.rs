//! Quotas: exact under concurrent writes, and no file is lost when one is reached.

use plimsoll_auth::{Permissions, Quota};
use plimsoll_tests::accounts::settings;
use plimsoll_tests::scene::Disk;
use plimsoll_tests::{Engine, Person, Scenario, Scene, behaviours, together, under};

fn scenario() -> Scenario {
    Scenario { accounts: Some(settings()), ..Scenario::default() }
}

async fn bounded(scene: &Scene, bytes: Option<u64>, files: Option<u64>) -> Person {
    Person::with(scene, "alice", Quota { bytes, files }, Permissions::default()).await
}

async fn of_64_writers_to_a_quota_of_10_files_10_succeed(scene: Scene) {
    let mut alice = bounded(&scene, None, Some(10)).await;
    // A response shows that her handshake has ended: with it, the writers' would be more than one network may
    // have at a time.
    assert_eq!(alice.get("/api/whoami").await.status, 200);
    let stored = together((0..64).map(|number| {
        let (scene, token, name) = (&scene, alice.token.clone(), alice.name.clone());
        async move {
            let mut writer = Person { name, token, client: scene.connect().await };
            writer.put(&format!("/files/{number}"), "x").await.status
        }
    }))
    .await;
    assert_eq!(stored.iter().filter(|status| **status == 201).count(), 10, "{stored:?}");
    let refused = stored.iter().filter(|status| matches!(status, 507 | 503));
    assert_eq!(refused.count(), 54, "{stored:?}");
    assert_eq!(scene.home("alice").len(), 10);
    assert_eq!(alice.get("/api/whoami").await.json()["usage"]["files"], 10);
    scene.until(|| scene.pending("alice").is_empty()).await;
}

async fn more_bytes_than_the_quota_are_refused_before_anything_is_lost(scene: Scene) {
    let mut alice = bounded(&scene, Some(10), None).await;
    assert_eq!(alice.put("/files/a", "1234567890").await.status, 201);
    let detail = alice.put("/files/b", "1").await.problem(507);
    assert!(detail.contains("quota"), "{detail}");
    alice.put("/files/a", "12345678901").await.problem(507);
    let chunked =
        format!("PUT /files/a HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n{}\r\n", alice.field());
    alice.client.push([&*chunked, "b\r\n12345678901\r\n0\r\n\r\n"].concat());
    alice.client.answer().await.problem(507);
    assert_eq!(alice.get("/files/a").await.text(), "1234567890");
    // A replacement that does not increase the usage is accepted.
    assert_eq!(alice.put("/files/a", "0987654321").await.status, 204);
    assert_eq!(alice.put("/files/a", "123").await.status, 204);
    assert_eq!(alice.put("/files/b", "4567890").await.status, 201);
    assert_eq!(alice.delete("/files/a").await.status, 204);
    assert_eq!(alice.put("/files/c", "123").await.status, 201);
    let copy = "Destination: /files/d\r\n";
    alice.ask("COPY", "/files/c", copy, "").await.problem(507);
    assert_eq!(alice.ask("MOVE", "/files/c", copy, "").await.status, 201);
    assert_eq!(scene.home("alice").len(), 2);
    scene.until(|| scene.pending("alice").is_empty()).await;
}

async fn an_upload_over_the_quota_is_refused_before_its_body(scene: Scene) {
    let mut alice = bounded(&scene, Some(10), None).await;
    let head = format!("PUT /files/a HTTP/1.1\r\nHost: test\r\n{}", alice.field());
    alice.client.push(format!("{head}Content-Length: 1000000\r\nExpect: 100-continue\r\n\r\n"));
    let answer = alice.client.answer().await;
    assert!(answer.problem(507).contains("quota"));
    assert_eq!(answer.field("Connection"), Some("close"));
}

async fn a_file_put_into_a_share_counts_for_its_owner(scene: Scene) {
    let mut alice = bounded(&scene, Some(10), None).await;
    let mut bob = Person::new(&scene, "bob").await;
    alice.ask("MKCOL", "/files/docs", "", "").await;
    alice.share("/docs", "bob", "write").await;
    assert_eq!(bob.put("/shared/alice/docs/a", "1234567890").await.status, 201);
    bob.put("/shared/alice/docs/b", "1").await.problem(507);
    assert_eq!(bob.get("/api/whoami").await.json()["usage"]["bytes"], 0);
    assert_eq!(alice.get("/api/whoami").await.json()["usage"]["bytes"], 10);
}

behaviours!(scenario and spooled and tls;
    of_64_writers_to_a_quota_of_10_files_10_succeed,
    more_bytes_than_the_quota_are_refused_before_anything_is_lost,
    an_upload_over_the_quota_is_refused_before_its_body,
    a_file_put_into_a_share_counts_for_its_owner,
);

/// In the simulator alone: no real disk is filled here.
#[test]
fn a_full_disk_is_reported_and_loses_nothing() {
    under(Engine::Simulator, scenario, |scene| async move {
        let mut alice = Person::new(&scene, "alice").await;
        alice.put("/files/a", "old").await;
        let Disk::Simulated(disk) = scene.disk() else { unreachable!("it is simulated") };
        disk.full_after(10);
        for target in ["/files/a", "/files/b"] {
            let detail = alice.put(target, "more than ten bytes").await.problem(507);
            assert!(detail.contains("disk is full"), "{detail}");
        }
        scene.until(|| scene.pending("alice").is_empty()).await;
        assert_eq!(alice.get("/files/a").await.text(), "old");
        disk.full_after(1 << 30);
        assert_eq!(alice.put("/files/a", "more than ten bytes").await.status, 204);
        assert_eq!(scene.home("alice").len(), 1);
    });
}
