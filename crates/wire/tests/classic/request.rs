//! Requests: each line has one reading, and any name and password can be expressed.

use plimsoll_wire::classic::{BadRequest, Credentials, Request, Unwritable};
use proptest::prelude::*;

fn of(name: &[u8], password: &[u8]) -> Credentials {
    Credentials { name: name.to_vec(), password: password.to_vec().into() }
}

#[test]
fn a_line_is_a_word_a_name_and_a_password() {
    for (line, request) in [
        (&b"new:alice:correct horse"[..], Request::New(of(b"alice", b"correct horse"))),
        (b"get:alice:correct horse", Request::Get(of(b"alice", b"correct horse"))),
        (b"get::", Request::Get(of(b"", b""))),
        (br"get:a\:b\\:\\\:", Request::Get(of(br"a:b\", br"\:"))),
        (b"get:\xff\0:\r", Request::Get(of(b"\xff\0", b"\r"))),
    ] {
        assert_eq!(Request::parse(line), Ok(request), "{}", line.escape_ascii());
    }
}

#[test]
fn a_line_that_asks_for_nothing_is_told_what_would() {
    for (line, bad) in [
        (&b""[..], BadRequest::Word),
        (b"new", BadRequest::Word),
        (b"GET:alice:horse", BadRequest::Word),
        (b"put:alice:horse", BadRequest::Word),
        (b"GET / HTTP/1.1", BadRequest::Word),
        (b"get:alice", BadRequest::Parts),
        (br"get:alice\:horse", BadRequest::Parts),
        (b"get:alice:horse:", BadRequest::Parts),
        (br"get:alice:\n", BadRequest::Escape),
        (br"get:alice:horse\", BadRequest::Escape),
    ] {
        assert_eq!(Request::parse(line), Err(bad), "{}", line.escape_ascii());
        assert!(bad.to_string().contains(':'));
    }
}

#[test]
fn a_password_is_not_shown_where_a_request_is() {
    assert!(!format!("{:?}", Request::Get(of(b"alice", b"horse"))).contains("horse"));
}

proptest! {
    #[test]
    fn what_is_written_is_read_as_the_same(name: Vec<u8>, password: Vec<u8>, is_new: bool) {
        let request = if is_new { Request::New } else { Request::Get }(of(&name, &password));
        let mut line = Vec::new();
        let written = request.write(&mut line);
        if name.contains(&b'\n') || password.contains(&b'\n') {
            prop_assert_eq!(written, Err(Unwritable));
        } else {
            prop_assert_eq!(line.pop(), Some(b'\n'));
            prop_assert!(!line.contains(&b'\n'));
            prop_assert_eq!(Request::parse(&line), Ok(request));
        }
    }
}
