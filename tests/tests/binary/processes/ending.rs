//! The effect of one process's end on the others.

use plimsoll_tests::binary::{PATIENCE, among_others, process, until};
use rustix::process::{Pid, Signal, kill_process};

use super::{assert_cut_off, assert_small, assert_whole, begun, children, load, master, served, start};

pub(super) fn kill(pid: u32) {
    let pid = Pid::from_raw(pid.try_into().expect("a number of a process")).expect("not zero");
    kill_process(pid, Signal::KILL).expect("it is there");
}

#[test]
fn a_connections_process_that_is_killed_is_one_clients_harm() {
    let _permit = among_others();
    let folder = tempfile::tempdir().unwrap();
    let server = start(folder.path(), &[]);
    let ((mut first, child), (mut second, _)) = (served(&server), served(&server));
    let large = begun(&server);
    kill(child);
    assert_cut_off(&mut first);
    assert_small(&mut second);
    assert_whole(large);
    until("its place is free", || load(&server, "connections_open") == 2);
    until("the log reports it", || server.stderr().contains("signal=9"));
    assert!(!children(&server).contains(&child), "it is buried");
    served(&server);
}

#[test]
fn no_process_outlives_a_program_that_is_killed() {
    let _permit = among_others();
    let folder = tempfile::tempdir().unwrap();
    let mut server = start(folder.path(), &[]);
    let (mut visitor, child) = served(&server);
    let _stuck = begun(&server);
    let (master, children) = (master(&server), children(&server));
    assert!(children.contains(&child) && children.len() == 2, "{children:?}");
    kill(server.pid());
    server.ends_within(PATIENCE);
    until("all of them have ended", || {
        children.iter().chain([&master]).all(|process| !process::is_running(*process))
    });
    assert_cut_off(&mut visitor);
    server.wait_until_refused();
}

#[test]
fn a_program_whose_master_is_killed_says_so_and_ends() {
    let _permit = among_others();
    let folder = tempfile::tempdir().unwrap();
    let mut server = start(folder.path(), &[]);
    let (mut visitor, child) = served(&server);
    kill(master(&server));
    assert_eq!(server.ends_within(PATIENCE).code(), Some(1), "{}", server.stderr());
    assert!(server.stderr().contains("signal 9 ended the process that accepts"), "{}", server.stderr());
    until("its connections' processes have ended", || !process::is_running(child));
    assert_cut_off(&mut visitor);
}
