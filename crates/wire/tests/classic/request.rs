//! Requests: each line has one reading, and any name and password can be expressed.

use plimsoll_wire::classic::{BadRequest, Credentials, Request, Unwritable};
use proptest::prelude::*;

fn of(name: &[u8], password: &[u8]) -> Credentials {
    Credentials { name: name.to_vec(), password: password.to_vec().into() }
}

#[test]
fn a_request_line_has_a_word_a_name_and_a_password() {
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
fn a_malformed_request_is_rejected_with_advice() {
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
fn debug_output_of_a_request_hides_the_password() {
    assert!(!format!("{:?}", Request::Get(of(b"alice", b"horse"))).contains("horse"));
}

proptest! {
    #[test]
    fn a_written_message_parses_to_the_same(name: Vec<u8>, password: Vec<u8>, is_new: bool) {
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
