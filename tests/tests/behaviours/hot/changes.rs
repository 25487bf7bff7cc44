//! Changes through the server itself: visible at the next request, though cached entries never expire.

use plimsoll_auth::Permissions;
use plimsoll_tests::accounts::{PASSWORD, settings};
use plimsoll_tests::tree::noise;
use plimsoll_tests::{Answer, Ftp, FtpClient, Person, Scenario, Scene, behaviours};

use serde_json::json;

use super::FOR_EVER;

/// Sizes cached as bytes, and one cached as an open file.
const SIZES: [usize; 3] = [1_000, 20_000, 100_000];

fn scenario() -> Scenario {
    let (accounts, ftp) = (Some(settings()), Some(Ftp::default()));
    Scenario { accounts, ftp, hot: FOR_EVER, ..Scenario::default() }
}

/// Requests the file often enough that it is cached.
async fn heat(person: &mut Person, target: &str, bytes: &[u8]) {
    for _ in 0..3 {
        assert!(person.get(target).await.body == bytes, "{target}");
    }
}

async fn a_file_put_moved_copied_or_removed_is_seen_at_once(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    for size in SIZES {
        let (first, second) = (noise(1, size), noise(2, size));
        alice.put("/files/a", &first).await;
        heat(&mut alice, "/files/a", &first).await;
        assert_eq!(alice.put("/files/a", &second).await.status, 204);
        heat(&mut alice, "/files/a", &second).await;
        let to = |path: &str| format!("Destination: /files/{path}\r\n");
        assert_eq!(alice.ask("COPY", "/files/a", &to("b"), "").await.status, 201);
        heat(&mut alice, "/files/b", &second).await;
        assert_eq!(alice.put("/files/b", &first).await.status, 204);
        assert_eq!(alice.ask("MOVE", "/files/b", &to("a"), "").await.status, 204);
        assert_eq!(alice.get("/files/b").await.status, 404);
        heat(&mut alice, "/files/a", &first).await;
        assert_eq!(alice.delete("/files/a").await.status, 204);
        assert_eq!(alice.get("/files/a").await.status, 404);
    }
}

async fn a_cached_file_follows_its_moved_or_removed_folder(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    for size in SIZES {
        let bytes = noise(3, size);
        alice.ask("MKCOL", "/files/docs", "", "").await;
        alice.put("/files/docs/a", &bytes).await;
        heat(&mut alice, "/files/docs/a", &bytes).await;
        let moved = alice.ask("MOVE", "/files/docs", "Destination: /files/papers\r\n", "").await;
        assert_eq!(moved.status, 201);
        assert_eq!(alice.get("/files/docs/a").await.status, 404);
        heat(&mut alice, "/files/papers/a", &bytes).await;
        assert_eq!(alice.delete("/files/papers/").await.status, 204);
        assert_eq!(alice.get("/files/papers/a").await.status, 404);
    }
}

async fn a_change_over_ftp_is_seen_over_http(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    let mut ftp = FtpClient::of(&scene, "alice").await;
    for size in SIZES {
        let (first, second) = (noise(4, size), noise(5, size));
        ftp.stor("a", &first[..]).await;
        heat(&mut alice, "/files/a", &first).await;
        ftp.stor("a", &second[..]).await;
        heat(&mut alice, "/files/a", &second).await;
        assert!(ftp.retr("a").await == second);
        alice.put("/files/a", &first).await;
        assert!(ftp.retr("a").await == first);
        heat(&mut alice, "/files/a", &first).await;
        let dated = alice.get("/files/a").await;
        ftp.command("MFMT 20200101000000 a").await.expect(213);
        assert_ne!(alice.get("/files/a").await.field("Last-Modified"), dated.field("Last-Modified"));
        ftp.command("RNFR a").await.expect(350);
        ftp.command("RNTO b").await.expect(250);
        assert_eq!(alice.get("/files/a").await.status, 404);
        heat(&mut alice, "/files/b", &first).await;
        ftp.command("DELE b").await.expect(250);
        assert_eq!(alice.get("/files/b").await.status, 404);
    }
}

async fn a_share_that_has_ended_is_over_however_hot_the_file_is(scene: Scene) {
    let (mut alice, mut bob) = (Person::new(&scene, "alice").await, Person::new(&scene, "bob").await);
    for size in SIZES {
        let bytes = noise(6, size);
        alice.put("/files/a", &bytes).await;
        let id = alice.share("/a", "bob", "read").await;
        heat(&mut bob, "/shared/alice/a", &bytes).await;
        heat(&mut alice, "/files/a", &bytes).await;
        assert_eq!(alice.delete(&format!("/api/shares/{id}")).await.status, 204);
        assert_eq!(bob.get("/shared/alice/a").await.status, 404);
        assert_eq!(bob.get("/files/a").await.status, 404, "his own is another's");
        heat(&mut alice, "/files/a", &bytes).await;
    }
}

async fn a_cached_file_is_answered_like_one_that_is_looked_up(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    // A file that is cached as bytes, and one that is cached open.
    for size in [1_000, 33_000] {
        let bytes = noise(7, size);
        alice.put("/files/a%20b", &bytes).await;
        heat(&mut alice, "/files/a%20b", &bytes).await;
        let tag = alice.get("/files/a%20b").await.field("ETag").expect("a tag").to_owned();
        let targets = ["/files/a%20b", "/files//a%20b?x", "/files/a%20b/", "/files/a%20c", "/files/../a%20b"];
        let fields = [
            "Range: bytes=10-19\r\n",
            "Range: bytes=9999999-\r\n",
            &format!("If-None-Match: {tag}\r\n"),
            "If-Match: \"x\"\r\n",
            "Want-Repr-Digest: sha-256=1\r\n",
            "Accept-Encoding: br\r\n",
            &alice.field(),
        ];
        let of_one = |target: &'static str| fields.iter().map(move |fields| (target, *fields));
        for (target, fields) in targets.map(|target| (target, "")).into_iter().chain(of_one(targets[0])) {
            for method in ["GET", "HEAD"] {
                // A new connection has no authorisation cached.
                let (fields, mut new) = (format!("{}{fields}", alice.field()), scene.connect().await);
                let looked_up = new.ask(method, target, &fields, "").await;
                let cached = alice.client.ask(method, target, &fields, "").await;
                let context = format!("{method} {target} {fields}");
                assert_eq!(cached.status, looked_up.status, "{context}");
                assert!(cached.body == looked_up.body, "{context}");
                let without_date = |answer: &Answer| {
                    let of_answer = answer.fields.iter().filter(|(name, _)| name != "Date");
                    of_answer.cloned().collect::<Vec<_>>()
                };
                assert_eq!(without_date(&cached), without_date(&looked_up), "{context}");
            }
        }
    }
}

async fn a_cached_file_is_sent_only_to_authorised_callers(scene: Scene) {
    let (mut alice, bob) = (Person::new(&scene, "alice").await, Person::new(&scene, "bob").await);
    alice.put("/files/a", b"hers").await;
    heat(&mut alice, "/files/a", b"hers").await;
    // On her connection, with her credentials, and with those of others.
    assert_eq!(alice.client.get("/files/a").await.status, 401);
    assert_eq!(alice.client.get_with("/files/a", &bob.field()).await.status, 404);
    assert_eq!(alice.client.get_with("/files/a", "Authorization: Bearer x\r\n").await.status, 401);
    heat(&mut alice, "/files/a", b"hers").await;
    let auth = &scene.accounts().auth;
    let may_all = Permissions::default();
    auth.set_permissions(&scene.io, "alice", Permissions { read: false, ..may_all }).await.unwrap();
    assert_eq!(alice.get("/files/a").await.status, 403);
    auth.set_permissions(&scene.io, "alice", may_all).await.unwrap();
    heat(&mut alice, "/files/a", b"hers").await;
    auth.set_enabled(&scene.io, "alice", false).await.unwrap();
    assert_eq!(alice.get("/files/a").await.status, 401);
    auth.set_enabled(&scene.io, "alice", true).await.unwrap();
    let mut alice = Person { client: alice.client, ..Person::again(&scene, "alice").await };
    heat(&mut alice, "/files/a", b"hers").await;
    alice.send("PUT", "/api/password", &json!({ "old": PASSWORD, "new": "another horse" })).await;
    heat(&mut alice, "/files/a", b"hers").await;
    assert_eq!(alice.delete("/api/sessions/current").await.status, 204);
    assert_eq!(alice.get("/files/a").await.status, 401);
}

behaviours!(scenario and remote and tls;
    a_cached_file_is_answered_like_one_that_is_looked_up,
    a_cached_file_is_sent_only_to_authorised_callers,
    a_file_put_moved_copied_or_removed_is_seen_at_once,
    a_cached_file_follows_its_moved_or_removed_folder,
    a_change_over_ftp_is_seen_over_http,
    a_share_that_has_ended_is_over_however_hot_the_file_is,
);
