//! Commands: verbs in any case, arguments byte for byte.

use plimsoll_wire::ftp::command::{Command, Unknown, Verb, parse};

#[test]
fn every_verb_parses_in_any_case_with_and_without_an_argument() {
    for &verb in Verb::ALL {
        let name = verb.name();
        for word in [name.to_owned(), name.to_lowercase()] {
            assert_eq!(parse(word.as_bytes()), Ok(Command { verb, argument: b"" }));
            let line = format!("{word} a b");
            assert_eq!(parse(line.as_bytes()), Ok(Command { verb, argument: b"a b" }));
        }
    }
    assert_eq!(parse(b"rEtR x"), Ok(Command { verb: Verb::Retr, argument: b"x" }));
}

#[test]
fn verb_names_are_unique_and_have_three_or_four_capitals() {
    for (at, verb) in Verb::ALL.iter().enumerate() {
        let name = verb.name();
        assert!(
            (3..=4).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_uppercase()),
            "{name}"
        );
        assert!(Verb::ALL[..at].iter().all(|other| other.name() != name), "{name}");
    }
}

#[test]
fn x_prefixed_verbs_are_aliases() {
    for (old, verb) in [
        ("XCUP", Verb::Cdup),
        ("XCWD", Verb::Cwd),
        ("xmkd", Verb::Mkd),
        ("XPWD", Verb::Pwd),
        ("XRMD", Verb::Rmd),
    ] {
        assert_eq!(parse(format!("{old} a").as_bytes()), Ok(Command { verb, argument: b"a" }));
    }
}

#[test]
fn the_first_space_separates_the_verb_and_further_spaces_stay_in_the_argument() {
    for (line, argument) in [
        (&b"CWD"[..], &b""[..]),
        (b"CWD ", b""),
        (b"CWD a", b"a"),
        (b"CWD  a", b" a"),
        (b"CWD a ", b"a "),
        (b"CWD \t", b"\t"),
        (b"CWD \xff\0\r", b"\xff\0\r"),
    ] {
        assert_eq!(parse(line), Ok(Command { verb: Verb::Cwd, argument }), "{}", line.escape_ascii());
    }
}

#[test]
fn an_unknown_verb_is_rejected() {
    for line in
        [&b""[..], b" ", b" PWD", b"PWDX", b"PW", b"XXXX a", b"PWD\t", b"PWD\0", b"\xffPWD", b"GET / "]
    {
        assert_eq!(parse(line), Err(Unknown), "{}", line.escape_ascii());
    }
}
