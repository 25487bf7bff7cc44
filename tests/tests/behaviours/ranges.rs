//! Range requests: one range, several, unsatisfiable ones, and conditional ones (`If-Range`).

use std::ops::RangeInclusive;
use std::time::Duration;

use plimsoll_tests::tree::noise;
use plimsoll_tests::{Answer, Engine, LOOKED_UP_EACH_TIME, Scenario, Scene, Tree, behaviours};

const LEN: usize = 2_000;
/// Sun, 06 Nov 1994 08:49:37 GMT, and a half.
const WRITTEN: Duration = Duration::new(784_111_777, 500_000_000);
const WRITTEN_DATE: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
/// Longer than the granularity of a file system's timestamps.
const CLOCK_STEP: Duration = Duration::from_millis(20);

fn scenario() -> Scenario {
    let tree = Tree::new()
        .file_of("bytes.bin", contents(), WRITTEN)
        .file("empty.bin", "")
        .file("one.bin", "1")
        .file("fresh.bin", contents())
        .file_of("page.html", "<p>a page</p>\n".repeat(20), WRITTEN)
        .file_of("page.html.gz", noise(2, 100), WRITTEN);
    Scenario { tree, hot: LOOKED_UP_EACH_TIME, ..Scenario::default() }
}

fn contents() -> Vec<u8> {
    noise(1, LEN)
}

fn range(value: &str) -> String {
    format!("Range: {value}\r\n")
}

/// Asserts an answer with one part of `bytes.bin`.
fn assert_part(answer: &Answer, expected: RangeInclusive<usize>, asked: &str) {
    let content_range = format!("bytes {}-{}/{LEN}", expected.start(), expected.end());
    assert_eq!((answer.status, answer.field("Content-Range")), (206, Some(&*content_range)), "{asked}");
    assert_eq!(answer.field("Content-Type"), Some("application/octet-stream"), "{asked}");
    assert!(answer.body == contents()[expected], "{asked}");
}

/// Asserts that a range was ignored.
fn assert_whole(answer: &Answer, asked: &str) {
    assert_eq!((answer.status, answer.field("Content-Range")), (200, None), "{asked}");
    assert!(answer.body == contents(), "{asked}");
}

/// A part of a multipart body: its Content-Range and its bytes.
type Part = (String, Vec<u8>);

/// Parses a multipart body in the format of RFC 2046, to its last byte.
fn parts(answer: &Answer) -> Vec<Part> {
    let media = answer.field("Content-Type").expect("a type");
    let boundary = media.strip_prefix("multipart/byteranges; boundary=").expect("a multipart type");
    let delimiter = format!("\r\n--{boundary}");
    let mut rest = answer.body.strip_prefix(delimiter.as_bytes()).expect("an empty preamble");
    let mut parts = Vec::new();
    while let Some(part) = rest.strip_prefix(b"\r\n") {
        let end = find(part, b"\r\n\r\n");
        let head = String::from_utf8(part[..end].to_vec()).expect("a head of ASCII");
        let body = &part[end + 4..];
        let end = find(body, delimiter.as_bytes());
        parts.push((content_range(&head), body[..end].to_vec()));
        rest = &body[end + delimiter.len()..];
    }
    assert_eq!(rest, b"--\r\n", "what follows the last part");
    parts
}

fn find(bytes: &[u8], wanted: &[u8]) -> usize {
    bytes.windows(wanted.len()).position(|window| window == wanted).expect("the part goes on")
}

fn content_range(head: &str) -> String {
    let lines: Vec<&str> = head.split("\r\n").collect();
    assert!(lines.contains(&"Content-Type: application/octet-stream"), "{head}");
    let content_range = lines.iter().find_map(|line| line.strip_prefix("Content-Range: "));
    content_range.expect("a Content-Range in each part").to_owned()
}

fn part(expected: RangeInclusive<usize>) -> Part {
    (format!("bytes {}-{}/{LEN}", expected.start(), expected.end()), contents()[expected].to_vec())
}

async fn one_range_is_sent_as_it_is(scene: Scene) {
    let mut client = scene.connect().await;
    for (asked, expected) in [
        ("bytes=0-0", 0..=0),
        ("bytes=0-99", 0..=99),
        ("bytes=700-1299", 700..=1299),
        ("bytes=1999-1999", 1999..=1999),
        ("bytes=1500-", 1500..=1999),
        ("bytes=0-", 0..=1999),
        ("bytes=-1", 1999..=1999),
        ("bytes=-500", 1500..=1999),
        ("bytes=-2000", 0..=1999),
        ("bytes=-99999", 0..=1999),
        ("bytes=1990-99999999999999999999999", 1990..=1999),
        ("BYTES=5-6", 5..=6),
        ("bytes= 5-6 , ", 5..=6),
        // One of the two is satisfiable, and a single range is no multipart.
        ("bytes=5-6,5000-6000", 5..=6),
    ] {
        assert_part(&client.get_with("/bytes.bin", &range(asked)).await, expected, asked);
    }
}

async fn a_part_is_described_as_the_whole_is(scene: Scene) {
    let mut client = scene.connect().await;
    let whole = client.get("/bytes.bin").await;
    for asked in ["bytes=0-9", "bytes=0-9,20-29"] {
        let part = client.get_with("/bytes.bin", &range(asked)).await;
        for name in ["ETag", "Last-Modified", "Accept-Ranges", "Vary", "X-Content-Type-Options"] {
            assert!(whole.field(name).is_some(), "{name}");
            assert_eq!(part.field(name), whole.field(name), "{name} with {asked}");
        }
        assert!(part.field("Content-Encoding").is_none());
    }
}

async fn several_ranges_are_sent_as_parts_in_the_order_asked_for(scene: Scene) {
    let mut client = scene.connect().await;
    for (asked, expected) in [
        ("bytes=0-9,100-199,-1", vec![part(0..=9), part(100..=199), part(1999..=1999)]),
        ("bytes=1000-, 0-0", vec![part(1000..=1999), part(0..=0)]),
        ("bytes=5-6,,9999-,7-8", vec![part(5..=6), part(7..=8)]),
        // The ranges overlap, but are not longer than the whole.
        ("bytes=0-999,500-1499", vec![part(0..=999), part(500..=1499)]),
    ] {
        let answer = client.get_with("/bytes.bin", &range(asked)).await;
        assert_eq!((answer.status, answer.field("Content-Range")), (206, None), "{asked}");
        assert!(parts(&answer) == expected, "{asked}");
    }
    // The announced length was the body's: the connection is in step.
    assert_whole(&client.get("/bytes.bin").await, "no range");
}

async fn as_many_ranges_are_served_as_are_worth_it(scene: Scene) {
    let mut client = scene.connect().await;
    let some = |count: usize| {
        let ranges: Vec<String> = (0..count).map(|at| format!("{}-{}", 10 * at, 10 * at + 4)).collect();
        range(&format!("bytes={}", ranges.join(",")))
    };
    let answer = client.get_with("/bytes.bin", &some(16)).await;
    let expected: Vec<Part> = (0..16).map(|at| part(10 * at..=10 * at + 4)).collect();
    assert!(parts(&answer) == expected);
    for count in [17, 190] {
        assert_whole(&client.get_with("/bytes.bin", &some(count)).await, "too many");
    }
    for asked in ["bytes=0-1500,500-1999", "bytes=0-,0-,0-", "bytes=0-,0-0", "bytes=-2000,-2000"] {
        assert_whole(&client.get_with("/bytes.bin", &range(asked)).await, asked);
    }
}

async fn a_range_that_cannot_be_had_is_refused_with_the_length(scene: Scene) {
    let mut client = scene.connect().await;
    for (target, asked, content_range) in [
        ("/bytes.bin", "bytes=2000-", "bytes */2000"),
        ("/bytes.bin", "bytes=2000-2001", "bytes */2000"),
        ("/bytes.bin", "bytes=99999999999999999999999-", "bytes */2000"),
        ("/bytes.bin", "bytes=-0", "bytes */2000"),
        ("/bytes.bin", "bytes=2000-,5000-6000,-0", "bytes */2000"),
        ("/one.bin", "bytes=1-", "bytes */1"),
    ] {
        let answer = client.get_with(target, &range(asked)).await;
        answer.problem(416);
        assert_eq!(answer.field("Content-Range"), Some(content_range), "{asked} of {target}");
        assert_eq!(client.get_with("/one.bin", &range("bytes=0-0")).await.text(), "1");
    }
}

async fn a_range_that_cannot_be_understood_is_passed_over(scene: Scene) {
    let mut client = scene.connect().await;
    for asked in [
        "",
        "bytes",
        "bytes=",
        "bytes=,",
        "bytes 0-4",
        "bytes=4",
        "bytes=-",
        "bytes=a-b",
        "bytes=5-2",
        "bytes=0-4;5-9",
        "bytes=0-4,x",
        "bytes=0x0-0x4",
        "bytes=+0-4",
        "bytes=0 -4",
        "bytes=--4",
        "lines=0-4",
        "bytes =0-4",
        "=0-4",
    ] {
        assert_whole(&client.get_with("/bytes.bin", &range(asked)).await, asked);
    }
    let twice = range("bytes=0-4") + &range("bytes=5-9");
    assert_whole(&client.get_with("/bytes.bin", &twice).await, "two fields");
}

async fn an_empty_file_has_no_range_but_all_of_it(scene: Scene) {
    let mut client = scene.connect().await;
    for asked in ["bytes=-5", "bytes=0-", "bytes=0-0", "bytes=7-", "bytes=-0", "bytes=0-1,3-4"] {
        let answer = client.get_with("/empty.bin", &range(asked)).await;
        assert_eq!((answer.status, answer.body.len()), (200, 0), "{asked}");
        assert_eq!(answer.field("Content-Range"), None, "{asked}");
    }
}

async fn head_passes_over_a_range(scene: Scene) {
    let mut client = scene.connect().await;
    for asked in ["bytes=0-9", "bytes=0-9,20-29", "bytes=5000-"] {
        let answer = client.head_with("/bytes.bin", &range(asked)).await;
        assert_eq!((answer.status, answer.field("Content-Length")), (200, Some("2000")), "{asked}");
        assert!(answer.field("Content-Range").is_none(), "{asked}");
    }
}

async fn a_range_of_what_is_no_file_is_passed_over(scene: Scene) {
    let mut client = scene.connect().await;
    client.get_with("/missing", &range("bytes=0-9")).await.problem(404);
    for target in ["/", "/healthz"] {
        let answer = client.get_with(target, &range("bytes=0-1")).await;
        assert_eq!((answer.status, answer.field("Content-Range")), (200, None), "{target}");
    }
}

async fn if_range_lets_a_range_through_for_the_known_state_alone(scene: Scene) {
    let mut client = scene.connect().await;
    let known = client.get("/bytes.bin").await;
    let tag = known.field("ETag").expect("a tag");
    let ask = |state: &str| format!("Range: bytes=10-19\r\nIf-Range: {state}\r\n");
    for state in [tag, WRITTEN_DATE, "Sunday, 06-Nov-94 08:49:37 GMT"] {
        assert_part(&client.get_with("/bytes.bin", &ask(state)).await, 10..=19, state);
    }
    let weak = format!("W/{tag}");
    let list = format!("{tag}, \"x\"");
    for state in [
        "\"another\"",
        &weak,
        &list,
        "*",
        "Sun, 06 Nov 1994 08:49:36 GMT",
        "Sun, 06 Nov 1994 08:49:38 GMT",
        "Fri, 20 Nov 2099 00:00:00 GMT",
        "yesterday",
        tag.trim_matches('"'),
    ] {
        assert_whole(&client.get_with("/bytes.bin", &ask(state)).await, state);
    }
    let alone = format!("If-Range: {tag}\r\n");
    assert_whole(&client.get_with("/bytes.bin", &alone).await, "If-Range without Range");
}

async fn the_date_of_a_file_that_may_change_again_within_the_second_is_no_validator(scene: Scene) {
    let mut client = scene.connect().await;
    scene.io.sleep(CLOCK_STEP).await;
    scene.write("fresh.bin", &contents());
    let known = client.get("/fresh.bin").await;
    let (tag, date) = (known.field("ETag").expect("a tag"), known.field("Last-Modified").expect("a date"));
    let ask = |state: &str| format!("Range: bytes=0-3\r\nIf-Range: {state}\r\n");
    let answer = client.get_with("/fresh.bin", &ask(date)).await;
    // A busy machine may take longer than the second.
    if answer.field("Date") == Some(date) {
        assert_whole(&answer, date);
    }
    // The tag differs between two states within a second.
    assert_part(&client.get_with("/fresh.bin", &ask(tag)).await, 0..=3, tag);
}

async fn an_old_state_gets_the_whole_new_file(scene: Scene) {
    let mut client = scene.connect().await;
    let old = client.get("/bytes.bin").await;
    scene.io.sleep(CLOCK_STEP).await;
    let new = noise(7, LEN);
    scene.write("bytes.bin", &new);
    for field in ["ETag", "Last-Modified"] {
        let state = old.field(field).expect("a validator");
        for asked in ["bytes=1000-", "bytes=5000-", "bytes=0-9,20-29"] {
            let fields = format!("Range: {asked}\r\nIf-Range: {state}\r\n");
            let answer = client.get_with("/bytes.bin", &fields).await;
            assert_eq!(answer.status, 200, "{field}, {asked}");
            assert!(answer.body == new, "{field}, {asked}");
        }
    }
}

async fn conditions_are_weighed_before_ranges(scene: Scene) {
    let mut client = scene.connect().await;
    let known = client.get("/bytes.bin").await;
    let tag = known.field("ETag").expect("a tag");
    let not_modified = format!("If-None-Match: {tag}\r\nRange: bytes=0-9\r\n");
    assert_eq!(client.get_with("/bytes.bin", &not_modified).await.status, 304);
    let unsatisfiable = format!("If-None-Match: {tag}\r\nRange: bytes=9999-\r\n");
    assert_eq!(client.get_with("/bytes.bin", &unsatisfiable).await.status, 304);
    let failed = "If-Match: \"another\"\r\nRange: bytes=0-9\r\n";
    client.get_with("/bytes.bin", failed).await.problem(412);
    let both = format!("If-Match: {tag}\r\nRange: bytes=0-9\r\n");
    assert_part(&client.get_with("/bytes.bin", &both).await, 0..=9, "If-Match that holds");
}

async fn a_range_is_of_the_representation_that_is_sent(scene: Scene) {
    let mut client = scene.connect().await;
    let zipped = "Accept-Encoding: gzip\r\n";
    let whole = client.get_with("/page.html", zipped).await;
    assert!(whole.body == noise(2, 100));
    let fields = format!("{zipped}Range: bytes=10-29\r\n");
    let part = client.get_with("/page.html", &fields).await;
    assert_eq!((part.status, part.field("Content-Range")), (206, Some("bytes 10-29/100")));
    assert_eq!(part.field("Content-Encoding"), Some("gzip"));
    assert_eq!(part.field("Content-Type"), Some("text/html; charset=utf-8"));
    assert_eq!(part.field("ETag"), whole.field("ETag"));
    assert!(part.body == whole.body[10..30]);
    // A download begun without encoding does not continue with the compressed bytes.
    let plain = client.get("/page.html").await;
    let fields = format!("{fields}If-Range: {}\r\n", plain.field("ETag").expect("a tag"));
    let answer = client.get_with("/page.html", &fields).await;
    assert_eq!((answer.status, answer.field("Content-Encoding")), (200, Some("gzip")));
    assert!(answer.body == whole.body);
}

async fn a_download_that_broke_off_goes_on_where_it_was(scene: Scene) {
    let len = if scene.engine == Engine::Simulator { 20_000 } else { 2_000_000 };
    let all = noise(5, len);
    scene.write("large.bin", &all);
    let mut saved = Vec::new();
    let mut known: Option<String> = None;
    for until in [len / 7, len / 3, len - 1] {
        let mut client = scene.connect().await;
        let state = known.as_ref().map(|tag| format!("If-Range: {tag}\r\n")).unwrap_or_default();
        let fields = format!("Range: bytes={}-\r\n{state}", saved.len());
        client.send(format!("GET /large.bin HTTP/1.1\r\nHost: test\r\n{fields}\r\n")).await;
        let answer = client.answer_to_head().await;
        let content_range = format!("bytes {}-{}/{len}", saved.len(), len - 1);
        assert_eq!((answer.status, answer.field("Content-Range")), (206, Some(&*content_range)));
        saved.extend(client.body(until - saved.len()).await.expect("what is asked for"));
        known = answer.field("ETag").map(str::to_owned);
        drop(client);
    }
    let fields = format!("Range: bytes={}-\r\nIf-Range: {}\r\n", saved.len(), known.expect("a tag"));
    saved.extend(scene.get_with("/large.bin", &fields).await.body);
    assert!(saved == all);
}

behaviours!(scenario and tls;
    one_range_is_sent_as_it_is,
    a_part_is_described_as_the_whole_is,
    several_ranges_are_sent_as_parts_in_the_order_asked_for,
    as_many_ranges_are_served_as_are_worth_it,
    a_range_that_cannot_be_had_is_refused_with_the_length,
    a_range_that_cannot_be_understood_is_passed_over,
    an_empty_file_has_no_range_but_all_of_it,
    head_passes_over_a_range,
    a_range_of_what_is_no_file_is_passed_over,
    if_range_lets_a_range_through_for_the_known_state_alone,
    the_date_of_a_file_that_may_change_again_within_the_second_is_no_validator,
    an_old_state_gets_the_whole_new_file,
    conditions_are_weighed_before_ranges,
    a_range_is_of_the_representation_that_is_sent,
    a_download_that_broke_off_goes_on_where_it_was,
);
