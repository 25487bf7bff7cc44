//! Several ranges in one response.

use plimsoll_wire::http::multipart::{body_len, close, media_type, part_head};
use proptest::prelude::*;

#[test]
fn a_multipart_body_has_parts_between_delimiters() {
    let mut body = Vec::new();
    part_head(b"B", "text/plain", &(0..2), 10, &mut body);
    body.extend_from_slice(b"01");
    part_head(b"B", "text/plain", &(8..10), 10, &mut body);
    body.extend_from_slice(b"89");
    close(b"B", &mut body);
    let expected = "\r\n--B\r\nContent-Type: text/plain\r\nContent-Range: bytes 0-1/10\r\n\r\n01\
        \r\n--B\r\nContent-Type: text/plain\r\nContent-Range: bytes 8-9/10\r\n\r\n89\r\n--B--\r\n";
    assert_eq!(body_len(b"B", "text/plain", &[0..2, 8..10], 10), expected.len() as u64);
    assert_eq!(String::from_utf8(body).unwrap(), expected);
}

#[test]
fn a_media_type_cannot_add_a_line() {
    let mut body = Vec::new();
    part_head(b"B", "a\r\nb", &(0..1), 1, &mut body);
    assert!(body.starts_with(b"\r\n--B\r\nContent-Type: a  b\r\nContent-Range"));
}

#[test]
fn the_content_type_names_the_boundary() {
    let mut out = Vec::new();
    media_type(b"abc123", &mut out);
    assert_eq!(out, b"multipart/byteranges; boundary=abc123");
}

proptest! {
    #[test]
    fn the_length_of_a_multipart_body_is_known_in_advance(
        boundary in "[a-z0-9]{1,40}", media in ".{0,20}",
        starts in proptest::collection::vec((0u64..2_000, 1u64..2_000), 0..5),
    ) {
        let ranges: Vec<_> = starts.into_iter().map(|(start, count)| start..start + count).collect();
        let mut body = Vec::new();
        for range in &ranges {
            part_head(boundary.as_bytes(), &media, range, 4_000, &mut body);
            body.resize(body.len() + usize::try_from(range.end - range.start).unwrap(), b'x');
        }
        close(boundary.as_bytes(), &mut body);
        prop_assert_eq!(body_len(boundary.as_bytes(), &media, &ranges, 4_000), body.len() as u64);
    }
}
