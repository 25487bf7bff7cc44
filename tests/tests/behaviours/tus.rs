//! Resumable uploads: tus 1.0, core protocol and its extensions creation, concatenation, checksum,
//! expiration and termination.

use std::time::Duration;

use plimsoll_store::limits::{FINISHED_METADATA_BYTES_MAX, FINISHED_PER_HOME_MAX, FINISHED_TIME};
use plimsoll_tests::accounts::{UPLOAD_KEPT_TIME, settings};
use plimsoll_tests::tree::noise;
use plimsoll_tests::{Answer, Engine, Person, Scenario, Scene, behaviours, under};
use serde_json::json;

fn scenario() -> Scenario {
    Scenario { accounts: Some(settings()), ..Scenario::default() }
}

const VERSION: &str = "Tus-Resumable: 1.0.0\r\n";

/// `a.txt`
const PATH: &str = "Upload-Metadata: path YS50eHQ=\r\n";

async fn create(person: &mut Person, length: usize, metadata: &str) -> Answer {
    person.ask("POST", "/uploads", &format!("{VERSION}Upload-Length: {length}\r\n{metadata}"), "").await
}

/// Creates an upload of `a.txt`, and returns its location.
async fn created(person: &mut Person, length: usize) -> String {
    let answer = create(person, length, PATH).await;
    assert_eq!(answer.status, 201, "{}", answer.text());
    answer.field("Location").expect("a location").to_owned()
}

fn part(offset: usize, fields: &str) -> String {
    format!("{VERSION}Content-Type: application/offset+octet-stream\r\nUpload-Offset: {offset}\r\n{fields}")
}

async fn append(person: &mut Person, at: &str, offset: usize, bytes: impl AsRef<[u8]>) -> Answer {
    person.ask("PATCH", at, &part(offset, ""), bytes).await
}

async fn offset(person: &mut Person, at: &str) -> Option<usize> {
    let answer = person.ask("HEAD", at, VERSION, "").await;
    (answer.status == 200).then(|| answer.field("Upload-Offset").unwrap().parse().unwrap())
}

async fn a_file_comes_in_parts(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    let announced = create(&mut alice, 9, PATH).await;
    assert_eq!(announced.status, 201, "{}", announced.text());
    assert!(announced.field("Upload-Expires").expect("an end").ends_with(" GMT"));
    let at = announced.field("Location").unwrap().to_owned();
    let first = append(&mut alice, &at, 0, "one ").await;
    assert_eq!((first.status, first.field("Upload-Offset")), (204, Some("4")));
    assert!(first.field("Upload-Expires").is_some() && first.field("ETag").is_none());
    let head = alice.ask("HEAD", &at, VERSION, "").await;
    assert_eq!(
        (head.status, head.field("Upload-Offset"), head.field("Upload-Length")),
        (200, Some("4"), Some("9"))
    );
    assert_eq!((head.field("Cache-Control"), head.field("Tus-Resumable")), (Some("no-store"), Some("1.0.0")));
    assert_eq!(head.field("Upload-Metadata"), Some("path YS50eHQ="));
    alice.get("/files/a.txt").await.problem(404);
    let last = append(&mut alice, &at, 4, "two 3").await;
    assert_eq!((last.status, last.field("Upload-Offset")), (204, Some("9")));
    let got = alice.get("/files/a.txt").await;
    assert_eq!((&*got.text(), got.field("ETag")), ("one two 3", last.field("ETag")));
    assert!(scene.pending("alice").is_empty());
}

async fn an_empty_file_is_complete_at_once(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    let answer = create(&mut alice, 0, PATH).await;
    assert_eq!(answer.status, 201, "{}", answer.text());
    let got = alice.get("/files/a.txt").await;
    assert_eq!((got.status, got.body.len(), got.field("ETag")), (200, 0, answer.field("ETag")));
    assert!(scene.pending("alice").is_empty());
}

async fn an_upload_can_be_created_with_its_first_bytes(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    let fields = |length: usize| {
        format!("{VERSION}Content-Type: application/offset+octet-stream\r\nUpload-Length: {length}\r\n{PATH}")
    };
    let begun = alice.ask("POST", "/uploads", &fields(9), "one ").await;
    assert_eq!((begun.status, begun.field("Upload-Offset")), (201, Some("4")), "{}", begun.text());
    let at = begun.field("Location").expect("a location").to_owned();
    assert_eq!(offset(&mut alice, &at).await, Some(4));
    assert_eq!(append(&mut alice, &at, 4, "two 3").await.status, 204);
    assert_eq!(alice.get("/files/a.txt").await.text(), "one two 3");
    let whole = alice.ask("POST", "/uploads", &fields(5), "whole").await;
    assert_eq!((whole.status, whole.field("Upload-Offset")), (201, Some("5")), "{}", whole.text());
    let got = alice.get("/files/a.txt").await;
    assert_eq!((&*got.text(), got.field("ETag")), ("whole", whole.field("ETag")));
    let untyped = format!("{VERSION}Upload-Length: 5\r\n{PATH}");
    alice.ask("POST", "/uploads", &untyped, "whole").await.problem(415);
    alice.ask("POST", "/uploads", &fields(4), "too long").await.problem(413);
}

async fn a_file_is_made_of_partial_uploads(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    let mut parts = Vec::new();
    for length in [4, 5] {
        let fields = format!("{VERSION}Upload-Length: {length}\r\nUpload-Concat: partial\r\n");
        let answer = alice.ask("POST", "/uploads", &fields, "").await;
        assert_eq!(answer.status, 201, "{}", answer.text());
        parts.push(answer.field("Location").expect("a location").to_owned());
    }
    let join = |first: &str, second: &str| {
        format!("{VERSION}Upload-Concat: final;http://x{first} {second}\r\n{PATH}")
    };
    assert_eq!(append(&mut alice, &parts[1], 0, "one t").await.status, 204);
    alice.ask("POST", "/uploads", &join(&parts[1], &parts[0]), "").await.problem(409);
    assert_eq!(append(&mut alice, &parts[0], 0, "wo 3").await.field("Upload-Offset"), Some("4"));
    let head = alice.ask("HEAD", &parts[0], VERSION, "").await;
    assert_eq!((head.field("Upload-Concat"), head.field("Upload-Offset")), (Some("partial"), Some("4")));
    alice.ask("POST", "/uploads", &join(&parts[1], &parts[1]), "").await.problem(400);
    let mut bob = Person::new(&scene, "bob").await;
    bob.ask("POST", "/uploads", &join(&parts[1], &parts[0]), "").await.problem(404);
    let other = format!("{}Repr-Digest: sha-256=:{}:\r\n", join(&parts[1], &parts[0]), "A".repeat(43) + "=");
    alice.ask("POST", "/uploads", &other, "").await.problem(422);
    alice.get("/files/a.txt").await.problem(404);
    let joined = alice.ask("POST", "/uploads", &join(&parts[1], &parts[0]), "").await;
    assert_eq!((joined.status, joined.field("Location")), (201, Some("/files/a.txt")), "{}", joined.text());
    let got = alice.get("/files/a.txt").await;
    assert_eq!((&*got.text(), got.field("ETag")), ("one two 3", joined.field("ETag")));
    assert_eq!(offset(&mut alice, &parts[0]).await, None);
    assert!(scene.pending("alice").is_empty());
}

async fn parts_are_no_longer_listed_after_a_join_whose_client_has_gone(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    let mut parts = Vec::new();
    for bytes in ["one ", "two"] {
        let fields = format!("{VERSION}Upload-Length: {}\r\nUpload-Concat: partial\r\n", bytes.len());
        let answer = alice.ask("POST", "/uploads", &fields, "").await;
        parts.push(answer.field("Location").expect("a location").to_owned());
        assert_eq!(append(&mut alice, parts.last().unwrap(), 0, bytes).await.status, 204);
    }
    assert_eq!(alice.get("/uploads").await.json()["uploads"].as_array().unwrap().len(), 2);
    let (mut client, requests) = (scene.connect().await, scene.begun());
    let join = format!("{VERSION}Upload-Concat: final;{} {}\r\n{PATH}", parts[0], parts[1]);
    client.push(format!("POST /uploads HTTP/1.1\r\nHost: test\r\n{}{join}\r\n", alice.field()));
    scene.until(|| scene.begun() > requests).await;
    drop(client);
    scene.until(|| scene.home("alice").contains_key("a.txt")).await;
    scene.until(|| scene.pending("alice").is_empty()).await;
    assert_eq!(alice.get("/uploads").await.json(), json!({ "uploads": [] }));
    assert_eq!(alice.get("/files/a.txt").await.text(), "one two");
}

async fn metadata_is_reported_as_it_was_sent(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    let long = format!("filename YS50eHQ=,note {}", "QUJD".repeat(FINISHED_METADATA_BYTES_MAX / 4));
    for (sent, after) in [
        ("filename YS50eHQ=,filetype dGV4dC9wbGFpbg==", "filename YS50eHQ=,filetype dGV4dC9wbGFpbg=="),
        ("path YS50eHQ=, empty,filename Yg==", "path YS50eHQ=, empty,filename Yg=="),
        (&long, "path YS50eHQ="),
    ] {
        let at = create(&mut alice, 5, &format!("Upload-Metadata: {sent}\r\n")).await;
        let at = at.field("Location").expect("a location").to_owned();
        append(&mut alice, &at, 0, "hel").await;
        assert_eq!(alice.ask("HEAD", &at, VERSION, "").await.field("Upload-Metadata"), Some(sent));
        assert_eq!(append(&mut alice, &at, 3, "lo").await.status, 204);
        assert_eq!(alice.ask("HEAD", &at, VERSION, "").await.field("Upload-Metadata"), Some(after));
    }
    let partial =
        format!("{VERSION}Upload-Length: 4\r\nUpload-Concat: partial\r\nUpload-Metadata: name YQ==\r\n");
    let part = alice.ask("POST", "/uploads", &partial, "").await;
    let head = alice.ask("HEAD", part.field("Location").expect("a location"), VERSION, "").await;
    assert_eq!(head.field("Upload-Metadata"), Some("name YQ=="));
}

async fn a_file_in_parts_is_stored_whatever_its_time_is(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    for (sent, confirmed) in [("-11644473600", None), ("253402300800", None), ("1", Some("accepted"))] {
        let at = created(&mut alice, 5).await;
        let last = part(0, &format!("X-OC-Mtime: {sent}\r\n"));
        let answer = alice.ask("PATCH", &at, &last, "hello").await;
        assert_eq!((answer.status, answer.field("X-OC-Mtime")), (204, confirmed), "{sent}");
    }
    assert_eq!(alice.get("/files/a.txt").await.text(), "hello");
}

async fn a_media_type_may_have_parameters_and_any_case(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    let at = created(&mut alice, 5).await;
    for (from, kind, bytes) in [
        (0, "application/offset+octet-stream; charset=UTF-8", "h"),
        (1, "Application/Offset+Octet-Stream", "e"),
        (2, "application/offset+octet-stream ;x=y", "l"),
    ] {
        let fields = format!("{VERSION}Content-Type: {kind}\r\nUpload-Offset: {from}\r\n");
        assert_eq!(alice.ask("PATCH", &at, &fields, bytes).await.status, 204, "{kind}");
    }
    for kind in ["application/octet-stream", "application/offset+octet-streams", ""] {
        let fields = format!("{VERSION}Content-Type: {kind}\r\nUpload-Offset: 3\r\n");
        alice.ask("PATCH", &at, &fields, "lo").await.problem(415);
    }
}

const DEFERRED: &str = "Upload-Defer-Length: 1\r\n";

/// Creates an upload of `a.txt` of unknown length.
async fn deferred(person: &mut Person) -> String {
    let created = person.ask("POST", "/uploads", &format!("{VERSION}{DEFERRED}{PATH}"), "").await;
    assert_eq!(created.status, 201, "{}", created.text());
    created.field("Location").expect("a location").to_owned()
}

async fn the_length_may_come_with_a_later_part(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    let at = deferred(&mut alice).await;
    assert_eq!(append(&mut alice, &at, 0, "one ").await.status, 204);
    let head = alice.ask("HEAD", &at, VERSION, "").await;
    let fields = ["Upload-Offset", "Upload-Defer-Length", "Upload-Length"].map(|name| head.field(name));
    assert_eq!(fields, [Some("4"), Some("1"), None]);
    let length = |length: usize| format!("Upload-Length: {length}\r\n");
    alice.ask("PATCH", &at, &part(4, &length(3)), "").await.problem(409);
    let middle = alice.ask("PATCH", &at, &part(4, &length(9)), "two ").await;
    assert_eq!((middle.status, middle.field("Upload-Offset")), (204, Some("8")), "{}", middle.text());
    let head = alice.ask("HEAD", &at, VERSION, "").await;
    let fields = ["Upload-Offset", "Upload-Defer-Length", "Upload-Length"].map(|name| head.field(name));
    assert_eq!(fields, [Some("8"), None, Some("9")]);
    for other in [8, 10] {
        alice.ask("PATCH", &at, &part(8, &length(other)), "3").await.problem(409);
    }
    alice.get("/files/a.txt").await.problem(404);
    assert_eq!(alice.ask("PATCH", &at, &part(8, &length(9)), "3").await.status, 204);
    assert_eq!(alice.get("/files/a.txt").await.text(), "one two 3");
    // A client that lost the last response repeats it.
    let again = alice.ask("PATCH", &at, &part(9, &length(9)), "").await;
    assert_eq!((again.status, again.field("Upload-Offset")), (204, Some("9")));
    assert!(scene.pending("alice").is_empty());
}

async fn a_length_at_the_end_completes_the_upload(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    for bytes in ["hello", ""] {
        let at = deferred(&mut alice).await;
        append(&mut alice, &at, 0, bytes).await;
        let end = part(bytes.len(), &format!("Upload-Length: {}\r\n", bytes.len()));
        assert_eq!(alice.ask("PATCH", &at, &end, "").await.status, 204);
        assert_eq!(alice.get("/files/a.txt").await.text(), bytes);
    }
    let too_long = format!("{}Upload-Length: 99999999999999\r\n", part(0, ""));
    let at = deferred(&mut alice).await;
    alice.ask("PATCH", &at, &too_long, "").await.problem(413);
    let first = format!("Content-Type: application/offset+octet-stream\r\n{VERSION}{DEFERRED}{PATH}");
    let begun = alice.ask("POST", "/uploads", &first, "one").await;
    assert_eq!((begun.status, begun.field("Upload-Offset")), (201, Some("3")), "{}", begun.text());
}

async fn the_extensions_are_listed_to_any_client(scene: Scene) {
    let mut client = scene.connect().await;
    for target in ["/uploads", "/uploads/x"] {
        let response = client.ask("OPTIONS", target, "", "").await;
        assert_eq!((response.status, response.field("Tus-Version")), (204, Some("1.0.0")));
        assert_eq!(
            response.field("Tus-Extension"),
            Some(
                "creation,creation-with-upload,creation-defer-length,concatenation,checksum,expiration,\
                 termination"
            )
        );
        assert_eq!(response.field("Tus-Checksum-Algorithm"), Some("sha256,sha1,md5"));
        assert!(response.field("Tus-Max-Size").is_some());
    }
}

async fn another_version_is_refused_with_ours(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    for version in ["", "Tus-Resumable: 0.2.2\r\n"] {
        for (method, target) in
            [("POST", "/uploads"), ("HEAD", "/uploads/x"), ("PATCH", "/uploads/x"), ("DELETE", "/uploads/x")]
        {
            let answer = alice.ask(method, target, version, "").await;
            assert_eq!((answer.status, answer.field("Tus-Version")), (412, Some("1.0.0")), "{method}");
        }
    }
}

async fn an_upload_is_announced_with_its_length_and_path(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    alice.ask("MKCOL", "/files/folder", "", "").await;
    for (fields, status) in [
        ("Upload-Length: 5\r\n", 400),
        ("Upload-Metadata: path YS50eHQ=\r\n", 400),
        ("Upload-Defer-Length: 2\r\nUpload-Metadata: path YS50eHQ=\r\n", 400),
        ("Upload-Defer-Length: 1\r\nUpload-Length: 5\r\nUpload-Metadata: path YS50eHQ=\r\n", 400),
        ("Upload-Length: -1\r\nUpload-Metadata: path YS50eHQ=\r\n", 400),
        ("Upload-Length: 5\r\nUpload-Metadata: path ?\r\n", 400),
        ("Upload-Length: 5\r\nUpload-Metadata: other YS50eHQ=\r\n", 400),
        ("Upload-Length: 5\r\nUpload-Metadata: path\r\n", 400),
        ("Upload-Length: 5\r\nUpload-Metadata: path Li4veA==\r\n", 400),
        ("Upload-Length: 5\r\nUpload-Metadata: path Zm9sZGVyLw==\r\n", 400),
        ("Upload-Concat: partial\r\n", 400),
        ("Upload-Length: 5\r\nUpload-Concat: half\r\n", 400),
        ("Upload-Concat: final;/uploads/x\r\n", 400),
        ("Upload-Concat: final;/uploads/x\r\nUpload-Metadata: path YS50eHQ=\r\n", 404),
        ("Upload-Length: 99999999999999\r\nUpload-Metadata: path YS50eHQ=\r\n", 413),
        ("Upload-Length: 5\r\nUpload-Metadata: path bm8vd2hlcmU=\r\n", 409),
    ] {
        let answer = alice.ask("POST", "/uploads", &format!("{VERSION}{fields}"), "").await;
        assert!(!answer.problem(status).is_empty(), "{fields}");
        assert_eq!(answer.field("Tus-Resumable"), Some("1.0.0"));
    }
    let with_bytes = format!("{VERSION}Upload-Length: 5\r\n{PATH}");
    alice.ask("POST", "/uploads", &with_bytes, "hello").await.problem(415);
    let named = create(&mut alice, 5, "Upload-Metadata: filename bmFtZWQudHh0, filetype dGV4dA==\r\n").await;
    assert_eq!(named.status, 201);
    assert_eq!(append(&mut alice, named.field("Location").unwrap(), 0, "hello").await.status, 204);
    assert_eq!(alice.get("/files/named.txt").await.text(), "hello");
    assert!(scene.pending("alice").is_empty());
}

async fn a_part_goes_where_the_upload_stands(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    let at = created(&mut alice, 10).await;
    append(&mut alice, &at, 0, "hello").await;
    for wrong in [0, 4, 6, 10, 11] {
        let answer = append(&mut alice, &at, wrong, "world").await;
        assert!(!answer.problem(409).is_empty());
        assert_eq!(answer.field("Upload-Offset"), Some("5"));
    }
    append(&mut alice, &at, 5, "world and more").await.problem(413);
    let no_type = format!("{VERSION}Upload-Offset: 5\r\n");
    alice.ask("PATCH", &at, &no_type, "world").await.problem(415);
    let no_offset = format!("{VERSION}Content-Type: application/offset+octet-stream\r\n");
    alice.ask("PATCH", &at, &no_offset, "world").await.problem(400);
    let stands = offset(&mut alice, &at).await.expect("it is still there");
    assert!((5..=10).contains(&stands), "{stands}");
    scene.until(|| scene.pending("alice").len() == 2).await;
}

async fn a_part_with_a_checksum_counts_only_if_that_is_right(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    let at = created(&mut alice, 5).await;
    for (fields, status) in [
        ("Upload-Checksum: sha1 qvTGHdzF6KLavt4PO0gs2a6pQ00=\r\n", 460),
        ("Upload-Checksum: sha256 LPJNul+wow4m6DsqxbninhsWHlwfp0JecwQzYpOLmCQ=\r\n", 460),
        ("Upload-Checksum: md5 XUFAKrxLKna5cZ2REBfFkg==\r\n", 460),
        ("Upload-Checksum: crc32 AAAA\r\n", 400),
        ("Upload-Checksum: sha1 ?\r\n", 400),
        ("Content-MD5: XUFAKrxLKna5cZ2REBfFkg==\r\n", 422),
    ] {
        let answer = alice.ask("PATCH", &at, &part(0, fields), "hel").await;
        assert!(!answer.problem(status).is_empty(), "{fields}");
        assert_eq!(offset(&mut alice, &at).await, Some(0), "{fields}");
    }
    let right = part(0, "Upload-Checksum: sha1 Nhez1m04BJZkKINmzi75+Ll0eIM=\r\n");
    assert_eq!(alice.ask("PATCH", &at, &right, "hel").await.status, 204);
    let right = part(3, "Upload-Checksum: md5 fOhjbAdvX0IxZnb3ylzPvg==\r\n");
    assert_eq!(alice.ask("PATCH", &at, &right, "lo").await.status, 204);
    assert_eq!(alice.get("/files/a.txt").await.text(), "hello");
}

async fn the_digest_of_the_whole_is_checked_with_the_last_part(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    let whole = "Repr-Digest: sha-256=:LPJNul+wow4m6DsqxbninhsWHlwfp0JecwQzYpOLmCQ=:\r\n";
    for (bytes, status, stands) in [("jello", 422, None), ("hello", 204, Some(5))] {
        let at = created(&mut alice, 5).await;
        append(&mut alice, &at, 0, &bytes[..3]).await;
        let last = alice.ask("PATCH", &at, &part(3, whole), &bytes[3..]).await;
        assert_eq!(last.status, status, "{}", last.text());
        assert_eq!(offset(&mut alice, &at).await, stands);
        scene.until(|| scene.pending("alice").is_empty()).await;
    }
    assert_eq!(alice.get("/files/a.txt").await.text(), "hello");
}

async fn bytes_received_before_a_reset_are_kept(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    let bytes = noise(5, if scene.engine == Engine::Simulator { 60_000 } else { 1_500_000 });
    let sent = bytes.len() / 3 * 2;
    let at = created(&mut alice, bytes.len()).await;
    let before = scene.accounts().lines().len();
    let (mut client, requests) = (scene.connect().await, scene.begun());
    let head = format!("PATCH {at} HTTP/1.1\r\nHost: test\r\n{}{}", alice.field(), part(0, ""));
    let head = format!("{head}Content-Length: {}\r\n\r\n", bytes.len());
    client.push([head.as_bytes(), &bytes[..sent]].concat());
    scene.until(|| scene.begun() > requests).await;
    drop(client);
    scene.until(|| scene.accounts().lines().len() > before).await;
    // The server may still be writing the bytes of the broken connection: then it answers that the upload
    // is in use, and the client retries.
    let mut stands = offset(&mut alice, &at).await.expect("it is still there");
    assert!(stands <= sent, "{stands}");
    let last = loop {
        let answer = append(&mut alice, &at, stands, &bytes[stands..]).await;
        match answer.status {
            204 => break answer,
            409 | 423 => scene.io.sleep(Duration::from_millis(5)).await,
            other => panic!("{other}: {}", answer.text()),
        }
        stands = offset(&mut alice, &at).await.expect("it is still there");
    };
    assert_eq!(last.field("Upload-Offset"), Some(&*bytes.len().to_string()));
    assert!(alice.get("/files/a.txt").await.body == bytes);
    assert!(scene.pending("alice").is_empty());
}

async fn received_bytes_of_a_part_are_recorded_while_the_rest_is_awaited(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    let at = created(&mut alice, 5_000).await;
    let mut sender = Person::again(&scene, "alice").await;
    let fields = format!("{}{}Content-Length: 5000\r\n", part(0, ""), sender.field());
    sender.client.push(format!("PATCH {at} HTTP/1.1\r\nHost: test\r\n{fields}\r\n"));
    for come in [1_000, 2_000] {
        sender.client.push([b'x'; 1_000]);
        // Listings report the recorded offset, and do not trigger a record.
        while alice.get("/uploads").await.json()["uploads"][0]["offset"] != come {
            scene.io.sleep(Duration::from_millis(50)).await;
        }
    }
    sender.client.push([b'x'; 3_000]);
    assert_eq!(sender.client.answer().await.status, 204);
    assert_eq!(alice.get("/files/a.txt").await.body, [b'x'; 5_000]);
    assert!(scene.pending("alice").is_empty());
}

async fn a_client_that_lost_the_last_response_learns_that_the_upload_is_complete(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    let mut bob = Person::new(&scene, "bob").await;
    let at = created(&mut alice, 5).await;
    append(&mut alice, &at, 0, "hel").await;
    let (mut client, before) = (scene.connect().await, scene.accounts().lines().len());
    let whole = "Repr-Digest: sha-256=:LPJNul+wow4m6DsqxbninhsWHlwfp0JecwQzYpOLmCQ=:\r\n";
    let head = format!("PATCH {at} HTTP/1.1\r\nHost: test\r\n{}{}", alice.field(), part(3, whole));
    client.push(format!("{head}Content-Length: 2\r\n\r\nlo"));
    scene.until(|| scene.accounts().lines().len() > before).await;
    drop(client);
    let head = alice.ask("HEAD", &at, VERSION, "").await;
    let response =
        ["Upload-Offset", "Upload-Length", "Upload-Metadata", "Upload-Expires"].map(|name| head.field(name));
    assert_eq!((head.status, response), (200, [Some("5"), Some("5"), Some("path YS50eHQ="), None]));
    // An empty PATCH at the end gets the same answer. It can add nothing.
    for fields in ["", whole] {
        let again = alice.ask("PATCH", &at, &part(5, fields), "").await;
        assert_eq!((again.status, again.field("Upload-Offset")), (204, Some("5")));
    }
    let other = "Repr-Digest: sha-256=:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=:\r\n";
    for (from, fields, more) in [(5, other, ""), (5, "", "x"), (3, "", "lo"), (4, "", "")] {
        alice.ask("PATCH", &at, &part(from, fields), more).await.problem(404);
    }
    alice.ask("DELETE", &at, VERSION, "").await.problem(404);
    assert_eq!(bob.ask("HEAD", &at, VERSION, "").await.status, 404);
    bob.ask("PATCH", &at, &part(5, ""), "").await.problem(404);
    assert_eq!(alice.get("/uploads").await.json(), json!({ "uploads": [] }));
    assert_eq!(alice.get("/files/a.txt").await.text(), "hello");
}

async fn a_few_complete_uploads_of_each_account_are_remembered(scene: Scene) {
    let mut bob = Person::new(&scene, "bob").await;
    let his = created(&mut bob, 0).await;
    let mut alice = Person::new(&scene, "alice").await;
    let mut at = Vec::new();
    for _ in 0..=FINISHED_PER_HOME_MAX {
        at.push(created(&mut alice, 0).await);
    }
    assert_eq!(offset(&mut alice, &at[0]).await, None);
    for remembered in &at[1..] {
        assert_eq!(offset(&mut alice, remembered).await, Some(0));
    }
    assert_eq!(offset(&mut bob, &his).await, Some(0));
}

async fn an_upload_is_there_for_its_owner_alone(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    let mut bob = Person::new(&scene, "bob").await;
    let at = created(&mut alice, 5).await;
    append(&mut alice, &at, 0, "hel").await;
    assert_eq!(bob.ask("HEAD", &at, VERSION, "").await.status, 404);
    append(&mut bob, &at, 3, "p!").await.problem(404);
    bob.ask("DELETE", &at, VERSION, "").await.problem(404);
    assert_eq!(bob.get("/uploads").await.json(), json!({ "uploads": [] }));
    for odd in ["/uploads/x", "/uploads/../files", "/uploads/a/b"] {
        let answer = alice.ask("HEAD", odd, VERSION, "").await;
        assert!(matches!(answer.status, 400 | 404), "{odd}");
    }
    assert_eq!(alice.client.ask("HEAD", &at, VERSION, "").await.status, 401);
    assert_eq!(offset(&mut alice, &at).await, Some(3));
}

async fn pending_uploads_are_listed_and_can_be_thrown_away(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    assert_eq!(alice.get("/uploads").await.json(), json!({ "uploads": [] }));
    let at = created(&mut alice, 5).await;
    append(&mut alice, &at, 0, "hel").await;
    let listed = alice.get("/uploads").await;
    assert_eq!((listed.status, listed.field("Cache-Control")), (200, Some("no-store")));
    let upload = &listed.json()["uploads"][0];
    assert_eq!(
        (&upload["path"], &upload["length"], &upload["offset"]),
        (&json!("/a.txt"), &json!(5), &json!(3))
    );
    assert_eq!((upload["url"].as_str(), upload["id"].as_str()), (Some(&*at), at.strip_prefix("/uploads/")));
    assert!(upload["expires"].as_str() > upload["created"].as_str());
    assert_eq!(alice.ask("DELETE", &at, VERSION, "").await.status, 204);
    assert_eq!(offset(&mut alice, &at).await, None);
    alice.ask("DELETE", &at, VERSION, "").await.problem(404);
    assert_eq!(alice.get("/uploads").await.json(), json!({ "uploads": [] }));
    assert!(scene.pending("alice").is_empty() && scene.home("alice").is_empty());
}

async fn a_client_without_patch_says_it_with_post(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    let at = created(&mut alice, 5).await;
    let patch = part(0, "X-HTTP-Method-Override: PATCH\r\n");
    assert_eq!(alice.ask("POST", &at, &patch, "hel").await.status, 204);
    assert_eq!(offset(&mut alice, &at).await, Some(3));
    let delete = format!("{VERSION}X-HTTP-Method-Override: DELETE\r\n");
    assert_eq!(alice.ask("POST", &at, &delete, "").await.status, 204);
    // The field has no effect on other resources.
    alice.put("/files/a", "x").await;
    alice.ask("POST", "/files/a", "X-HTTP-Method-Override: DELETE\r\n", "").await.problem(405);
    assert_eq!(alice.get("/files/a").await.status, 200);
}

async fn conditions_and_the_folder_are_weighed_at_the_start(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    alice.put("/files/a.txt", "old").await;
    let fields = format!("{PATH}If-None-Match: *\r\n");
    assert!(!create(&mut alice, 5, &fields).await.problem(412).is_empty());
    let at = created(&mut alice, 5).await;
    assert_eq!(append(&mut alice, &at, 0, "newer").await.status, 204);
    assert_eq!(alice.get("/files/a.txt").await.text(), "newer");
}

async fn conditions_are_weighed_again_when_the_file_is_complete(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    let fields = format!("{PATH}If-None-Match: *\r\n");
    let mut at = Vec::new();
    for _ in 0..2 {
        let answer = create(&mut alice, 5, &fields).await;
        at.push(answer.field("Location").expect("nothing is there yet").to_owned());
    }
    assert_eq!(append(&mut alice, &at[0], 0, "first").await.status, 204);
    append(&mut alice, &at[1], 0, "other").await.problem(412);
    assert_eq!(alice.get("/files/a.txt").await.text(), "first");
}

behaviours!(scenario and remote and tls;
    a_file_comes_in_parts,
    an_empty_file_is_complete_at_once,
    an_upload_can_be_created_with_its_first_bytes,
    a_file_is_made_of_partial_uploads,
    parts_are_no_longer_listed_after_a_join_whose_client_has_gone,
    metadata_is_reported_as_it_was_sent,
    a_file_in_parts_is_stored_whatever_its_time_is,
    a_media_type_may_have_parameters_and_any_case,
    the_length_may_come_with_a_later_part,
    a_length_at_the_end_completes_the_upload,
    the_extensions_are_listed_to_any_client,
    another_version_is_refused_with_ours,
    an_upload_is_announced_with_its_length_and_path,
    a_part_goes_where_the_upload_stands,
    a_part_with_a_checksum_counts_only_if_that_is_right,
    the_digest_of_the_whole_is_checked_with_the_last_part,
    bytes_received_before_a_reset_are_kept,
    received_bytes_of_a_part_are_recorded_while_the_rest_is_awaited,
    a_client_that_lost_the_last_response_learns_that_the_upload_is_complete,
    a_few_complete_uploads_of_each_account_are_remembered,
    an_upload_is_there_for_its_owner_alone,
    pending_uploads_are_listed_and_can_be_thrown_away,
    a_client_without_patch_says_it_with_post,
    conditions_and_the_folder_are_weighed_at_the_start,
    conditions_are_weighed_again_when_the_file_is_complete,
);

/// In the simulator alone: the time is too long for a real clock.
#[test]
fn an_upload_that_is_not_resumed_expires() {
    under(Engine::Simulator, scenario, |scene| async move {
        let mut alice = Person::new(&scene, "alice").await;
        let at = created(&mut alice, 5).await;
        append(&mut alice, &at, 0, "hel").await;
        scene.io.sleep(UPLOAD_KEPT_TIME - Duration::from_secs(10)).await;
        let mut alice = Person::again(&scene, "alice").await;
        assert_eq!(offset(&mut alice, &at).await, Some(3));
        scene.io.sleep(Duration::from_secs(20)).await;
        assert_eq!(offset(&mut alice, &at).await, None);
        append(&mut alice, &at, 3, "lo").await.problem(404);
        assert_eq!(alice.get("/uploads").await.json(), json!({ "uploads": [] }));
    });
}

#[test]
fn a_complete_upload_is_forgotten_in_the_end() {
    under(Engine::Simulator, scenario, |scene| async move {
        let mut alice = Person::new(&scene, "alice").await;
        let at = created(&mut alice, 0).await;
        scene.io.sleep(FINISHED_TIME - Duration::from_secs(60)).await;
        let mut alice = Person::again(&scene, "alice").await;
        assert_eq!(offset(&mut alice, &at).await, Some(0));
        scene.io.sleep(Duration::from_secs(60)).await;
        let mut alice = Person::again(&scene, "alice").await;
        assert_eq!(offset(&mut alice, &at).await, None);
    });
}
