//! The paths of public links, `/s/TOKEN` and below: found in a request, and hidden in the access log.
//!
//! It checks no token. Invariant: the access log has no token, whatever its encoding, and whatever other text
//! the request's target has.

use plimsoll_wire::http::target::decode_path;

use super::limits::DECODINGS_MAX;

/// Hexadecimal digits of a token.
const TOKEN_DIGITS: usize = 32;

/// The path above tokens.
const PREFIX: &[u8] = b"/s/";

/// Stands for a token in the log.
const HIDDEN: &[u8] = b"...";

/// Splits a decoded path into the token of a link and the rest, which is empty or begins with a slash. Paths
/// without the form of a token are no links: a site may have them.
pub fn split_link(path: &[u8]) -> Option<(&[u8], &[u8])> {
    let rest = path.strip_prefix(PREFIX)?;
    let end = rest.iter().position(|byte| *byte == b'/').unwrap_or(rest.len());
    let (token, rest) = rest.split_at(end);
    is_token(token).then_some((token, rest))
}

fn is_token(text: &[u8]) -> bool {
    text.len() == TOKEN_DIGITS && text.iter().all(u8::is_ascii_hexdigit)
}

/// Returns whether a server reads this target of a request as one of a link.
pub fn is_link(target: &[u8]) -> bool {
    // Most targets have no such digits, and need not be decoded.
    let path = target.split(|byte| *byte == b'?').next().filter(|path| find_digits(path).is_some());
    let mut decoded = Vec::new();
    path.is_some_and(|path| decode_path(path, &mut decoded).is_ok() && split_link(&decoded).is_some())
}

/// Returns whether a target may be of a link, in any encoding. It may be true of others.
pub(super) fn may_be_link(target: &[u8]) -> bool {
    find_digits(target).is_some() && has_prefix(target)
}

/// Returns a target as it is logged: without what may be tokens of links. `None` if it has none.
pub(super) fn without_tokens(target: &[u8]) -> Option<Vec<u8>> {
    // Most targets have no such digits. The prefix is then not looked for, which takes longer.
    let (mut start, mut end) = find_digits(target).filter(|_| has_prefix(target))?;
    let (mut hidden, mut rest) = (Vec::with_capacity(target.len()), target);
    loop {
        hidden.extend_from_slice(&rest[..start]);
        hidden.extend_from_slice(HIDDEN);
        rest = &rest[end..];
        let Some(next) = find_digits(rest) else { break };
        (start, end) = next;
    }
    hidden.extend_from_slice(rest);
    Some(hidden)
}

/// Finds the first run of at least as many hexadecimal digits as a token has. Each may be escaped.
fn find_digits(target: &[u8]) -> Option<(usize, usize)> {
    let (mut start, mut at, mut digits) = (0, 0, 0);
    while at < target.len() {
        match digit_bytes(&target[at..]) {
            Some(bytes) => (at, digits) = (at + bytes, digits + 1),
            None if digits >= TOKEN_DIGITS => break,
            None => (start, at, digits) = (at + 1, at + 1, 0),
        }
    }
    (digits >= TOKEN_DIGITS).then_some((start, at))
}

/// Returns the length in bytes of the hexadecimal digit at the start.
fn digit_bytes(text: &[u8]) -> Option<usize> {
    match text {
        [b'%', rest @ ..] => unescaped(rest).filter(u8::is_ascii_hexdigit).map(|_| 3),
        [byte, ..] => byte.is_ascii_hexdigit().then_some(1),
        [] => None,
    }
}

/// Returns the byte of an escape, from the text behind its percent sign.
fn unescaped(rest: &[u8]) -> Option<u8> {
    let [high, low, ..] = rest else { return None };
    let digit = |byte: &u8| char::from(*byte).to_digit(16);
    u8::try_from(digit(high)? << 4 | digit(low)?).ok()
}

/// Whether a target has the path above tokens in it, in any encoding.
fn has_prefix(target: &[u8]) -> bool {
    let mut decoded = target.to_vec();
    for _ in 0..=DECODINGS_MAX {
        if decoded.windows(PREFIX.len()).any(|window| window == PREFIX) {
            return true;
        }
        decoded = decoded_once(&decoded);
    }
    false
}

fn decoded_once(text: &[u8]) -> Vec<u8> {
    let (mut decoded, mut rest) = (Vec::with_capacity(text.len()), text);
    while let [byte, after @ ..] = rest {
        match unescaped(after).filter(|_| *byte == b'%') {
            Some(unescaped) => {
                decoded.push(unescaped);
                rest = &after[2..];
            }
            None => {
                decoded.push(*byte);
                rest = after;
            }
        }
    }
    decoded
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: &str = "00112233445566778899aabbccddeeff";

    #[test]
    fn a_link_is_a_path_with_a_token_and_any_other_may_be_of_a_site() {
        let split = |path: &str| {
            split_link(path.as_bytes()).map(|(_, rest)| String::from_utf8_lossy(rest).into_owned())
        };
        assert_eq!(split(&format!("/s/{TOKEN}")).as_deref(), Some(""));
        assert_eq!(split(&format!("/s/{TOKEN}/a/b")).as_deref(), Some("/a/b"));
        for other in ["/s", "/s/", "/s/a", "/s/a/b", &format!("/S/{TOKEN}"), &format!("/s/{TOKEN}0")] {
            assert_eq!(split(other), None, "{other}");
        }
    }

    #[test]
    fn a_target_of_a_link_is_one_in_any_encoding_that_a_server_decodes() {
        let escaped = TOKEN.replacen('0', "%30", 1);
        for target in
            [format!("/s/{TOKEN}?a"), format!("//%73/{escaped}"), format!("/s/{}/a", TOKEN.to_uppercase())]
        {
            assert!(is_link(target.as_bytes()), "{target}");
        }
        for target in [
            format!("/a/s/{TOKEN}"),
            format!("/s/app-{TOKEN}.js"),
            format!("/s/a?v={TOKEN}"),
            format!("/?/s/{TOKEN}"),
            format!("/s/%2530{}", &TOKEN[1..]),
        ] {
            assert!(!is_link(target.as_bytes()), "{target}");
        }
    }

    #[test]
    fn a_token_is_hidden_however_it_is_encoded() {
        let encoded = TOKEN.replacen("00", "%30%30", 1);
        let upper = TOKEN.to_uppercase();
        for (target, logged) in [
            (format!("/s/{TOKEN}"), "/s/..."),
            (format!("/s/{upper}/a?b=c"), "/s/.../a?b=c"),
            (format!("/s/{TOKEN}?download"), "/s/...?download"),
            (format!("/%73/{encoded}/"), "/%73/.../"),
            (format!("//s//{TOKEN}"), "//s//..."),
            (format!("http://host/s/{TOKEN}#x"), "http://host/s/...#x"),
            (format!("/a?next=/s/{TOKEN}"), "/a?next=/s/..."),
            (format!("/s/{TOKEN}/{TOKEN}/x"), "/s/.../.../x"),
        ] {
            let hidden = without_tokens(target.as_bytes()).map(|hidden| String::from_utf8(hidden).unwrap());
            assert_eq!(hidden.as_deref(), Some(logged), "{target}");
            assert!(may_be_link(target.as_bytes()), "{target}");
        }
        let short = &TOKEN[1..];
        for other in ["/s/a", "/", "*", "", &format!("/files/{TOKEN}"), &format!("/s/{short}x%3")] {
            assert_eq!(without_tokens(other.as_bytes()), None, "{other}");
            assert!(!may_be_link(other.as_bytes()), "{other}");
        }
    }

    /// Mail and chat programs take a character behind an address for a part of it. Others are refused.
    #[test]
    fn a_token_is_hidden_in_a_target_that_is_not_quite_a_link() {
        let after = [")", ".", ",", "&download", "%20", ";x", "%2Fa.txt", "%", "%3", "%zz", "0", "g"];
        let after = after.map(|after| format!("/s/{TOKEN}{after}"));
        let before =
            ["/s/./", "/s/x/../", "/a?b=/s/", "/a?next=%2Fs%2F", "/a?next=%252Fs%252f", "/%2fs/", "/s%2F"];
        let before = before.map(|before| format!("{before}{TOKEN}&x=y"));
        for target in after.iter().chain(&before) {
            let hidden = without_tokens(target.as_bytes()).unwrap_or_default();
            let hidden = String::from_utf8(hidden).unwrap();
            assert!(hidden.contains("...") && !hidden.contains(&TOKEN[4..]), "{target}: {hidden}");
        }
    }
}
