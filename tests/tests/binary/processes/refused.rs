//! Settings that the engine does not support are refused at the start, with an alternative.

use plimsoll_tests::binary::{among_others, command};

fn refused(args: &[&str]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let mut command = command();
    command.args(args).args(["--engine", "process"]).current_dir(folder.path());
    let done = command.output().unwrap();
    assert_eq!(done.status.code(), Some(2), "{done:?}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "nothing was made");
    String::from_utf8(done.stderr).unwrap()
}

#[test]
fn a_storage_server_is_not_served_by_processes() {
    let _permit = among_others();
    let message = refused(&["store", "--listen", "127.0.0.1:0", "--data", "files"]);
    assert!(message.contains("a process each") && message.contains("--engine epoll"), "{message}");
}
