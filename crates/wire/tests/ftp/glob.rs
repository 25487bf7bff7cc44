//! Patterns for names.

use std::time::{Duration, Instant};

use plimsoll_wire::ftp::glob::{has_wildcards, matches};
use proptest::prelude::*;

fn is_match(pattern: &str, name: &str) -> bool {
    matches(pattern.as_bytes(), name.as_bytes())
}

#[test]
fn a_pattern_matches_whole_names_only() {
    for (pattern, yes, no) in [
        ("", &[""][..], &["a"][..]),
        ("a", &["a"], &["", "A", "aa", "b"]),
        ("*", &["", "a", ".a", "a*b"], &[]),
        ("**", &["", "ab"], &[]),
        ("*.txt", &[".txt", "a.txt", "a.txt.txt"], &["a.txt.gz", "txt"]),
        ("a*b*c", &["abc", "aXbXc", "abcbc", "abbcc"], &["ab", "acb", "abcd"]),
        ("?", &["a", "ä", "\u{1f6a2}"], &["", "ab"]),
        ("a?c", &["abc", "a?c"], &["ac", "abbc"]),
        ("*?", &["a", "ab"], &[""]),
        ("[abc]", &["a", "c"], &["d", "", "ab", "[abc]"]),
        ("[a-c]x", &["ax", "bx"], &["dx", "-x"]),
        ("[!a-c]", &["d", "ä", "!"], &["a", "b"]),
        ("[^a]", &["b", "^"], &["a"]),
        ("[]a]", &["]", "a"], &["[", "b"]),
        ("[!]a]", &["b", "["], &["]", "a"]),
        ("[a-]", &["a", "-"], &["b"]),
        ("[-a]", &["a", "-"], &["b"]),
        ("[c-a]", &[], &["a", "b", "c"]),
        ("[a-cx-z]", &["b", "y"], &["d", "w", "-"]),
        ("[à-ö]", &["ä", "ö"], &["a", "ü"]),
        ("[\\]]", &["]"], &["\\", "["]),
        ("[\\a-c]", &["b"], &["\\", "-"]),
        ("[", &["["], &["", "a"]),
        ("[a", &["[a"], &["a", "["]),
        ("*[a", &["[a", "x[a"], &["a"]),
        ("[]", &["[]"], &["]"]),
        ("[!", &["[!"], &["a"]),
        ("[a[b]", &["a", "[", "b"], &["[ab"]),
        ("\\*", &["*"], &["a", "\\*", "\\"]),
        ("\\a", &["a"], &["\\a"]),
        ("a\\", &["a\\"], &["a"]),
    ] {
        for name in yes {
            assert!(is_match(pattern, name), "{pattern} matches {name}");
        }
        for name in no {
            assert!(!is_match(pattern, name), "{pattern} does not match {name}");
        }
    }
}

#[test]
fn an_invalid_utf8_byte_matches_as_one_character() {
    assert!(matches(b"?", b"\xff") && matches(b"\xff", b"\xff") && matches(b"[\xfe-\xff]", b"\xff"));
    assert!(!matches(b"?", b"\xff\xff") && matches(b"??", b"\xff\xff"));
    assert!(matches(b"??", b"\xc3\xc3\xa4"), "a byte and a character");
    assert!(!matches(b"*\xa4", b"\xc3\xa4"));
}

#[test]
fn a_name_with_wildcards_is_a_pattern() {
    for pattern in ["*", "a?", "[a]", "["] {
        assert!(has_wildcards(pattern.as_bytes()), "{pattern}");
    }
    for name in ["", "a", "a\\b", "]", "-!^"] {
        assert!(!has_wildcards(name.as_bytes()), "{name}");
    }
}

#[test]
fn matching_takes_time_proportional_to_pattern_times_name() {
    // Each of these patterns has the length of a command line. Backtracking over every star would take
    // years.
    let name = [&[b'a'; 254][..], b"b"].concat();
    let brackets = vec![b'['; 255];
    let begun = Instant::now();
    for pattern in [
        b"*a".repeat(2000),
        b"*?".repeat(2000),
        b"*[a-z]".repeat(700),
        [b"*".to_vec(), b"a".repeat(4000)].concat(),
        [b"*".to_vec(), b"[".repeat(4000)].concat(),
        [b"*".to_vec(), b"[!".repeat(2000)].concat(),
        [b"*[".to_vec(), b"a".repeat(4000)].concat(),
        [b"*[".to_vec(), b"[".repeat(4000), b"]c".to_vec()].concat(),
    ] {
        for _ in 0..20 {
            assert!(!matches(&pattern, &name) && !matches(&pattern, &brackets));
        }
    }
    // The match takes a tenth of a second; a repeated search for each bracket's end would take a minute.
    assert!(begun.elapsed() < Duration::from_secs(10));
}

/// Matches by exhaustive backtracking, as the reference.
fn plainly(pattern: &[u8], name: &[u8]) -> bool {
    match (pattern, name) {
        ([], _) => name.is_empty(),
        ([b'*', rest @ ..], _) => (0..=name.len()).any(|at| plainly(rest, &name[at..])),
        ([b'[', member, b']', rest @ ..], [first, others @ ..]) => member == first && plainly(rest, others),
        ([b'?', rest @ ..], [_, others @ ..]) => plainly(rest, others),
        ([one, rest @ ..], [first, others @ ..]) => one == first && plainly(rest, others),
        (_, []) => false,
    }
}

proptest! {
    #[test]
    fn matching_agrees_with_a_full_search(pattern in "(a|b|\\*|\\?|\\[a\\]){0,10}", name in "[ab]{0,10}") {
        prop_assert_eq!(is_match(&pattern, &name), plainly(pattern.as_bytes(), name.as_bytes()));
    }

    #[test]
    fn an_escaped_name_matches_itself(name in any::<Vec<u8>>()) {
        let text = String::from_utf8_lossy(&name).into_owned();
        let escaped: String = text.chars().flat_map(|character| ['\\', character]).collect();
        prop_assert!(is_match(&escaped, &text));
    }

    #[test]
    fn no_bytes_make_the_parser_panic(pattern in any::<Vec<u8>>(), name in any::<Vec<u8>>()) {
        let _ = matches(&pattern, &name);
    }
}
