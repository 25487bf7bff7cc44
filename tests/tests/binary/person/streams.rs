//! Standard input and standard output as files.

use std::io::Write as _;
use std::process::{Command, Stdio};

use plimsoll_tests::binary::{self, EngineKind, among_others, tool};
use plimsoll_tests::tree::noise;

use super::{Person, Workspace};

#[test]
fn a_stream_goes_there_and_comes_back() {
    let _permit = among_others();
    let place = Workspace::open(EngineKind::Epoll);
    let alice = Person::at(&place.server.url(""), "alice");
    for bytes in [0, 10, 5 << 20] {
        let contents = noise(4, bytes);
        if bytes > 0 {
            // A local file has no relation to a remote name.
            alice.writes("stream", "another");
        }
        let mut put = alice.command(&["put", "-", "stream"]).stdin(Stdio::piped()).spawn().unwrap();
        put.stdin.take().unwrap().write_all(&contents).unwrap();
        assert!(put.wait().unwrap().success());
        let got = alice.types(&["get", "stream", "-"]).well();
        assert!(got.stdout == contents, "{bytes} bytes");
    }
    alice.fails(&["get", "missing", "-"], 1, &["missing"]);
}

/// A reader that closes the pipe ends the download without an error message, as with other programs.
#[test]
fn a_reader_that_goes_away_is_no_error() {
    let _permit = among_others();
    let place = Workspace::open(EngineKind::Epoll);
    let alice = Person::at(&place.server.url(""), "alice");
    alice.writes("large", noise(5, 8 << 20));
    alice.types(&["put", "large"]).well();
    let mut shell = Command::new("sh");
    shell.args(["-c", "\"$0\" get large - | head -c 10; \"$0\" ls | true"]).arg(binary::plimsoll());
    alice.settle(&mut shell);
    let done = tool::run(&mut shell).well();
    assert!(done.stdout.starts_with(&noise(5, 8 << 20)[..10]) && done.stdout.len() == 10);
    assert_eq!(done.stderr, "");
}
