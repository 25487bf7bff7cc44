//! Locks over WebDAV (RFC 4918, sections 6, 7, 9.10 and 10.4), and the changes that they exclude over every
//! protocol.

use std::time::Duration;

use plimsoll_auth::Permissions;
use plimsoll_auth::limits::LOCKS_MEETING_MAX;
use plimsoll_tests::accounts::settings;
use plimsoll_tests::{Answer, Person, Scenario, Scene, behaviours};
use serde_json::json;

fn scenario() -> Scenario {
    Scenario { accounts: Some(settings()), ..Scenario::default() }
}

/// Returns the body of a LOCK.
fn lockinfo(scope: &str) -> String {
    format!(
        "<?xml version=\"1.0\"?><lockinfo xmlns=\"DAV:\"><lockscope><{scope}/></lockscope>\
         <locktype><write/></locktype><owner>a &amp; b</owner></lockinfo>"
    )
}

async fn lock_with(person: &mut Person, target: &str, fields: &str, scope: &str) -> Answer {
    person.ask("LOCK", target, fields, lockinfo(scope)).await
}

/// Takes an exclusive lock, and returns its token.
async fn lock(person: &mut Person, target: &str, fields: &str) -> String {
    let answer = lock_with(person, target, fields, "exclusive").await;
    assert!([200, 201].contains(&answer.status), "{target}: {} {}", answer.status, answer.text());
    token(&answer)
}

fn token(answer: &Answer) -> String {
    let token = answer.field("Lock-Token").expect("a token");
    token.strip_prefix('<').and_then(|token| token.strip_suffix('>')).expect("a coded URL").to_owned()
}

/// Returns an If that submits a token.
fn submit(token: &str) -> String {
    format!("If: (<{token}>)\r\n")
}

async fn unlock(person: &mut Person, target: &str, token: &str) -> Answer {
    person.ask("UNLOCK", target, &format!("Lock-Token: <{token}>\r\n"), "").await
}

/// Returns the locks that a PROPFIND finds on a resource.
async fn discovered(person: &mut Person, target: &str) -> String {
    let body = "<propfind xmlns=\"DAV:\"><prop><lockdiscovery/></prop></propfind>";
    let found = person.ask("PROPFIND", target, "Depth: 0\r\n", body).await;
    assert_eq!(found.status, 207, "{}", found.text());
    let text = found.text();
    let start = text.find("<D:lockdiscovery>").expect("the property") + "<D:lockdiscovery>".len();
    text[start..text.find("</D:lockdiscovery>").expect("its end")].to_owned()
}

const ZERO: &str = "Depth: 0\r\n";

async fn a_lock_is_taken_found_refreshed_and_ended(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    alice.put("/files/a", "one").await;
    assert_eq!(discovered(&mut alice, "/files/a").await, "");
    let taken = lock_with(&mut alice, "/files/a", "Timeout: Second-100\r\n", "exclusive").await;
    assert_eq!(taken.status, 200, "{}", taken.text());
    let held = token(&taken);
    for part in [
        "<D:owner>a &amp; b</D:owner>",
        "Second-100<",
        "<D:depth>infinity</D:depth>",
        "/files/a</D:href>",
        &held,
    ] {
        assert!(taken.text().contains(part), "{part}: {}", taken.text());
    }
    assert!(discovered(&mut alice, "/files/a").await.contains(&held));
    let refused = lock_with(&mut alice, "/files/a", "", "exclusive").await;
    assert_eq!(refused.status, 423);
    let expected = "<D:no-conflicting-lock><D:href>/files/a</D:href></D:no-conflicting-lock>";
    assert!(refused.text().contains(expected), "{}", refused.text());
    let detail = alice.put("/files/a", "two").await.problem(423);
    assert!(detail.contains("alice has locked this"), "{detail}");
    alice.delete("/files/a").await.problem(423);
    let refreshed =
        alice.ask("LOCK", "/files/a", &format!("{}Timeout: Infinite\r\n", submit(&held)), "").await;
    assert_eq!((refreshed.status, refreshed.field("Lock-Token")), (200, None), "{}", refreshed.text());
    assert!(refreshed.text().contains("Second-3600<"), "{}", refreshed.text());
    assert_eq!(alice.ask("PUT", "/files/a", &submit(&held), "two").await.status, 204);
    assert_eq!(unlock(&mut alice, "/files/b", &held).await.status, 409);
    assert_eq!(unlock(&mut alice, "/files/a", &held).await.status, 204);
    assert_eq!(unlock(&mut alice, "/files/a", &held).await.status, 409);
    alice.ask("LOCK", "/files/a", &submit(&held), "").await.problem(412);
    alice.ask("LOCK", "/files/a", "", "").await.problem(400);
    assert_eq!(alice.put("/files/a", "three").await.status, 204);
    assert_eq!(discovered(&mut alice, "/files/a").await, "");
}

async fn a_lock_of_nothing_creates_an_empty_file(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    let taken = lock_with(&mut alice, "/files/new", ZERO, "exclusive").await;
    assert_eq!(taken.status, 201, "{}", taken.text());
    assert_eq!(scene.home("alice")["new"].as_deref(), Some(&b""[..]));
    alice.put("/files/new", "other").await.problem(423);
    assert_eq!(alice.ask("PUT", "/files/new", &submit(&token(&taken)), "mine").await.status, 204);
    assert_eq!(lock_with(&mut alice, "/files/none/new", ZERO, "exclusive").await.status, 409);
    assert_eq!(lock_with(&mut alice, "/files/none/", ZERO, "exclusive").await.status, 404);
    assert_eq!(lock_with(&mut alice, "/files/new", "Depth: 1\r\n", "exclusive").await.status, 400);
    // The lock of what could not be created is gone.
    alice.ask("MKCOL", "/files/none", "", "").await;
    assert_eq!(alice.put("/files/none/new", "").await.status, 201);
}

async fn a_deep_lock_of_a_folder_covers_everything_below_it(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    for folder in ["/files/d", "/files/d/e", "/files/other"] {
        assert_eq!(alice.ask("MKCOL", folder, "", "").await.status, 201);
    }
    alice.put("/files/d/e/f", "one").await;
    let held = lock(&mut alice, "/files/d/", "").await;
    assert!(discovered(&mut alice, "/files/d/e/f").await.contains(&held));
    for target in ["/files/d/e/f", "/files/d/e", "/files/d", "/files/d/e/f"] {
        alice.delete(target).await.problem(423);
    }
    alice.put("/files/d/e/g", "").await.problem(423);
    alice.ask("MKCOL", "/files/d/h", "", "").await.problem(423);
    alice.ask("MOVE", "/files/d/e", "Destination: /files/e\r\n", "").await.problem(423);
    alice.ask("MOVE", "/files/other", "Destination: /files/d/other\r\n", "").await.problem(423);
    alice.ask("COPY", "/files/other", "Destination: /files/d/other\r\n", "").await.problem(423);
    let copied = alice.ask("COPY", "/files/d", "Destination: /files/copy\r\n", "").await;
    assert_eq!(copied.status, 201);
    assert_eq!(alice.put("/files/copy/e/f", "free").await.status, 204);
    assert_eq!(lock_with(&mut alice, "/files/", ZERO, "exclusive").await.status, 200);
    let fields = format!("Destination: /files/d/i\r\n{}", submit(&held).replace("If: ", "If: </files/d> "));
    assert_eq!(alice.ask("MOVE", "/files/d/e/f", &fields, "").await.status, 201);
    assert_eq!(alice.ask("PUT", "/files/d/e/g", &submit(&held), "").await.status, 201);
    // Refreshed by way of a member.
    assert_eq!(alice.ask("LOCK", "/files/d/e/g", &submit(&held), "").await.status, 200);
}

async fn a_lock_of_a_folder_alone_protects_its_names(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    alice.ask("MKCOL", "/files/d", "", "").await;
    alice.put("/files/d/a", "one").await;
    let held = lock(&mut alice, "/files/d", ZERO).await;
    assert_eq!(alice.put("/files/d/a", "two").await.status, 204);
    alice.put("/files/d/b", "").await.problem(423);
    alice.delete("/files/d/a").await.problem(423);
    alice.ask("MKCOL", "/files/d/c", "", "").await.problem(423);
    alice.put("/files/d/new/folder/b?parents=true", "").await.problem(423);
    assert_eq!(alice.get("/files/d/new").await.status, 404);
    alice.delete("/files/d").await.problem(423);
    let tagged = format!("If: </files/d> (<{held}>)\r\n");
    assert_eq!(alice.ask("PUT", "/files/d/new/folder/b?parents=true", &tagged, "").await.status, 201);
    assert_eq!(alice.ask("PUT", "/files/d/b", &tagged, "").await.status, 201);
    let inner = lock(&mut alice, "/files/d/a", ZERO).await;
    let refused = alice.ask("DELETE", "/files/d", &submit(&held), "").await;
    let root = "<D:lock-token-submitted><D:href>/files/d/a</D:href>";
    assert_eq!(refused.status, 423);
    assert!(refused.text().contains(root), "{}", refused.text());
    let both = format!("If: </files/d> (<{held}>) </files/d/a> (<{inner}>)\r\n");
    assert_eq!(alice.ask("DELETE", "/files/d", &both, "").await.status, 204);
}

async fn shared_locks_exclude_exclusive_ones_and_changes_without_one_of_them(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    alice.put("/files/a", "one").await;
    let one = token(&lock_with(&mut alice, "/files/a", ZERO, "shared").await);
    let two = token(&lock_with(&mut alice, "/files/a", ZERO, "shared").await);
    assert_ne!(one, two);
    assert_eq!(lock_with(&mut alice, "/files/a", ZERO, "exclusive").await.status, 423);
    alice.put("/files/a", "two").await.problem(423);
    assert_eq!(alice.ask("PUT", "/files/a", &submit(&one), "two").await.status, 204);
    assert_eq!(unlock(&mut alice, "/files/a", &one).await.status, 204);
    assert_eq!(alice.ask("PUT", "/files/a", &submit(&two), "three").await.status, 204);
    assert_eq!(unlock(&mut alice, "/files/a", &two).await.status, 204);
    lock(&mut alice, "/files/a", ZERO).await;
}

async fn the_conditions_of_if_are_checked_before_a_change(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    alice.put("/files/a", "one").await;
    let held = lock(&mut alice, "/files/a", ZERO).await;
    let tag = alice.get("/files/a").await.field("ETag").expect("a tag").to_owned();
    let other = "urn:uuid:181d4fae-7d8c-11d0-a765-00a0c91e6bf2";
    let cases = [
        (format!("(<{held}> [{tag}])"), 204),
        (format!("(<{held}> [\"other\"])"), 412),
        ("(<DAV:no-lock>)".to_owned(), 412),
        ("(Not <DAV:no-lock>)".to_owned(), 423),
        (format!("(<{other}>) (Not <DAV:no-lock>)"), 423),
        (format!("(<{held}>) (Not <DAV:no-lock>)"), 204),
        (format!("(Not <{held}>)"), 412),
        (format!("([\"other\"]) (<{held}>)"), 204),
        (format!("</files/none> (Not <{other}>) </files/a> (<{held}> Not [\"x\"])"), 204),
        (format!("<http://elsewhere.example/files/a> (<{held}>)"), 412),
        (format!("</files/none> (Not [{tag}]) </files/a> (<{held}>)"), 204),
        ("()".to_owned(), 400),
    ];
    for (value, status) in cases {
        let answer = alice.ask("PROPPATCH", "/files/a", &format!("If: {value}\r\n"), TIME).await;
        let expected = if status == 204 { 207 } else { status };
        assert_eq!(answer.status, expected, "{value}: {}", answer.text());
    }
}

/// Changes nothing, so that the entity tag stays.
const TIME: &str =
    "<propertyupdate xmlns=\"DAV:\"><remove><prop><x xmlns=\"urn:x\"/></prop></remove></propertyupdate>";

async fn the_token_of_another_account_is_useless(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    let mut bob = Person::new(&scene, "bob").await;
    alice.ask("MKCOL", "/files/d", "", "").await;
    alice.put("/files/d/a", "one").await;
    alice.share("/d", "bob", "write").await;
    let held = lock(&mut alice, "/files/d/a", ZERO).await;
    assert!(discovered(&mut bob, "/shared/alice/d/a").await.contains("<D:href>/shared/alice/d/a</D:href>"));
    let refused = bob.ask("PUT", "/shared/alice/d/a", &submit(&held), "two").await;
    assert_eq!(refused.status, 423);
    assert!(
        refused.text().contains("<D:lock-token-submitted><D:href>/shared/alice/d/a<"),
        "{}",
        refused.text()
    );
    assert_eq!(unlock(&mut bob, "/shared/alice/d/a", &held).await.status, 403);
    assert_eq!(unlock(&mut alice, "/files/d/a", &held).await.status, 204);
    let held = lock(&mut bob, "/shared/alice/d/a", ZERO).await;
    let detail = alice.put("/files/d/a", "two").await.problem(423);
    assert!(detail.contains("bob has locked this"), "{detail}");
    assert_eq!(bob.ask("PUT", "/shared/alice/d/a", &submit(&held), "two").await.status, 204);
    // The owner of the home ends any lock in it.
    assert_eq!(unlock(&mut alice, "/files/d/a", &held).await.status, 204);
    assert_eq!(alice.put("/files/d/a", "three").await.status, 204);
    lock(&mut bob, "/shared/alice/d/a", ZERO).await;
    scene.accounts().auth.set_enabled(&scene.io, "bob", false).await.expect("bob");
    assert_eq!(alice.put("/files/d/a", "four").await.status, 204);
}

async fn a_lock_excludes_resumable_uploads_forms_and_links(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    alice.ask("MKCOL", "/files/d", "", "").await;
    alice.put("/files/d/a", "old").await;
    // `d/a`
    let tus = "Tus-Resumable: 1.0.0\r\n";
    let new = format!("{tus}Upload-Length: 3\r\nUpload-Metadata: path ZC9h\r\n");
    let created = alice.ask("POST", "/uploads", &new, "").await;
    let at = created.field("Location").expect("a location").to_owned();
    let link = alice.send("POST", "/api/links", &json!({ "path": "d", "permission": "upload" })).await.json();
    let link = link["url"].as_str().and_then(|url| url.split_once("://test")).expect("a URL").1.to_owned();
    let mut visitor = scene.connect().await;
    let folder = link.trim_end_matches('/');
    // Visitors do not learn that the name is taken, nor that the file is locked.
    let held = lock(&mut alice, "/files/d/a", ZERO).await;
    assert_eq!(visitor.ask("PUT", &format!("{folder}/a"), "", "new").await.status, 201);
    assert_eq!(scene.home("alice")["d/a"].as_deref(), Some(&b"old"[..]));
    assert_eq!(unlock(&mut alice, "/files/d/a", &held).await.status, 204);
    let held = lock(&mut alice, "/files/d", "").await;
    let part = format!("{tus}Content-Type: application/offset+octet-stream\r\nUpload-Offset: 0\r\n");
    alice.ask("PATCH", &at, &part, "new").await.problem(423);
    let form = "--x\r\nContent-Disposition: form-data; name=\"f\"; filename=\"a\"\r\n\r\nnew\r\n--x--\r\n";
    let multipart = "Content-Type: multipart/form-data; boundary=x\r\n";
    alice.ask("POST", "/files/d/", multipart, form).await.problem(423);
    let target = format!("{folder}/b");
    let detail = visitor.ask("PUT", &target, "", "new").await.problem(423);
    assert!(detail.contains("in use just now") && !detail.contains("alice"), "{detail}");
    assert_eq!(scene.home("alice")["d/a"].as_deref(), Some(&b"old"[..]));
    assert_eq!(unlock(&mut alice, "/files/d", &held).await.status, 204);
    assert_eq!(visitor.ask("PUT", &target, "", "new").await.status, 201);
    assert_eq!(alice.ask("PATCH", &at, &part, "new").await.status, 204);
    assert_eq!(scene.home("alice")["d/a"].as_deref(), Some(&b"new"[..]));
}

async fn a_lock_that_is_taken_during_an_upload_excludes_it(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    let mut other = Person::again(&scene, "alice").await;
    alice.put("/files/a", "old").await;
    let field = alice.field();
    let head = format!("PUT /files/a HTTP/1.1\r\nHost: test\r\n{field}Content-Length: 8\r\n\r\nhalf");
    alice.client.send(head).await;
    scene.io.sleep(Duration::from_millis(100)).await;
    lock(&mut other, "/files/a", ZERO).await;
    alice.client.send("half").await;
    assert_eq!(alice.client.answer().await.status, 423);
    assert_eq!(scene.home("alice")["a"].as_deref(), Some(&b"old"[..]));
}

async fn a_lock_ends_at_its_time(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    alice.put("/files/a", "one").await;
    lock(&mut alice, "/files/a", "Timeout: Second-1\r\n").await;
    alice.put("/files/a", "two").await.problem(423);
    scene.io.sleep(Duration::from_millis(1100)).await;
    assert_eq!(alice.put("/files/a", "two").await.status, 204);
    lock(&mut alice, "/files/a", "").await;
}

async fn only_so_many_shared_locks_meet_and_each_holds_for_a_second_at_least(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    alice.put("/files/a", "one").await;
    for _ in 0..LOCKS_MEETING_MAX {
        let taken = lock_with(&mut alice, "/files/a", ZERO, "shared").await;
        assert_eq!(taken.status, 200, "{}", taken.text());
    }
    lock_with(&mut alice, "/files/a", ZERO, "shared").await.problem(507);
    let brief = lock_with(&mut alice, "/files/b", "Timeout: Second-0\r\n", "exclusive").await;
    assert_eq!(brief.status, 201, "{}", brief.text());
}

async fn a_listing_has_the_locks_of_each_entry(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    for folder in ["/files/d", "/files/d/e"] {
        alice.ask("MKCOL", folder, "", "").await;
    }
    for file in ["/files/d/a", "/files/d/b", "/files/d/e/f"] {
        alice.put(file, "one").await;
    }
    let of_folder = token(&lock_with(&mut alice, "/files/d", "", "shared").await);
    let of_a = token(&lock_with(&mut alice, "/files/d/a", ZERO, "shared").await);
    let below = token(&lock_with(&mut alice, "/files/d/e/f", ZERO, "shared").await);
    let body = "<propfind xmlns=\"DAV:\"><prop><lockdiscovery/></prop></propfind>";
    let found = alice.ask("PROPFIND", "/files/d", "Depth: 1\r\n", body).await.text();
    let counts = [&of_folder, &of_a, &below].map(|token| found.matches(token.as_str()).count());
    assert_eq!(counts, [4, 1, 0], "{found}");
    let of_entry = found.split("<D:response>").find(|part| part.contains("<D:href>/files/d/a</D:href>"));
    assert!(of_entry.is_some_and(|entry| entry.contains(&of_a) && entry.contains(&of_folder)), "{found}");
}

async fn an_account_that_may_not_delete_fills_the_file_that_its_lock_has_created(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    alice.put("/files/old", "one").await;
    let may = Permissions { delete: false, ..Permissions::default() };
    scene.accounts().auth.set_permissions(&scene.io, "alice", may).await.expect("alice");
    let held = lock(&mut alice, "/files/new", ZERO).await;
    assert_eq!(alice.ask("PUT", "/files/new", &submit(&held), "mine").await.status, 204);
    assert_eq!(scene.home("alice")["new"].as_deref(), Some(&b"mine"[..]));
    // Then it is a file like others.
    alice.ask("PUT", "/files/new", &submit(&held), "again").await.problem(403);
    let held = lock(&mut alice, "/files/old", ZERO).await;
    alice.ask("PUT", "/files/old", &submit(&held), "two").await.problem(403);
    alice.put("/files/empty", "").await;
    alice.put("/files/empty", "two").await.problem(403);
}

async fn an_account_that_may_not_read_uses_its_locks(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    alice.put("/files/a", "one").await;
    let may = Permissions { read: false, ..Permissions::default() };
    scene.accounts().auth.set_permissions(&scene.io, "alice", may).await.expect("alice");
    let held = lock(&mut alice, "/files/a", ZERO).await;
    assert_eq!(alice.ask("PUT", "/files/a", &submit(&held), "two").await.status, 204);
    assert_eq!(alice.ask("LOCK", "/files/a", &submit(&held), "").await.status, 200);
    assert_eq!(unlock(&mut alice, "/files/a", &held).await.status, 204);
}

async fn an_entity_tag_in_if_is_compared_again_when_the_file_is_stored(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    let mut other = Person::again(&scene, "alice").await;
    alice.put("/files/a", "old").await;
    let tag = alice.get("/files/a").await.field("ETag").expect("a tag").to_owned();
    let field = alice.field();
    let head = format!(
        "PUT /files/a HTTP/1.1\r\nHost: test\r\n{field}If: ([{tag}])\r\nContent-Length: 8\r\n\r\nhalf"
    );
    alice.client.send(head).await;
    scene.io.sleep(Duration::from_millis(100)).await;
    assert_eq!(other.put("/files/a", "of another").await.status, 204);
    alice.client.send("half").await;
    assert_eq!(alice.client.answer().await.status, 412);
    assert_eq!(scene.home("alice")["a"].as_deref(), Some(&b"of another"[..]));
    // A list that compares no tag suffices.
    let either = format!("If: (Not <DAV:no-lock>) (Not [{tag}])\r\n");
    let head = format!("PUT /files/b HTTP/1.1\r\nHost: test\r\n{field}{either}Content-Length: 8\r\n\r\nhalf");
    alice.client.send(head).await;
    scene.io.sleep(Duration::from_millis(100)).await;
    assert_eq!(other.put("/files/b", "of another").await.status, 201);
    alice.client.send("half").await;
    assert_eq!(alice.client.answer().await.status, 204);
    let tag = other.get("/files/a").await.field("ETag").expect("a tag").to_owned();
    let with_match = format!("If: ([{tag}])\r\nIf-Match: {tag}\r\n");
    other.ask("PUT", "/files/a", &with_match, "").await.problem(400);
    assert_eq!(other.ask("PUT", "/files/a", &format!("If: </files/a> ([{tag}])\r\n"), "x").await.status, 204);
    other.ask("DELETE", "/files/a", &format!("If: ([{tag}])\r\n"), "").await.problem(412);
}

async fn locks_end_with_what_is_removed_or_moved_and_stay_where_it_is_replaced(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    for file in ["/files/a", "/files/b", "/files/c"] {
        alice.put(file, "one").await;
    }
    let (of_a, of_b) = (lock(&mut alice, "/files/a", ZERO).await, lock(&mut alice, "/files/b", ZERO).await);
    let both = format!("Destination: /files/b\r\nIf: </files/a> (<{of_a}>) </files/b> (<{of_b}>)\r\n");
    assert_eq!(alice.ask("MOVE", "/files/a", &both, "").await.status, 204);
    assert_eq!(alice.put("/files/a", "free").await.status, 201);
    alice.put("/files/b", "two").await.problem(423);
    // A copy that fails leaves the lock, too.
    alice.ask("MKCOL", "/files/d", "", "").await;
    let tagged = format!("If: </files/b> (<{of_b}>)\r\n");
    let into_itself = format!("Destination: /files/d/e\r\n{tagged}");
    assert_eq!(alice.ask("COPY", "/files/d", &into_itself, "").await.status / 100, 4);
    let copied = alice.ask("COPY", "/files/c", &format!("Destination: /files/b\r\n{tagged}"), "").await;
    assert_eq!(copied.status, 204, "{}", copied.text());
    alice.put("/files/b", "two").await.problem(423);
    assert_eq!(alice.ask("DELETE", "/files/b", &submit(&of_b), "").await.status, 204);
    assert_eq!(alice.put("/files/b", "free").await.status, 201);
}

async fn a_locked_destination_in_another_home_is_reported_without_a_wrong_url(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    let mut bob = Person::new(&scene, "bob").await;
    alice.ask("MKCOL", "/files/d", "", "").await;
    alice.put("/files/d/a", "one").await;
    alice.share("/d", "bob", "write").await;
    bob.put("/files/b", "two").await;
    lock(&mut alice, "/files/d/a", ZERO).await;
    for method in ["MOVE", "COPY"] {
        let fields = "Destination: /shared/alice/d/a\r\nIf: (Not <DAV:no-lock>)\r\n";
        let detail = bob.ask(method, "/files/b", fields, "").await.problem(423);
        assert!(detail.contains("alice has locked this"), "{detail}");
    }
    assert_eq!(scene.home("alice")["d/a"].as_deref(), Some(&b"one"[..]));
    assert_eq!(scene.home("bob")["b"].as_deref(), Some(&b"two"[..]));
}

behaviours!(scenario and remote;
    a_lock_is_taken_found_refreshed_and_ended,
    a_lock_of_nothing_creates_an_empty_file,
    a_deep_lock_of_a_folder_covers_everything_below_it,
    a_lock_of_a_folder_alone_protects_its_names,
    shared_locks_exclude_exclusive_ones_and_changes_without_one_of_them,
    the_conditions_of_if_are_checked_before_a_change,
    the_token_of_another_account_is_useless,
    a_lock_excludes_resumable_uploads_forms_and_links,
    a_lock_that_is_taken_during_an_upload_excludes_it,
    a_lock_ends_at_its_time,
    only_so_many_shared_locks_meet_and_each_holds_for_a_second_at_least,
    a_listing_has_the_locks_of_each_entry,
    an_account_that_may_not_delete_fills_the_file_that_its_lock_has_created,
    an_account_that_may_not_read_uses_its_locks,
    an_entity_tag_in_if_is_compared_again_when_the_file_is_stored,
    locks_end_with_what_is_removed_or_moved_and_stay_where_it_is_replaced,
    a_locked_destination_in_another_home_is_reported_without_a_wrong_url,
);
