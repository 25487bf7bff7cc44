//! The paths of public links, `/s/TOKEN` and below: found in a request, and hidden in the access log.
//!
//! It checks no token. Invariant: a token that a request has in its path is in no line of the log, however
//! the client encodes it.

use plimsoll_wire::http::target::decode_path;

/// Hexadecimal digits of a token.
const TOKEN_DIGITS: usize = 32;

/// The name above tokens.
const PARENT: &[u8] = b"s";

/// Stands for a token in the log.
const HIDDEN: &[u8] = b"...";

/// Splits a decoded path into the token of a link and the rest, which is empty or begins with a slash. Paths
/// without the form of a token are no links: a site may have them.
pub fn split_link(path: &[u8]) -> Option<(&[u8], &[u8])> {
    let rest = path.strip_prefix(b"/s/")?;
    let end = rest.iter().position(|byte| *byte == b'/').unwrap_or(rest.len());
    let (token, rest) = rest.split_at(end);
    is_token(token).then_some((token, rest))
}

fn is_token(text: &[u8]) -> bool {
    text.len() == TOKEN_DIGITS && text.iter().all(u8::is_ascii_hexdigit)
}

/// Returns a target as it is logged: without the tokens of links. `None` if it has none.
pub(super) fn without_tokens(target: &[u8]) -> Option<Vec<u8>> {
    // Most targets are too short.
    if target.len() <= TOKEN_DIGITS {
        return None;
    }
    let (mut hidden, mut is_any, mut is_below_parent) = (Vec::with_capacity(target.len()), false, false);
    for (at, segment) in target.split(|byte| *byte == b'/').enumerate() {
        if at > 0 {
            hidden.push(b'/');
        }
        let end = segment.iter().position(|byte| b"?#".contains(byte)).unwrap_or(segment.len());
        let (name, rest) = segment.split_at(end);
        if is_below_parent && is_token(&decoded(name)) {
            hidden.extend_from_slice(HIDDEN);
            hidden.extend_from_slice(rest);
            is_any = true;
        } else {
            hidden.extend_from_slice(segment);
        }
        // An empty segment is one slash among several.
        is_below_parent = decoded(name) == PARENT || is_below_parent && segment.is_empty();
    }
    is_any.then_some(hidden)
}

/// Returns a segment without its escapes; nothing if it is malformed.
fn decoded(segment: &[u8]) -> Vec<u8> {
    let mut path = Vec::new();
    // A segment that is refused leaves the path empty.
    let _ = decode_path(&[b"/", segment].concat(), &mut path);
    path.split_off(path.len().min(1))
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
        ] {
            let hidden = without_tokens(target.as_bytes()).map(|hidden| String::from_utf8(hidden).unwrap());
            assert_eq!(hidden.as_deref(), Some(logged), "{target}");
        }
        for other in ["/s/a", "/", "*", &format!("/files/{TOKEN}"), &format!("/s/a/{TOKEN}")] {
            assert_eq!(without_tokens(other.as_bytes()), None, "{other}");
        }
    }
}
