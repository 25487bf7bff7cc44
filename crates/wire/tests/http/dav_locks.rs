//! The fields and the body of LOCK, and the field If.

use plimsoll_wire::http::dav::if_field::{
    IfCondition, IfList, IfState, parse_if, parse_lock_token, parse_timeout,
};
use plimsoll_wire::http::dav::lock::{DavLock, LockInfo, push_discovery, write_lock, write_locked};
use plimsoll_wire::http::dav::parse_destination;
use plimsoll_wire::http::dav::request::BadXml;
use plimsoll_wire::limits::DAV_IF_CONDITIONS_MAX;
use proptest::prelude::*;

fn token(token: &str) -> IfCondition<'_> {
    IfCondition { is_not: false, state: IfState::Token(token.as_bytes()) }
}

fn tag(tag: &str) -> IfCondition<'_> {
    IfCondition { is_not: false, state: IfState::EntityTag(tag.as_bytes()) }
}

fn not(condition: IfCondition<'_>) -> IfCondition<'_> {
    IfCondition { is_not: true, ..condition }
}

fn list<'a>(resource: Option<&'a str>, conditions: &[IfCondition<'a>]) -> IfList<'a> {
    let resource = resource.map(|path| parse_destination(path.as_bytes()).unwrap());
    IfList { resource, conditions: conditions.to_vec() }
}

#[test]
fn an_if_has_lists_of_conditions_with_or_without_a_resource() {
    let cases = [
        ("(<urn:a>)", vec![list(None, &[token("urn:a")])]),
        (
            " (<urn:uuid:1>[\"I am an ETag\"])([W/\"x]y\"])",
            vec![
                list(None, &[token("urn:uuid:1"), tag("\"I am an ETag\"")]),
                list(None, &[tag("W/\"x]y\"")]),
            ],
        ),
        (
            "(Not <urn:a> nOT[\"b\"]) ( Not<DAV:no-lock> )",
            vec![
                list(None, &[not(token("urn:a")), not(tag("\"b\""))]),
                list(None, &[not(token("DAV:no-lock"))]),
            ],
        ),
        (
            "</a%20b> (<urn:a>)\t(<urn:b>) <http://h/c> ([\"\"])",
            vec![
                list(Some("/a%20b"), &[token("urn:a")]),
                list(Some("/a%20b"), &[token("urn:b")]),
                list(Some("http://h/c"), &[tag("\"\"")]),
            ],
        ),
    ];
    for (value, lists) in cases {
        assert_eq!(parse_if(value.as_bytes()), Some(lists), "{value}");
    }
}

#[test]
fn a_malformed_if_is_refused() {
    for value in [
        "",
        "()",
        "(",
        ")",
        "(<urn:a>",
        "(<urn:a>) x",
        "<urn:a>",
        "</a>",
        "</a> </b> (<urn:a>)",
        "(<a>)",
        "(<>)",
        "(<urn:a b>)",
        "([a])",
        "([\"a])",
        "([\"a\")",
        "(Not)",
        "(Not Not <urn:a>)",
        "(<urn:a>) </a> (<urn:b>)",
        "</a> (<urn:a>) </b>",
        "(<urn:a>), (<urn:b>)",
        "<ftp://h/a> (<urn:a>)",
        "(w/\"a\")",
        "(\"a\")",
        "(<:a>)",
        "((<urn:a>))",
    ] {
        assert_eq!(parse_if(value.as_bytes()), None, "{value}");
    }
    let many = |count| format!("({})", "<urn:a>".repeat(count));
    assert!(parse_if(many(DAV_IF_CONDITIONS_MAX).as_bytes()).is_some());
    assert!(parse_if(many(DAV_IF_CONDITIONS_MAX + 1).as_bytes()).is_none());
}

/// A field has no end of its own, so a cut value is one only where a list ends.
#[test]
fn each_prefix_of_an_if_is_parsed_or_refused() {
    let whole = "</a> (<urn:a> [\"b]\"]) (Not <urn:c>) </d> ([W/\"e\"] Not <urn:f>)";
    let valid: Vec<usize> =
        (0..=whole.len()).filter(|end| parse_if(&whole.as_bytes()[..*end]).is_some()).collect();
    let ends = whole.match_indices(')').map(|(at, _)| at + 1);
    // A space may follow a list.
    let expected: Vec<usize> =
        ends.flat_map(|end| [end, end + 1]).filter(|end| *end <= whole.len()).collect();
    assert_eq!(valid, expected);
}

#[test]
fn tokens_and_timeouts_are_parsed() {
    for (value, expected) in [
        ("<urn:a>", Some("urn:a")),
        (" <urn:a> ", Some("urn:a")),
        ("urn:a", None),
        ("<a>", None),
        ("<urn:a>x", None),
    ] {
        assert_eq!(parse_lock_token(value.as_bytes()), expected.map(str::as_bytes), "{value}");
    }
    for (value, expected) in [
        ("Second-10", Some(10)),
        ("second-0", Some(0)),
        ("Infinite", Some(u64::MAX)),
        ("Infinite, Second-4100000000", Some(u64::MAX)),
        ("Extend, Second-5", Some(5)),
        ("Second-99999999999999999999", Some(u64::MAX)),
        ("Second-", None),
        ("Second--1", None),
        ("Second-+1", None),
        ("", None),
    ] {
        assert_eq!(parse_timeout(value.as_bytes()), expected, "{value}");
    }
}

fn lockinfo(content: &str) -> Result<LockInfo, BadXml> {
    LockInfo::parse(
        format!("<a:lockinfo xmlns:a=\"DAV:\" xmlns:x=\"urn:x\">{content}</a:lockinfo>").as_bytes(),
    )
}

const EXCLUSIVE: &str = "<a:lockscope><a:exclusive/></a:lockscope><a:locktype><a:write/></a:locktype>";

#[test]
fn a_lock_has_a_scope_and_the_user_that_its_client_names() {
    let info = |is_shared, owner: &str| Ok(LockInfo { is_shared, about: owner.to_owned() });
    assert_eq!(lockinfo(EXCLUSIVE), info(false, ""));
    assert_eq!(lockinfo(&EXCLUSIVE.replace("exclusive", "shared")), info(true, ""));
    assert_eq!(
        lockinfo(&format!("{EXCLUSIVE}<a:owner> alice &lt; bob</a:owner>")),
        info(false, "alice &lt; bob")
    );
    let link = "<a:owner>\n<a:href>http://h/?a&amp;b</a:href>\n</a:owner>";
    assert_eq!(
        lockinfo(&format!("{link}<x:owner>no</x:owner>{EXCLUSIVE}")),
        info(false, "<D:href>http://h/?a&amp;b</D:href>")
    );
    for bad in [
        "",
        "<a:lockscope><a:exclusive/></a:lockscope>",
        "<a:locktype><a:write/></a:locktype>",
        &EXCLUSIVE.replace("exclusive", "other"),
        &EXCLUSIVE.replace("a:exclusive", "x:exclusive"),
        &EXCLUSIVE.replace("a:write", "a:read"),
        &EXCLUSIVE.replace("<a:exclusive/>", "<a:exclusive/><a:shared/>"),
    ] {
        assert!(matches!(lockinfo(bad), Err(BadXml::Other(_))), "{bad}");
    }
    let whole = format!("<lockinfo xmlns=\"DAV:\">{}</lockinfo>", EXCLUSIVE.replace("a:", ""));
    assert!(LockInfo::parse(whole.as_bytes()).is_ok());
    assert!((0..whole.len()).all(|end| LockInfo::parse(&whole.as_bytes()[..end]).is_err()));
}

#[test]
fn locks_and_refusals_are_described() {
    let lock = DavLock {
        root: b"/files/a%20b",
        token: "urn:uuid:1",
        is_shared: false,
        is_deep: true,
        about: "<D:href>x</D:href>",
        seconds: 600,
    };
    let written = String::from_utf8(write_lock(lock)).unwrap();
    assert_eq!(
        written,
        "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<D:prop xmlns:D=\"DAV:\"><D:lockdiscovery><D:activelock>\
         <D:locktype><D:write/></D:locktype><D:lockscope><D:exclusive/></D:lockscope>\
         <D:depth>infinity</D:depth><D:owner><D:href>x</D:href></D:owner><D:timeout>Second-600</D:timeout>\
         <D:locktoken><D:href>urn:uuid:1</D:href></D:locktoken><D:lockroot><D:href>/files/a%20b</D:href>\
         </D:lockroot></D:activelock></D:lockdiscovery></D:prop>\n"
    );
    let mut none = Vec::new();
    push_discovery([].into_iter(), &mut none);
    assert_eq!(none, b"<D:lockdiscovery></D:lockdiscovery>");
    let refused = String::from_utf8(write_locked(&[b"/a", b"/b"], false)).unwrap();
    assert!(
        refused.contains("<D:lock-token-submitted><D:href>/a</D:href><D:href>/b</D:href></"),
        "{refused}"
    );
    assert!(write_locked(&[], true).windows(21).any(|part| part == b"<D:no-conflicting-loc"));
}

proptest! {
    #[test]
    fn no_bytes_make_the_parsers_fail(value in "[(<\\[\"Not urn:a/)>\\]W-]{0,40}") {
        let _ = (parse_lock_token(value.as_bytes()), parse_timeout(value.as_bytes()));
        for list in parse_if(value.as_bytes()).unwrap_or_default() {
            prop_assert!(!list.conditions.is_empty());
        }
    }
}
