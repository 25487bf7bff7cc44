//! The common rules of the grammar (RFC 9110, section 5.6): tokens, lists, white space, numbers.
//!
//! Not here: any particular field. Invariant: each function is total, and linear in its input.

use core::net::Ipv6Addr;

use crate::decimal::decimal;

/// Matches `tchar`, of which methods, field names and most parameters consist.
pub(super) fn is_tchar(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// Returns whether these bytes are a `token`.
#[must_use]
pub fn is_token(bytes: &[u8]) -> bool {
    !bytes.is_empty() && bytes.iter().copied().all(is_tchar)
}

/// Returns whether a byte is valid in a field value.
///
/// "Field values containing CR, LF, or NUL characters are invalid and dangerous" (RFC 9110, section 5.5);
/// the other control characters are merely invalid, and are refused alike.
pub(super) fn is_field_byte(byte: u8) -> bool {
    byte == b'\t' || (byte >= b' ' && byte != 0x7f)
}

fn is_ows(byte: u8) -> bool {
    byte == b' ' || byte == b'\t'
}

/// Removes optional white space at both ends.
pub(super) fn trim_ows(mut bytes: &[u8]) -> &[u8] {
    while let [first, rest @ ..] = bytes
        && is_ows(*first)
    {
        bytes = rest;
    }
    while let [rest @ .., last] = bytes
        && is_ows(*last)
    {
        bytes = rest;
    }
    bytes
}

/// Parses `1*DIGIT`; a number above `u64::MAX` is clamped to it.
///
/// "recipients MUST anticipate potentially large decimal numerals and prevent parsing errors due to integer
/// conversion overflows" (RFC 9110, section 14.1.2).
pub(super) fn decimal_saturating(bytes: &[u8]) -> Option<u64> {
    let all_digits = !bytes.is_empty() && bytes.iter().all(u8::is_ascii_digit);
    all_digits.then(|| decimal(bytes).unwrap_or(u64::MAX))
}

/// Returns the number of decimal digits of a number.
pub(super) fn decimal_len(number: u64) -> u64 {
    u64::from(number.checked_ilog10().unwrap_or_default()) + 1
}

/// Iterates over the trimmed members of a comma-separated list; a comma in a quoted string does not
/// separate.
///
/// "a recipient MUST parse and ignore a reasonable number of empty list elements" (RFC 9110, section
/// 5.6.1.2): the head's length bounds their number.
pub(super) fn list(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    split_unquoted(value, b',').filter(|member| !member.is_empty())
}

/// Splits at a separator outside quoted strings. Members are trimmed and may be empty.
pub(super) fn split_unquoted(value: &[u8], separator: u8) -> impl Iterator<Item = &[u8]> {
    let mut rest = Some(value);
    std::iter::from_fn(move || {
        let bytes = rest?;
        let end = unquoted_end(bytes, separator);
        rest = bytes.get(end + 1..);
        bytes.get(..end).map(trim_ows)
    })
}

/// Returns the position of the first separator outside a quoted string, or the end.
fn unquoted_end(bytes: &[u8], separator: u8) -> usize {
    let mut quoted = false;
    let mut escaped = false;
    for (at, &byte) in bytes.iter().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            _ if byte == separator && !quoted => return at,
            _ => {}
        }
    }
    bytes.len()
}

/// Returns whether these bytes can be a host with an optional port.
///
/// Stricter than `reg-name`, which allows `!$&'()*+,;=`, bytes that no host has: a list of hosts must not
/// be accepted as one. Userinfo is refused: "A sender MUST NOT generate the userinfo subcomponent (and its
/// "@" delimiter)" (RFC 9110, section 4.2.4).
pub(super) fn is_host(bytes: &[u8]) -> bool {
    let (host, after) = match bytes {
        [b'[', literal @ ..] => match literal.iter().position(|&byte| byte == b']') {
            Some(end) => (literal.get(..end), literal.get(end + 1..)),
            None => return false,
        },
        _ => {
            let end = bytes.iter().position(|&byte| byte == b':').unwrap_or(bytes.len());
            (bytes.get(..end), bytes.get(end..))
        }
    };
    let (host, after) = (host.unwrap_or_default(), after.unwrap_or_default());
    let is_valid = match bytes.first() {
        Some(b'[') => is_ipv6(host),
        _ => !host.is_empty() && host.iter().copied().all(is_name_byte),
    };
    is_valid && is_port_suffix(after)
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~' | b'%')
}

/// Returns whether these bytes are an IPv6 address. Brackets are for these: no version of `IPvFuture` exists,
/// and another program may read any other text in them as a name or as an IPv4 address.
fn is_ipv6(bytes: &[u8]) -> bool {
    core::str::from_utf8(bytes).is_ok_and(|text| text.parse::<Ipv6Addr>().is_ok())
}

/// Matches an empty text, or a colon and a port. The port may be empty: `port = *DIGIT` (RFC 3986, section
/// 3.2.3).
fn is_port_suffix(bytes: &[u8]) -> bool {
    match bytes {
        [] | [b':'] => true,
        [b':', port @ ..] => decimal(port).is_some_and(|port| port <= u64::from(u16::MAX)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_decimal_that_overflows_saturates() {
        assert_eq!(decimal_saturating(b"99999999999999999999"), Some(u64::MAX));
        assert_eq!(decimal_saturating(b"9x"), None);
    }

    #[test]
    fn decimal_len_is_the_number_of_digits() {
        for number in [0, 1, 9, 10, 99, 100, 12345, u64::MAX] {
            assert_eq!(decimal_len(number), number.to_string().len() as u64);
        }
    }

    #[test]
    fn lists_split_outside_quotes_and_skip_empty_members() {
        let members: Vec<_> = list(b" , a ,\"b,\\\",c\",, d;x=\",\" ,").collect();
        assert_eq!(members, [&b"a"[..], b"\"b,\\\",c\"", b"d;x=\",\""]);
    }

    #[test]
    fn a_host_is_a_name_or_an_address_with_an_optional_port() {
        for good in [
            "a",
            "a.example:80",
            "127.0.0.1:8080",
            "[::1]",
            "[::1]:443",
            "[::ffff:127.0.0.1]",
            "under_score",
            "a:",
            "xn--bcher-kva",
        ] {
            assert!(is_host(good.as_bytes()), "{good}");
        }
        for bad in [
            "",
            ":80",
            "a b",
            "a,b",
            "u@a",
            "a/b",
            "a:b",
            "a:65536",
            "a:80:80",
            "[::1",
            "[]",
            "::1",
            "a#",
            "é",
            "[127.0.0.1]:80",
            "[v1.a]",
            "[1]",
            "[::1%25lo]",
            "[::g]",
        ] {
            assert!(!is_host(bad.as_bytes()), "{bad}");
        }
    }
}
