//! The order to stop reaches every process.

use plimsoll_tests::binary::{Broken, PATIENCE, among_others, process, until};
use rustix::process::{Pid, Signal, kill_process};

use super::{assert_whole, begun, children, children_are, master, served, start};

#[test]
fn at_a_stop_an_idle_client_is_closed_and_a_request_in_progress_is_finished() {
    let _permit = among_others();
    let folder = tempfile::tempdir().unwrap();
    let mut server = start(folder.path(), &["--grace", "600s"]);
    let ((mut idle, _), large) = (served(&server), begun(&server));
    server.signal(Signal::TERM);
    server.wait_until_refused();
    assert!(matches!(idle.reply(), Err(Broken::Ended)), "a clean end");
    let left = children_are(&server, 1);
    assert_whole(large);
    assert_eq!(server.ends_within(PATIENCE).code(), Some(0), "{}", server.stderr());
    assert!(!process::is_running(left[0]));
}

/// A terminal's Ctrl-C and a service manager's signal reach each process, not only the program's.
#[test]
fn a_signal_to_all_processes_aborts_no_client() {
    let _permit = among_others();
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let folder = tempfile::tempdir().unwrap();
        let mut server = start(folder.path(), &["--grace", "600s"]);
        let ((mut kept, _), large) = (served(&server), begun(&server));
        for process in children(&server).into_iter().chain([master(&server)]) {
            let pid = Pid::from_raw(process.try_into().unwrap()).unwrap();
            kill_process(pid, signal).unwrap();
        }
        super::assert_small(&mut kept);
        server.signal(Signal::TERM);
        assert_whole(large);
        assert_eq!(server.ends_within(PATIENCE).code(), Some(0), "{}", server.stderr());
    }
}

#[test]
fn the_end_of_the_grace_cuts_off_who_is_left_and_counts_them() {
    let _permit = among_others();
    let folder = tempfile::tempdir().unwrap();
    let mut server = start(folder.path(), &["--grace", "1s"]);
    let stuck = [begun(&server), begun(&server)];
    let left = children_are(&server, 2);
    server.signal(Signal::TERM);
    assert_eq!(server.ends_within(PATIENCE).code(), Some(0), "{}", server.stderr());
    assert!(left.iter().all(|child| !process::is_running(*child)));
    let log = server.stderr();
    let line = log.lines().find(|line| line.contains("the grace period is over")).expect(&log);
    assert!(line.contains("connections=2"), "{line}");
    drop(stuck);
}

/// A process that a debugger has stopped, or that waits for a broken disk, does not end by itself.
#[test]
fn a_process_that_does_not_end_after_the_grace_is_killed_and_counted() {
    let _permit = among_others();
    let folder = tempfile::tempdir().unwrap();
    let mut server = start(folder.path(), &["--grace", "100ms"]);
    let (_held, child) = served(&server);
    let pid = Pid::from_raw(child.try_into().unwrap()).unwrap();
    kill_process(pid, Signal::STOP).unwrap();
    server.signal(Signal::TERM);
    assert_eq!(server.ends_within(PATIENCE).code(), Some(0), "{}", server.stderr());
    until("it has ended", || !process::is_running(child));
    assert!(server.stderr().contains("connections=1"), "{}", server.stderr());
}

/// A master that hangs (while it reads a configuration, or in a debugger) delays the end no longer than one
/// of its processes would.
#[test]
fn a_master_that_does_not_end_after_the_grace_is_killed_with_all_that_come_of_it() {
    let _permit = among_others();
    let folder = tempfile::tempdir().unwrap();
    let mut server = start(folder.path(), &["--grace", "100ms"]);
    let (_held, child) = served(&server);
    let master = master(&server);
    let pid = Pid::from_raw(master.try_into().unwrap()).unwrap();
    kill_process(pid, Signal::STOP).unwrap();
    server.signal(Signal::TERM);
    assert_eq!(server.ends_within(2 * PATIENCE).code(), Some(1), "{}", server.stderr());
    assert!(server.stderr().contains("did not end in time"), "{}", server.stderr());
    until("they have ended", || ![child, master].into_iter().any(process::is_running));
}
