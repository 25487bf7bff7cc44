//! The number of processes and threads, and counts common to all of them.

use plimsoll_tests::binary::{Visitor, among_others, process, tool, until};

use super::{assert_small, children, children_are, load, master, served, start};

const VISITORS: usize = 12;

#[test]
fn each_connection_has_a_process_with_one_thread_and_so_has_their_master() {
    let _permit = among_others();
    let folder = tempfile::tempdir().unwrap();
    let server = start(folder.path(), &[]);
    children_are(&server, 0);
    let mut visitors: Vec<(Visitor, u32)> = (0..VISITORS).map(|_| served(&server)).collect();
    assert_eq!(children_are(&server, VISITORS).len(), VISITORS);
    for (visitor, child) in &mut visitors {
        assert_small(visitor);
        assert_eq!(process::threads(*child), 1);
        assert!(process::children(*child).is_empty(), "it makes none itself");
    }
    assert_eq!(process::threads(master(&server)), 1);
    // The processes have ended and were reaped.
    drop(visitors);
    children_are(&server, 0);
}

#[test]
fn a_listing_makes_no_thread_either() {
    let _permit = among_others();
    let folder = tempfile::tempdir().unwrap();
    let server = start(folder.path(), &[]);
    let (mut visitor, child) = served(&server);
    assert_eq!(visitor.get("/").unwrap().status, 200);
    assert_eq!(process::threads(child), 1);
}

#[test]
fn the_status_counts_the_requests_of_all_processes() {
    let _permit = among_others();
    let folder = tempfile::tempdir().unwrap();
    let server = start(folder.path(), &[]);
    let visitors: Vec<_> = (0..VISITORS).map(|_| served(&server)).collect();
    let status = server.status();
    assert_eq!((&status["engine"], &status["threads"]), (&"process".into(), &1.into()));
    // The last one is the connection of the status request.
    assert_eq!(status["load"]["connections_open"], VISITORS + 1, "{status}");
    assert_eq!(status["load"]["connections_accepted"], VISITORS + 1, "{status}");
    assert_eq!(status["answers"]["2xx"], VISITORS, "{status}");
    drop(visitors);
    until("they have gone", || load(&server, "connections_open") == 1);
}

#[test]
fn a_process_has_nothing_of_its_masters_listeners_nor_of_others_connections() {
    let _permit = among_others();
    let folder = tempfile::tempdir().unwrap();
    let server = start(folder.path(), &["--ftp", "127.0.0.1:0", "--ftp-guests", "true"]);
    let (_first, one) = served(&server);
    let (_second, two) = served(&server);
    // The log's socket, and the master's wakeup socket for SIGCHLD, which is inherited but unused.
    let of_both: Vec<String> =
        process::sockets(one).into_iter().filter(|socket| process::sockets(two).contains(socket)).collect();
    assert_eq!(of_both.len(), 2, "{of_both:?}");
    let listening = std::fs::read_to_string("/proc/net/tcp").unwrap();
    for child in [one, two] {
        assert_eq!(process::sockets(child).len(), 3, "those, and its connection");
        for socket in process::sockets(child) {
            let number = socket.trim_start_matches("socket:[").trim_end_matches(']').to_owned();
            let line = listening.lines().find(|line| line.split_whitespace().nth(9) == Some(&number));
            // The state 0A is LISTEN.
            assert!(line.is_none_or(|line| line.split_whitespace().nth(3) != Some("0A")), "{line:?}");
        }
    }
}

#[test]
fn guests_of_ftp_have_a_process_each_and_their_files() {
    let _permit = among_others();
    let folder = tempfile::tempdir().unwrap();
    let server = start(folder.path(), &["--ftp", "127.0.0.1:0", "--ftp-guests", "true"]);
    let mut curl = tool("curl");
    curl.args(["-q", "--silent", "--show-error", &format!("ftp://{}/small.txt", server.ftp_at())]);
    assert_eq!(tool::run(&mut curl).well().stdout, b"small\n");
    until("the session has ended", || children(&server).is_empty());
    assert_eq!(load(&server, "connections_accepted"), 2, "the session, and who asks");
}
