//! Writes a server's replies: a code with one line of text, or with several.
//!
//! Not here: which reply a command gets, and parsing ([`super::reply_parser`]). Invariant: a text stays on
//! its line, regardless of the names in it. This is the only place where text becomes bytes of the control
//! connection.

use crate::decimal::write_decimal;

/// Telnet's escape byte, which is doubled to stand for itself in text (RFC 854).
const IAC: u8 = 255;

/// Appends a reply of one line: "A reply is defined to contain the 3-digit code, followed by Space `<SP>`,
/// followed by one line of text [...], and terminated by the Telnet end-of-line code" (RFC 959, section
/// 4.2).
pub fn push_line(out: &mut Vec<u8>, code: u16, text: &(impl AsRef<[u8]> + ?Sized)) {
    push_coded(out, code, b' ', text.as_ref());
}

/// Appends a reply of several lines: "the first line will begin with the exact required reply code,
/// followed immediately by a Hyphen [...]. The last line will begin with the same code, followed immediately
/// by Space `<SP>`" (RFC 959, section 4.2).
///
/// Each line of `middle` begins with a space. FEAT and MLST require it, and a line that begins with digits
/// then cannot be mistaken for the last one.
pub fn push_lines<T: AsRef<[u8]>>(
    out: &mut Vec<u8>,
    code: u16,
    first: &(impl AsRef<[u8]> + ?Sized),
    middle: impl IntoIterator<Item = T>,
    last: &(impl AsRef<[u8]> + ?Sized),
) {
    push_coded(out, code, b'-', first.as_ref());
    for line in middle {
        out.push(b' ');
        push_text(out, line.as_ref());
    }
    push_coded(out, code, b' ', last.as_ref());
}

fn push_coded(out: &mut Vec<u8>, code: u16, separator: u8, text: &[u8]) {
    write_decimal(u64::from(code), out);
    out.push(separator);
    push_text(out, text);
}

/// Appends a text and CR LF. A byte that could end the line early is replaced by a question mark.
fn push_text(out: &mut Vec<u8>, text: &[u8]) {
    out.reserve(text.len() + 2);
    for &byte in text {
        match byte {
            b'\r' | b'\n' | 0 => out.push(b'?'),
            IAC => out.extend_from_slice(&[IAC, IAC]),
            _ => out.push(byte),
        }
    }
    out.extend_from_slice(b"\r\n");
}

/// Quotes a path for a 257: "embedded double-quotes should be escaped by double-quotes" (RFC 959, appendix
/// II).
#[must_use]
pub fn quoted(path: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(path.len() + 2);
    out.push(b'"');
    for &byte in path {
        out.extend(std::iter::repeat_n(byte, 1 + usize::from(byte == b'"')));
    }
    out.push(b'"');
    out
}
