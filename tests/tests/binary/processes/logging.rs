//! Log lines of many processes, which one process writes.

use plimsoll_tests::binary::{PATIENCE, among_others, tool};
use rustix::process::Signal;

use super::{served, start};

const VISITORS: usize = 50;

#[test]
fn the_log_of_requests_has_each_request_of_each_process_once() {
    let _permit = among_others();
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("access.log");
    let site = folder.path().join("site");
    let mut server = start(&site, &["--access-log", log.to_str().unwrap()]);
    for number in 0..VISITORS {
        let (mut visitor, _) = served(&server);
        assert_eq!(visitor.get(&format!("/missing-{number}")).unwrap().status, 404);
    }
    server.signal(Signal::TERM);
    assert_eq!(server.ends_within(PATIENCE).code(), Some(0), "{}", server.stderr());
    let text = std::fs::read_to_string(log).unwrap();
    assert_eq!(text.matches("\"GET /small.txt HTTP/1.1\" 200 6").count(), VISITORS);
    for number in 0..VISITORS {
        assert_eq!(text.matches(&format!("\"GET /missing-{number} HTTP/1.1\" 404 ")).count(), 1);
    }
    assert_eq!(text.lines().count(), 2 * VISITORS);
}

#[test]
fn transfers_of_guests_are_logged_in_both_forms() {
    let _permit = among_others();
    let folder = tempfile::tempdir().unwrap();
    let (transfers, xferlog) = (folder.path().join("transfers"), folder.path().join("xferlog"));
    let logs = ["--transfer-log", transfers.to_str().unwrap(), "--xferlog", xferlog.to_str().unwrap()];
    let site = folder.path().join("site");
    let ftp = ["--ftp", "127.0.0.1:0", "--ftp-guests", "true"];
    let mut server = start(&site, &[&ftp[..], &logs].concat());
    let mut curl = tool("curl");
    curl.args(["-q", "--silent", "--show-error", &format!("ftp://{}/small.txt", server.ftp_at())]);
    tool::run(&mut curl).well();
    server.signal(Signal::TERM);
    assert_eq!(server.ends_within(PATIENCE).code(), Some(0), "{}", server.stderr());
    let text = std::fs::read_to_string(transfers).unwrap();
    let downloads = text.lines().filter(|line| line.contains("\"operation\":\"download\"")).count();
    assert_eq!(downloads, 1, "{text}");
    assert!(std::fs::read_to_string(xferlog).unwrap().contains(" 6 /small.txt b _ o a "));
}
