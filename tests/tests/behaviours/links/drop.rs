//! Links for uploads: visitors send files to a folder that they do not see.

use std::time::Duration;

use plimsoll_operations::limits::UPLOADS_PER_LINK_MAX;
use plimsoll_proto::http::Limits;
use plimsoll_tests::{Client, Person, Scenario, Scene, behaviours};
use serde_json::{Value, json};

use super::{ACCEPT, alice, link, scenario};

/// Makes a link for uploads to `docs`.
async fn drop_link(alice: &mut Person, limits: Value) -> (Value, String) {
    let mut new = json!({ "path": "docs", "permission": "upload" });
    limits.as_object().unwrap().iter().for_each(|(name, value)| new[name] = value.clone());
    link(alice, new).await
}

fn form_of(files: &[(&str, &str)]) -> String {
    let part = |(name, bytes): &(&str, &str)| {
        format!(
            "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"{name}\"\r\n\r\n{bytes}\r\n"
        )
    };
    files.iter().map(part).collect::<String>() + "--b--\r\n"
}

const MULTIPART: &str = "Content-Type: multipart/form-data; boundary=b\r\n";

async fn a_link_for_uploads_takes_files_and_shows_none(scene: Scene) {
    let mut alice = alice(&scene).await;
    let (made, path) = drop_link(&mut alice, json!({})).await;
    let mut visitor = scene.connect().await;
    let sent = visitor.ask("PUT", &format!("{path}/new.txt"), "", "from a visitor").await;
    assert_eq!((sent.status, sent.json()), (201, json!({ "files": 1 })));
    assert!(sent.field("Location").is_none() && sent.field("ETag").is_none(), "{sent:?}");
    // A name that is taken is neither replaced nor reported.
    let again = visitor.ask("PUT", &format!("{path}/a.txt"), "", "another").await;
    assert_eq!((again.status, again.json()), (201, json!({ "files": 1 })));
    let form = form_of(&[("a.txt", "third"), ("../../other", "kept inside")]);
    let posted = visitor.ask("POST", &path, MULTIPART, form).await;
    assert_eq!((posted.status, posted.json()), (201, json!({ "files": 2 })));
    let home = scene.home("alice");
    let read = |name: &str| home[name].as_deref().map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    assert_eq!(read("docs/new.txt").as_deref(), Some("from a visitor"));
    assert_eq!(read("docs/a.txt").as_deref(), Some("one"));
    // Their numbers are drawn, so that they do not tell how many there are.
    let renamed = home.iter().filter(|(name, _)| name.starts_with("docs/a (") && name.ends_with(").txt"));
    let mut renamed: Vec<_> = renamed.filter_map(|(_, bytes)| bytes.as_deref()).collect();
    renamed.sort_unstable();
    assert_eq!(renamed, [b"another".as_slice(), b"third"]);
    assert_eq!(read("docs/other").as_deref(), Some("kept inside"));
    assert_eq!(read("other").as_deref(), Some("secret"));
    for hidden in ["/a.txt", "/none", "/deep/", "/deep/b", "/?format=json"] {
        let got = visitor.get(&format!("{path}{hidden}")).await;
        assert!(got.text() != "one" && !got.text().contains("a.txt"), "{hidden}: {}", got.text());
        assert!(hidden.starts_with("/?") || got.status == 404, "{hidden}: {}", got.status);
    }
    for inside in ["/deep/new", "/", ""] {
        let refused = visitor.ask("PUT", &format!("{path}{inside}"), "", "").await;
        assert_eq!(refused.status, 400, "{inside}");
    }
    let page = visitor.get_with(&path, ACCEPT).await;
    assert!(page.status == 200 && page.text().contains("type=\"file\""), "{}", page.text());
    let posted = visitor
        .ask("POST", &path, &format!("{ACCEPT}{MULTIPART}Origin: null\r\n"), form_of(&[("p", "q")]))
        .await;
    assert_eq!((posted.status, posted.field("Location")), (303, Some(&*format!("{path}?done=uploaded"))));
    let listed = alice.get("/api/links").await.json()["links"][0].clone();
    assert_eq!((&listed["uploaded"], &listed["id"]), (&json!(5), &made["id"]));
    assert_eq!(alice.get("/api/whoami").await.json()["usage"]["files"], 9);
    let lines = scene.accounts().lines();
    let line = lines.iter().find(|line| line["path"] == "/docs/new.txt").expect("a line");
    assert_eq!(
        (&line["operation"], &line["link"], &line["account"]),
        (&json!("upload"), &made["id"], &json!("alice"))
    );
}

async fn a_link_for_uploads_has_limits_and_the_owners_quota(scene: Scene) {
    let mut alice = alice(&scene).await;
    let (_, path) = drop_link(&mut alice, json!({ "files": 2, "bytes": 10 })).await;
    let mut visitor = scene.connect().await;
    let put = async |visitor: &mut Client, name: &str, body: &str| {
        visitor.ask("PUT", &format!("{path}/{name}"), "", body).await.status
    };
    assert_eq!(put(&mut visitor, "a", "12345678901").await, 410);
    let mut visitor = scene.connect().await;
    assert_eq!(put(&mut visitor, "b", "123456").await, 201);
    assert_eq!(put(&mut visitor, "c", "12345").await, 410);
    let mut visitor = scene.connect().await;
    assert_eq!(put(&mut visitor, "d", "1234").await, 201);
    assert_eq!(put(&mut visitor, "e", "").await, 410);
    assert_eq!(scene.home("alice").keys().filter(|name| name.len() == "docs/a".len()).count(), 2);
    let quota = plimsoll_auth::Quota { bytes: Some(40), files: None };
    scene.accounts().auth.set_quota(&scene.io, "alice", quota).await.expect("an account");
    let (_, path) = drop_link(&mut alice, json!({})).await;
    let full = visitor.ask("PUT", &format!("{path}/large"), "", "x".repeat(100)).await;
    // The quota is the owner's affair.
    let detail = full.problem(507);
    assert!(!detail.contains("quota"), "{detail}");
    for (new, status) in [
        (json!({ "path": "other", "permission": "upload" }), 409),
        (json!({ "path": "docs", "permission": "upload", "downloads": 1 }), 400),
        (json!({ "path": "docs", "permission": "read", "files": 1 }), 400),
        (json!({ "path": "docs", "permission": "upload", "bytes": 0 }), 400),
    ] {
        alice.send("POST", "/api/links", &new).await.problem(status);
    }
}

async fn an_upload_by_a_link_is_not_stored_after_the_link_has_ended(scene: Scene) {
    let mut alice = alice(&scene).await;
    let (made, path) = drop_link(&mut alice, json!({})).await;
    let mut visitor = scene.connect().await;
    let head = format!(
        "PUT {path}/late HTTP/1.1\r\nHost: test\r\nContent-Length: 10\r\nExpect: 100-continue\r\n\r\n"
    );
    visitor.send(head).await;
    assert_eq!(visitor.answer().await.status, 100);
    visitor.send("begin").await;
    assert_eq!(alice.delete(&format!("/api/links/{}", made["id"].as_str().unwrap())).await.status, 204);
    visitor.answer().await.problem(404);
    assert!(!scene.home("alice").contains_key("docs/late"));
}

/// Sends the head of an upload of so many bytes, and returns the status of the response: 100 if the server
/// takes the body.
async fn announce(scene: &Scene, path: &str, bytes: usize) -> (Client, u16) {
    let mut visitor = scene.connect().await;
    let fields = format!("Host: test\r\nContent-Length: {bytes}\r\nExpect: 100-continue\r\n");
    visitor.send(format!("PUT {path} HTTP/1.1\r\n{fields}\r\n")).await;
    let status = visitor.answer().await.status;
    (visitor, status)
}

async fn a_used_up_link_refuses_an_upload_before_its_body(scene: Scene) {
    let mut alice = alice(&scene).await;
    let (_, path) = drop_link(&mut alice, json!({ "files": 1, "bytes": 10 })).await;
    let one = format!("{path}/one");
    assert_eq!(announce(&scene, &one, 11).await.1, 410);
    let mut visitor = scene.connect().await;
    assert_eq!(visitor.get_with(&path, ACCEPT).await.status, 200);
    assert_eq!(visitor.ask("PUT", &one, "", "1").await.status, 201);
    assert_eq!(announce(&scene, &one, 1).await.1, 410);
    let page = visitor.get_with(&path, ACCEPT).await;
    assert!(page.status == 410 && !page.text().contains("type=\"file\""), "{}", page.text());
}

async fn a_visitor_replaces_no_symbolic_link_of_the_owner(scene: Scene) {
    let mut alice = alice(&scene).await;
    scene.link_into_home("alice", "docs/report", "../other");
    scene.link_into_home("alice", "docs/dangling", "later");
    let (_, path) = drop_link(&mut alice, json!({})).await;
    let mut visitor = scene.connect().await;
    for name in ["report", "dangling"] {
        assert_eq!(visitor.ask("PUT", &format!("{path}/{name}"), "", "forged").await.status, 201, "{name}");
    }
    assert_eq!(alice.get("/files/docs/report").await.text(), "secret");
    assert_eq!(alice.put("/files/docs/later", "mine").await.status, 201);
    assert_eq!(alice.get("/files/docs/dangling").await.text(), "mine");
}

async fn a_taken_name_is_not_revealed_by_its_length_or_the_transfer_log(scene: Scene) {
    let mut alice = alice(&scene).await;
    let (_, path) = drop_link(&mut alice, json!({})).await;
    let mut visitor = scene.connect().await;
    let long = format!("{path}/{}.txt", "n".repeat(251));
    for _ in 0..3 {
        assert_eq!(visitor.ask("PUT", &long, "", "x").await.status, 201);
    }
    let nameless = visitor.ask("POST", &path, MULTIPART, form_of(&[("x/", "y")])).await;
    assert_eq!(nameless.status, 400, "{}", nameless.text());
    let is_upload = |line: &&Value| line["operation"] == "upload" && line["link"].is_string();
    let is_stored = |line: &Value| line["result"] == "ok";
    scene
        .until(|| {
            scene.accounts().lines().iter().filter(is_upload).filter(|line| is_stored(line)).count() == 3
        })
        .await;
    let lines = scene.accounts().lines();
    assert!(lines.iter().filter(is_upload).all(is_stored), "{lines:?}");
}

behaviours!(scenario and remote and tls;
    a_link_for_uploads_takes_files_and_shows_none,
    a_link_for_uploads_has_limits_and_the_owners_quota,
    an_upload_by_a_link_is_not_stored_after_the_link_has_ended,
    a_used_up_link_refuses_an_upload_before_its_body,
    a_visitor_replaces_no_symbolic_link_of_the_owner,
    a_taken_name_is_not_revealed_by_its_length_or_the_transfer_log,
);

/// Under `process`, each connection counts for itself.
mod at_a_time {
    use super::*;

    async fn uploads_in_progress_share_what_their_link_has_left(scene: Scene) {
        let mut alice = alice(&scene).await;
        let (_, path) = drop_link(&mut alice, json!({ "bytes": 10 })).await;
        let one = format!("{path}/one");
        let (mut first, status) = announce(&scene, &one, 6).await;
        assert_eq!(status, 100);
        assert_eq!(announce(&scene, &one, 6).await.1, 429);
        first.send("123456").await;
        assert_eq!(first.answer().await.status, 201);
        let mut visitor = scene.connect().await;
        assert_eq!(visitor.ask("PUT", &one, "", "7890").await.status, 201);
    }

    async fn a_link_has_a_bounded_number_of_uploads_in_progress(scene: Scene) {
        let mut alice = alice(&scene).await;
        let (_, path) = drop_link(&mut alice, json!({})).await;
        let one = format!("{path}/one");
        let mut uploads = Vec::new();
        for _ in 0..UPLOADS_PER_LINK_MAX {
            let (visitor, status) = announce(&scene, &one, 1).await;
            assert_eq!(status, 100);
            uploads.push(visitor);
        }
        assert_eq!(announce(&scene, &one, 1).await.1, 429);
        assert_eq!(alice.put("/files/docs/mine", "x").await.status, 201);
        let mut ended = uploads.pop().expect("an upload");
        ended.send("1").await;
        assert_eq!(ended.answer().await.status, 201);
        assert_eq!(announce(&scene, &one, 1).await.1, 100);
    }

    behaviours!(scenario but process;
        uploads_in_progress_share_what_their_link_has_left,
        a_link_has_a_bounded_number_of_uploads_in_progress,
    );
}

mod slow {
    use super::*;

    fn scenario() -> Scenario {
        let limits = Limits { body_time: Duration::from_secs(1), ..Limits::default() };
        Scenario { limits, ..super::scenario() }
    }

    /// As any stranger's. A visitor's connection must not be counted among those of accounts.
    async fn an_upload_by_a_link_must_keep_a_minimum_rate(scene: Scene) {
        let mut alice = alice(&scene).await;
        let (_, path) = drop_link(&mut alice, json!({})).await;
        let (mut visitor, status) = announce(&scene, &format!("{path}/slow"), 5000).await;
        assert_eq!(status, 100);
        visitor.send("1").await;
        visitor.answer().await.problem(408);
        assert!(!scene.home("alice").contains_key("docs/slow"));
    }

    behaviours!(scenario; an_upload_by_a_link_must_keep_a_minimum_rate);
}
