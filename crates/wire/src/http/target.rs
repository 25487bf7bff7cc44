//! Request targets (RFC 9112, section 3.2) and the paths in them.
//!
//! Not here: the mapping of paths to files. Invariant: a decoded path begins with `/`, has no segment `.`
//! or `..`, no empty segment but the last, no NUL, and no separator that was encoded.

use super::grammar::is_host;
use super::status::Status;

/// A request target, split but not decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target<'a> {
    /// The path as sent: begins with `/`, or is `*` alone.
    pub path: &'a [u8],
    /// The bytes after the first `?`.
    pub query: Option<&'a [u8]>,
    /// The authority of an absolute-form target; it overrides the Host field.
    pub authority: Option<&'a [u8]>,
}

/// An error in a target. The client is at fault in all cases.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[error("{}", self.detail())]
pub enum BadTarget {
    /// Neither a path, nor an http URL, nor `*` for OPTIONS.
    Form,
    /// A byte that is not valid in a URL: white space, a control character, a fragment.
    Byte,
    /// A `%` without two hexadecimal digits.
    Escape,
    /// A path that does not begin with `/`.
    NotRooted,
    /// An encoded `/` within a segment.
    EncodedSlash,
    /// An encoded NUL.
    EncodedNul,
    /// A segment that is `.` or `..`.
    DotSegment,
}

impl BadTarget {
    /// Returns the status of the response.
    #[must_use]
    pub fn status(&self) -> Status {
        Status::BAD_REQUEST
    }

    /// Returns the text for the peer: the error and the remedy.
    #[must_use]
    pub fn detail(&self) -> &'static str {
        match self {
            Self::Form => "The request target must be a path that begins with \"/\", or an http URL.",
            Self::Byte => "The request target has a byte that must be percent-encoded.",
            Self::Escape => {
                "The path has a \"%\" without two hexadecimal digits after it. Write \"%\" as \"%25\"."
            }
            Self::NotRooted => "The path must begin with \"/\".",
            Self::EncodedSlash => "The path has an encoded \"/\". No name here can have one.",
            Self::EncodedNul => "The path has an encoded NUL, \"%00\". No name can have one.",
            Self::DotSegment => "The path has a segment \".\" or \"..\". Resolve it before sending.",
        }
    }
}

/// Splits a target: origin-form, absolute-form of http and https, or `*`.
///
/// # Errors
///
/// [`BadTarget::Form`] for other forms, authority-form among them; [`BadTarget::Byte`] for a byte not valid
/// in a URL. Bytes from 0x80 are accepted as literal parts of a name: browsers encode them, older programs
/// do not.
pub fn parse_target(target: &[u8]) -> Result<Target<'_>, BadTarget> {
    // "#" would begin a fragment, which is never sent (RFC 9110, section 4.2.5). Another parser might
    // truncate the target there.
    if target.iter().any(|&byte| byte <= b' ' || byte == 0x7f || byte == b'#') {
        return Err(BadTarget::Byte);
    }
    match target {
        [b'/', ..] => Ok(split_query(target, None)),
        b"*" => Ok(Target { path: target, query: None, authority: None }),
        _ => parse_absolute(target),
    }
}

fn parse_absolute(target: &[u8]) -> Result<Target<'_>, BadTarget> {
    let rest = strip_scheme(target).ok_or(BadTarget::Form)?;
    let end = rest.iter().position(|byte| matches!(byte, b'/' | b'?')).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    if !is_host(authority) {
        return Err(BadTarget::Form);
    }
    let mut target = split_query(path, Some(authority));
    if target.path.is_empty() {
        // "the client MUST send "/" as the path within the origin-form" (RFC 9112, section 3.2.1).
        target.path = b"/";
    }
    Ok(target)
}

/// Returns the rest after `http://` or `https://`. "The scheme and host are case-insensitive" (RFC 9110,
/// section 4.2.3).
pub(super) fn strip_scheme(target: &[u8]) -> Option<&[u8]> {
    [&b"http://"[..], b"https://"].into_iter().find_map(|scheme| {
        let (start, rest) = target.split_at_checked(scheme.len())?;
        start.eq_ignore_ascii_case(scheme).then_some(rest)
    })
}

fn split_query<'a>(target: &'a [u8], authority: Option<&'a [u8]>) -> Target<'a> {
    let end = target.iter().position(|&byte| byte == b'?').unwrap_or(target.len());
    let (path, query) = target.split_at(end);
    Target { path, query: query.get(1..), authority }
}

/// Percent-decodes a path into `out`, and replaces its contents.
///
/// Other control characters than NUL may be in a name, and are legal in a URL if they are encoded.
///
/// Adjacent slashes become one, as in POSIX paths and over FTP; the caller decides by
/// [`has_adjacent_slashes`] whether it serves such a path. Dot segments are refused, not resolved: two
/// programs that normalise a path differently would disagree about which file an access rule protects. A
/// trailing `/` is preserved; a backslash is an ordinary byte.
///
/// # Errors
///
/// A [`BadTarget`] for a path that must not reach a file system; `out` is then empty.
pub fn decode_path(path: &[u8], out: &mut Vec<u8>) -> Result<(), BadTarget> {
    out.clear();
    let decoded = decode_into(path, out).and_then(|()| check_segments(out));
    if decoded.is_err() {
        out.clear();
    }
    decoded
}

fn decode_into(path: &[u8], out: &mut Vec<u8>) -> Result<(), BadTarget> {
    if path.first() != Some(&b'/') {
        return Err(BadTarget::NotRooted);
    }
    out.reserve(path.len());
    let mut rest = path;
    while let [byte, after @ ..] = rest {
        rest = after;
        if *byte == b'%' {
            let [high, low, after @ ..] = rest else { return Err(BadTarget::Escape) };
            out.push(unescape(*high, *low)?);
            rest = after;
        } else if *byte <= b' ' || matches!(*byte, 0x7f | b'#' | b'?') {
            return Err(BadTarget::Byte);
        } else if *byte != b'/' || out.last() != Some(&b'/') {
            out.push(*byte);
        }
    }
    Ok(())
}

/// Returns whether [`decode_path`] merges slashes of this path.
#[must_use]
pub fn has_adjacent_slashes(path: &[u8]) -> bool {
    path.windows(2).any(|pair| pair == b"//")
}

fn unescape(high: u8, low: u8) -> Result<u8, BadTarget> {
    let byte = hex_digit(high).zip(hex_digit(low)).map(|(high, low)| high << 4 | low);
    match byte.ok_or(BadTarget::Escape)? {
        b'/' => Err(BadTarget::EncodedSlash),
        0 => Err(BadTarget::EncodedNul),
        byte => Ok(byte),
    }
}

/// Returns the value of a hexadecimal digit.
pub(super) fn hex_digit(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        b'A'..=b'F' => Some(byte - b'A' + 10),
        _ => None,
    }
}

/// Checks the segments after decoding, since `%2e%2e` is `..` to a file system.
fn check_segments(decoded: &[u8]) -> Result<(), BadTarget> {
    let mut segments = decoded.split(|&byte| byte == b'/');
    let has_dots = segments.any(|segment| matches!(segment, b"." | b".."));
    if has_dots { Err(BadTarget::DotSegment) } else { Ok(()) }
}

/// Returns a path as [`encode_path`] writes it.
#[must_use]
pub fn encoded_path(path: &[u8]) -> String {
    let mut encoded = Vec::with_capacity(path.len());
    encode_path(path, &mut encoded);
    String::from_utf8_lossy(&encoded).into_owned()
}

/// Appends a path with all but unreserved characters and `/` percent-encoded, for links and Location.
///
/// The result can stand unquoted in HTML, in a header field, and in a shell.
pub fn encode_path(path: &[u8], out: &mut Vec<u8>) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    for &byte in path {
        if byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte) {
            out.push(byte);
        } else {
            let digit = |nibble: u8| HEX.get(usize::from(nibble)).copied().unwrap_or_default();
            out.extend_from_slice(&[b'%', digit(byte >> 4), digit(byte & 15)]);
        }
    }
}
