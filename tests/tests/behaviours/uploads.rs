//! Uploads by PUT: a file arrives complete, or the old one stays.

use std::time::Duration;

use plimsoll_proto::http::Limits;
use plimsoll_tests::accounts::{FolderContents, settings};
use plimsoll_tests::tree::noise;
use plimsoll_tests::{Engine, Person, Scenario, Scene, behaviours, together};

/// How long a server waits for more of a body.
const RECEIVE_TIME: Duration = Duration::from_secs(2);

fn scenario() -> Scenario {
    let limits = Limits { receive_time: RECEIVE_TIME, body_bytes_max: 4 << 20, ..Limits::default() };
    Scenario { accounts: Some(settings()), limits, ..Scenario::default() }
}

fn files<const N: usize>(files: [(&str, &str); N]) -> FolderContents {
    files.into_iter().map(|(name, bytes)| (name.to_owned(), Some(bytes.into()))).collect()
}

/// Waits until nothing is left of refused or interrupted uploads.
async fn settled(scene: &Scene, name: &str) {
    scene.until(|| scene.pending(name).is_empty()).await;
}

async fn a_file_is_created_and_then_replaced(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    let created = alice.put("/files/a%20b%C3%A9.txt", "one").await;
    assert_eq!((created.status, created.field("Location")), (201, Some("/files/a%20b%C3%A9.txt")));
    let replaced = alice.put("/files/a%20b%C3%A9.txt", "two").await;
    assert_eq!((replaced.status, replaced.field("Location")), (204, None));
    assert_ne!(replaced.field("ETag").expect("a tag"), created.field("ETag").expect("a tag"));
    let got = alice.get("/files/a%20b%C3%A9.txt").await;
    assert_eq!((&*got.text(), got.field("ETag")), ("two", replaced.field("ETag")));
    assert_eq!(got.field("Last-Modified"), replaced.field("Last-Modified"));
    assert_eq!(scene.home("alice"), files([("a b\u{e9}.txt", "two")]));
    settled(&scene, "alice").await;
}

async fn bodies_may_be_empty_large_or_chunked(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    assert_eq!(alice.put("/files/empty", "").await.status, 201);
    let large = noise(1, if scene.engine == Engine::Simulator { 70_000 } else { 3 << 20 });
    assert_eq!(alice.put("/files/large", &large).await.status, 201);
    let chunked = "3\r\none\r\n4;x=y\r\n two\r\n0\r\nX: y\r\n\r\n";
    let head = format!(
        "PUT /files/chunked HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n{}\r\n",
        alice.field()
    );
    alice.client.push([head.as_bytes(), chunked.as_bytes()].concat());
    assert_eq!(alice.client.answer().await.status, 201);
    let home = scene.home("alice");
    assert!(home["large"].as_ref() == Some(&large));
    assert_eq!(home["empty"].as_deref(), Some(&b""[..]));
    assert_eq!(home["chunked"].as_deref(), Some(&b"one two"[..]));
}

async fn a_request_behind_a_large_body_is_answered(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    let large = noise(1, if scene.engine == Engine::Simulator { 70_000 } else { 1 << 20 });
    for name in ["one", "two"] {
        let field = alice.field();
        let put = format!(
            "PUT /files/{name} HTTP/1.1\r\nHost: test\r\n{field}Content-Length: {}\r\n\r\n",
            large.len()
        );
        let get = format!("GET /files/{name} HTTP/1.1\r\nHost: test\r\n{field}\r\n");
        alice.client.push([put.as_bytes(), &large, get.as_bytes()].concat());
    }
    for _ in ["one", "two"] {
        assert_eq!(alice.client.answer().await.status, 201);
        assert!(alice.client.answer().await.body == large);
    }
}

/// Digests of `hello`.
const RIGHT: [&str; 6] = [
    "Content-MD5: XUFAKrxLKna5cZ2REBfFkg==",
    "Repr-Digest: sha-256=:LPJNul+wow4m6DsqxbninhsWHlwfp0JecwQzYpOLmCQ=:",
    "Content-Digest: sha-256=:LPJNul+wow4m6DsqxbninhsWHlwfp0JecwQzYpOLmCQ=:",
    "Repr-Digest: md5=:XUFAKrxLKna5cZ2REBfFkg==:, unknown=:AAAA:",
    "Repr-Digest: sha-512=:m3HSJL1i83hdltRq0+o9czGb+8KJDKra4t/3JRlnPKcjI8PZm6XBHXx6zG4UuMXaDEZjR1wu\
     XDre9G9zvN7AQw==:",
    "Content-MD5: XUFAKrxLKna5cZ2REBfFkg==\r\nRepr-Digest: md5=:XUFAKrxLKna5cZ2REBfFkg==:",
];

async fn digests_are_checked_when_they_are_sent(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    for digest in RIGHT {
        let fields = format!("{digest}\r\n");
        let stored = alice.ask("PUT", "/files/a", &fields, "hello").await;
        assert!(matches!(stored.status, 201 | 204), "{digest}: {}", stored.text());
        let detail = alice.ask("PUT", "/files/a", &fields, "jello").await.problem(422);
        assert!(detail.contains("send them again"), "{detail}");
        alice.ask("PUT", "/files/new", &fields, "jello").await.problem(422);
    }
    for unreadable in [
        "Content-MD5: XUFAKrxLKna5cZ2REBfF",
        "Content-MD5: ?",
        "Repr-Digest: sha-256=:XUFAKrxLKna5cZ2REBfFkg==:",
        "Repr-Digest: sha-256=LPJNul+wow4m6DsqxbninhsWHlwfp0JecwQzYpOLmCQ=",
        "Content-Digest: sha-256",
    ] {
        alice.ask("PUT", "/files/a", &format!("{unreadable}\r\n"), "hello").await.problem(400);
    }
    assert_eq!(scene.home("alice"), files([("a", "hello")]));
    settled(&scene, "alice").await;
}

async fn conditions_are_about_what_is_there(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    let new = "If-None-Match: *\r\n";
    assert_eq!(alice.ask("PUT", "/files/a", new, "one").await.status, 201);
    alice.ask("PUT", "/files/a", new, "two").await.problem(412);
    alice.ask("PUT", "/files/b", "If-Match: *\r\n", "two").await.problem(412);
    let tag = alice.get("/files/a").await.field("ETag").unwrap().to_owned();
    let matching = format!("If-Match: \"x\", {tag}\r\n");
    assert_eq!(alice.ask("PUT", "/files/a", &matching, "two").await.status, 204);
    alice.ask("PUT", "/files/a", &matching, "three").await.problem(412);
    alice.ask("DELETE", "/files/a", &matching, "").await.problem(412);
    let long_ago = "If-Unmodified-Since: Sun, 06 Nov 1994 08:49:37 GMT\r\n";
    alice.ask("PUT", "/files/a", long_ago, "three").await.problem(412);
    let later = "If-Unmodified-Since: Fri, 31 Dec 9999 23:59:59 GMT\r\n";
    assert_eq!(alice.ask("PUT", "/files/a", later, "three").await.status, 204);
    assert_eq!(scene.home("alice"), files([("a", "three")]));
    let tag = alice.get("/files/a").await.field("ETag").unwrap().to_owned();
    assert_eq!(alice.ask("DELETE", "/files/a", &format!("If-Match: {tag}\r\n"), "").await.status, 204);
    settled(&scene, "alice").await;
}

async fn an_upload_that_its_head_rules_out_is_refused_before_its_body(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    alice.put("/files/a", "one").await;
    for (target, fields, status) in [
        ("/files/a", "If-None-Match: *\r\n", 412),
        ("/files/none/a", "", 409),
        ("/files/a/b", "", 409),
        ("/shared/bob/a", "", 404),
        ("/files/b", "Content-MD5: x\r\n", 400),
        ("/files/b/", "", 409),
    ] {
        let mut client = scene.connect().await;
        let head = format!("PUT {target} HTTP/1.1\r\nHost: test\r\n{}{fields}", alice.field());
        client.push(format!("{head}Content-Length: 1000000\r\nExpect: 100-continue\r\n\r\n"));
        let answer = client.answer().await;
        assert!(!answer.problem(status).is_empty(), "{target}");
        assert_eq!(answer.field("Connection"), Some("close"));
    }
    assert_eq!(scene.home("alice"), files([("a", "one")]));
    settled(&scene, "alice").await;
}

async fn a_body_that_is_no_whole_file_is_refused(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    for (fields, status) in [
        ("Content-Range: bytes 0-4/10\r\n", 400),
        ("Content-Range: junk\r\n", 400),
        ("Content-Encoding: gzip\r\n", 415),
    ] {
        alice.ask("PUT", "/files/a", fields, "hello").await.problem(status);
    }
    let head = format!("PUT /files/a HTTP/1.0\r\nHost: test\r\n{}\r\n", alice.field());
    // The body of such a client may follow, up to the end of its connection.
    alice.client.push(head);
    assert!(alice.client.answer().await.problem(411).contains("Content-Length"));
    assert!(scene.home("alice").is_empty());
}

/// Interrupts a PUT of a whole file that can be resumed, after these bytes; returns what the server has.
async fn interrupted(scene: &Scene, alice: &mut Person, bytes: &str, length: usize) -> u64 {
    let (mut client, requests) = (scene.connect().await, scene.begun());
    // A slow network may interrupt the upload before this client does.
    let before = scene.accounts().lines().len();
    let range = format!("Content-Range: bytes 0-{}/{length}\r\nContent-Length: {length}\r\n", length - 1);
    client.push(format!("PUT /files/a HTTP/1.1\r\nHost: test\r\n{}{range}\r\n{bytes}", alice.field()));
    scene.until(|| scene.begun() > requests).await;
    loop {
        let listed = alice.get("/uploads").await.json();
        if listed["uploads"][0]["offset"] == bytes.len() {
            break;
        }
        scene.io.sleep(Duration::from_millis(50)).await;
    }
    drop(client);
    scene.until(|| scene.accounts().lines().len() > before).await;
    alice.get("/uploads").await.json()["uploads"][0]["offset"].as_u64().unwrap()
}

async fn the_rest_of_an_interrupted_upload_is_put_at_its_exact_offset(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    assert_eq!(interrupted(&scene, &mut alice, "0123", 10).await, 4);
    let mut bob = Person::new(&scene, "bob").await;
    bob.ask("PUT", "/files/a", "Content-Range: bytes 4-9/10\r\n", "456789").await.problem(400);
    for (range, bytes) in [
        ("bytes 3-9/10", "3456789"),
        ("bytes 5-9/10", "56789"),
        ("bytes 4-8/10", "45678"),
        ("bytes 4-9/*", "456789"),
        ("bytes 4-9/10", "45678"),
        ("bytes */10", ""),
    ] {
        let refused = alice.ask("PUT", "/files/a", &format!("Content-Range: {range}\r\n"), bytes).await;
        assert!(refused.problem(400).contains("exact offset"), "{range}");
    }
    let range = "Content-Range: bytes 4-9/10\r\n";
    alice.ask("PUT", "/files/b", range, "456789").await.problem(400);
    alice.ask("PUT", "/files/a", &format!("{range}If-None-Match: *\r\n"), "456789").await.problem(400);
    alice.get("/files/a").await.problem(404);
    // An interrupted upload is not resumed sooner by another connection: the first one may still be sending.
    let done = loop {
        let answer = alice.ask("PUT", "/files/a", range, "456789").await;
        match answer.status {
            423 => scene.io.sleep(Duration::from_millis(50)).await,
            _ => break answer,
        }
    };
    assert_eq!(done.status, 201, "{}", done.text());
    let got = alice.get("/files/a").await;
    assert_eq!((&*got.text(), got.field("ETag")), ("0123456789", done.field("ETag")));
    alice.ask("PUT", "/files/a", range, "456789").await.problem(400);
    assert_eq!(alice.get("/files/a").await.text(), "0123456789");
    settled(&scene, "alice").await;
}

async fn the_rest_of_an_upload_in_parts_is_put_too(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    let tus = "Tus-Resumable: 1.0.0\r\nUpload-Length: 10\r\nUpload-Metadata: path YQ==\r\n";
    let first = format!("{tus}Content-Type: application/offset+octet-stream\r\n");
    assert_eq!(alice.ask("POST", "/uploads", &first, "0123").await.status, 201);
    let whole = "Repr-Digest: sha-256=:hNiYd/DUBB77a/kaFvAkjy/Vc+avBcGflr7bn4gveII=:\r\n";
    for (range, bytes) in [("bytes 4-8/9", "45678"), ("bytes 5-9/10", "56789")] {
        alice.ask("PUT", "/files/a", &format!("Content-Range: {range}\r\n"), bytes).await.problem(400);
    }
    let rest = format!("Content-Range: bytes 4-9/10\r\n{whole}");
    let done = alice.ask("PUT", "/files/a", &rest, "456789").await;
    assert_eq!(done.status, 201, "{}", done.text());
    assert_eq!(alice.get("/files/a").await.text(), "0123456789");
    settled(&scene, "alice").await;
}

async fn a_file_is_stored_whatever_its_time_is(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    for (sent, confirmed, modified) in [
        ("0", Some("accepted"), None),
        ("1000000001.5", Some("accepted"), Some("Sun, 09 Sep 2001 01:46:41 GMT")),
        ("1000000001.1234567891", Some("accepted"), Some("Sun, 09 Sep 2001 01:46:41 GMT")),
        ("-1", None, None),
        ("-11644473600", None, None),
        ("253402300800", None, None),
        ("99999999999999999999999", None, None),
    ] {
        let answer = alice.ask("PUT", "/files/a", &format!("X-OC-Mtime: {sent}\r\n"), sent).await;
        assert!(matches!(answer.status, 201 | 204), "{sent}: {}", answer.text());
        assert_eq!(answer.field("X-OC-Mtime"), confirmed, "{sent}");
        assert!(modified.is_none() || answer.field("Last-Modified") == modified, "{sent}");
        assert_eq!(alice.get("/files/a").await.text(), sent);
    }
    for malformed in ["now", "1e9", "-", "1,5"] {
        alice.ask("PUT", "/files/a", &format!("X-OC-Mtime: {malformed}\r\n"), "x").await.problem(400);
    }
}

async fn a_put_without_a_length_stores_an_empty_file(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    for (target, status) in [("/files/new", 201), ("/files/new", 204)] {
        let head = format!("PUT {target} HTTP/1.1\r\nHost: test\r\n{}\r\n", alice.field());
        alice.client.push(head);
        assert_eq!(alice.client.answer().await.status, status);
    }
    assert_eq!(alice.get("/files/new").await.body, b"");
    assert_eq!(scene.home("alice"), files([("new", "")]));
}

async fn a_file_goes_where_a_file_can_be(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    alice.ask("MKCOL", "/files/folder", "", "").await;
    alice.put("/files/file", "one").await;
    for target in ["/files/none/a", "/files/file/a", "/files/folder/none/a"] {
        let detail = alice.put(target, "x").await.problem(409);
        assert!(detail.contains("MKCOL"), "{detail}");
    }
    for target in ["/files/folder", "/files/folder/", "/files/new/", "/files/", "/files"] {
        alice.put(target, "x").await.problem(409);
    }
    let wanted: FolderContents =
        [("file".to_owned(), Some(b"one".to_vec())), ("folder".to_owned(), None)].into();
    assert_eq!(scene.home("alice"), wanted);
}

async fn names_are_stored_as_they_are_or_refused(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    let (longest, too_long) = ("n".repeat(255), "n".repeat(256));
    let good = ["%FF%FE", ".hidden", "...", "a%5Cb", "%22%3C%3E%7C%3A*%3F", "%E2%98%83", "-rf", &longest];
    for name in good {
        let target = format!("/files/{name}");
        assert_eq!(alice.put(&target, name).await.status, 201, "{name}");
        assert_eq!(alice.get(&target).await.text(), name);
    }
    assert_eq!(scene.home("alice").len(), good.len());
    for name in [
        "..",
        "../x",
        "%2e%2e",
        "%2E%2e/x",
        "a/../../x",
        "a%2fb",
        "..%2fx",
        "a%00b",
        ".",
        "a/./b",
        "%",
        "%4",
        "%zz",
        &too_long,
    ] {
        for method in ["PUT", "GET", "DELETE", "MKCOL"] {
            let answer = alice.ask(method, &format!("/files/{name}"), "", "").await;
            assert!(!answer.problem(400).is_empty(), "{method} {name}");
        }
    }
    assert_eq!(scene.home("alice").len(), good.len());
}

async fn a_client_that_stops_half_way_leaves_nothing(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    alice.put("/files/old", "whole").await;
    let begun = scene.accounts().lines().len();
    let half = noise(3, 20_000);
    for (at, name) in ["old", "new"].iter().enumerate() {
        let (mut client, requests) = (scene.connect().await, scene.begun());
        let head = format!("PUT /files/{name} HTTP/1.1\r\nHost: test\r\n{}", alice.field());
        client.push([format!("{head}Content-Length: 40000\r\n\r\n").as_bytes(), &half].concat());
        scene.until(|| scene.begun() > requests).await;
        drop(client);
        scene.until(|| scene.accounts().lines().len() > begun + at).await;
        assert_eq!(scene.accounts().lines()[begun + at]["result"], "broken off");
    }
    // A client that ends its side cleanly gets an answer.
    let mut client = scene.connect().await;
    let head =
        format!("PUT /files/new HTTP/1.1\r\nHost: test\r\n{}Content-Length: 10\r\n\r\nhello", alice.field());
    client.push(head);
    client.stream.tx.finish();
    client.answer().await.problem(400);
    assert_eq!(scene.home("alice"), files([("old", "whole")]));
    settled(&scene, "alice").await;
    assert_eq!(alice.get("/api/whoami").await.json()["usage"]["files"], 1);
}

async fn a_client_that_sends_nothing_more_is_cut_off(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    let head =
        format!("PUT /files/a HTTP/1.1\r\nHost: test\r\n{}Content-Length: 10\r\n\r\nhello", alice.field());
    alice.client.push(head);
    let answer = alice.client.answer().await;
    assert!(!answer.problem(408).is_empty());
    assert_eq!(answer.field("Connection"), Some("close"));
    settled(&scene, "alice").await;
    assert!(scene.home("alice").is_empty());
}

async fn a_broken_chunk_stores_nothing(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    let head =
        format!("PUT /files/a HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n{}\r\n", alice.field());
    alice.client.push([&*head, "5\r\nhello\r\nnone\r\n"].concat());
    alice.client.answer().await.problem(400);
    settled(&scene, "alice").await;
    assert!(scene.home("alice").is_empty());
}

async fn of_two_who_write_one_path_at_once_one_is_whole(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    alice.put("/files/a", "before").await;
    let _bob = Person::new(&scene, "bob").await;
    alice.share("/a", "bob", "write").await;
    let bytes = [noise(1, 9_000), noise(2, 12_000)];
    let both = [("alice", "/files/a", &bytes[0]), ("bob", "/shared/alice/a", &bytes[1])];
    let stored = together(both.map(|(name, target, bytes)| {
        let scene = &scene;
        async move { Person::again(scene, name).await.put(target, bytes).await.status }
    }));
    assert_eq!(stored.await, [204, 204]);
    let home = scene.home("alice");
    assert!(home.len() == 1 && bytes.iter().any(|bytes| home["a"].as_ref() == Some(bytes)));
    assert_eq!(alice.get("/api/whoami").await.json()["usage"]["bytes"], home["a"].as_ref().unwrap().len());
    settled(&scene, "alice").await;
}

async fn of_many_who_create_one_path_one_does(scene: Scene) {
    let _alice = Person::new(&scene, "alice").await;
    let created = together((0..8).map(|number| {
        let scene = &scene;
        async move {
            let mut alice = Person::again(scene, "alice").await;
            alice.ask("PUT", "/files/a", "If-None-Match: *\r\n", format!("from {number}")).await.status
        }
    }))
    .await;
    assert_eq!(created.iter().filter(|status| **status == 201).count(), 1, "{created:?}");
    assert_eq!(created.iter().filter(|status| **status == 412).count(), 7, "{created:?}");
    settled(&scene, "alice").await;
}

async fn each_upload_has_one_line(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    let before = scene.accounts().lines().len();
    alice.put("/files/a", "hello").await;
    alice.ask("PUT", "/files/a", "If-None-Match: *\r\n", "hello").await;
    let lines = scene.accounts().lines().split_off(before);
    assert_eq!(lines.len(), 2, "{lines:?}");
    for (line, result) in lines.iter().zip(["ok", "precondition"]) {
        assert_eq!((&line["operation"], &line["path"]), (&"upload".into(), &"/a".into()));
        assert_eq!((&line["account"], &line["protocol"]), (&"alice".into(), &"http".into()));
        assert_eq!(line["result"], result);
        assert!(line["end"].as_u64() >= line["start"].as_u64());
    }
    assert_eq!((&lines[0]["bytes"], &lines[1]["bytes"]), (&5.into(), &0.into()));
}

behaviours!(scenario and spooled and tls;
    a_file_is_created_and_then_replaced,
    bodies_may_be_empty_large_or_chunked,
    a_request_behind_a_large_body_is_answered,
    digests_are_checked_when_they_are_sent,
    conditions_are_about_what_is_there,
    an_upload_that_its_head_rules_out_is_refused_before_its_body,
    a_body_that_is_no_whole_file_is_refused,
    the_rest_of_an_interrupted_upload_is_put_at_its_exact_offset,
    the_rest_of_an_upload_in_parts_is_put_too,
    a_file_is_stored_whatever_its_time_is,
    a_put_without_a_length_stores_an_empty_file,
    a_file_goes_where_a_file_can_be,
    names_are_stored_as_they_are_or_refused,
    a_client_that_stops_half_way_leaves_nothing,
    a_client_that_sends_nothing_more_is_cut_off,
    a_broken_chunk_stores_nothing,
    of_two_who_write_one_path_at_once_one_is_whole,
    of_many_who_create_one_path_one_does,
    each_upload_has_one_line,
);
