//! `multipart/byteranges`: several ranges in one response (RFC 9110, section 14.6).
//!
//! Not here: the ranges' bytes, and the choice of a boundary, which requires randomness. Invariant: the
//! body is exactly as long as [`body_len`] returns, since Content-Length is sent first.

use std::ops::Range;

use super::answer::write_value;
use super::grammar::decimal_len;
use crate::decimal::write_decimal;

const DELIMITER: &[u8] = b"\r\n--";
const TYPE: &[u8] = b"\r\nContent-Type: ";
const RANGE: &[u8] = b"\r\nContent-Range: bytes ";
const HEAD_END: &[u8] = b"\r\n\r\n";
const CLOSE_END: &[u8] = b"--\r\n";

/// Appends the delimiter and the head of a part, which precede the bytes of a range.
///
/// The first delimiter begins with CRLF as well: "the CRLF preceding the boundary delimiter line is
/// conceptually attached to the boundary" (RFC 2046, section 5.1.1), and here it ends an empty preamble.
pub fn part_head(boundary: &[u8], media: &str, range: &Range<u64>, length: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(DELIMITER);
    out.extend_from_slice(boundary);
    out.extend_from_slice(TYPE);
    write_value(media.as_bytes(), out);
    out.extend_from_slice(RANGE);
    write_decimal(range.start, out);
    out.push(b'-');
    write_decimal(range.end.saturating_sub(1), out);
    out.push(b'/');
    write_decimal(length, out);
    out.extend_from_slice(HEAD_END);
}

/// Appends the closing delimiter, after the bytes of the last range.
pub fn close(boundary: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(DELIMITER);
    out.extend_from_slice(boundary);
    out.extend_from_slice(CLOSE_END);
}

/// Returns the length of the whole body in bytes: all heads, all ranges, and the closing delimiter.
#[must_use]
pub fn body_len(boundary: &[u8], media: &str, ranges: &[Range<u64>], length: u64) -> u64 {
    let parts = ranges.iter().fold(0u64, |sum, range| {
        let bytes = range.end.saturating_sub(range.start);
        sum.saturating_add(part_head_len(boundary, media, range, length)).saturating_add(bytes)
    });
    parts.saturating_add((DELIMITER.len() + boundary.len() + CLOSE_END.len()) as u64)
}

fn part_head_len(boundary: &[u8], media: &str, range: &Range<u64>, length: u64) -> u64 {
    let fixed = DELIMITER.len() + TYPE.len() + RANGE.len() + HEAD_END.len() + b"-/".len();
    let numbers = decimal_len(range.start) + decimal_len(range.end.saturating_sub(1)) + decimal_len(length);
    (fixed + boundary.len() + media.len()) as u64 + numbers
}

/// Appends the media type of the body, `multipart/byteranges; boundary=...`. The boundary must consist of
/// letters and digits, so that it needs no quotes.
pub fn media_type(boundary: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(b"multipart/byteranges; boundary=");
    write_value(boundary, out);
}
