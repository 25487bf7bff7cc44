//! The argument of LIST.

use plimsoll_wire::ftp::flags::{Flags, list_argument};

fn with(letters: &str) -> Flags {
    let has = |letter| letters.contains(letter);
    Flags { all: has('a'), long: has('l'), recursive: has('R'), itself: has('d') }
}

#[test]
fn flags_precede_the_path() {
    for (argument, flags, path) in [
        ("", "", ""),
        ("docs", "", "docs"),
        ("-a", "a", ""),
        ("-la", "la", ""),
        ("-A", "a", ""),
        ("-l -a", "la", ""),
        ("-a docs", "a", "docs"),
        ("-a -R docs", "aR", "docs"),
        ("-alRd x", "alRd", "x"),
        ("-CF1t", "", ""),
        ("-CF docs", "", "docs"),
    ] {
        assert_eq!(list_argument(argument.as_bytes()), (with(flags), path.as_bytes()), "{argument}");
    }
}

#[test]
fn any_name_can_follow_the_flags() {
    for (argument, flags, path) in [
        ("a b  c ", "", "a b  c "),
        (" a", "", " a"),
        ("-a  a", "a", " a"),
        ("-a a -l", "a", "a -l"),
        ("./-a", "", "./-a"),
        ("-- -a", "", "-a"),
        ("-l -- -a b", "l", "-a b"),
        ("--", "", ""),
        ("-- ", "", ""),
        ("-- -- a", "", "-- a"),
        ("-", "", "-"),
        ("- a", "", "- a"),
        ("-a.txt", "", "-a.txt"),
        ("--all", "", "--all"),
        ("-\u{e9}", "", "-\u{e9}"),
    ] {
        assert_eq!(list_argument(argument.as_bytes()), (with(flags), path.as_bytes()), "{argument}");
    }
}
