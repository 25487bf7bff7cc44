//! Shares: read and write permissions, visible to both sides, and revocation.

use std::pin::Pin;
use std::time::Duration;

use plimsoll_tests::accounts::settings;
use plimsoll_tests::{Answer, Engine, Person, Scenario, Scene, behaviours, together, under};
use plimsoll_web::limits::JSON_BYTES_MAX;
use serde_json::json;

fn scenario() -> Scenario {
    Scenario { accounts: Some(settings()), ..Scenario::default() }
}

/// Creates alice with `docs/a`, `docs/b` and `other`, and bob.
async fn both(scene: &Scene) -> (Person, Person) {
    let mut alice = Person::new(scene, "alice").await;
    alice.ask("MKCOL", "/files/docs", "", "").await;
    for (file, bytes) in [("/files/docs/a", "one"), ("/files/docs/b", "two"), ("/files/other", "three")] {
        assert_eq!(alice.put(file, bytes).await.status, 201);
    }
    (alice, Person::new(scene, "bob").await)
}

fn names(answer: &Answer) -> Vec<String> {
    assert_eq!(answer.status, 200, "{}", answer.text());
    let entries = answer.json()["entries"].as_array().expect("entries").clone();
    entries.iter().map(|entry| entry["name"].as_str().unwrap().to_owned()).collect()
}

async fn a_file_shared_for_reading_is_read_and_not_changed(scene: Scene) {
    let (mut alice, mut bob) = both(&scene).await;
    alice.share("/docs/a", "bob", "read").await;
    let hers = alice.get("/files/docs/a").await;
    let got = bob.get("/shared/alice/docs/a").await;
    assert_eq!((got.status, &*got.text(), got.field("ETag")), (200, "one", hers.field("ETag")));
    assert_eq!(bob.get("/shared/ALICE/docs/a").await.text(), "one");
    let part = bob.ask("GET", "/shared/alice/docs/a", "Range: bytes=1-\r\n", "").await;
    assert_eq!((part.status, &*part.text()), (206, "ne"));
    let detail = bob.put("/shared/alice/docs/a", "mine").await.problem(403);
    assert!(detail.contains("reading only"), "{detail}");
    bob.delete("/shared/alice/docs/a").await.problem(403);
    bob.ask("MOVE", "/shared/alice/docs/a", "Destination: /files/mine\r\n", "").await.problem(403);
    bob.ask("COPY", "/shared/alice/docs/a", "Destination: /shared/alice/docs/c\r\n", "").await.problem(404);
    let copied = bob.ask("COPY", "/shared/alice/docs/a", "Destination: /files/mine\r\n", "").await;
    assert_eq!(copied.status, 201);
    assert_eq!(scene.home("bob")["mine"].as_deref(), Some(&b"one"[..]));
}

async fn above_a_share_there_is_nothing_but_the_way_to_it(scene: Scene) {
    let (mut alice, mut bob) = both(&scene).await;
    alice.share("/docs/a", "bob", "read").await;
    assert_eq!(names(&bob.get("/shared/?format=json").await), ["alice"]);
    assert_eq!(names(&bob.get("/shared/alice/?format=json").await), ["docs"]);
    assert_eq!(names(&bob.get("/shared/alice/docs/?format=json").await), ["a"]);
    for hidden in ["/shared/alice/other", "/shared/alice/docs/b", "/shared/alice/docs/c"] {
        for method in ["GET", "PUT", "DELETE", "MKCOL"] {
            bob.ask(method, hidden, "", "").await.problem(404);
        }
    }
    for method in ["PUT", "DELETE", "MKCOL"] {
        bob.ask(method, "/shared/alice/docs", "", "").await.problem(403);
    }
    bob.ask("COPY", "/shared/alice/docs", "Destination: /files/all\r\n", "").await.problem(403);
    assert!(scene.home("bob").is_empty());
}

async fn a_folder_is_shared_with_all_that_is_in_it(scene: Scene) {
    let (mut alice, mut bob) = both(&scene).await;
    alice.share("/docs/", "bob", "write").await;
    assert_eq!(names(&bob.get("/shared/alice/docs/?format=json").await), ["a", "b"]);
    assert_eq!(bob.put("/shared/alice/docs/new", "from bob").await.status, 201);
    assert_eq!(bob.put("/shared/alice/docs/a", "changed").await.status, 204);
    assert_eq!(bob.ask("MKCOL", "/shared/alice/docs/deep", "", "").await.status, 201);
    let inside = "Destination: /shared/alice/docs/deep/b\r\n";
    assert_eq!(bob.ask("MOVE", "/shared/alice/docs/b", inside, "").await.status, 201);
    assert_eq!(
        bob.ask("MOVE", "/shared/alice/docs/deep/b", "Destination: /files/b\r\n", "").await.status,
        201
    );
    assert_eq!(bob.delete("/shared/alice/docs/deep/").await.status, 204);
    let (hers, his) = (scene.home("alice"), scene.home("bob"));
    assert_eq!(hers.keys().collect::<Vec<_>>(), ["docs", "docs/a", "docs/new", "other"]);
    assert_eq!((hers["docs/a"].as_deref(), his["b"].as_deref()), (Some(&b"changed"[..]), Some(&b"two"[..])));
    assert_eq!(alice.get("/api/whoami").await.json()["usage"]["files"], 3);
    assert_eq!(bob.get("/api/whoami").await.json()["usage"]["files"], 1);
}

async fn both_sides_see_their_shares(scene: Scene) {
    let (mut alice, mut bob) = both(&scene).await;
    assert_eq!(bob.get("/api/shared").await.json(), json!({ "shares": [] }));
    let new =
        json!({ "path": "docs/a", "with": "Bob", "permission": "read", "expires": "2999-01-01T00:00:00Z" });
    let given = alice.send("POST", "/api/shares", &new).await;
    assert_eq!(given.status, 201, "{}", given.text());
    let share = given.json();
    assert_eq!((&share["owner"], &share["with"]), (&json!("alice"), &json!("bob")));
    assert_eq!((&share["path"], &share["url"]), (&json!("/docs/a"), &json!("/shared/alice/docs/a")));
    assert_eq!((&share["permission"], &share["expires"]), (&json!("read"), &json!("2999-01-01T00:00:00Z")));
    let all = json!({ "shares": [share] });
    assert_eq!(alice.get("/api/shares").await.json(), all);
    assert_eq!(bob.get("/api/shared").await.json(), all);
    assert_eq!(bob.get(share["url"].as_str().unwrap()).await.text(), "one");
    assert_eq!(bob.get("/api/shares").await.json(), json!({ "shares": [] }));
    assert_eq!(alice.get("/api/shared").await.json(), json!({ "shares": [] }));
}

async fn shares_are_listed_page_by_page(scene: Scene) {
    let (mut alice, mut bob) = both(&scene).await;
    let mut given = Vec::new();
    for path in ["/docs", "/docs/a", "/docs/b", "/other", "/"] {
        given.push(alice.share(path, "bob", "read").await);
    }
    given.sort();
    let ids = |answer: &Answer| {
        let shares = answer.json()["shares"].as_array().expect("shares").clone();
        shares.iter().map(|share| share["id"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let first = alice.get("/api/shares?limit=2").await;
    assert_eq!((ids(&first), &first.json()["next"]), (given[..2].to_vec(), &json!(given[1])));
    // The page continues at the right share even if the one before it was revoked.
    assert_eq!(alice.delete(&format!("/api/shares/{}", given[1])).await.status, 204);
    let rest = alice.get(&format!("/api/shares?limit=3&after={}", given[1])).await;
    assert_eq!((ids(&rest), rest.json().get("next")), (given[2..].to_vec(), None));
    let with_bob = bob.get(&format!("/api/shared?after={}&limit=1", given[2])).await;
    assert_eq!((ids(&with_bob), &with_bob.json()["next"]), (vec![given[3].clone()], &json!(given[3])));
    for limit in ["0", "1001", "-1", "many", ""] {
        alice.get(&format!("/api/shares?limit={limit}")).await.problem(400);
    }
}

async fn a_name_that_is_not_utf_8_is_shared_by_its_href(scene: Scene) {
    let (mut alice, mut bob) = both(&scene).await;
    alice.put("/files/%FF%20x", "odd").await;
    let new = json!({ "href": "/%FF%20x", "with": "bob", "permission": "read" });
    let given = alice.send("POST", "/api/shares", &new).await;
    assert_eq!(
        (given.status, &given.json()["url"]),
        (201, &json!("/shared/alice/%FF%20x")),
        "{}",
        given.text()
    );
    assert_eq!(bob.get("/shared/alice/%FF%20x").await.text(), "odd");
}

async fn an_impossible_share_is_refused(scene: Scene) {
    let (mut alice, _bob) = both(&scene).await;
    for (new, status) in [
        (json!({ "path": "/missing", "with": "bob", "permission": "read" }), 404),
        (json!({ "path": "/other", "with": "nobody", "permission": "read" }), 404),
        (json!({ "path": "/other", "with": "bob", "permission": "own" }), 400),
        (json!({ "path": "/../bob/x", "with": "bob", "permission": "read" }), 400),
        (json!({ "path": "docs/./a", "with": "bob", "permission": "read" }), 400),
        (json!({ "path": "a\u{0}b", "with": "bob", "permission": "read" }), 400),
        (json!({ "href": "/%2e%2e/x", "with": "bob", "permission": "read" }), 400),
        (json!({ "with": "bob", "permission": "read" }), 400),
        (json!({ "path": "other", "href": "/other", "with": "bob", "permission": "read" }), 400),
        (json!({ "path": "other", "with": "bob", "permission": "read", "expires": "tomorrow" }), 400),
        (
            json!({ "path": "other", "with": "bob", "permission": "read", "expires": "1999-01-01T00:00:00Z"}),
            400,
        ),
    ] {
        let answer = alice.send("POST", "/api/shares", &new).await;
        assert!(!answer.problem(status).is_empty(), "{new}");
    }
    assert_eq!(alice.get("/api/shares").await.json(), json!({ "shares": [] }));
}

async fn a_share_that_is_taken_back_is_over_at_the_next_request(scene: Scene) {
    let (mut alice, mut bob) = both(&scene).await;
    let id = alice.share("/docs", "bob", "read").await;
    assert_eq!(bob.get("/shared/alice/docs/a").await.status, 200);
    bob.delete(&format!("/api/shares/{id}")).await.problem(404);
    assert_eq!(bob.get("/shared/alice/docs/a").await.status, 200);
    assert_eq!(alice.delete(&format!("/api/shares/{id}")).await.status, 204);
    bob.get("/shared/alice/docs/a").await.problem(404);
    assert!(names(&bob.get("/shared/?format=json").await).is_empty());
    alice.delete(&format!("/api/shares/{id}")).await.problem(404);
    alice.delete("/api/shares/..%5c").await.problem(404);
}

async fn a_share_ends_with_what_it_names(scene: Scene) {
    let (mut alice, mut bob) = both(&scene).await;
    for (path, deleted) in [("/docs/a", "/files/docs/a"), ("/docs/b", "/files/docs")] {
        alice.share(path, "bob", "read").await;
        assert_eq!(bob.get(&format!("/shared/alice{path}")).await.status, 200);
        assert_eq!(alice.delete(deleted).await.status, 204);
        bob.get(&format!("/shared/alice{path}")).await.problem(404);
        // A later file of the same name is not shared.
        alice.ask("MKCOL", "/files/docs", "", "").await;
        alice.put("/files/docs/a", "new").await;
        alice.put("/files/docs/b", "new").await;
        bob.get(&format!("/shared/alice{path}")).await.problem(404);
    }
    alice.share("/other", "bob", "read").await;
    assert_eq!(alice.ask("MOVE", "/files/other", "Destination: /files/moved\r\n", "").await.status, 201);
    bob.get("/shared/alice/moved").await.problem(404);
    alice.put("/files/other", "new").await;
    bob.get("/shared/alice/other").await.problem(404);
    assert_eq!(alice.get("/api/shares").await.json(), json!({ "shares": [] }));
}

async fn a_move_that_is_refused_ends_no_share(scene: Scene) {
    let (mut alice, mut bob) = both(&scene).await;
    alice.share("/docs", "bob", "read").await;
    alice.share("/other", "bob", "read").await;
    for (from, fields, status) in [
        ("/files/docs", "Destination: /files/docs/deep\r\n", 403),
        ("/files/docs", "Destination: /files/none/docs\r\n", 409),
        ("/files/docs", "Destination: /files/other\r\nOverwrite: F\r\n", 412),
        ("/files/none", "Destination: /files/other\r\n", 404),
    ] {
        alice.ask("MOVE", from, fields, "").await.problem(status);
        assert_eq!(bob.get("/shared/alice/docs/a").await.status, 200, "{fields}");
        assert_eq!(bob.get("/shared/alice/other").await.status, 200, "{fields}");
    }
}

async fn a_copy_that_is_refused_ends_no_share(scene: Scene) {
    let (mut alice, mut bob) = both(&scene).await;
    alice.share("/docs", "bob", "read").await;
    alice.share("/other", "bob", "read").await;
    for (from, fields, status) in [
        ("/files/other", "Destination: /files/other\r\n", 403),
        ("/files/docs", "Destination: /files/\r\n", 403),
        ("/files/none", "Destination: /files/other\r\n", 404),
    ] {
        alice.ask("COPY", from, fields, "").await.problem(status);
        assert_eq!(bob.get("/shared/alice/docs/a").await.status, 200, "{from} {fields}");
        assert_eq!(bob.get("/shared/alice/other").await.status, 200, "{from} {fields}");
    }
}

async fn a_share_that_is_given_while_its_file_goes_is_not_of_the_next_one(scene: Scene) {
    let (mut alice, mut bob) = both(&scene).await;
    let mut again = Person::again(&scene, "alice").await;
    let new = json!({ "path": "other", "with": "bob", "permission": "read" });
    let both: [Pin<Box<dyn Future<Output = u16>>>; 2] = [
        Box::pin(async { again.delete("/files/other").await.status }),
        Box::pin(async { alice.send("POST", "/api/shares", &new).await.status }),
    ];
    let statuses = together(both).await;
    assert_eq!(statuses[0], 204);
    assert!(matches!(statuses[1], 201 | 404), "{statuses:?}");
    assert_eq!(alice.put("/files/other", "secret").await.status, 201);
    bob.get("/shared/alice/other").await.problem(404);
}

async fn a_file_that_is_replaced_stays_shared(scene: Scene) {
    let (mut alice, mut bob) = both(&scene).await;
    alice.share("/other", "bob", "read").await;
    assert_eq!(alice.put("/files/other", "newer").await.status, 204);
    assert_eq!(bob.get("/shared/alice/other").await.text(), "newer");
}

/// Creates links that lead out of the shared folder, and links that stay within it.
async fn links_in_docs(scene: &Scene, alice: &mut Person) {
    for folder in ["docs/inner", "private"] {
        assert_eq!(alice.ask("MKCOL", &format!("/files/{folder}"), "", "").await.status, 201);
    }
    alice.put("/files/private/secret", "secret").await;
    for (link, target) in [
        ("docs/out-file", "../other"),
        ("docs/out-folder", "../private"),
        ("docs/in-file", "a"),
        ("docs/inner/up", "../b"),
    ] {
        scene.link_into_home("alice", link, target);
    }
}

async fn a_link_in_a_shared_folder_does_not_lead_out_of_it(scene: Scene) {
    let (mut alice, mut bob) = both(&scene).await;
    links_in_docs(&scene, &mut alice).await;
    alice.share("/docs", "bob", "write").await;
    // The owner follows all of them, and thereby fills the cache.
    for _ in 0..3 {
        assert_eq!(alice.get("/files/docs/out-file").await.text(), "three");
        assert_eq!(alice.get("/files/docs/out-folder/secret").await.text(), "secret");
    }
    assert_eq!(bob.get("/shared/alice/docs/in-file").await.text(), "one");
    assert_eq!(bob.get("/shared/alice/docs/inner/up").await.text(), "two");
    for outside in ["out-file", "out-folder", "out-folder/", "out-folder/secret"] {
        bob.get(&format!("/shared/alice/docs/{outside}")).await.problem(404);
    }
    assert_eq!(names(&bob.get("/shared/alice/docs/?format=json").await), ["inner", "a", "b", "in-file"]);
    assert_eq!(names(&bob.get("/shared/alice/docs/inner/?format=json").await), ["up"]);
    bob.put("/shared/alice/docs/out-folder/new", "new").await.problem(409);
    bob.ask("MKCOL", "/shared/alice/docs/out-folder/new", "", "").await.problem(409);
    bob.delete("/shared/alice/docs/out-folder/secret").await.problem(404);
    for method in ["MOVE", "COPY"] {
        let his = "Destination: /files/mine\r\n";
        bob.ask(method, "/shared/alice/docs/out-folder/secret", his, "").await.problem(404);
        let out = "Destination: /shared/alice/docs/out-folder/new\r\n";
        bob.ask(method, "/shared/alice/docs/a", out, "").await.problem(409);
    }
    bob.ask("COPY", "/shared/alice/docs/out-file", "Destination: /files/mine\r\n", "").await.problem(404);
    let copied = bob.ask("COPY", "/shared/alice/docs/", "Destination: /files/docs\r\n", "").await;
    assert_eq!(copied.status, 201, "{}", copied.text());
    let (hers, his) = (scene.home("alice"), scene.home("bob"));
    // The links within the share are copied as links; `inner/up` leads out of the folder that is read here.
    let copied = ["docs", "docs/a", "docs/b", "docs/in-file", "docs/inner"];
    assert_eq!(his.keys().collect::<Vec<_>>(), copied);
    assert_eq!(bob.get("/files/docs/inner/up").await.text(), "two");
    assert!(hers.contains_key("private/secret") && !hers.contains_key("private/new"), "{:?}", hers.keys());
}

async fn a_grantee_neither_deletes_nor_moves_nor_replaces_what_is_shared_itself(scene: Scene) {
    let (mut alice, mut bob) = both(&scene).await;
    for path in ["/docs", "/other"] {
        alice.share(path, "bob", "write").await;
    }
    let his = "Destination: /files/mine\r\n";
    for path in ["/shared/alice/docs", "/shared/alice/docs/", "/shared/alice/other"] {
        let detail = bob.delete(path).await.problem(403);
        assert!(detail.contains("itself"), "{detail}");
        bob.ask("MOVE", path, his, "").await.problem(403);
    }
    for method in ["MOVE", "COPY"] {
        let onto = "Destination: /shared/alice/other\r\n";
        bob.ask(method, "/shared/alice/docs/a", onto, "").await.problem(403);
    }
    assert_eq!(names(&bob.get("/shared/alice/?format=json").await), ["docs", "other"]);
    assert_eq!(bob.put("/shared/alice/other", "from bob").await.status, 204);
    for path in ["/shared/alice/docs/a", "/shared/alice/docs/b"] {
        assert_eq!(bob.delete(path).await.status, 204);
    }
    assert_eq!(alice.get("/files/other").await.text(), "from bob");
    assert_eq!(alice.delete("/files/docs").await.status, 204);
}

async fn a_body_that_is_too_long_is_refused(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    let fill = |bytes: usize| [b"{\"path\": \"".as_slice(), &vec![b'a'; bytes], b"\"}"].concat();
    alice.ask("POST", "/api/shares", "", fill(JSON_BYTES_MAX)).await.problem(413);
    alice.ask("POST", "/api/shares", "", fill(JSON_BYTES_MAX - 100)).await.problem(400);
}

behaviours!(scenario and remote and tls;
    a_link_in_a_shared_folder_does_not_lead_out_of_it,
    a_grantee_neither_deletes_nor_moves_nor_replaces_what_is_shared_itself,
    a_file_shared_for_reading_is_read_and_not_changed,
    above_a_share_there_is_nothing_but_the_way_to_it,
    a_folder_is_shared_with_all_that_is_in_it,
    both_sides_see_their_shares,
    shares_are_listed_page_by_page,
    a_name_that_is_not_utf_8_is_shared_by_its_href,
    an_impossible_share_is_refused,
    a_share_that_is_taken_back_is_over_at_the_next_request,
    a_share_ends_with_what_it_names,
    a_move_that_is_refused_ends_no_share,
    a_copy_that_is_refused_ends_no_share,
    a_share_that_is_given_while_its_file_goes_is_not_of_the_next_one,
    a_file_that_is_replaced_stays_shared,
    a_body_that_is_too_long_is_refused,
);

/// In the simulator alone, whose clock is known and advances without real waiting.
#[test]
fn a_share_ends_when_its_time_is_over() {
    under(Engine::Simulator, scenario, |scene| async move {
        let (mut alice, mut bob) = both(&scene).await;
        let ends = scene.io.wall() + Duration::from_secs(60);
        let since = ends.duration_since(std::time::UNIX_EPOCH).unwrap();
        let expires = plimsoll_wire::calendar::format_rfc3339(since);
        let new = json!({ "path": "other", "with": "bob", "permission": "read", "expires": expires });
        assert_eq!(alice.send("POST", "/api/shares", &new).await.status, 201);
        assert_eq!(bob.get("/shared/alice/other").await.status, 200);
        scene.io.sleep(Duration::from_secs(61)).await;
        bob.get("/shared/alice/other").await.problem(404);
        assert_eq!(bob.get("/api/shared").await.json(), json!({ "shares": [] }));
    });
}
