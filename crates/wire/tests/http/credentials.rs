//! Authorization and Cookie.

use plimsoll_wire::http::credentials::{BadCredentials, Credentials, cookie, parse_authorization};
use plimsoll_wire::limits::AUTHORIZATION_BYTES_MAX;
use proptest::prelude::*;

fn parse(value: &str) -> Result<Credentials<'_>, BadCredentials> {
    parse_authorization(value.as_bytes())
}

fn basic(name: &str, password: &str) -> Result<Credentials<'static>, BadCredentials> {
    Ok(Credentials::Basic { name: name.to_owned(), password: password.as_bytes().to_vec() })
}

#[test]
fn basic_credentials_yield_name_and_password() {
    for (value, name, password) in [
        ("Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==", "Aladdin", "open sesame"),
        ("basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==", "Aladdin", "open sesame"),
        ("BASIC   QWxhZGRpbjpvcGVuIHNlc2FtZQ", "Aladdin", "open sesame"),
        ("Basic dGVzdDoxMjPCow==", "test", "123\u{a3}"),
        ("Basic YTpiOmM6", "a", "b:c:"),
        ("Basic Og==", "", ""),
    ] {
        assert_eq!(parse(value), basic(name, password), "{value}");
    }
}

#[test]
fn a_bearer_token_parses_unchanged() {
    assert_eq!(parse("Bearer abc-._~+/019=="), Ok(Credentials::Bearer(b"abc-._~+/019==")));
    assert_eq!(parse("bEARER  x"), Ok(Credentials::Bearer(b"x")));
}

#[test]
fn ambiguous_credentials_are_rejected() {
    for (value, bad) in [
        ("", BadCredentials::Scheme),
        ("Digest username=\"a\"", BadCredentials::Scheme),
        ("Basically YTpi", BadCredentials::Scheme),
        ("Basic\tYTpi", BadCredentials::Scheme),
        ("Basic", BadCredentials::Basic),
        ("Basic ", BadCredentials::Basic),
        ("Basic YWI=", BadCredentials::Basic),
        ("Basic YTpi YTpi", BadCredentials::Basic),
        ("Basic YTpi,", BadCredentials::Basic),
        ("Basic Y-Ti", BadCredentials::Basic),
        ("Basic YTp=", BadCredentials::Basic),
        ("Basic YTpi=", BadCredentials::Basic),
        ("Basic YTpiAA==", BadCredentials::Basic),
        ("Basic YQo6Yg==", BadCredentials::Basic),
        ("Basic /zpi", BadCredentials::Basic),
        ("Bearer", BadCredentials::Bearer),
        ("Bearer ", BadCredentials::Bearer),
        ("Bearer =", BadCredentials::Bearer),
        ("Bearer a=b", BadCredentials::Bearer),
        ("Bearer a b", BadCredentials::Bearer),
        ("Bearer a,Bearer b", BadCredentials::Bearer),
        ("Bearer a\u{e9}", BadCredentials::Bearer),
    ] {
        assert_eq!(parse(value), Err(bad), "{value:?}");
        assert_eq!(bad.status().code(), 401);
    }
}

#[test]
fn credentials_above_the_limit_are_rejected() {
    let of = |len: usize| format!("Bearer {}", "x".repeat(len - 7));
    assert!(parse(&of(AUTHORIZATION_BYTES_MAX)).is_ok());
    assert_eq!(parse(&of(AUTHORIZATION_BYTES_MAX + 1)), Err(BadCredentials::TooLong));
}

#[test]
fn debug_output_of_credentials_hides_the_secret() {
    let shown =
        format!("{:?} {:?}", parse("Basic QWxhZGRpbjpvcGVu").unwrap(), parse("Bearer secret").unwrap());
    assert_eq!(shown, "Basic(\"Aladdin\") Bearer");
}

#[test]
fn a_cookie_is_found_by_its_exact_name() {
    for (lines, value) in [
        (&["session=abc"][..], Some("abc")),
        (&["a=1; session=abc; b=2"], Some("abc")),
        (&["a=1;session=abc"], Some("abc")),
        (&["a=1", "session=abc"], Some("abc")),
        (&["session=\"abc\""], Some("abc")),
        (&["session="], Some("")),
        (&["session=a=b"], Some("a=b")),
        (&[], None),
        (&[""], None),
        (&["session"], None),
        (&["xsession=abc"], None),
        (&["sessions=abc"], None),
        (&["Session=abc"], None),
        (&["session =abc"], None),
        (&["session=a c"], None),
        (&["session=\"abc"], None),
        (&["session=a\\b"], None),
        (&["session=abc; session=def"], None),
        (&["session=abc", "session=abc"], None),
    ] {
        let found = cookie(lines.iter().map(|line| line.as_bytes()), "session");
        assert_eq!(found, value.map(str::as_bytes), "{lines:?}");
    }
}

proptest! {
    #[test]
    fn no_bytes_make_the_parser_panic(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
        let _ = parse_authorization(&bytes);
        let _ = parse_authorization(&[b"Basic ", &bytes[..]].concat());
        let _ = cookie([&bytes[..]], "a");
    }
}
