//! Tests of storability and lifetimes, by section of RFC 9111.

use std::time::SystemTime;

use plimsoll_io::Instant;

use super::*;
use crate::cache::policy::{RequestDirectives, ResourceKey, Timestamp, Usability};

/// Sun, 06 Nov 1994 08:49:37 GMT.
const START: Duration = Duration::from_secs(784_111_777);

fn times() -> ExchangeTimes {
    let at = Timestamp { wall: SystemTime::UNIX_EPOCH + START, steady: Instant::default() };
    ExchangeTimes { sent: at, received: at }
}

fn get(lines: &str) -> CacheRequest<'_> {
    let key = ResourceKey::new("http", b"a", b"/");
    CacheRequest::new(Method::Get, key, FieldLines::new(lines.as_bytes()), false)
}

fn with(request: &str, code: u16, lines: &str) -> Result<Storable, NotStored> {
    let status = Status::from_code(code).unwrap();
    evaluate(&get(request), status, FieldLines::new(lines.as_bytes()), times())
}

fn response(code: u16, lines: &str) -> Result<Storable, NotStored> {
    with("", code, lines)
}

/// Returns the lifetime in seconds.
fn seconds(code: u16, lines: &str) -> i64 {
    response(code, lines).unwrap().freshness.seconds_left(times().received.steady)
}

#[test]
fn section_3_only_responses_to_get_with_a_final_status_are_stored() {
    let post = CacheRequest { method: Method::Post, ..get("") };
    let fields = FieldLines::new(b"Cache-Control: max-age=9\r\n");
    assert_eq!(evaluate(&post, Status::OK, fields, times()), Err(NotStored::Method));
    assert_eq!(response(206, "Cache-Control: max-age=9\r\n"), Err(NotStored::Partial));
    assert_eq!(response(304, "Cache-Control: max-age=9\r\n"), Err(NotStored::Status));
    assert_eq!(seconds(599, "Cache-Control: max-age=9\r\n"), 9);
    assert_eq!(response(599, "ETag: \"a\"\r\n"), Err(NotStored::Status));
    assert_eq!(response(302, "ETag: \"a\"\r\n"), Err(NotStored::Status));
}

#[test]
fn section_3_no_store_and_private_are_never_stored_in_any_spelling() {
    let refused = [
        ("no-store, max-age=9", NotStored::NoStore),
        ("max-age=9,NO-STORE", NotStored::NoStore),
        ("private, max-age=9, public", NotStored::Private),
        ("Private=\"x-a\", max-age=9", NotStored::Private),
    ];
    for (value, reason) in refused {
        assert_eq!(response(200, &format!("Cache-Control: {value}\r\n")), Err(reason), "{value}");
    }
    let of_request = with("Cache-Control: no-store\r\n", 200, "Cache-Control: max-age=9\r\n");
    assert_eq!(of_request, Err(NotStored::RequestNoStore));
}

#[test]
fn section_3_5_a_response_to_credentials_is_stored_only_if_it_permits_sharing() {
    let credentials = "Authorization: Basic eDp5\r\n";
    let with_credentials = |value| with(credentials, 200, &format!("Cache-Control: {value}\r\n"));
    assert_eq!(with_credentials("max-age=9"), Err(NotStored::Authorization));
    for value in ["max-age=9, public", "s-maxage=9", "max-age=9, must-revalidate"] {
        assert!(with_credentials(value).unwrap().is_for_authorized, "{value}");
    }
    let expires = "Expires: Sun, 06 Nov 1994 09:49:37 GMT\r\n";
    assert_eq!(with(credentials, 200, expires), Err(NotStored::Authorization));
    assert!(!response(200, "Cache-Control: max-age=9\r\n").unwrap().is_for_authorized);
}

#[test]
fn a_response_that_sets_a_cookie_is_never_stored() {
    for value in ["max-age=9", "public, max-age=9", "immutable, max-age=9", "s-maxage=9"] {
        let lines = format!("Cache-Control: {value}\r\nset-cookie: a=b\r\n");
        assert_eq!(response(200, &lines), Err(NotStored::SetCookie), "{value}");
    }
}

#[test]
fn a_response_to_a_cookie_is_stored_only_if_it_states_its_freshness() {
    let changed = "Last-Modified: Sun, 06 Nov 1994 08:47:57 GMT\r\nETag: \"a\"\r\n";
    let with_cookie = |code, lines: &str| with("Cookie: a=b\r\n", code, &format!("{changed}{lines}"));
    for lines in ["", "Cache-Control: public\r\n", "Cache-Control: must-revalidate\r\n"] {
        assert_eq!(with_cookie(200, lines), Err(NotStored::Cookie), "{lines}");
        assert!(response(200, &format!("{changed}{lines}")).is_ok(), "{lines}");
    }
    assert_eq!(with_cookie(404, ""), Err(NotStored::Cookie));
    let expires = "Expires: Sun, 06 Nov 1994 09:49:37 GMT\r\n";
    for lines in [expires, "Cache-Control: max-age=9\r\n", "Cache-Control: no-cache\r\n"] {
        assert!(with_cookie(200, lines).is_ok(), "{lines}");
    }
}

#[test]
fn section_4_1_vary_star_is_never_stored() {
    for vary in ["Vary: *\r\n", "Vary: a\r\nVary: *\r\n", "vary: a, *\r\n"] {
        let lines = format!("Cache-Control: max-age=9\r\n{vary}");
        assert_eq!(response(200, &lines), Err(NotStored::Vary), "{vary}");
    }
}

#[test]
fn section_4_2_1_s_maxage_precedes_max_age_and_that_precedes_expires() {
    let expires = "Expires: Sun, 06 Nov 1994 09:49:37 GMT\r\n";
    assert_eq!(seconds(200, &format!("Cache-Control: max-age=9, s-maxage=5\r\n{expires}")), 5);
    assert_eq!(seconds(200, &format!("Cache-Control: Max-Age=9\r\n{expires}")), 9);
    assert_eq!(seconds(200, expires), 3600);
}

#[test]
fn section_4_2_1_conflicting_freshness_is_stale() {
    assert_eq!(seconds(200, "Cache-Control: max-age=9, max-age=5\r\nETag: \"a\"\r\n"), 0);
    assert_eq!(seconds(200, "Cache-Control: max-age=-9\r\nETag: \"a\"\r\n"), 0);
}

#[test]
fn section_5_3_expires_counts_from_date_in_any_of_the_three_forms() {
    for expires in
        ["Sun, 06 Nov 1994 08:49:47 GMT", "Sunday, 06-Nov-94 08:49:47 GMT", "Sun Nov  6 08:49:47 1994"]
    {
        assert_eq!(seconds(200, &format!("Expires: {expires}\r\n")), 10, "{expires}");
    }
    let later = "Date: Sun, 06 Nov 1994 08:49:40 GMT\r\nExpires: Sun, 06 Nov 1994 08:49:47 GMT\r\n";
    assert_eq!(seconds(200, later), 7);
    for invalid in ["0", "-1", "soon", ""] {
        assert_eq!(seconds(200, &format!("Expires: {invalid}\r\nETag: \"a\"\r\n")), 0, "{invalid}");
    }
}

#[test]
fn section_4_2_2_a_heuristic_lifetime_is_a_tenth_of_the_time_since_the_last_change_and_bounded() {
    let date = "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n";
    let changed = |when| format!("{date}Last-Modified: {when}\r\n");
    for code in [200, 203, 204, 300, 301, 308] {
        assert_eq!(seconds(code, &changed("Sun, 06 Nov 1994 08:47:57 GMT")), 10, "{code}");
    }
    let bound = i64::try_from(HEURISTIC_TIME_MAX.as_secs()).unwrap();
    assert_eq!(seconds(200, &changed("Tue, 06 Nov 1984 08:47:57 GMT")), bound);
    assert_eq!(response(307, &changed("Tue, 06 Nov 1984 08:47:57 GMT")), Err(NotStored::Status));
}

#[test]
fn section_4_2_1_invalid_freshness_is_stale_whatever_a_heuristic_says() {
    let old = "Last-Modified: Tue, 06 Nov 1984 08:47:57 GMT\r\nETag: \"a\"\r\n";
    for value in
        ["public; max-age=1", "max-age=-5", "max-age=x", "max-age", "max-age =60", "public max-age=60"]
    {
        let stored = response(200, &format!("{old}Cache-Control: {value}\r\n")).unwrap();
        let usability = stored.freshness.usability(&RequestDirectives::default(), times().received.steady);
        assert_eq!(usability, Usability::MustValidate, "{value}");
    }
    for value in ["no-store; foo", "max-age=60;no-store", "max-age=60, ext=\"a, no-store"] {
        let refused = response(200, &format!("{old}Cache-Control: {value}\r\n"));
        assert_eq!(refused, Err(NotStored::NoStore), "{value}");
    }
}

#[test]
fn a_date_that_does_not_distinguish_versions_gives_no_lifetime_and_is_no_validator() {
    let date = "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n";
    for modified in [
        "Thu, 01 Jan 1970 00:00:00 GMT",
        "Thu, 01 Jan 1970 00:00:01 GMT",
        "Tue, 01 Jan 1980 00:00:00 GMT",
        "Sun, 06 Nov 1994 08:49:38 GMT",
    ] {
        let lines = format!("{date}Last-Modified: {modified}\r\n");
        assert_eq!(response(200, &lines), Err(NotStored::NotReusable), "{modified}");
        assert_eq!(seconds(200, &format!("{lines}ETag: \"a\"\r\n")), 0, "{modified}");
    }
}

#[test]
fn negative_responses_have_a_short_lifetime_unless_they_declare_one() {
    let short = i64::try_from(NEGATIVE_TIME.as_secs()).unwrap();
    for code in NEGATIVE {
        assert_eq!(seconds(code, ""), short, "{code}");
        assert_eq!(seconds(code, "Cache-Control: max-age=60\r\n"), 60, "{code}");
        let explicit = response(code, "Cache-Control: max-age=0\r\n");
        assert_eq!(explicit, Err(NotStored::NotReusable), "{code}");
    }
    for code in [403, 500, 502, 503] {
        assert_eq!(response(code, "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n"), Err(NotStored::Status));
    }
}

#[test]
fn section_5_2_2_3_must_understand_overrides_no_store_for_known_statuses_only() {
    assert_eq!(seconds(200, "Cache-Control: must-understand, no-store, max-age=9\r\n"), 9);
    let unknown = response(599, "Cache-Control: must-understand, max-age=9\r\n");
    assert_eq!(unknown, Err(NotStored::Status));
}

#[test]
fn section_5_2_2_4_no_cache_is_stored_and_validated_at_each_use() {
    for value in ["no-cache, max-age=9", "no-cache=\"x-a\", max-age=9"] {
        let stored = response(200, &format!("Cache-Control: {value}\r\nETag: \"a\"\r\n")).unwrap();
        let usability = stored.freshness.usability(&RequestDirectives::default(), times().received.steady);
        assert_eq!(usability, Usability::MustValidate, "{value}");
    }
    assert_eq!(response(200, "Cache-Control: no-cache\r\n"), Err(NotStored::NotReusable));
    assert_eq!(response(200, "Pragma: no-cache\r\n"), Err(NotStored::NotReusable));
}

#[test]
fn section_5_2_2_8_proxy_revalidate_does_not_shorten_the_lifetime() {
    assert_eq!(seconds(200, "Cache-Control: proxy-revalidate, max-age=9\r\n"), 9);
}

#[test]
fn a_response_that_is_stale_at_once_and_has_no_validator_is_not_stored() {
    assert_eq!(response(200, ""), Err(NotStored::NotReusable));
    assert_eq!(response(200, "Cache-Control: max-age=0\r\n"), Err(NotStored::NotReusable));
    assert!(response(200, "ETag: \"a\"\r\n").is_ok());
    assert!(response(200, "Cache-Control: max-age=0, stale-while-revalidate=9\r\n").is_ok());
    assert_eq!(response(200, "Age: 9\r\nCache-Control: max-age=9\r\n"), Err(NotStored::NotReusable));
}
