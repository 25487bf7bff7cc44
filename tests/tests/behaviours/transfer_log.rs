//! The transfer log, the xferlog and the metrics of HTTP: one record for each file received or sent.

use plimsoll_tests::accounts::settings;
use plimsoll_tests::{AS_OPERATOR, Person, Scenario, Scene, behaviours};
use serde_json::Value;

fn scenario() -> Scenario {
    Scenario { accounts: Some(settings()), ..Scenario::default() }
}

const PART: &str = "Tus-Resumable: 1.0.0\r\nContent-Type: application/offset+octet-stream\r\n";

/// Creates an upload by tus, of `a.txt` or with other fields, and returns its location.
async fn created(person: &mut Person, length: usize, fields: &str) -> String {
    let fields = format!("Tus-Resumable: 1.0.0\r\nUpload-Length: {length}\r\n{fields}");
    let answer = person.ask("POST", "/uploads", &fields, "").await;
    assert_eq!(answer.status, 201, "{}", answer.text());
    answer.field("Location").expect("a location").to_owned()
}

/// `a.txt`
const PATH: &str = "Upload-Metadata: path YS50eHQ=\r\n";

async fn append(person: &mut Person, at: &str, offset: usize, bytes: &str) {
    let answer = person.ask("PATCH", at, &format!("{PART}Upload-Offset: {offset}\r\n"), bytes).await;
    assert_eq!(answer.status, 204, "{}", answer.text());
}

/// Sends the first bytes of a request's body of 100 bytes, and ends the connection when the server has them.
async fn interrupt(scene: &Scene, person: &Person, line: &str, fields: &str, bytes: &str) {
    let (mut client, lines) = (scene.connect().await, scene.accounts().lines().len());
    let requests = scene.begun();
    let fields = format!("Host: test\r\n{}{fields}Content-Length: 100\r\n", person.field());
    client.push(format!("{line} HTTP/1.1\r\n{fields}\r\n{bytes}"));
    scene.until(|| scene.begun() > requests).await;
    drop(client);
    scene.until(|| scene.accounts().lines().len() > lines).await;
}

/// Returns operation, path, bytes and result of each line behind the first `before`.
fn results_since(scene: &Scene, before: usize) -> Vec<String> {
    let text = |line: &Value| {
        let [operation, path, result] =
            ["operation", "path", "result"].map(|name| line[name].as_str().unwrap().to_owned());
        format!("{operation} {path} {} {result}", line["bytes"])
    };
    scene.accounts().lines()[before..].iter().map(text).collect()
}

/// Returns the metrics of operations whose names begin so.
async fn metrics(person: &mut Person, name: &str) -> Vec<String> {
    let text = person.client.get_with("/metrics", AS_OPERATOR).await.text();
    text.lines().filter(|line| line.starts_with(name)).map(str::to_owned).collect()
}

fn micros(scene: &Scene) -> u64 {
    let now = scene.io.wall_exact().duration_since(std::time::UNIX_EPOCH).unwrap();
    u64::try_from(now.as_micros()).unwrap()
}

async fn an_upload_in_parts_has_one_line_with_the_whole_file_from_its_start_on(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    let (before, begin) = (scene.accounts().lines().len(), micros(&scene));
    let at = created(&mut alice, 9, PATH).await;
    let created = micros(&scene);
    append(&mut alice, &at, 0, "one ").await;
    append(&mut alice, &at, 4, "two").await;
    scene.io.sleep(std::time::Duration::from_millis(20)).await;
    let middle = micros(&scene);
    append(&mut alice, &at, 7, " 3").await;
    assert_eq!(results_since(&scene, before), ["upload /a.txt 9 ok"]);
    let line = scene.accounts().lines().pop().unwrap();
    let [start, end] = ["start", "end"].map(|name| line[name].as_u64().unwrap());
    assert!((begin..=created).contains(&start) && end >= middle, "{begin} {created} {middle} {line}");
    let xferlog = scene.accounts().xferlog.text();
    assert_eq!(xferlog.lines().count(), 1, "{xferlog}");
    assert!(xferlog.ends_with(" 9 /a.txt b _ i r alice http 0 * c\n"), "{xferlog}");
    let upload = "{protocol=\"http\",operation=\"upload\"}";
    for (name, value) in [("duration_seconds_count", 1), ("bytes_total", 9), ("failures_total", 0)] {
        let wanted = format!("plimsoll_operation_{name}{upload} {value}");
        let metrics = metrics(&mut alice, "plimsoll_operation_").await;
        assert!(metrics.contains(&wanted), "{wanted}: {metrics:?}");
    }
}

async fn a_file_joined_from_parts_has_one_line(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    let before = scene.accounts().lines().len();
    let mut parts = Vec::new();
    for bytes in ["one ", "two 3"] {
        let at = created(&mut alice, bytes.len(), "Upload-Concat: partial\r\n").await;
        append(&mut alice, &at, 0, bytes).await;
        parts.push(at);
    }
    let join = format!("Tus-Resumable: 1.0.0\r\nUpload-Concat: final;{}\r\n{PATH}", parts.join(" "));
    assert_eq!(alice.ask("POST", "/uploads", &join, "").await.status, 201);
    assert_eq!(results_since(&scene, before), ["upload /a.txt 9 ok"]);
}

async fn an_interrupted_part_has_a_line_of_its_own(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    let at = created(&mut alice, 104, PATH).await;
    append(&mut alice, &at, 0, "one ").await;
    let before = scene.accounts().lines().len();
    let fields = format!("{PART}Upload-Offset: 4\r\n");
    interrupt(&scene, &alice, &format!("PATCH {at}"), &fields, "two").await;
    let first = results_since(&scene, before);
    // The server may have lost the last bytes of a connection that was reset.
    assert!(first.len() == 1 && first[0].ends_with(" broken off"), "{first:?}");
    // The upload is in use until the bytes of the broken connection are written.
    let offset = loop {
        let head = alice.ask("HEAD", &at, "Tus-Resumable: 1.0.0\r\n", "").await;
        match head.field("Upload-Offset") {
            Some(offset) => break offset.parse::<usize>().unwrap(),
            None => scene.io.sleep(std::time::Duration::from_millis(5)).await,
        }
    };
    append(&mut alice, &at, offset, &"x".repeat(104 - offset)).await;
    assert_eq!(results_since(&scene, before)[1..], ["upload /a.txt 104 ok"]);
}

async fn each_form_of_upload_has_one_line(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    let before = scene.accounts().lines().len();
    alice.put("/files/put", "hello").await;
    let at = created(&mut alice, 5, PATH).await;
    append(&mut alice, &at, 0, "hel").await;
    // The rest of an upload in parts, as `curl -C 3 -T` sends it.
    assert_eq!(alice.ask("PUT", "/files/a.txt", "Content-Range: bytes 3-4/5\r\n", "lo").await.status, 201);
    let whole = alice.ask("PUT", "/files/b", "Content-Range: bytes 0-4/5\r\n", "hello").await;
    assert_eq!(whole.status, 201, "{}", whole.text());
    let file = |name: &str, bytes: &str| {
        format!("--X\r\nContent-Disposition: form-data; name=f; filename={name}\r\n\r\n{bytes}\r\n")
    };
    let form = format!("{}{}--X--\r\n", file("c", "one"), file("d", "four"));
    let fields = "Content-Type: multipart/form-data; boundary=X\r\n";
    assert_eq!(alice.ask("POST", "/files/", fields, form).await.status, 201);
    assert_eq!(alice.ask("COPY", "/files/c", "Destination: /files/e\r\n", "").await.status, 201);
    let created = "Tus-Resumable: 1.0.0\r\nUpload-Length: 2\r\nUpload-Metadata: path Zg==\r\n\
                   Content-Type: application/offset+octet-stream\r\n";
    assert_eq!(alice.ask("POST", "/uploads", created, "hi").await.status, 201);
    let wanted = [
        "upload /put 5 ok",
        "upload /a.txt 5 ok",
        "upload /b 5 ok",
        "upload /c 3 ok",
        "upload /d 4 ok",
        "copy /c 3 ok",
        "upload /f 2 ok",
    ];
    assert_eq!(results_since(&scene, before), wanted);
}

async fn a_response_without_contents_is_no_transfer(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    alice.put("/files/a", "0123456789").await;
    let tag = alice.get("/files/a").await.field("ETag").unwrap().to_owned();
    let listing = alice.get("/files/").await.field("ETag").map(str::to_owned);
    scene.until(|| results_since(&scene, 0).last().is_some_and(|line| line.starts_with("list"))).await;
    let before = scene.accounts().lines().len();
    let counted = metrics(&mut alice, "plimsoll_operation_").await;
    let unchanged = |tag: &str| format!("If-None-Match: {tag}\r\n");
    // Twice, because the second is served from caches.
    for _ in 0..2 {
        for (target, fields, status) in [
            ("/files/a", "", 200),
            ("/files/a", "Want-Repr-Digest: sha-256=1\r\n", 200),
            ("/files/a", &*unchanged(&tag), 304),
            ("/files/", "", 200),
            ("/files/none", "", 404),
        ] {
            assert_eq!(alice.ask("HEAD", target, fields, "").await.status, status, "{target} {fields}");
        }
        assert_eq!(alice.ask("GET", "/files/a", &unchanged(&tag), "").await.status, 304);
        if let Some(listing) = &listing {
            assert_eq!(alice.ask("GET", "/files/", &unchanged(listing), "").await.status, 304);
        }
    }
    assert_eq!(metrics(&mut alice, "plimsoll_operation_").await, counted);
    assert_eq!(results_since(&scene, before), [""; 0]);
}

behaviours!(scenario and remote and tls;
    an_upload_in_parts_has_one_line_with_the_whole_file_from_its_start_on,
    a_file_joined_from_parts_has_one_line,
    an_interrupted_part_has_a_line_of_its_own,
    each_form_of_upload_has_one_line,
    a_response_without_contents_is_no_transfer,
);
