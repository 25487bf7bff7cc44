//! Writing of response heads.

use std::time::{Duration, UNIX_EPOCH};

use plimsoll_wire::http::answer::{AnswerHead, CONTINUE};
use plimsoll_wire::http::date::{DATE_BYTES, write_date};
use plimsoll_wire::http::head::Version;
use plimsoll_wire::http::range::ContentRange;
use plimsoll_wire::http::status::Status;
use proptest::prelude::*;

fn written(write: impl FnOnce(AnswerHead<'_>) -> AnswerHead<'_>) -> String {
    let mut out = Vec::new();
    write(AnswerHead::begin(&mut out, Status::OK)).finish();
    String::from_utf8(out).unwrap()
}

#[test]
fn a_response_head_has_its_fields_in_order() {
    let mut date = [0; DATE_BYTES];
    write_date(UNIX_EPOCH + Duration::from_secs(784_111_777), &mut date);
    let range = ContentRange::Part { range: 0..5, length: 10 };
    let mut out = b"what is before stays\n".to_vec();
    AnswerHead::begin(&mut out, Status::PARTIAL_CONTENT)
        .date(&date)
        .field("Content-Type", "text/plain")
        .field_display("Content-Range", range)
        .field_if("ETag", Some("\"x\""))
        .field_if("Location", None::<&str>)
        .content_length(5)
        .keep_alive(false, Version::Http11)
        .finish();
    let expected = "what is before stays\nHTTP/1.1 206 Partial Content\r\n\
        Date: Sun, 06 Nov 1994 08:49:37 GMT\r\nContent-Type: text/plain\r\nContent-Range: bytes 0-4/10\r\n\
        ETag: \"x\"\r\nContent-Length: 5\r\nConnection: close\r\n\r\n";
    assert_eq!(String::from_utf8(out).unwrap(), expected);
}

#[test]
fn a_connection_field_is_written_only_if_the_version_does_not_imply_it() {
    let ok = "HTTP/1.1 200 OK\r\n";
    assert_eq!(written(|head| head.keep_alive(true, Version::Http11)), format!("{ok}\r\n"));
    let kept = format!("{ok}Connection: keep-alive\r\n\r\n");
    assert_eq!(written(|head| head.keep_alive(true, Version::Http10)), kept);
    let closed = format!("{ok}Connection: close\r\n\r\n");
    assert_eq!(written(|head| head.keep_alive(false, Version::Http10)), closed);
}

#[test]
fn a_field_value_cannot_add_a_line() {
    let value = "a\r\nSet-Cookie: x\0y\x7f\tz\u{e9}";
    let expected = "HTTP/1.1 200 OK\r\nLocation: a  Set-Cookie: x y \tz\u{e9}\r\n\r\n";
    assert_eq!(written(|head| head.field("Location", value)), expected);
    assert_eq!(written(|head| head.field_display("Location", value)), expected);
}

#[test]
fn a_100_continue_is_a_complete_head() {
    let mut out = Vec::new();
    AnswerHead::begin(&mut out, Status::CONTINUE).finish();
    assert_eq!(out, CONTINUE);
}

#[test]
fn a_status_has_three_digits_and_a_reason() {
    assert_eq!(Status::from_code(404), Some(Status::NOT_FOUND));
    assert_eq!(Status::NOT_FOUND.to_string(), "404 Not Found");
    assert_eq!(Status::from_code(299).map(Status::reason), Some(""));
    assert!([0, 99, 600, 1000].into_iter().all(|code| Status::from_code(code).is_none()));
    assert!(Status::NOT_MODIFIED.is_bodiless() && Status::NO_CONTENT.is_bodiless());
    assert!(!Status::RESET_CONTENT.is_bodiless());
}

proptest! {
    #[test]
    fn any_field_value_stays_on_its_line(value in proptest::collection::vec(any::<u8>(), 0..60)) {
        let mut out = Vec::new();
        AnswerHead::begin(&mut out, Status::OK).field("X", &value).finish();
        prop_assert_eq!(out.iter().filter(|&&byte| byte == b'\n').count(), 3);
        prop_assert_eq!(out.iter().filter(|&&byte| byte == b'\r').count(), 3);
        prop_assert_eq!(out.len(), "HTTP/1.1 200 OK\r\nX: \r\n\r\n".len() + value.len());
    }
}
