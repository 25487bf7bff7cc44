//! The proxy's cache: ranges of large responses, which are fetched and stored in slices.

use std::time::Duration;

use plimsoll_tests::{Answer, Client, Scenario, Scene, behaviours, together};

use super::cached::{self, body, cache_status, log_key, logged, number_of, open_gate};

/// Two slices, the second of which is shorter.
const SIZE: usize = SLICE + 150_000;
const SLICE: usize = 1 << 20;

fn scenario() -> Scenario {
    Scenario { is_large: true, ..cached::scenario() }
}

/// Returns the fields of a request for a response with ranges, this number and this tag.
fn fields(number: u64, etag: &str, control: &str, key: &str) -> String {
    format!(
        "X-Fields: Cache-Control: {control} | ETag: {etag}\r\nX-Ranges: 1\r\nX-Number: {number}\r\n\
         X-Size: {SIZE}\r\nX-Log: {key}\r\n"
    )
}

async fn get_range(client: &mut Client, fields: &str, range: &str) -> Answer {
    client.get_with("/x", &format!("{fields}Range: bytes={range}\r\n")).await
}

/// Checks that an answer is exactly a part of the response with this number.
fn assert_part(answer: &Answer, number: u64, start: usize, end: usize) {
    assert_eq!(answer.status, 206, "{:.200}", answer.text());
    assert_eq!(answer.field("Content-Range"), Some(&*format!("bytes {start}-{}/{SIZE}", end - 1)));
    assert!(answer.body == body(number, SIZE)[start..end], "{start}..{end}");
}

/// Gets a range until it is answered from the cache. A client has its bytes before their slice is stored.
async fn until_hit(scene: &Scene, client: &mut Client, fields: &str, range: &str) -> Answer {
    loop {
        let part = get_range(client, fields, range).await;
        if cache_status(&part).starts_with("plimsoll; hit; ttl=") {
            return part;
        }
        scene.io.sleep(Duration::from_millis(5)).await;
    }
}

async fn a_range_fetches_its_slices_only_and_is_answered_from_them_again(scene: Scene) {
    let (mut client, key) = (scene.connect().await, log_key());
    let fields = fields(3, "\"a\"", "max-age=60", &key);
    let first = get_range(&mut client, &fields, "1100000-1100099").await;
    assert_part(&first, 3, 1_100_000, 1_100_100);
    assert_eq!(cache_status(&first), "plimsoll; fwd=uri-miss; stored");
    assert_eq!(logged(&key), ["GET /x bytes=1048576-2097151"]);
    until_hit(&scene, &mut client, &fields, "1100000-1100099").await;
    let edge = get_range(&mut client, &fields, &format!("{}-{SLICE}", SLICE - 2)).await;
    assert_part(&edge, 3, SLICE - 2, SLICE + 1);
    assert_eq!(cache_status(&edge), "plimsoll; fwd=partial; stored");
    for (range, start, end) in [
        ("-5", SIZE - 5, SIZE),
        ("0-0", 0, 1),
        ("1048000-", 1_048_000, SIZE),
        ("1048576-1048576", SLICE, SLICE + 1),
    ] {
        let part = get_range(&mut client, &fields, range).await;
        assert_part(&part, 3, start, end);
    }
    until_hit(&scene, &mut client, &fields, "7-9").await;
    assert_eq!(logged(&key), ["GET /x bytes=1048576-2097151", "GET /x bytes=0-1048575"], "each slice once");
    let beyond = get_range(&mut client, &fields, &format!("{SIZE}-")).await;
    assert_eq!((beyond.status, beyond.field("Content-Range")), (416, Some(&*format!("bytes */{SIZE}"))));
    let known = format!("{fields}If-None-Match: \"a\"\r\n");
    assert_eq!(get_range(&mut client, &known, "7-9").await.status, 304);
    assert_eq!(logged(&key).len(), 2);
}

async fn many_clients_share_the_fetch_of_a_slice(scene: Scene) {
    let key = log_key();
    let fields = format!("{}X-Delay: 30\r\n", fields(4, "\"a\"", "max-age=60", &key));
    let visits = (0..6).map(|visit| {
        let (scene, fields) = (scene.clone(), fields.clone());
        async move {
            let mut client = scene.connect().await;
            let (start, end) = (SLICE - 10 - visit, SLICE + 10 + visit);
            let part = get_range(&mut client, &fields, &format!("{start}-{}", end - 1)).await;
            assert_part(&part, 4, start, end);
        }
    });
    together(visits).await;
    let requests = logged(&key);
    assert!(requests.iter().all(|line| line.contains("bytes=")) && requests.len() < 12, "{requests:?}");
}

async fn slices_of_two_versions_are_never_joined(scene: Scene) {
    let (mut client, key) = (scene.connect().await, log_key());
    let old = fields(5, "\"old\"", "max-age=60", &key);
    assert_part(&until_hit(&scene, &mut client, &old, "0-99").await, 5, 0, 100);
    let new = fields(6, "\"new\"", "max-age=60", &key);
    let mut cut = scene.connect().await;
    let request = format!("GET /x HTTP/1.1\r\nHost: test\r\n{new}Range: bytes=1048000-1100000\r\n\r\n");
    cut.send(request).await;
    let received = cut.expect_abort().await;
    let start = received.windows(4).position(|four| four == b"\r\n\r\n").map_or(received.len(), |at| at + 4);
    assert!(body(5, SLICE)[1_048_000..].starts_with(&received[start..]), "bytes of the old version only");
    let joined = get_range(&mut client, &new, "1048000-1100000").await;
    assert_part(&joined, 6, 1_048_000, 1_100_001);
    assert_part(&get_range(&mut client, &new, "0-99").await, 6, 0, 100);
}

async fn a_range_whose_later_slice_cannot_be_stored_is_sent_to_its_end(scene: Scene) {
    let (mut client, key) = (scene.connect().await, log_key());
    let stored = fields(5, "\"a\"", "max-age=60", &key);
    assert_part(&until_hit(&scene, &mut client, &stored, "0-99").await, 5, 0, 100);
    let private = fields(5, "\"a\"", "private, max-age=60", &key);
    let part = get_range(&mut client, &private, "1048000-1100000").await;
    assert_part(&part, 5, 1_048_000, 1_100_001);
    assert_part(&get_range(&mut client, &stored, "0-99").await, 5, 0, 100);
}

async fn stale_slices_are_validated(scene: Scene) {
    let (mut client, key) = (scene.connect().await, log_key());
    let same = fields(7, "\"a\"", "max-age=0", &key);
    assert_part(&get_range(&mut client, &same, "0-99").await, 7, 0, 100);
    // Once it is stored, the origin does not send the slice again.
    loop {
        let part = get_range(&mut client, &same, "50-149").await;
        assert_part(&part, 7, 50, 150);
        if part.field("X-Validated") == Some("1") {
            break;
        }
        scene.io.sleep(Duration::from_millis(5)).await;
    }
    let changed = fields(8, "\"b\"", "max-age=0", &key);
    assert_part(&get_range(&mut client, &changed, "50-149").await, 8, 50, 150);
    assert!(logged(&key).iter().all(|line| line.contains("bytes=")), "{:?}", logged(&key));
}

async fn a_stale_whole_response_is_validated_by_a_range_and_not_fetched_again(scene: Scene) {
    let (mut client, key) = (scene.connect().await, log_key());
    let unchanged = fields(13, "\"a\"", "max-age=0", "none");
    assert!(client.get_with("/x", &unchanged).await.body == body(13, SIZE));
    let same = fields(13, "\"a\"", "max-age=0", &key);
    loop {
        let part = get_range(&mut client, &same, "1100000-1100099").await;
        assert_part(&part, 13, 1_100_000, 1_100_100);
        if cache_status(&part) == "plimsoll; fwd=stale; fwd-status=304" {
            break;
        }
        scene.io.sleep(Duration::from_millis(5)).await;
    }
    let changed = fields(14, "\"b\"", "max-age=0", &key);
    for _ in 0..2 {
        let part = get_range(&mut client, &changed, "1100000-1100099").await;
        assert_part(&part, 14, 1_100_000, 1_100_100);
    }
    assert!(logged(&key).iter().all(|line| line.contains("bytes=")), "{:?}", logged(&key));
}

async fn ranges_that_cannot_be_stored_are_passed_through(scene: Scene) {
    let mut client = scene.connect().await;
    for (number, response) in [
        "Cache-Control: max-age=60 | ETag: W/\"a\"",
        "Cache-Control: max-age=60",
        "Cache-Control: private, max-age=60 | ETag: \"a\"",
        "Cache-Control: max-age=60 | ETag: \"a\" | Set-Cookie: a=b",
    ]
    .into_iter()
    .enumerate()
    {
        let target = format!("/passed-{number}");
        for version in [1, 2] {
            let fields = format!(
                "X-Fields: {response}\r\nX-Ranges: 1\r\nX-Number: {version}\r\nX-Size: {SIZE}\r\n\
                 Range: bytes=1100000-1100099\r\n"
            );
            let part = client.get_with(&target, &fields).await;
            assert_part(&part, version, 1_100_000, 1_100_100);
        }
    }
    // An origin without ranges sends all.
    let fields =
        "X-Fields: Cache-Control: max-age=60 | ETag: \"a\"\r\nX-Size: 5000\r\nRange: bytes=10-19\r\n";
    let whole = client.get_with("/whole", fields).await;
    assert_eq!((whole.status, whole.body.len()), (200, 5000));
    let _ = number_of(&whole);
    let missing = client.get_with("/missing", "X-Status: 404\r\nRange: bytes=10-19\r\n").await;
    assert_eq!(missing.status, 404);
}

async fn an_unsafe_method_and_a_newer_whole_replace_slices(scene: Scene) {
    let (mut client, key) = (scene.connect().await, log_key());
    let old = fields(9, "\"a\"", "max-age=60", &key);
    assert_part(&until_hit(&scene, &mut client, &old, "0-99").await, 9, 0, 100);
    assert_eq!(client.ask("DELETE", "/x", "", "").await.status, 200);
    let new = fields(10, "\"b\"", "max-age=60", &key);
    assert_part(&get_range(&mut client, &new, "0-99").await, 10, 0, 100);
    let newest = fields(11, "\"c\"", "max-age=60", &key);
    let whole = client.get_with("/x", &newest).await;
    assert!(whole.body == body(11, SIZE));
    assert_part(&until_hit(&scene, &mut client, &newest, "0-99").await, 11, 0, 100);
    assert_part(&until_hit(&scene, &mut client, &newest, "-9").await, 11, SIZE - 9, SIZE);
}

async fn the_fetch_of_a_slice_goes_on_when_its_client_has_left(scene: Scene) {
    let (gate, key) = (log_key(), log_key());
    let fields = fields(12, "\"a\"", "max-age=60", &key);
    let mut leaving = scene.connect().await;
    let gated =
        format!("GET /x HTTP/1.1\r\nHost: test\r\n{fields}X-Gate: {gate}\r\nRange: bytes=0-99\r\n\r\n");
    leaving.send(gated).await;
    scene.until(|| !logged(&key).is_empty()).await;
    drop(leaving);
    open_gate(&gate);
    let mut client = scene.connect().await;
    let cached = format!("{fields}Cache-Control: only-if-cached\r\n");
    loop {
        let part = get_range(&mut client, &cached, "200-299").await;
        if part.status == 206 {
            break assert_part(&part, 12, 200, 300);
        }
        assert_eq!(part.status, 504);
        scene.io.sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(logged(&key).len(), 1);
}

/// The origin would count a download for the fetch of a slice, too.
async fn a_range_of_a_public_link_is_requested_once_and_not_in_slices(scene: Scene) {
    let (mut client, key) = (scene.connect().await, log_key());
    let fields = fields(3, "\"a\"", "max-age=60", &key);
    let target = format!("/s/{}", "0123456789abcdef".repeat(2));
    for _ in 0..2 {
        let part = client.get_with(&target, &format!("{fields}Range: bytes=100-199\r\n")).await;
        assert_part(&part, 3, 100, 200);
        assert_eq!(cache_status(&part), "plimsoll; fwd=bypass; detail=link");
    }
    let request = format!("GET {target} bytes=100-199");
    assert_eq!(logged(&key), [request.clone(), request]);
}

behaviours!(scenario but process and tls;
    a_range_of_a_public_link_is_requested_once_and_not_in_slices,
    a_range_fetches_its_slices_only_and_is_answered_from_them_again,
    many_clients_share_the_fetch_of_a_slice,
    slices_of_two_versions_are_never_joined,
    a_range_whose_later_slice_cannot_be_stored_is_sent_to_its_end,
    stale_slices_are_validated,
    a_stale_whole_response_is_validated_by_a_range_and_not_fetched_again,
    ranges_that_cannot_be_stored_are_passed_through,
    an_unsafe_method_and_a_newer_whole_replace_slices,
    the_fetch_of_a_slice_goes_on_when_its_client_has_left,
);
