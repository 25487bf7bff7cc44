//! Content negotiation.

use plimsoll_wire::http::negotiate::{Quality, accepts_encoding, choose, prefers_html, prefers_json};
use proptest::prelude::*;

fn thousandths(value: &str, coding: &str) -> u16 {
    accepts_encoding(value.as_bytes(), coding.as_bytes()).thousandths()
}

#[test]
fn a_content_coding_has_its_stated_quality() {
    for (value, coding, quality) in [
        ("gzip", "gzip", 1000),
        ("GZIP", "gzip", 1000),
        ("x-gzip", "gzip", 1000),
        ("gzip, br", "br", 1000),
        ("gzip;q=0.5", "gzip", 500),
        ("gzip ; q=0.123", "gzip", 123),
        ("gzip;Q=1.000", "gzip", 1000),
        ("gzip;q=0", "gzip", 0),
        ("br;q=0.7, *;q=0.2", "gzip", 200),
        ("gzip;q=0, *", "gzip", 0),
        ("br", "gzip", 0),
        ("", "gzip", 0),
        ("gzipped", "gzip", 0),
        ("gzip;q=2", "gzip", 0),
        ("gzip;q=0.1234", "gzip", 0),
        ("gzip;q=-1", "gzip", 0),
        ("gzip;q=", "gzip", 0),
        ("gzip;q=1.001", "gzip", 0),
    ] {
        assert_eq!(thousandths(value, coding), quality, "{value} {coding}");
    }
}

#[test]
fn identity_is_acceptable_unless_excluded() {
    for (value, quality) in [
        ("", 1),
        ("gzip", 1),
        ("identity", 1000),
        ("identity;q=0.5", 500),
        ("*", 1),
        ("identity;q=0", 0),
        ("*;q=0", 0),
        ("gzip, *;q=0", 0),
        ("*;q=0, identity;q=0.1", 100),
    ] {
        assert_eq!(thousandths(value, "identity"), quality, "{value}");
    }
    assert!(
        Quality::LEAST.is_acceptable() && !Quality::NONE.is_acceptable() && Quality::FULL > Quality::LEAST
    );
}

#[test]
fn the_media_type_of_the_highest_quality_is_chosen() {
    let offers = ["application/json", "text/html"];
    for (accept, chosen) in [
        ("", Some("application/json")),
        (" , ", Some("application/json")),
        ("*/*", Some("application/json")),
        ("text/html", Some("text/html")),
        ("TEXT/Html", Some("text/html")),
        ("text/*", Some("text/html")),
        ("text/html;charset=utf-8", Some("text/html")),
        ("text/html;q=0.5, application/json;q=0.6", Some("application/json")),
        ("text/html, application/json", Some("application/json")),
        ("text/*;q=0.9, text/html;q=0.1, */*;q=0.5", Some("application/json")),
        ("text/html;q=0, */*", Some("application/json")),
        ("application/json;q=0, */*;q=0.1", Some("text/html")),
        ("image/png", None),
        ("*/*;q=0", None),
        ("text", None),
        ("*", None),
        ("te*", None),
        ("text/htm*", None),
    ] {
        assert_eq!(choose(accept.as_bytes(), &offers), chosen, "{accept}");
    }
    assert_eq!(choose(b"*/*", &[]), None);
}

#[test]
fn browsers_get_html_and_programs_json() {
    let firefox = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";
    let chrome = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,image/apng,\
        */*;q=0.8,application/signed-exchange;v=b3;q=0.7";
    assert!(prefers_html(firefox.as_bytes()));
    assert!(prefers_html(chrome.as_bytes()));
    for program in ["*/*", "application/json", "application/json, text/plain, */*", ""] {
        assert!(!prefers_html(program.as_bytes()), "{program}");
    }
}

#[test]
fn html_is_served_unless_json_has_a_higher_quality() {
    for page in
        ["", "*/*", "text/html", "text/html, application/json", "application/json;q=0.5, */*", "text/*"]
    {
        assert!(!prefers_json(page.as_bytes()), "{page}");
    }
    for json in ["application/json", "application/json, text/plain, */*;q=0.5", "application/*"] {
        assert!(prefers_json(json.as_bytes()), "{json}");
    }
}

proptest! {
    #[test]
    fn no_bytes_make_the_parser_panic(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
        prop_assert!(accepts_encoding(&bytes, b"gzip") <= Quality::FULL);
        let _ = prefers_html(&bytes);
        let _ = prefers_json(&bytes);
    }
}
