//! Conditional requests: 304 for what the client has, 412 for a failed precondition.

use std::time::Duration;

use plimsoll_tests::{Answer, Client, LOOKED_UP_EACH_TIME, Scenario, Scene, Tree, behaviours};

/// Sun, 06 Nov 1994 08:49:37 GMT, and a half: the half second is never sent, and never counts.
const WRITTEN: Duration = Duration::new(784_111_777, 500_000_000);
const EARLIER: &str = "Sun, 06 Nov 1994 08:49:36 GMT";
const EXACT: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
const FAR_AHEAD: &str = "Fri, 01 Jan 2100 00:00:00 GMT";
const LATER: &str = "Sun, 06 Nov 1994 08:49:38 GMT";
/// Longer than the granularity of a file system's timestamps.
const CLOCK_STEP: Duration = Duration::from_millis(20);

fn scenario() -> Scenario {
    let tree = Tree::new()
        .file_of("page.txt", "a page\n", WRITTEN)
        .file_of("folder/index.html", "<p>an index</p>", WRITTEN)
        .file_of("epoch.txt", "built reproducibly\n", Duration::from_secs(1))
        .file_of("zip.txt", "unpacked\n", Duration::from_secs(315_532_800))
        .file_of("ahead.txt", "from a wrong clock\n", Duration::from_secs(4_102_444_800))
        .file("other.txt", "another\n");
    Scenario { tree, hot: LOOKED_UP_EACH_TIME, ..Scenario::default() }
}

async fn tag_of(client: &mut Client, target: &str) -> String {
    client.get(target).await.field("ETag").expect("a tag").to_owned()
}

/// Returns the status of a GET of the page under these conditions, and checks its body.
async fn status(client: &mut Client, fields: &str) -> u16 {
    let answer = client.get_with("/page.txt", fields).await;
    match answer.status {
        200 => assert_eq!(answer.text(), "a page\n", "{fields}"),
        412 => assert!(!answer.problem(412).is_empty(), "{fields}"),
        status => assert_eq!(status, 304, "{fields}"),
    }
    // The connection stays in step after any answer.
    assert_eq!(client.get("/other.txt").await.text(), "another\n", "{fields}");
    answer.status
}

/// Asserts the requirements of RFC 9110, section 15.4.5, on a 304.
fn assert_not_modified(answer: &Answer, whole: &Answer) {
    assert_eq!(answer.status, 304);
    for name in ["ETag", "Vary", "Last-Modified"] {
        assert!(answer.field(name).is_some(), "{name}");
        assert_eq!(answer.field(name), whole.field(name));
    }
    assert!(answer.field("Date").is_some());
    // A 304 may have the length of the corresponding 200, and no other.
    assert!(
        answer.field("Content-Length").is_none_or(|length| Some(length) == whole.field("Content-Length"))
    );
    assert!(answer.field("Content-Range").is_none() && answer.field("Transfer-Encoding").is_none());
}

async fn a_matching_condition_gets_304_without_a_body(scene: Scene) {
    let mut client = scene.connect().await;
    for target in ["/page.txt", "/folder/"] {
        let whole = client.get(target).await;
        let tag = whole.field("ETag").expect("a tag");
        for fields in [format!("If-None-Match: {tag}\r\n"), format!("If-Modified-Since: {EXACT}\r\n")] {
            assert_not_modified(&client.get_with(target, &fields).await, &whole);
            assert_not_modified(&client.head_with(target, &fields).await, &whole);
        }
    }
    assert_eq!(client.get("/page.txt").await.text(), "a page\n");
}

async fn if_none_match_compares_weakly_and_takes_lists(scene: Scene) {
    let mut client = scene.connect().await;
    let tag = tag_of(&mut client, "/page.txt").await;
    let other = tag_of(&mut client, "/other.txt").await;
    for (list, expected) in [
        (tag.clone(), 304),
        (format!("W/{tag}"), 304),
        (format!("\"x\", {other} ,{tag}"), 304),
        (format!("\"a,b\", W/\"c\",W/{tag}, \"d\""), 304),
        ("*".to_owned(), 304),
        (format!(", ,{tag},"), 304),
        (other.clone(), 200),
        (format!("\"x\", {other}, W/\"y\""), 200),
        (tag.trim_matches('"').to_owned(), 200),
        (format!("\"{}", tag.trim_matches('"')), 200),
        (format!("w/{tag}"), 200),
        (String::new(), 200),
        ("\"\"".to_owned(), 200),
    ] {
        let fields = format!("If-None-Match: {list}\r\n");
        assert_eq!(status(&mut client, &fields).await, expected, "{list}");
    }
    let two_fields = format!("If-None-Match: {other}\r\nIf-None-Match: {tag}\r\n");
    assert_eq!(status(&mut client, &two_fields).await, 304);
}

async fn if_modified_since_compares_whole_seconds(scene: Scene) {
    let mut client = scene.connect().await;
    for (date, expected) in [
        (EXACT, 304),
        (LATER, 304),
        (EARLIER, 200),
        ("Fri, 20 Nov 2099 00:00:00 GMT", 304),
        ("Thu, 01 Jan 1970 00:00:00 GMT", 200),
        // The two obsolete forms count too.
        ("Sunday, 06-Nov-94 08:49:37 GMT", 304),
        ("Sun Nov  6 08:49:37 1994", 304),
        ("Sun Nov  6 08:49:36 1994", 200),
        ("tomorrow", 200),
        ("784111777", 200),
        ("2099-11-20T00:00:00Z", 200),
        ("Sun, 06 Nov 1994 08:49:37 GMT, Sun, 06 Nov 1994 08:49:37 GMT", 200),
        ("", 200),
    ] {
        let fields = format!("If-Modified-Since: {date}\r\n");
        assert_eq!(status(&mut client, &fields).await, expected, "{date}");
    }
}

async fn a_date_that_distinguishes_no_versions_is_neither_sent_nor_compared(scene: Scene) {
    let mut client = scene.connect().await;
    for target in ["/epoch.txt", "/zip.txt", "/ahead.txt"] {
        let whole = client.get(target).await;
        assert_eq!((whole.status, whole.field("Last-Modified")), (200, None), "{target}");
        let tag = whole.field("ETag").expect("a tag");
        for date in ["Thu, 01 Jan 1970 00:00:01 GMT", "Tue, 01 Jan 1980 00:00:00 GMT", LATER, FAR_AHEAD] {
            let answer = client.get_with(target, &format!("If-Modified-Since: {date}\r\n")).await;
            assert_eq!(answer.status, 200, "{target}: {date}");
            let part = format!("Range: bytes=0-1\r\nIf-Range: {date}\r\n");
            assert_eq!(client.get_with(target, &part).await.status, 200, "{target}: {date}");
        }
        let known = client.get_with(target, &format!("If-None-Match: {tag}\r\n")).await;
        assert_eq!((known.status, known.field("Last-Modified")), (304, None), "{target}");
    }
}

async fn if_none_match_is_asked_before_if_modified_since(scene: Scene) {
    let mut client = scene.connect().await;
    let tag = tag_of(&mut client, "/page.txt").await;
    let differs = format!("If-None-Match: \"another\"\r\nIf-Modified-Since: {LATER}\r\n");
    assert_eq!(status(&mut client, &differs).await, 200);
    let equal = format!("If-Modified-Since: {EARLIER}\r\nIf-None-Match: {tag}\r\n");
    assert_eq!(status(&mut client, &equal).await, 304);
}

async fn if_match_compares_strongly(scene: Scene) {
    let mut client = scene.connect().await;
    let tag = tag_of(&mut client, "/page.txt").await;
    for (list, expected) in [
        (tag.clone(), 200),
        (format!("\"x\", {tag}"), 200),
        ("*".to_owned(), 200),
        (format!("W/{tag}"), 412),
        ("\"x\"".to_owned(), 412),
        (String::new(), 412),
        (tag.trim_matches('"').to_owned(), 412),
    ] {
        let fields = format!("If-Match: {list}\r\n");
        assert_eq!(status(&mut client, &fields).await, expected, "{list}");
    }
}

async fn if_unmodified_since_fails_for_what_was_modified_since(scene: Scene) {
    let mut client = scene.connect().await;
    for (date, expected) in [(EXACT, 200), (LATER, 200), (EARLIER, 412), ("yesterday", 200), ("", 200)] {
        let fields = format!("If-Unmodified-Since: {date}\r\n");
        assert_eq!(status(&mut client, &fields).await, expected, "{date}");
    }
    let tag = tag_of(&mut client, "/page.txt").await;
    let overruled = format!("If-Unmodified-Since: {EARLIER}\r\nIf-Match: {tag}\r\n");
    assert_eq!(status(&mut client, &overruled).await, 200);
}

async fn a_condition_that_fails_comes_before_one_that_saves_a_body(scene: Scene) {
    let mut client = scene.connect().await;
    let tag = tag_of(&mut client, "/page.txt").await;
    for (fields, expected) in [
        (format!("If-Match: \"x\"\r\nIf-None-Match: {tag}\r\n"), 412),
        (format!("If-Match: {tag}\r\nIf-None-Match: {tag}\r\n"), 304),
        (format!("If-Unmodified-Since: {EARLIER}\r\nIf-Modified-Since: {EXACT}\r\n"), 412),
        (format!("If-Unmodified-Since: {EXACT}\r\nIf-Modified-Since: {EXACT}\r\n"), 304),
        (format!("If-Unmodified-Since: {EXACT}\r\nIf-Modified-Since: {EARLIER}\r\n"), 200),
    ] {
        assert_eq!(status(&mut client, &fields).await, expected, "{fields}");
    }
    let failed = client.head_with("/page.txt", "If-Match: \"x\"\r\n").await;
    assert_eq!(failed.status, 412);
    assert_eq!(client.get("/other.txt").await.text(), "another\n");
}

async fn a_missing_file_ignores_conditions(scene: Scene) {
    let mut client = scene.connect().await;
    for fields in ["If-None-Match: *\r\n", "If-Match: *\r\n", "If-Modified-Since: now\r\n"] {
        client.get_with("/missing", fields).await.problem(404);
        let redirect = client.get_with("/folder", fields).await;
        assert_eq!((redirect.status, redirect.field("Location")), (301, Some("/folder/")), "{fields}");
    }
}

async fn a_changed_file_is_sent_to_a_client_with_the_old_tag(scene: Scene) {
    let mut client = scene.connect().await;
    let old = tag_of(&mut client, "/page.txt").await;
    scene.io.sleep(CLOCK_STEP).await;
    scene.write("page.txt", b"A PAGE\n");
    for fields in [format!("If-None-Match: {old}\r\n"), format!("If-Modified-Since: {LATER}\r\n")] {
        assert_eq!(client.get_with("/page.txt", &fields).await.text(), "A PAGE\n", "{fields}");
    }
    for fields in [format!("If-Match: {old}\r\n"), format!("If-Unmodified-Since: {LATER}\r\n")] {
        client.get_with("/page.txt", &fields).await.problem(412);
    }
}

behaviours!(scenario and tls;
    a_matching_condition_gets_304_without_a_body,
    if_none_match_compares_weakly_and_takes_lists,
    if_modified_since_compares_whole_seconds,
    a_date_that_distinguishes_no_versions_is_neither_sent_nor_compared,
    if_none_match_is_asked_before_if_modified_since,
    if_match_compares_strongly,
    if_unmodified_since_fails_for_what_was_modified_since,
    a_condition_that_fails_comes_before_one_that_saves_a_body,
    a_missing_file_ignores_conditions,
    a_changed_file_is_sent_to_a_client_with_the_old_tag,
);
