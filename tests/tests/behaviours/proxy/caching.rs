//! The proxy's cache: storing, sharing between clients, freshness, and fetches in progress.

use std::time::Duration;

use plimsoll_io::Address;
use plimsoll_tests::{Scenario, Scene, behaviours, together};

use super::cached::{FRESH, LARGE, cache_status, caching, get, log_key, number_of, open_gate, scenario};

async fn a_fresh_response_is_sent_again_without_the_origin(scene: Scene) {
    let mut client = scene.connect().await;
    for size in [20, 1, 30_000, LARGE] {
        let target = format!("/{size}");
        for chunked in ["", "X-Chunked: 1\r\n"] {
            let target = format!("{target}{}", chunked.len());
            let fields = format!("{FRESH}X-Size: {}\r\n{chunked}", size.max(20));
            let first = client.get_with(&target, &fields).await;
            assert_eq!(cache_status(&first), "plimsoll; fwd=uri-miss; stored");
            assert_eq!(first.body.len(), size.max(20));
            let second = client.get_with(&target, &fields).await;
            assert_eq!(number_of(&first), number_of(&second));
            assert_eq!(second.field("Age").map(|age| age.parse::<u64>().unwrap() < 60), Some(true));
            let other = scene.get_with(&target, &fields).await;
            assert_eq!(number_of(&first), number_of(&other));
        }
    }
    let hit = client.get_with("/207", FRESH).await;
    let _ = number_of(&hit);
    scene.io.sleep(Duration::from_secs(2)).await;
    let (target, fields) = (format!("/{LARGE}0"), format!("{FRESH}X-Size: {LARGE}\r\n"));
    let hit = client.get_with(&target, &fields).await;
    assert!(cache_status(&hit).starts_with("plimsoll; hit; ttl="), "{}", cache_status(&hit));
}

async fn a_stale_response_is_validated_and_sent_again(scene: Scene) {
    let mut client = scene.connect().await;
    let fields = "X-Fields: Cache-Control: max-age=0 | ETag: \"a\"\r\n";
    let (first, _) = get(&mut client, fields).await;
    let second = client.get_with("/x", fields).await;
    assert_eq!(number_of(&second), first);
    assert_eq!(cache_status(&second), "plimsoll; fwd=stale; fwd-status=304");
    assert_eq!(second.field("X-Validated"), Some("1"));
    let changed = "X-Fields: Cache-Control: max-age=60 | ETag: \"b\"\r\n";
    let (third, _) = get(&mut client, changed).await;
    assert_ne!(third, first);
    assert_eq!(get(&mut client, changed).await.0, third);
}

async fn a_304_of_another_version_costs_no_connection(scene: Scene) {
    let mut client = scene.connect().await;
    let version = |tag: &str| format!("X-Fields: Cache-Control: max-age=0 | ETag: \"{tag}\"\r\n");
    let first = client.get_with("/x", &version("a")).await;
    let second = client.get_with("/x", &format!("{}X-Unmodified: 1\r\n", version("b"))).await;
    assert_ne!(number_of(&second), number_of(&first));
    assert_eq!((second.status, second.field("ETag")), (200, Some("\"b\"")));
    assert_eq!(second.field("X-Connection"), first.field("X-Connection"));
}

async fn the_conditions_of_a_client_are_answered_by_the_cache(scene: Scene) {
    let mut client = scene.connect().await;
    let fields = "X-Fields: Cache-Control: max-age=60 | ETag: \"a\"\r\n";
    let (first, _) = get(&mut client, &format!("{fields}If-None-Match: \"other\"\r\n")).await;
    let known = client.get_with("/x", &format!("{fields}If-None-Match: \"a\"\r\n")).await;
    assert_eq!((known.status, known.field("ETag"), known.body.len()), (304, Some("\"a\""), 0));
    assert_eq!(get(&mut client, fields).await.0, first);
    let head = client.head_with("/x", fields).await;
    assert_eq!((head.status, head.field("Content-Length")), (200, Some("20")));
}

async fn many_clients_share_one_fetch_and_get_the_same_bytes(scene: Scene) {
    for (round, chunked) in ["", "X-Chunked: 1\r\n"].into_iter().enumerate() {
        let visits = (0..8).map(|_| {
            let scene = scene.clone();
            async move {
                let fields = format!("{FRESH}X-Delay: 30\r\nX-Size: {LARGE}\r\n{chunked}");
                let answer = scene.get_with(&format!("/shared-{round}"), &fields).await;
                assert_eq!(answer.body.len(), LARGE);
                (number_of(&answer), cache_status(&answer).to_owned())
            }
        });
        let answers = together(visits).await;
        let first = answers[0].0;
        assert!(answers.iter().all(|(number, _)| *number == first), "{answers:?}");
        assert!(answers.iter().any(|(_, status)| status.contains("collapsed")), "{answers:?}");
    }
}

async fn a_response_that_must_be_validated_is_not_shared_while_it_is_fetched(scene: Scene) {
    for (number, fields) in ["Cache-Control: no-cache | ETag: \"a\"", "ETag: \"a\""].into_iter().enumerate() {
        let visits = (0..6).map(|_| {
            let scene = scene.clone();
            async move {
                let fields = format!("X-Fields: {fields}\r\nX-Delay: 20\r\n");
                cache_status(&scene.get_with(&format!("/validated-{number}"), &fields).await).to_owned()
            }
        });
        let statuses = together(visits).await;
        assert!(statuses.iter().all(|status| !status.contains("collapsed")), "{statuses:?}");
    }
}

async fn responses_to_one_person_are_never_shared(scene: Scene) {
    for (number, fields) in [
        "X-Fields: Cache-Control: private, max-age=60\r\n",
        "X-Fields: Cache-Control: no-store, max-age=60\r\n",
        "X-Fields: Cache-Control: public, max-age=60 | Set-Cookie: a=b\r\n",
        "X-Fields: Cache-Control: max-age=60 | Vary: *\r\n",
        "X-Fields: Cache-Control: max-age=60\r\nAuthorization: Basic eDp5\r\n",
    ]
    .into_iter()
    .enumerate()
    {
        let target = format!("/private-{number}");
        let visits = (0..6).map(|_| {
            let (scene, target) = (scene.clone(), target.clone());
            async move { number_of(&scene.get_with(&target, &format!("{fields}X-Delay: 20\r\n")).await) }
        });
        let mut numbers = together(visits).await;
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), 6, "{fields}");
    }
}

async fn a_request_with_credentials_gets_only_what_may_be_shared(scene: Scene) {
    let mut client = scene.connect().await;
    let credentials = "Authorization: Basic eDp5\r\n";
    let (anonymous, _) = get(&mut client, FRESH).await;
    assert_ne!(get(&mut client, &format!("{FRESH}{credentials}")).await.0, anonymous);
    assert_eq!(get(&mut client, FRESH).await.0, anonymous);
    let public = "X-Fields: Cache-Control: public, max-age=60\r\n";
    let first = client.get_with("/public", &format!("{public}{credentials}")).await;
    for fields in [public.to_owned(), format!("{public}{credentials}")] {
        let again = client.get_with("/public", &fields).await;
        assert_eq!(number_of(&again), number_of(&first));
    }
}

async fn vary_selects_among_the_responses_of_one_target(scene: Scene) {
    let mut client = scene.connect().await;
    let fields = |language: &str| {
        format!(
            "X-Fields: Cache-Control: max-age=60 | Vary: Accept-Language\r\nAccept-Language: {language}\r\n"
        )
    };
    let (german, _) = get(&mut client, &fields("de")).await;
    let (english, status) = get(&mut client, &fields("en")).await;
    assert_ne!(german, english);
    assert_eq!(status, "plimsoll; fwd=vary-miss; stored");
    assert_eq!(get(&mut client, &fields("de")).await.0, german);
    assert_eq!(get(&mut client, &fields("en")).await.0, english);
}

async fn an_unsafe_method_invalidates_its_target(scene: Scene) {
    let mut client = scene.connect().await;
    for size in [20, LARGE] {
        let fields = format!("{FRESH}X-Size: {size}\r\n");
        let (first, _) = get(&mut client, &fields).await;
        assert_eq!(get(&mut client, &fields).await.0, first);
        assert_eq!(client.ask("POST", "/x", "X-Status: 500\r\n", "").await.status, 500);
        assert_eq!(get(&mut client, &fields).await.0, first, "an error invalidates nothing");
        assert_eq!(client.ask("DELETE", "/x", "", "").await.status, 200);
        assert_ne!(get(&mut client, &fields).await.0, first);
        assert_eq!(client.ask("POST", "/x", "", "").await.status, 200);
    }
}

async fn ranges_are_taken_from_whole_responses(scene: Scene) {
    let mut client = scene.connect().await;
    for size in [2_000, LARGE] {
        let (target, fields) = (format!("/{size}"), format!("{FRESH}X-Size: {size}\r\n"));
        let whole = client.get_with(&target, &fields).await;
        for (range, start, end) in
            [("0-0", 0, 1), ("100-299", 100, 300), ("-5", size - 5, size), ("7-", 7, size)]
        {
            let part = client.get_with(&target, &format!("{fields}Range: bytes={range}\r\n")).await;
            assert_eq!((part.status, &part.body[..]), (206, &whole.body[start..end]), "{range}");
            let expected = format!("bytes {start}-{}/{size}", end - 1);
            assert_eq!(part.field("Content-Range"), Some(&*expected));
        }
        let beyond = client.get_with(&target, &format!("{fields}Range: bytes={size}-\r\n")).await;
        assert_eq!(beyond.status, 416);
        assert_eq!(beyond.field("Content-Range"), Some(&*format!("bytes */{size}")));
    }
}

async fn a_stale_response_is_sent_if_the_origin_fails(scene: Scene) {
    let mut client = scene.connect().await;
    let fields = "X-Fields: Cache-Control: max-age=0, stale-if-error=60 | ETag: \"a\"\r\n";
    let (first, _) = get(&mut client, fields).await;
    for failure in ["X-Status: 503\r\n", "X-Status: 500\r\n"] {
        assert_eq!(get(&mut client, &format!("X-Size: 30\r\n{failure}")).await.0, first, "{failure}");
    }
    let strict = client.get_with("/y", "X-Fields: Cache-Control: max-age=0 | ETag: \"a\"\r\n").await;
    assert_eq!(strict.status, 200);
    assert_eq!(client.get_with("/y", "X-Status: 503\r\n").await.status, 503);
}

async fn a_stale_response_is_sent_while_it_is_validated(scene: Scene) {
    let mut client = scene.connect().await;
    let fields = "X-Fields: Cache-Control: max-age=0, stale-while-revalidate=60\r\n";
    let (first, _) = get(&mut client, fields).await;
    let (second, status) = get(&mut client, FRESH).await;
    assert_eq!(second, first);
    assert!(status.starts_with("plimsoll; hit; ttl=") && !status.contains("fwd"), "{status}");
    loop {
        let (third, status) = get(&mut client, FRESH).await;
        assert!(status.starts_with("plimsoll; hit"), "{status}");
        if third != first {
            break;
        }
        scene.io.sleep(Duration::from_millis(5)).await;
    }
}

async fn a_client_does_not_wait_for_the_validation_of_its_stale_response(scene: Scene) {
    let mut client = scene.connect().await;
    let stale = "X-Fields: Cache-Control: max-age=0, stale-while-revalidate=60\r\n";
    for target in ["/kept-alive", "/closed"] {
        let gate = log_key();
        let first = number_of(&client.get_with(target, stale).await);
        let fields = format!("{FRESH}X-Gate: {gate}\r\n");
        let second = match target {
            "/kept-alive" => client.get_with(target, &fields).await,
            // This waits for the end of the connection.
            _ => scene.get_with(target, &fields).await,
        };
        assert_eq!(number_of(&second), first);
        assert_eq!(client.get("/other").await.status, 200, "the validation is still in progress");
        open_gate(&gate);
        while number_of(&client.get_with(target, FRESH).await) == first {
            scene.io.sleep(Duration::from_millis(5)).await;
        }
    }
}

async fn a_fetch_goes_on_when_its_client_has_left(scene: Scene) {
    let fields = format!("{FRESH}X-Delay: 100\r\nX-Size: {LARGE}\r\n");
    let mut first = scene.connect().await;
    first.send(format!("GET /left HTTP/1.1\r\nHost: test\r\n{fields}\r\n")).await;
    scene.io.sleep(Duration::from_millis(20)).await;
    let follower = scene.get_with("/left", &fields);
    let leaving = async {
        scene.io.sleep(Duration::from_millis(20)).await;
        drop(first);
    };
    let (answer, ()) = plimsoll_io::join(follower, leaving).await;
    assert_eq!(answer.body.len(), LARGE);
    let again = scene.get_with("/left", &fields).await;
    assert_eq!(number_of(&again), number_of(&answer));
}

async fn a_response_that_was_cut_short_is_never_stored(scene: Scene) {
    for size in [1_000, LARGE] {
        let fields = format!("{FRESH}X-Size: {size}\r\n");
        let mut client = scene.connect().await;
        client.send(format!("GET /{size} HTTP/1.1\r\nHost: test\r\n{fields}X-Cut: 1\r\n\r\n")).await;
        client.expect_abort().await;
        let whole = scene.get_with(&format!("/{size}"), &fields).await;
        assert_eq!(whole.body.len(), size);
        let _ = number_of(&whole);
    }
}

async fn requests_choose_how_the_cache_is_used(scene: Scene) {
    let mut client = scene.connect().await;
    let only = "Cache-Control: only-if-cached\r\n";
    assert_eq!(client.get_with("/x", only).await.status, 504);
    let (first, _) = get(&mut client, FRESH).await;
    assert_eq!(get(&mut client, only).await.0, first);
    let (reloaded, status) = get(&mut client, &format!("{FRESH}Cache-Control: no-cache\r\n")).await;
    assert_ne!(reloaded, first);
    assert!(status.contains("fwd=request"), "{status}");
    assert_eq!(get(&mut client, FRESH).await.0, reloaded);
    let (uncached, status) = get(&mut client, &format!("{FRESH}Cache-Control: no-store\r\n")).await;
    assert_ne!(uncached, reloaded);
    assert_eq!(status, "plimsoll; fwd=bypass; detail=no-store");
    assert_eq!(get(&mut client, FRESH).await.0, reloaded);
}

async fn a_head_response_of_another_version_removes_the_stored_one(scene: Scene) {
    let mut client = scene.connect().await;
    let version = |tag: &str| format!("X-Fields: Cache-Control: max-age=60 | ETag: \"{tag}\"\r\n");
    let ask = |tag: &str| format!("{}Cache-Control: no-cache\r\n", version(tag));
    let (first, _) = get(&mut client, &version("a")).await;
    assert_eq!(client.head_with("/x", &ask("a")).await.status, 200);
    assert_eq!(get(&mut client, &version("a")).await.0, first, "the same version");
    assert_eq!(client.head_with("/x", &ask("b")).await.field("ETag"), Some("\"b\""));
    let (second, status) = get(&mut client, &version("b")).await;
    assert!(second != first && status.contains("fwd=uri-miss"), "{status}");
    let longer = format!("{}X-Size: 30\r\n", ask("b"));
    assert_eq!(client.head_with("/x", &longer).await.field("Content-Length"), Some("30"));
    assert_ne!(get(&mut client, &version("b")).await.0, second, "the length has changed");
}

async fn a_head_response_without_a_validator_makes_nothing_fresh(scene: Scene) {
    let mut client = scene.connect().await;
    get(&mut client, "X-Fields: Cache-Control: max-age=2 | ETag: \"a\"\r\n").await;
    scene.io.sleep(Duration::from_millis(1_200)).await;
    let head = client.head_with("/x", "X-Fields: A: b\r\nCache-Control: no-cache\r\n").await;
    assert_eq!((head.status, head.field("ETag")), (200, None));
    scene.io.sleep(Duration::from_millis(1_200)).await;
    let (_, status) = get(&mut client, "X-Fields: Cache-Control: max-age=60 | ETag: \"b\"\r\n").await;
    assert!(status.contains("fwd=stale"), "{status}");
    let forbidden = "X-Fields: Cache-Control: no-store | ETag: \"b\"\r\nCache-Control: no-cache\r\n";
    assert_eq!(client.head_with("/x", forbidden).await.status, 200);
    let (_, status) = get(&mut client, "X-Fields: ETag: \"b\"\r\n").await;
    assert!(status.contains("fwd=uri-miss"), "{status}");
}

async fn invalid_freshness_is_stale_and_a_meaningless_date_gives_none(scene: Scene) {
    let mut client = scene.connect().await;
    let old = "Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT";
    for (number, fields) in [
        format!("{old} | Cache-Control: public; max-age=1"),
        format!("{old} | Cache-Control: max-age=-5"),
        format!("{old} | Cache-Control: no-store; foo"),
        format!("{old} | Cache-Control: max-age=60;no-store"),
        format!("{old} | Cache-Control: max-age=60, a=\"b, no-store"),
        "Last-Modified: Thu, 01 Jan 1970 00:00:01 GMT".to_owned(),
        "Last-Modified: Tue, 01 Jan 1980 00:00:00 GMT".to_owned(),
        "Last-Modified: Wed, 01 Jan 2200 00:00:00 GMT".to_owned(),
    ]
    .into_iter()
    .enumerate()
    {
        let target = format!("/invalid-{number}");
        let first = client.get_with(&target, &format!("X-Fields: {fields}\r\n")).await;
        let second = client.get_with(&target, "X-Fields: A: b\r\n").await;
        assert_ne!(number_of(&first), number_of(&second), "{fields}");
    }
}

async fn negative_responses_are_stored_for_a_short_time(scene: Scene) {
    let mut client = scene.connect().await;
    let first = client.get_with("/none", "X-Status: 404\r\n").await;
    let second = client.get_with("/none", "").await;
    assert_eq!((first.status, second.status), (404, 404));
    assert_eq!(number_of(&first), number_of(&second));
    scene.io.sleep(Duration::from_secs(6)).await;
    assert_eq!(client.get_with("/none", "").await.status, 200);
}

/// The origin is also reached as a forwarded host.
fn forwarding() -> Scenario {
    let proxy = |origin: &Address| {
        let mut settings = caching(origin);
        let url = settings.origins.origins()[0].url().clone();
        settings.forward.add("forwarded.test", &url, None);
        settings
    };
    Scenario { proxy: Some(proxy), ..scenario() }
}

async fn responses_of_a_forwarded_host_are_never_mixed_with_those_of_the_origins(scene: Scene) {
    let mut client = scene.connect().await;
    let path = format!("GET /x HTTP/1.1\r\nHost: forwarded.test\r\n{FRESH}\r\n");
    client.send(path.clone()).await;
    let origins = number_of(&client.answer().await);
    let url = "http://forwarded.test/x";
    let forwarded = number_of(&client.get_with(url, FRESH).await);
    assert_ne!(forwarded, origins);
    let hit = client.get_with(url, FRESH).await;
    assert_eq!(number_of(&hit), forwarded);
    assert!(cache_status(&hit).starts_with("plimsoll; hit"), "{}", cache_status(&hit));
    assert_eq!(client.ask("DELETE", url, "", "").await.status, 200);
    client.send(path).await;
    let hit = client.answer().await;
    assert_eq!(number_of(&hit), origins);
    assert!(cache_status(&hit).starts_with("plimsoll; hit"), "{}", cache_status(&hit));
    assert!(number_of(&client.get_with(url, FRESH).await) > forwarded, "removed by DELETE");
}

mod forwarded {
    use super::{
        behaviours, forwarding, responses_of_a_forwarded_host_are_never_mixed_with_those_of_the_origins,
    };

    behaviours!(forwarding but process and tls;
        responses_of_a_forwarded_host_are_never_mixed_with_those_of_the_origins,
    );
}

behaviours!(scenario but process and tls;
    a_fresh_response_is_sent_again_without_the_origin,
    a_stale_response_is_validated_and_sent_again,
    the_conditions_of_a_client_are_answered_by_the_cache,
    a_304_of_another_version_costs_no_connection,
    many_clients_share_one_fetch_and_get_the_same_bytes,
    a_response_that_must_be_validated_is_not_shared_while_it_is_fetched,
    responses_to_one_person_are_never_shared,
    a_request_with_credentials_gets_only_what_may_be_shared,
    vary_selects_among_the_responses_of_one_target,
    an_unsafe_method_invalidates_its_target,
    ranges_are_taken_from_whole_responses,
    a_stale_response_is_sent_if_the_origin_fails,
    a_stale_response_is_sent_while_it_is_validated,
    a_client_does_not_wait_for_the_validation_of_its_stale_response,
    a_fetch_goes_on_when_its_client_has_left,
    a_response_that_was_cut_short_is_never_stored,
    requests_choose_how_the_cache_is_used,
    a_head_response_of_another_version_removes_the_stored_one,
    a_head_response_without_a_validator_makes_nothing_fresh,
    invalid_freshness_is_stale_and_a_meaningless_date_gives_none,
    negative_responses_are_stored_for_a_short_time,
);
