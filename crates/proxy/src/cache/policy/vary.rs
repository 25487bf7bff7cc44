//! Vary: the request fields that select among the stored responses of a key (RFC 9111, section 4.1).
//!
//! Not here: storage. Invariants: `*` never matches, so a response with it is not stored; an absent field
//! and an empty one are different values.

use super::fields::{FieldLines, list_members};
use super::key::Digest;
use crate::cache::limits::VARY_NAMES_MAX;
use crate::fields::may_select;

/// The field names of a Vary, in lower case, sorted, each once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Vary {
    names: Box<[Box<[u8]>]>,
}

impl Vary {
    /// Reads the Vary of a response. Returns `None` if it can never match: `*`, a field that the proxy
    /// writes, text that is no name, or more names than the limit.
    #[must_use]
    pub fn parse(fields: FieldLines<'_>) -> Option<Vary> {
        let mut names: Vec<Box<[u8]>> = Vec::new();
        for name in fields.members("vary") {
            if name == b"*" || !may_select(name) || names.len() >= VARY_NAMES_MAX {
                return None;
            }
            names.push(name.to_ascii_lowercase().into());
        }
        names.sort_unstable();
        names.dedup();
        Some(Vary { names: names.into() })
    }

    /// Whether no field selects.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Returns the digest of the selecting fields of a request.
    ///
    /// Values match if they can be made equal by adding or removing white space and by combining lines, as
    /// the section permits: each line's members are compared without the space around them.
    #[must_use]
    pub fn select(&self, request: FieldLines<'_>) -> Digest {
        let mut parts: Vec<&[u8]> = Vec::new();
        for name in &self.names {
            parts.push(name);
            let same = |(other, _): &(&[u8], _)| other.eq_ignore_ascii_case(name);
            let mut values = request.iter().filter(same).map(|(_, value)| value).peekable();
            // No value is a list member with a NUL.
            parts.push(if values.peek().is_some() { b"\0present" } else { b"\0absent" });
            parts.extend(values.flat_map(list_members));
        }
        Digest::of(parts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vary(value: &str) -> Option<Vary> {
        Vary::parse(FieldLines::new(format!("Vary: {value}\r\n").as_bytes()))
    }

    fn select(vary: &Vary, lines: &str) -> Digest {
        vary.select(FieldLines::new(lines.as_bytes()))
    }

    #[test]
    fn a_star_among_other_names_never_matches() {
        assert_eq!(vary("*"), None);
        assert_eq!(vary("Accept, *"), None);
        assert!(vary("").unwrap().is_empty());
    }

    #[test]
    fn a_malformed_vary_never_matches() {
        for value in ["A;B", "\"A\"", "A B", "A, \"B", "A, B;q=1"] {
            assert_eq!(vary(value), None, "{value}");
        }
    }

    #[test]
    fn a_field_that_the_proxy_writes_never_matches() {
        for value in ["X-Forwarded-For", "TE", "Connection", "Via", "If-None-Match", "Range", "Expect"] {
            assert_eq!(vary(value), None, "{value}");
        }
        assert!(vary("Host, Origin, Cookie").is_some());
    }

    #[test]
    fn more_names_than_the_limit_never_match() {
        let names = |count: usize| (0..count).map(|n| format!("X-{n}")).collect::<Vec<_>>().join(",");
        assert!(vary(&names(VARY_NAMES_MAX)).is_some());
        assert_eq!(vary(&names(VARY_NAMES_MAX + 1)), None);
    }

    #[test]
    fn values_match_whatever_the_white_space_the_lines_and_the_order_of_names() {
        let one = vary("Accept-Language, ACCEPT").unwrap();
        assert_eq!(Some(&one), vary("accept, accept-language, accept").as_ref());
        let first = select(&one, "Accept: a,b\r\nAccept-Language: de\r\n");
        assert_eq!(first, select(&one, "accept-language:  de\r\nACCEPT: a\r\nAccept: b ,\r\n"));
        assert_ne!(first, select(&one, "Accept: b,a\r\nAccept-Language: de\r\n"));
        assert_ne!(first, select(&one, "Accept: a,b\r\n"));
    }

    #[test]
    fn an_absent_field_differs_from_an_empty_one() {
        let one = vary("a").unwrap();
        assert_ne!(select(&one, ""), select(&one, "A:\r\n"));
        assert_eq!(select(&one, "B: 1\r\n"), select(&one, ""));
    }

    #[test]
    fn a_value_cannot_imitate_the_next_field() {
        let two = vary("a, b").unwrap();
        assert_ne!(select(&two, "A: b\r\n"), select(&two, "A:\r\nB:\r\n"));
    }
}
