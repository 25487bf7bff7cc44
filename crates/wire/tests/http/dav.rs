//! The fields of MOVE and COPY.

use plimsoll_wire::http::dav::{Depth, Destination, parse_destination, parse_overwrite};
use plimsoll_wire::http::target::BadTarget;
use proptest::prelude::*;

#[test]
fn depth_and_overwrite_accept_only_their_defined_values() {
    for (value, depth) in [
        ("0", Some(Depth::Zero)),
        ("1", Some(Depth::One)),
        ("infinity", Some(Depth::Infinity)),
        ("Infinity", Some(Depth::Infinity)),
        ("2", None),
        ("", None),
        ("00", None),
        ("1,noroot", None),
    ] {
        assert_eq!(Depth::parse(value.as_bytes()), depth, "{value}");
    }
    for (value, overwrite) in [("T", Some(true)), ("F", Some(false)), ("f", Some(false)), ("true", None)] {
        assert_eq!(parse_overwrite(value.as_bytes()), overwrite, "{value}");
    }
}

#[test]
fn a_destination_is_a_path_or_a_url() {
    for (value, path, authority) in [
        ("/files/a%20b", "/files/a%20b", None),
        ("http://h.example/files/a", "/files/a", Some("h.example")),
        ("HTTPS://h.example:8443/files/a/", "/files/a/", Some("h.example:8443")),
        ("http://h.example", "/", Some("h.example")),
    ] {
        let expected = Destination { path: path.as_bytes(), authority: authority.map(str::as_bytes) };
        assert_eq!(parse_destination(value.as_bytes()), Ok(expected), "{value}");
    }
    for (value, bad) in [
        ("", BadTarget::Form),
        ("*", BadTarget::Form),
        ("a", BadTarget::Form),
        ("ftp://h/a", BadTarget::Form),
        ("http://u@h/a", BadTarget::Form),
        ("http:///a", BadTarget::Form),
        ("/a?b", BadTarget::Form),
        ("/a#b", BadTarget::Byte),
        ("/a b", BadTarget::Byte),
        ("</a>", BadTarget::Form),
    ] {
        assert_eq!(parse_destination(value.as_bytes()), Err(bad), "{value}");
    }
}

#[test]
fn a_destination_on_another_server_is_recognised() {
    for (value, host, is_ours) in [
        ("/a", Some("h"), true),
        ("/a", None, true),
        ("http://h/a", Some("h"), true),
        ("http://H.Example/a", Some("h.example:80"), true),
        ("https://h:443/a", Some("h"), true),
        ("http://h:8080/a", Some("h:8080"), true),
        ("http://h:8080/a", Some("h"), false),
        ("http://h/a", Some("h:8080"), false),
        ("http://other/a", Some("h"), false),
        ("http://h.evil/a", Some("h"), false),
        ("http://h/a", None, false),
    ] {
        let destination = parse_destination(value.as_bytes()).unwrap();
        assert_eq!(destination.is_on(host.map(str::as_bytes)), is_ours, "{value} {host:?}");
    }
}

#[test]
fn a_reported_host_without_a_port_stands_for_every_port() {
    for (value, host, is_ours) in [
        ("http://h:8443/a", "h", true),
        ("https://H.Example/a", "h.example", true),
        ("http://[::1]:8443/a", "[::1]", true),
        ("http://[::1]/a", "[::1]", true),
        ("http://h:8443/a", "h:8443", true),
        ("http://h:8443/a", "h:9443", false),
        ("http://h/a", "h:8443", false),
        ("http://other:8443/a", "h", false),
        ("http://h.evil:8443/a", "h", false),
        ("/a", "h", true),
    ] {
        let destination = parse_destination(value.as_bytes()).unwrap();
        assert_eq!(destination.is_on_reported(host.as_bytes()), is_ours, "{value} {host}");
    }
}

proptest! {
    #[test]
    fn no_bytes_make_the_parser_panic(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
        if let Ok(destination) = parse_destination(&bytes) {
            prop_assert!(destination.path.starts_with(b"/"));
        }
    }
}
