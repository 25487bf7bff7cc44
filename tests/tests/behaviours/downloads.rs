//! Downloads and listings of accounts' files: as those of sites, but private, and harmless in a browser.

use plimsoll_tests::accounts::settings;
use plimsoll_tests::tree::noise;
use plimsoll_tests::{Answer, Engine, Person, Scenario, Scene, behaviours};

fn scenario() -> Scenario {
    Scenario { accounts: Some(settings()), ..Scenario::default() }
}

const BROWSER: &str = "Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8\r\n";

fn lasting(answer: &Answer) -> Vec<&(String, String)> {
    answer.fields.iter().filter(|(name, _)| name != "Date").collect()
}

fn names(answer: &Answer) -> Vec<String> {
    assert_eq!(answer.status, 200, "{}", answer.text());
    let entries = answer.json()["entries"].as_array().expect("entries").clone();
    entries.iter().map(|entry| entry["name"].as_str().unwrap().to_owned()).collect()
}

async fn a_file_is_described_by_its_fields(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    alice.put("/files/page.html", "<script>alert(1)</script>").await;
    let got = alice.get("/files/page.html").await;
    assert_eq!((got.status, &*got.text()), (200, "<script>alert(1)</script>"));
    assert_eq!(got.field("Content-Type"), Some("text/html; charset=utf-8"));
    assert_eq!(got.field("X-Content-Type-Options"), Some("nosniff"));
    assert_eq!(got.field("Cache-Control"), Some("private, no-cache"));
    assert_eq!(got.field("Vary"), Some("Authorization, Cookie"));
    assert_eq!(got.field("Accept-Ranges"), Some("bytes"));
    let policy = got.field("Content-Security-Policy").expect("a policy");
    assert!(policy.contains("sandbox;") && policy.contains("default-src 'none'"), "{policy}");
    assert!(policy.contains("frame-ancestors 'self'"), "{policy}");
    assert_eq!(got.field("Cross-Origin-Resource-Policy"), Some("same-origin"));
    let head = alice.ask("HEAD", "/files/page.html", "", "").await;
    assert_eq!((head.status, lasting(&head)), (got.status, lasting(&got)));
}

async fn a_file_is_displayed_only_if_its_kind_is_safe(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    for (name, is_download, is_sandboxed) in [
        ("a.html", true, true),
        ("a.SVG", true, true),
        ("a.xml", true, true),
        ("a.js", true, true),
        ("a", true, true),
        ("a.png", false, true),
        ("a.txt", false, true),
        ("a.md", false, true),
        ("a.pdf", false, false),
    ] {
        let target = format!("/files/{name}");
        alice.put(&target, "<svg onload=alert(1)>").await;
        let got = alice.get(&target).await;
        assert_eq!(got.field("Content-Disposition") == Some("attachment"), is_download, "{name}");
        let policy = got.field("Content-Security-Policy").expect("a policy");
        assert_eq!(policy.contains("sandbox"), is_sandboxed, "{name}: {policy}");
        assert!(policy.contains("frame-ancestors 'self'"), "{name}: {policy}");
    }
}

async fn ranges_and_conditions_are_those_of_sites(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    alice.put("/files/a", "0123456789").await;
    let tag = alice.get("/files/a").await.field("ETag").unwrap().to_owned();
    let part = alice.ask("GET", "/files/a", "Range: bytes=2-4\r\n", "").await;
    assert_eq!((part.status, &*part.text(), part.field("Content-Range")), (206, "234", Some("bytes 2-4/10")));
    let resumed = alice.ask("GET", "/files/a", &format!("Range: bytes=8-\r\nIf-Range: {tag}\r\n"), "").await;
    assert_eq!((resumed.status, &*resumed.text()), (206, "89"));
    let changed = alice.ask("GET", "/files/a", "Range: bytes=8-\r\nIf-Range: \"other\"\r\n", "").await;
    assert_eq!((changed.status, &*changed.text()), (200, "0123456789"));
    alice.ask("GET", "/files/a", "Range: bytes=10-\r\n", "").await.problem(416);
    let known = alice.ask("GET", "/files/a", &format!("If-None-Match: {tag}\r\n"), "").await;
    assert_eq!((known.status, known.field("ETag")), (304, Some(&*tag)));
    assert_eq!(known.field("Cache-Control"), Some("private, no-cache"));
    alice.ask("GET", "/files/a", "If-Match: \"other\"\r\n", "").await.problem(412);
}

async fn every_name_is_what_it_is(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    for name in [".hidden", "index.html", "a.txt", "a.txt.gz", "404.html"] {
        alice.put(&format!("/files/{name}"), name).await;
    }
    assert_eq!(alice.get("/files/.hidden").await.text(), ".hidden");
    let plain = alice.ask("GET", "/files/a.txt", "Accept-Encoding: gzip\r\n", "").await;
    assert_eq!((&*plain.text(), plain.field("Content-Encoding")), ("a.txt", None));
    let listed = names(&alice.get("/files/?format=json").await);
    assert_eq!(listed.len(), 5);
    assert!(listed.contains(&".hidden".to_owned()));
    let missing = alice.ask("GET", "/files/missing", BROWSER, "").await;
    assert!(missing.status == 404 && !missing.text().starts_with("404.html"));
}

async fn a_folder_is_listed_as_json_or_as_a_page(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    let empty = alice.get("/files/?format=json").await;
    assert_eq!((names(&empty).len(), &empty.json()["path"]), (0, &"/".into()));
    assert_eq!(empty.field("Cache-Control"), Some("private, no-cache"));
    alice.ask("MKCOL", "/files/docs", "", "").await;
    alice.ask("MKCOL", "/files/docs/deep", "", "").await;
    let put = alice.put("/files/docs/a%20b", "12345").await;
    let listed = alice.get("/files/docs/?format=json").await;
    assert_eq!(
        (names(&listed), &listed.json()["path"]),
        (vec!["deep".to_owned(), "a b".to_owned()], &"/docs/".into())
    );
    let file = listed.json()["entries"][1].clone();
    assert_eq!((&file["kind"], &file["size"], &file["href"]), (&"file".into(), &5.into(), &"a%20b".into()));
    assert_eq!(file["etag"].as_str(), put.field("ETag"));
    let page = alice.ask("GET", "/files/docs/", BROWSER, "").await;
    assert_eq!((page.status, page.field("Content-Type")), (200, Some("text/html; charset=utf-8")));
    assert!(page.text().contains("href=\"a%20b\"") && page.text().contains("docs"));
    assert!(page.field("Content-Security-Policy").expect("a policy").contains("default-src 'none'"));
}

async fn a_folder_without_its_slash_leads_to_the_one_with_it(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    alice.ask("MKCOL", "/files/docs", "", "").await;
    for (target, location) in
        [("/files", "/files/"), ("/files/docs?sort=size", "/files/docs/?sort=size"), ("/shared", "/shared/")]
    {
        let answer = alice.get(target).await;
        assert_eq!((answer.status, answer.field("Location")), (301, Some(location)));
    }
    alice.put("/files/a", "x").await;
    alice.get("/files/a/?format=json").await.problem(404);
}

async fn a_digest_is_sent_on_request(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    alice.put("/files/a", "hello").await;
    let digest = "sha-256=:LPJNul+wow4m6DsqxbninhsWHlwfp0JecwQzYpOLmCQ=:";
    let wanted = "Want-Repr-Digest: sha-256=1\r\n";
    for (method, fields) in [("GET", ""), ("HEAD", ""), ("GET", "Range: bytes=0-1\r\n")] {
        let answer = alice.ask(method, "/files/a", &format!("{wanted}{fields}"), "").await;
        assert_eq!(answer.field("Repr-Digest"), Some(digest), "{method} {fields}");
        assert_eq!(alice.ask(method, "/files/a", fields, "").await.field("Repr-Digest"), None);
    }
    let unwanted = alice.ask("GET", "/files/a", "Want-Repr-Digest: sha-256=0\r\n", "").await;
    assert_eq!(unwanted.field("Repr-Digest"), None);
}

async fn a_file_of_another_account_looks_missing(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    let mut bob = Person::new(&scene, "bob").await;
    alice.put("/files/secret", "hers").await;
    bob.get("/files/secret").await.problem(404);
    let there = bob.get("/shared/alice/secret").await;
    let expected = (there.status, there.text());
    assert_eq!(expected.0, 404);
    for target in [
        "/shared/alice/missing",
        "/shared/nobody/secret",
        "/shared/a%20b/x",
        "/shared/alice/",
        "/shared/alice",
    ] {
        let answer = bob.get(target).await;
        assert_eq!((answer.status, answer.text()), expected, "{target}");
    }
    for method in ["PUT", "DELETE", "MKCOL"] {
        bob.ask(method, "/shared/alice/secret", "", "").await.problem(404);
    }
    let to = "Destination: /files/mine\r\n";
    for method in ["MOVE", "COPY"] {
        bob.ask(method, "/shared/alice/secret", to, "").await.problem(404);
    }
    assert_eq!(alice.get("/shared/alice/secret").await.text(), "hers");
    assert!(scene.home("bob").is_empty());
}

async fn a_link_out_of_the_home_leads_nowhere(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    let mut bob = Person::new(&scene, "bob").await;
    alice.put("/files/a", "hers").await;
    bob.put("/files/b", "his").await;
    scene.link_into_home("bob", "out", "../../alice/files");
    scene.link_into_home("bob", "absolute", &scene.home_folder("alice").display().to_string());
    scene.link_into_home("bob", "file", "../../alice/files/a");
    for target in ["/files/out/", "/files/out/a", "/files/absolute/", "/files/absolute/a", "/files/file"] {
        bob.get(target).await.problem(404);
    }
    for target in ["/files/out/a", "/files/out/new", "/files/absolute/a", "/files/absolute/new"] {
        assert!(matches!(bob.put(target, "his now").await.status, 404 | 409), "{target}");
        assert!(matches!(bob.delete(target).await.status, 404 | 409), "{target}");
        assert!(matches!(bob.ask("MKCOL", target, "", "").await.status, 404 | 405 | 409), "{target}");
    }
    assert_eq!(names(&bob.get("/files/?format=json").await), ["b"]);
    // The link itself is in bob's home: it is replaced, not followed.
    assert!(matches!(bob.put("/files/file", "his").await.status, 201 | 204));
    assert!(matches!(bob.delete("/files/out").await.status, 204));
    assert_eq!(scene.home("alice")["a"].as_deref(), Some(&b"hers"[..]));
    assert_eq!(scene.home("alice").len(), 1);
}

async fn the_audit_entry_of_a_download_says_how_much_was_sent(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    alice.put("/files/a", "0123456789").await;
    let before = scene.accounts().lines().len();
    alice.get("/files/a").await;
    alice.ask("GET", "/files/a", "Range: bytes=2-4\r\n", "").await;
    let several = alice.ask("GET", "/files/a", "Range: bytes=0-1,8-9\r\n", "").await;
    alice.get("/files/?format=json").await;
    alice.get("/files/missing").await;
    let wanted = [
        ("download", 10, "ok"),
        ("download", 3, "ok"),
        ("download", several.body.len(), "ok"),
        ("list", 0, "ok"),
        ("download", 0, "not found"),
    ];
    scene.until(|| scene.accounts().lines().len() >= before + wanted.len()).await;
    assert_eq!(scene.accounts().lines().len(), before + wanted.len());
    for (line, (operation, bytes, result)) in scene.accounts().lines()[before..].iter().zip(wanted) {
        assert_eq!((&line["operation"], &line["bytes"]), (&operation.into(), &bytes.into()), "{line}");
        assert_eq!(line["result"], result, "{line}");
    }
}

async fn an_aborted_download_is_logged_as_such(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    // More than all buffers between server and client hold.
    let size = if scene.engine == Engine::Simulator { 400_000 } else { 32 << 20 };
    alice.put("/files/a", "").await;
    scene.write_home("alice", "a", &noise(1, size));
    let before = scene.accounts().lines().len();
    let mut client = scene.connect().await;
    client.push(format!("GET /files/a HTTP/1.1\r\nHost: test\r\n{}\r\n", alice.field()));
    client.receive().await.expect("the start of an answer");
    drop(client);
    scene.until(|| scene.accounts().lines().len() > before).await;
    let line = scene.accounts().lines().pop().unwrap();
    assert_eq!((&line["operation"], &line["result"]), (&"download".into(), &"broken off".into()));
    assert!(line["bytes"].as_u64().unwrap() < size as u64, "{line}");
}

behaviours!(scenario and remote and tls;
    a_file_is_described_by_its_fields,
    a_file_is_displayed_only_if_its_kind_is_safe,
    ranges_and_conditions_are_those_of_sites,
    every_name_is_what_it_is,
    a_folder_is_listed_as_json_or_as_a_page,
    a_folder_without_its_slash_leads_to_the_one_with_it,
    a_digest_is_sent_on_request,
    a_file_of_another_account_looks_missing,
    a_link_out_of_the_home_leads_nowhere,
    the_audit_entry_of_a_download_says_how_much_was_sent,
    an_aborted_download_is_logged_as_such,
);
