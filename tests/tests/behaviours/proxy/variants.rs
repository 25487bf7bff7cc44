//! The selection among stored responses: by the fields of a request as the origin gets them, and no others.

use std::time::Duration;

use plimsoll_io::Address;
use plimsoll_proxy::{FieldRules, Settings};
use plimsoll_tests::{Scenario, Scene, behaviours, together};

use super::cached::{FRESH, cache_status, caching, get, log_key, number_of, open_gate, scenario};
use super::origin::scripted_scenario;

/// The fields by which responses vary in these scenes, with values.
const SELECTING: [(&str, &str); 3] =
    [("Origin", "https://app.example"), ("Cookie", "a=b"), ("Accept-Language", "de")];

fn varying(name: &str) -> String {
    format!("X-Fields: Cache-Control: max-age=60 | Vary: {name}\r\n")
}

async fn a_field_that_ends_at_the_proxy_does_not_select(scene: Scene) {
    let mut client = scene.connect().await;
    for (name, value) in SELECTING {
        let (target, fields) = (format!("/{name}"), varying(name));
        let hidden = format!("{fields}{name}: {value}\r\nConnection: {}\r\n", name.to_lowercase());
        let without = number_of(&client.get_with(&target, &hidden).await);
        let with = client.get_with(&target, &format!("{fields}{name}: {value}\r\n")).await;
        assert_ne!(number_of(&with), without, "{name}");
        assert_eq!(cache_status(&with), "plimsoll; fwd=vary-miss; stored");
        let again = client.get_with(&target, &fields).await;
        assert_eq!(number_of(&again), without, "the response without {name}");
        assert!(cache_status(&again).starts_with("plimsoll; hit"), "{}", cache_status(&again));
    }
}

async fn a_shared_fetch_answers_no_request_whose_fields_the_origin_did_not_get(scene: Scene) {
    for (name, value) in SELECTING {
        let (target, gate) = (format!("/shared-{name}"), log_key());
        let fields = format!("{}X-Gate: {gate}\r\n{name}: {value}\r\n", varying(name));
        let mut first = scene.connect().await;
        let hidden = format!("{fields}Connection: {name}\r\n");
        first.send(format!("GET {target} HTTP/1.1\r\nHost: test\r\n{hidden}\r\n")).await;
        scene.io.sleep(Duration::from_millis(200)).await;
        let mut second = scene.connect().await;
        second.send(format!("GET {target} HTTP/1.1\r\nHost: test\r\n{fields}\r\n")).await;
        scene.io.sleep(Duration::from_millis(200)).await;
        open_gate(&gate);
        let (without, with) = (number_of(&first.answer().await), number_of(&second.answer().await));
        assert_ne!(without, with, "{name}");
    }
}

async fn a_host_in_another_form_reaches_the_origin_in_the_form_of_the_key(scene: Scene) {
    let mut client = scene.connect().await;
    let with_port = if scene.scheme() == "https" { "test:443" } else { "test:80" };
    for host in ["TEST", with_port, "Test:"] {
        client.send(format!("GET /head HTTP/1.1\r\nHost: {host}\r\n\r\n")).await;
        let seen = client.answer().await.text();
        assert!(seen.starts_with("GET /head HTTP/1.1\r\nHost: test\r\n"), "{seen}");
        assert!(seen.contains("host=\"test\"\r\n") && seen.contains("X-Forwarded-Host: test\r\n"), "{seen}");
    }
}

async fn a_field_with_an_unusual_name_does_not_reach_the_origin(scene: Scene) {
    let mut client = scene.connect().await;
    let sent = "If_Match: \"a\"\r\nAccept_Language: de\r\nAccept.Encoding: gzip\r\nX!Y: 1\r\nX-Z: 1\r\n";
    let seen = client.get_with("/head", sent).await.text();
    for gone in ["If_Match", "Accept_Language", "Accept.Encoding", "X!Y"] {
        assert!(!seen.contains(gone), "{gone}: {seen}");
    }
    assert!(seen.contains("X-Z: 1\r\n"), "{seen}");
    client.send("PUT /upload HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n").await;
    client.send("1\r\na\r\n0\r\nIf_Match: b\r\nX-Z: c\r\n\r\n").await;
    assert_eq!(client.answer().await.text(), "1\r\na\r\n0\r\nX-Z: c\r\n\r\n");
}

async fn a_response_with_a_malformed_vary_is_not_stored(scene: Scene) {
    let mut client = scene.connect().await;
    for (number, vary) in ["A;B", "\"A\"", "A, B C", "X-Forwarded-Host"].into_iter().enumerate() {
        let (target, fields) = (format!("/malformed-{number}"), varying(vary));
        let first = client.get_with(&target, &fields).await;
        assert_eq!(cache_status(&first), "plimsoll; fwd=uri-miss; detail=vary", "{vary}");
        assert_ne!(number_of(&client.get_with(&target, &fields).await), number_of(&first), "{vary}");
    }
}

async fn a_page_for_a_cookie_is_stored_only_if_it_states_its_freshness(scene: Scene) {
    let mut client = scene.connect().await;
    let modified = "X-Fields: Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\n";
    let (first, status) = get(&mut client, &format!("{modified}Cookie: a=b\r\n")).await;
    assert_eq!(status, "plimsoll; fwd=uri-miss; detail=cookie");
    let (second, _) = get(&mut client, modified).await;
    assert_ne!(first, second);
    let (third, status) = get(&mut client, &format!("{modified}Cookie: a=b\r\n")).await;
    assert!(third == second && status.starts_with("plimsoll; hit"), "{status}");
    let stated = client.get_with("/stated", &format!("{FRESH}Cookie: a=b\r\n")).await;
    assert_eq!(cache_status(&stated), "plimsoll; fwd=uri-miss; stored");
}

async fn a_request_waits_two_seconds_at_most_for_the_fetch_of_another(scene: Scene) {
    for (target, stays) in [("/slow", true), ("/slow-and-left", false)] {
        let mut slow = scene.connect().await;
        let fields = format!("{FRESH}X-Delay: 9000\r\n");
        slow.send(format!("GET {target} HTTP/1.1\r\nHost: test\r\n{fields}\r\n")).await;
        scene.io.sleep(Duration::from_millis(300)).await;
        let _kept = stays.then_some(slow);
        let start = scene.io.now();
        let visits = (0..3).map(|_| {
            let scene = scene.clone();
            async move { scene.get_with(target, FRESH).await.status }
        });
        assert!(together(visits).await.iter().all(|status| *status == 200));
        let waited = scene.io.now() - start;
        assert!(waited > Duration::from_millis(1900) && waited < Duration::from_secs(6), "{waited:?}");
        let hit = scene.get_with(target, FRESH).await;
        assert!(cache_status(&hit).starts_with("plimsoll; hit"), "{}", cache_status(&hit));
    }
}

async fn a_request_for_a_range_waits_two_seconds_at_most_for_a_slice(scene: Scene) {
    let fields = "X-Fields: Cache-Control: max-age=60 | ETag: \"a\"\r\nX-Ranges: 1\r\nX-Size: 3000000\r\n\
                  X-Number: 7\r\nRange: bytes=0-9\r\n";
    let mut slow = scene.connect().await;
    slow.send(format!("GET /part HTTP/1.1\r\nHost: test\r\n{fields}X-Delay: 9000\r\n\r\n")).await;
    scene.io.sleep(Duration::from_millis(300)).await;
    let start = scene.io.now();
    assert_eq!(scene.get_with("/part", fields).await.status, 206);
    let waited = scene.io.now() - start;
    assert!(waited < Duration::from_secs(6), "{waited:?}");
}

behaviours!(scenario but process and tls;
    a_field_that_ends_at_the_proxy_does_not_select,
    a_shared_fetch_answers_no_request_whose_fields_the_origin_did_not_get,
    a_response_with_a_malformed_vary_is_not_stored,
    a_page_for_a_cookie_is_stored_only_if_it_states_its_freshness,
    a_request_waits_two_seconds_at_most_for_the_fetch_of_another,
    a_request_for_a_range_waits_two_seconds_at_most_for_a_slice,
);

mod forwarded {
    use super::{
        a_field_with_an_unusual_name_does_not_reach_the_origin,
        a_host_in_another_form_reaches_the_origin_in_the_form_of_the_key, behaviours, scripted_scenario,
    };

    behaviours!(scripted_scenario and tls;
        a_host_in_another_form_reaches_the_origin_in_the_form_of_the_key,
        a_field_with_an_unusual_name_does_not_reach_the_origin,
    );
}

mod any_name {
    use super::{
        Address, FieldRules, Scenario, Scene, Settings, behaviours, cache_status, caching, scenario,
    };
    use super::{FRESH, number_of};

    fn keeping() -> Scenario {
        Scenario { proxy: Some(with_any_name), ..scenario() }
    }

    fn with_any_name(origin: &Address) -> Settings {
        let removed = vec!["X-Fields".to_owned()];
        Settings { fields: FieldRules { keeps_unusual_names: true, removed }, ..caching(origin) }
    }

    /// The origin of these scenes knows no names with `_`.
    async fn a_request_with_an_unusual_name_goes_past_the_cache(scene: Scene) {
        let mut client = scene.connect().await;
        let answer = client.get_with("/x", "Accept_Language: de\r\n").await;
        assert_eq!(cache_status(&answer), "plimsoll; fwd=bypass; detail=field-name");
    }

    async fn a_field_that_the_operator_names_does_not_reach_the_origin(scene: Scene) {
        let mut client = scene.connect().await;
        let first = client.get_with("/y", FRESH).await;
        assert_eq!(cache_status(&first), "plimsoll; fwd=uri-miss; detail=not-reusable");
        assert_ne!(number_of(&client.get_with("/y", FRESH).await), number_of(&first));
    }

    behaviours!(keeping but process and tls;
        a_request_with_an_unusual_name_goes_past_the_cache,
        a_field_that_the_operator_names_does_not_reach_the_origin,
    );
}
