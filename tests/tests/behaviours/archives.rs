//! A folder, or some of its entries, as a zip archive that is generated while it is sent.

use std::time::Duration;

use plimsoll_tests::accounts::{FolderContents, settings};
use plimsoll_tests::archive::unzipped;
use plimsoll_tests::tree::noise;
use plimsoll_tests::{Answer, Client, Engine, Person, Scenario, Scene, behaviours};
use serde_json::json;

fn scenario() -> Scenario {
    Scenario { accounts: Some(settings()), ..Scenario::default() }
}

/// More than a chunk of an archive.
const LARGE_BYTES: usize = 300_000;

/// Creates alice with the folder `docs` and returns its contents.
async fn planted(scene: &Scene) -> (Person, FolderContents) {
    let mut alice = Person::new(scene, "alice").await;
    let mut contents = FolderContents::new();
    for folder in ["docs", "docs/empty", "docs/grüße", "docs/grüße/inner"] {
        let target = format!("/files/{}", folder.replace('ü', "%C3%BC").replace('ß', "%C3%9F"));
        assert_eq!(alice.ask("MKCOL", &target, "", "").await.status, 201);
        contents.extend(folder.strip_prefix("docs/").map(|folder| (folder.to_owned(), None)));
    }
    let files =
        [("a.txt", b"a".to_vec()), ("grüße/inner/large", noise(3, LARGE_BYTES)), ("none", Vec::new())];
    for (name, bytes) in files {
        scene.write_home("alice", &format!("docs/{name}"), &bytes);
        contents.insert(name.to_owned(), Some(bytes));
    }
    (alice, contents)
}

fn contents(answer: &Answer) -> FolderContents {
    assert_eq!(answer.status, 200, "{}", String::from_utf8_lossy(&answer.body));
    unzipped(&answer.body)
}

async fn a_folder_is_downloaded_as_an_archive(scene: Scene) {
    let (mut alice, expected) = planted(&scene).await;
    let lines = scene.accounts().lines().len();
    let answer = alice.ask("GET", "/files/docs/?archive=zip", "Range: bytes=5-\r\n", "").await;
    assert_eq!(contents(&answer), expected);
    for (name, value) in [
        ("Content-Type", "application/zip"),
        ("Content-Disposition", "attachment; filename=\"docs.zip\""),
        ("Accept-Ranges", "none"),
        ("Transfer-Encoding", "chunked"),
        ("Cache-Control", "no-store"),
    ] {
        assert_eq!(answer.field(name), Some(value));
    }
    // The connection stays usable, and a HEAD has no body.
    let head = alice.client.head_with("/files/docs/?archive=zip", &alice.field()).await;
    assert_eq!((head.status, head.field("Content-Type")), (200, Some("application/zip")));
    assert_eq!(alice.get("/files/docs/a.txt").await.text(), "a");
    let lines = &scene.accounts().lines()[lines..];
    let logged: Vec<_> = lines.iter().map(|line| (&line["path"], &line["bytes"], &line["result"])).collect();
    let bytes = answer.body.len().into();
    assert_eq!(
        logged,
        [(&json!("/docs"), &bytes, &json!("ok")), (&json!("/docs/a.txt"), &json!(1), &json!("ok"))]
    );
}

async fn the_entries_that_a_request_names_are_in_an_archive(scene: Scene) {
    let (mut alice, mut expected) = planted(&scene).await;
    expected.retain(|name, _| name == "a.txt" || name.starts_with("grüße"));
    let names = json!({ "names": ["grüße", "a.txt", "a.txt"] });
    assert_eq!(contents(&alice.send("POST", "/files/docs/?archive=zip", &names).await), expected);
    let form = "Content-Type: application/x-www-form-urlencoded\r\n";
    let names = "names=gr%C3%BC%C3%9Fe&names=a.txt";
    assert_eq!(contents(&alice.ask("POST", "/files/docs/?archive=zip", form, names).await), expected);
    for (names, status) in [
        ("names=b", 404),
        ("names=a.txt&names=b", 404),
        ("names=grüße/inner", 400),
        ("names=..", 400),
        ("", 400),
    ] {
        alice.ask("POST", "/files/docs/?archive=zip", form, names).await.problem(status);
    }
    alice.send("POST", "/files/docs/?archive=zip", &json!({ "names": [], "x": 1 })).await.problem(400);
    alice.ask("POST", "/files/docs/?archive=zip", "Content-Type: text/plain\r\n", "a").await.problem(415);
    alice.get("/files/docs/?archive=tar").await.problem(400);
    alice.get("/files/missing/?archive=zip").await.problem(404);
    alice.get("/files/docs/a.txt/?archive=zip").await.problem(404);
}

async fn an_archive_ends_with_the_connection_of_a_client_of_http_1_0(scene: Scene) {
    let (mut alice, expected) = planted(&scene).await;
    let head =
        format!("GET /files/docs/?archive=zip HTTP/1.0\r\nConnection: keep-alive\r\n{}\r\n", alice.field());
    alice.client.send(head).await;
    let answer = alice.client.rest().await.expect("a clean end");
    let head = answer.windows(4).position(|bytes| bytes == b"\r\n\r\n").expect("a head") + 4;
    assert!(!String::from_utf8_lossy(&answer[..head]).contains("chunked"));
    assert_eq!(unzipped(&answer[head..]), expected);
}

async fn a_link_is_the_file_that_it_leads_to_and_no_loop(scene: Scene) {
    let (mut alice, mut expected) = planted(&scene).await;
    scene.link_into_home("alice", "docs/link", "a.txt");
    scene.link_into_home("alice", "docs/grüße/loop", "..");
    scene.link_into_home("alice", "docs/dangling", "missing");
    expected.insert("link".to_owned(), Some(b"a".to_vec()));
    assert_eq!(contents(&alice.get("/files/docs/?archive=zip").await), expected);
}

async fn an_archive_of_a_share_has_the_shared_folder_and_no_other(scene: Scene) {
    let (mut alice, mut expected) = planted(&scene).await;
    let mut bob = Person::new(&scene, "bob").await;
    bob.get("/shared/alice/docs/?archive=zip").await.problem(404);
    let share = alice.share("/docs/gr\u{fc}\u{df}e", "bob", "read").await;
    bob.get("/shared/alice/?archive=zip").await.problem(403);
    bob.get("/shared/alice/docs/?archive=zip").await.problem(403);
    scene.link_into_home("alice", "docs/grüße/out", "../a.txt");
    expected.retain(|name, _| name.starts_with("grüße/"));
    let expected: FolderContents =
        expected.into_iter().map(|(name, it)| (name[8..].to_owned(), it)).collect();
    let target = "/shared/alice/docs/gr%C3%BC%C3%9Fe/?archive=zip";
    assert_eq!(contents(&bob.get(target).await), expected);
    assert_eq!(alice.delete(&format!("/api/shares/{share}")).await.status, 204);
    bob.get(target).await.problem(404);
}

/// Creates an account with a home that the network's buffers cannot hold.
async fn with_large(scene: &Scene, name: &str) -> Person {
    let length = if scene.engine == Engine::Simulator { 2_000_000 } else { 24_000_000 };
    let mut person = Person::new(scene, name).await;
    assert_eq!(person.put("/files/z", "the last file").await.status, 201);
    scene.write_home(name, "large", &noise(1, length));
    person
}

/// Begins the archive of such a home, and reads its beginning.
async fn begin_large(scene: &Scene, name: &str) -> Person {
    let mut person = with_large(scene, name).await;
    let fields = person.field();
    begin(&mut person.client, "/files/?archive=zip", &fields).await;
    person
}

/// Sends a request, and reads the beginning of the archive: more than the head, which is sent before the
/// folder is listed and its first file is open.
async fn begin(client: &mut Client, target: &str, fields: &str) {
    client.send(format!("GET {target} HTTP/1.1\r\nHost: test\r\n{fields}\r\n")).await;
    let mut received = 0;
    while received < 10_000 {
        received += client.receive().await.expect("bytes").expect("bytes").len();
    }
}

async fn an_archive_with_a_file_that_vanishes_is_aborted(scene: Scene) {
    let mut alice = begin_large(&scene, "alice").await;
    assert_eq!(Person::again(&scene, "alice").await.delete("/files/z").await.status, 204);
    let lines = scene.accounts().lines().len();
    alice.client.expect_abort().await;
    scene.until(|| scene.accounts().lines().len() > lines).await;
    let last = scene.accounts().lines().pop().expect("a line");
    assert_eq!((&last["operation"], &last["result"]), (&json!("download"), &json!("broken off")));
}

async fn an_archive_in_progress_ends_when_its_right_does(scene: Scene) {
    let mut alice = begin_large(&scene, "alice").await;
    let open = (scene.connections)();
    scene.accounts().auth.set_enabled(&scene.io, "alice", false).await.expect("an account");
    while (scene.connections)() >= open {
        scene.io.sleep(Duration::from_millis(5)).await;
    }
    alice.client.expect_abort().await;
}

/// Makes a public link to a folder, and returns its id and its path.
async fn link(alice: &mut Person, folder: &str, terms: serde_json::Value) -> (String, String) {
    let mut new = json!({ "path": folder, "permission": "read" });
    new.as_object_mut().unwrap().extend(terms.as_object().unwrap().clone());
    let made = alice.send("POST", "/api/links", &new).await.json();
    let url = made["url"].as_str().expect("a URL");
    let path = url.split_once("://test").expect("this server").1;
    (made["id"].as_str().unwrap().to_owned(), path.to_owned())
}

async fn a_visitor_of_a_link_downloads_its_folder_and_that_counts_once(scene: Scene) {
    let (mut alice, mut expected) = planted(&scene).await;
    scene.link_into_home("alice", "docs/grüße/out", "../a.txt");
    expected.retain(|name, _| name.starts_with("grüße/"));
    let expected: FolderContents =
        expected.into_iter().map(|(name, it)| (name["grüße/".len()..].to_owned(), it)).collect();
    let (id, path) = link(&mut alice, "docs/grüße", json!({ "downloads": 1 })).await;
    let target = format!("{path}/?archive=zip");
    let mut visitor = scene.connect().await;
    visitor.get(&format!("{path}/?archive=tar")).await.problem(400);
    visitor.get(&format!("{path}/none/?archive=zip")).await.problem(404);
    assert_eq!(visitor.head_with(&target, "").await.status, 200);
    let moved = visitor.get(&format!("{path}?archive=zip")).await;
    assert_eq!((moved.status, moved.field("Location")), (302, Some(&*target)));
    let lines = scene.accounts().lines().len();
    let answer = visitor.get(&target).await;
    assert_eq!(contents(&answer), expected);
    let named = "attachment; filename=\"gr____e.zip\"; filename*=UTF-8''gr%C3%BC%C3%9Fe.zip";
    assert_eq!(answer.field("Content-Disposition"), Some(named));
    assert_eq!(answer.field("Referrer-Policy"), Some("no-referrer"));
    let line = scene.accounts().lines().remove(lines);
    assert_eq!((&line["operation"], &line["path"]), (&json!("download"), &json!("/docs/grüße")));
    let detail = visitor.get(&target).await.problem(410);
    assert!(detail.contains("used up"), "{detail}");
    // Of a folder in it, likewise: an archive is no continued download.
    visitor.get(&format!("{path}/inner/?archive=zip")).await.problem(410);
    let listed = alice.get("/api/links").await.json();
    assert_eq!((&listed["links"][0]["id"], &listed["links"][0]["downloaded"]), (&json!(id), &json!(1)));
}

async fn a_password_and_an_upload_link_protect_a_folder_from_archives(scene: Scene) {
    let (mut alice, expected) = planted(&scene).await;
    let (_, locked) = link(&mut alice, "docs", json!({ "password": "open sesame now" })).await;
    let (_, inbox) = link(&mut alice, "docs", json!({ "permission": "upload" })).await;
    let mut visitor = scene.connect().await;
    let target = format!("{locked}/?archive=zip");
    visitor.get(&target).await.problem(401);
    let any = "Authorization: Basic YW55Om9wZW4gc2VzYW1lIG5vdw==\r\n";
    assert_eq!(contents(&visitor.get_with(&target, any).await), expected);
    let answer = visitor.get(&format!("{inbox}/?archive=zip")).await;
    assert!(answer.text().contains("not see the folder"), "{}", answer.text());
    let accept = "Accept: text/html,*/*;q=0.8\r\n";
    let answer = visitor.get_with(&format!("{inbox}/?archive=zip"), accept).await;
    assert!(
        answer.text().contains("type=\"file\"") && !answer.text().contains("archive"),
        "{}",
        answer.text()
    );
    let (_, open) = link(&mut alice, "docs", json!({})).await;
    let page = visitor.get_with(&format!("{open}/"), accept).await.text();
    assert!(page.contains("href=\"?archive=zip\""), "{page}");
}

async fn an_archive_by_a_link_ends_when_the_link_does(scene: Scene) {
    let mut alice = with_large(&scene, "alice").await;
    let (id, path) = link(&mut alice, "/", json!({})).await;
    let mut visitor = scene.connect().await;
    begin(&mut visitor, &format!("{path}/?archive=zip"), "").await;
    let open = (scene.connections)();
    assert_eq!(alice.delete(&format!("/api/links/{id}")).await.status, 204);
    while (scene.connections)() >= open {
        scene.io.sleep(Duration::from_millis(5)).await;
    }
    visitor.expect_abort().await;
}

behaviours!(scenario and remote and tls;
    a_folder_is_downloaded_as_an_archive,
    the_entries_that_a_request_names_are_in_an_archive,
    an_archive_ends_with_the_connection_of_a_client_of_http_1_0,
    a_link_is_the_file_that_it_leads_to_and_no_loop,
    an_archive_of_a_share_has_the_shared_folder_and_no_other,
    an_archive_with_a_file_that_vanishes_is_aborted,
    an_archive_in_progress_ends_when_its_right_does,
    a_visitor_of_a_link_downloads_its_folder_and_that_counts_once,
    a_password_and_an_upload_link_protect_a_folder_from_archives,
    an_archive_by_a_link_ends_when_the_link_does,
);

/// Where the store is in the same process: another one sends as many bytes as it has announced.
mod changed_files {
    use super::*;

    async fn an_archive_with_a_file_that_changes_its_size_is_aborted(scene: Scene) {
        for (name, length) in [("alice", 1_000_000), ("bob", 30_000_000)] {
            let mut person = begin_large(&scene, name).await;
            scene.write_home(name, "large", &noise(2, length));
            person.client.expect_abort().await;
        }
    }

    behaviours!(scenario; an_archive_with_a_file_that_changes_its_size_is_aborted);
}
