//! Forms: several files in one POST to a folder, as `curl -F` and a page send them.

use plimsoll_tests::accounts::settings;
use plimsoll_tests::tree::noise;
use plimsoll_tests::{Answer, Person, Scenario, Scene, behaviours};
use plimsoll_web::limits::{FORM_NAMES_MAX, FORM_PARTS_MAX};

fn scenario() -> Scenario {
    Scenario { accounts: Some(settings()), ..Scenario::default() }
}

/// `alice:correct horse`
const BASIC: &str = "Authorization: Basic YWxpY2U6Y29ycmVjdCBob3JzZQ==\r\n";

const TYPE: &str = "Content-Type: multipart/form-data; boundary=XX\r\n";

fn part(disposition: &str, bytes: &[u8]) -> Vec<u8> {
    let head = format!("--XX\r\nContent-Disposition: form-data; {disposition}\r\n\r\n");
    [head.as_bytes(), bytes, b"\r\n"].concat()
}

fn form(parts: &[Vec<u8>]) -> Vec<u8> {
    [parts.concat(), b"--XX--\r\n".to_vec()].concat()
}

async fn post(person: &mut Person, target: &str, body: Vec<u8>) -> Answer {
    person.ask("POST", target, TYPE, body).await
}

async fn files_of_a_form_are_stored_under_their_names(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    alice.ask("MKCOL", "/files/in", "", "").await;
    let large = noise(5, 300_000);
    let body = form(&[
        part("name=\"note\"", b"ignored"),
        part("name=\"file\"; filename=\"one.txt\"", b"first\r\n--XY\r\n"),
        part("name=\"file\"; filename=\"C/large two.bin\"", &large),
        part("name=\"file\"; filename=\"\"", b""),
    ]);
    let stored = post(&mut alice, "/files/in/", body).await;
    assert_eq!(stored.status, 201, "{}", stored.text());
    let files = stored.json()["files"].clone();
    assert_eq!((&files[0]["path"], &files[1]["path"]), (&"/in/one.txt".into(), &"/in/large two.bin".into()));
    let got = alice.get("/files/in/one.txt").await;
    assert_eq!((&*got.text(), got.field("ETag")), ("first\r\n--XY\r\n", files[0]["etag"].as_str()));
    assert!(alice.get("/files/in/large%20two.bin").await.body == large);
}

async fn an_aborted_form_stores_only_its_complete_files(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    let whole = part("name=\"a\"; filename=\"whole\"", b"whole");
    let cut = part("name=\"a\"; filename=\"cut\"", b"half of it");
    post(&mut alice, "/files/", [whole, cut].concat()).await.problem(400);
    assert_eq!(alice.get("/files/whole").await.text(), "whole");
    alice.get("/files/cut").await.problem(404);
    assert!(scene.pending("alice").is_empty());
}

async fn a_malformed_form_or_one_without_a_file_is_refused(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    let file = form(&[part("name=\"a\"; filename=\"a\"", b"a")]);
    alice.ask("POST", "/files/", "Content-Type: text/plain\r\n", "a").await.problem(415);
    alice.ask("POST", "/files/", "Content-Type: multipart/form-data\r\n", "a").await.problem(400);
    post(&mut alice, "/files/a", file.clone()).await.problem(405);
    post(&mut alice, "/files/missing/", file.clone()).await.problem(409);
    post(&mut alice, "/files/", form(&[part("name=\"note\"", b"no file")])).await.problem(400);
    post(&mut alice, "/files/", form(&[part("name=\"a\"; filename=\"..\"", b"a")])).await.problem(400);
    scene.connect().await.ask("POST", "/files/", TYPE, file).await.problem(401);
}

async fn a_file_of_a_form_replaces_another_only_if_it_may(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    alice.put("/files/a", "old").await;
    let file = form(&[part("name=\"a\"; filename=\"a\"", b"new")]);
    // A refusal before the end of the form ends the connection.
    let mut refused = Person::again(&scene, "alice").await;
    let detail = post(&mut refused, "/files/?clash=refuse", file.clone()).await.problem(409);
    assert!(detail.contains("The name is taken."), "{detail}");
    let mut refused = Person::again(&scene, "alice").await;
    post(&mut refused, "/files/?clash=other", file.clone()).await.problem(400);
    for number in 2..=FORM_NAMES_MAX {
        scene.write_home("alice", &format!("a ({number})"), b"x");
    }
    let mut refused = Person::again(&scene, "alice").await;
    post(&mut refused, "/files/?clash=rename", file.clone()).await.problem(409);
    assert_eq!(alice.get("/files/a").await.text(), "old");
    scene.remove_in_home("alice", "a (7)");
    let stored = post(&mut alice, "/files/?clash=rename", file).await;
    assert_eq!((stored.status, &stored.json()["files"][0]["path"]), (201, &"/a (7)".into()));
}

async fn two_files_that_are_sent_at_once_under_one_name_are_both_kept(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    alice.ask("MKCOL", "/files/in", "", "").await;
    let file = |bytes: &[u8]| form(&[part("name=\"a\"; filename=\"a.txt\"", bytes)]);
    let (bytes, mut first) = (noise(7, 300_000), scene.connect().await);
    let (slow, half) = (file(&bytes), 290_000);
    let head = format!(
        "POST /files/in/?clash=rename HTTP/1.1\r\nHost: test\r\n{BASIC}{TYPE}Content-Length: {}\r\n\r\n",
        slow.len()
    );
    first.send([head.as_bytes(), &slow[..half]].concat()).await;
    // Its upload has begun: the name was free.
    scene.until(|| !scene.pending("alice").is_empty()).await;
    let second = post(&mut alice, "/files/in/?clash=rename", file(b"quick")).await;
    assert_eq!((second.status, &second.json()["files"][0]["path"]), (201, &"/in/a.txt".into()));
    first.push(&slow[half..]);
    let stored = first.answer().await;
    assert_eq!(stored.status, 201, "{}", stored.text());
    let path = stored.json()["files"][0]["path"].as_str().unwrap().to_owned();
    assert!(path.starts_with("/in/a (") && path.ends_with(").txt"), "{path}");
    let home = scene.home("alice");
    assert_eq!(home.len(), 3, "{:?}", home.keys());
    assert!(home[&path[1..]] == Some(bytes));
    assert_eq!(home["in/a.txt"], Some(b"quick".to_vec()));
    assert!(scene.pending("alice").is_empty());
}

/// A browser sends a form without a CORS preflight, and adds credentials that it remembers.
async fn a_form_with_too_many_parts_is_refused(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    let parts = |count| vec![part("name=\"a\"", b""); count];
    let file = part("name=\"a\"; filename=\"a\"", b"a");
    let most = [parts(FORM_PARTS_MAX - 1), vec![file.clone()]].concat();
    assert_eq!(post(&mut alice, "/files/", form(&most)).await.status, 201);
    let more = [parts(FORM_PARTS_MAX), vec![file]].concat();
    post(&mut alice, "/files/", form(&more)).await.problem(413);
}

async fn a_page_of_another_site_cannot_send_a_form(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    let file = form(&[part("name=\"a\"; filename=\"a\"", b"a")]);
    let (own, other) = if scene.scheme() == "https" { ("https", "http") } else { ("http", "https") };
    for (fields, status) in [
        ("Sec-Fetch-Site: cross-site\r\n", 403),
        ("Sec-Fetch-Site: same-site\r\n", 403),
        ("Origin: http://evil.example\r\n", 403),
        ("Origin: null\r\n", 403),
        (&format!("Origin: {other}://test\r\n"), 403),
        (&format!("Origin: {own}://test:81\r\n"), 403),
        (&format!("Origin: {own}://test\r\n"), 201),
        ("Sec-Fetch-Site: same-origin\r\n", 201),
        ("", 201),
    ] {
        let answer = alice.ask("POST", "/files/", &format!("{TYPE}{fields}"), file.clone()).await;
        assert_eq!(answer.status, status, "{fields} {}", answer.text());
    }
}

async fn a_password_that_a_browser_has_stored_changes_nothing_for_other_sites(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    alice.put("/files/a", "hello").await;
    let fields = format!("{BASIC}Sec-Fetch-Site: cross-site\r\nOrigin: https://evil.example\r\n");
    for method in ["PUT", "DELETE", "MKCOL", "MOVE", "COPY"] {
        alice.client.ask(method, "/files/a", &fields, "").await.problem(403);
    }
    for (method, target) in
        [("POST", "/uploads"), ("PUT", "/api/password"), ("POST", "/api/shares"), ("DELETE", "/api/shares/x")]
    {
        alice.client.ask(method, target, &fields, "").await.problem(403);
    }
    assert_eq!(alice.client.get_with("/files/a", BASIC).await.text(), "hello");
}

behaviours!(scenario and remote and tls;
    files_of_a_form_are_stored_under_their_names,
    an_aborted_form_stores_only_its_complete_files,
    a_malformed_form_or_one_without_a_file_is_refused,
    two_files_that_are_sent_at_once_under_one_name_are_both_kept,
    a_form_with_too_many_parts_is_refused,
    a_page_of_another_site_cannot_send_a_form,
    a_password_that_a_browser_has_stored_changes_nothing_for_other_sites,
);

/// Of many files: the simulator runs it with fewer seeds.
mod many {
    use super::*;

    fn scenario() -> Scenario {
        Scenario { is_large: true, ..super::scenario() }
    }

    // Not with a remote store: each name takes a request there, and the client of a test waits 30
    // seconds at most.
    behaviours!(scenario; a_file_of_a_form_replaces_another_only_if_it_may);
}
