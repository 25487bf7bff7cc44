//! The server runs out of descriptors: a request that needs one gets 503 with `Retry-After`, nothing
//! breaks, and the server recovers.

use std::collections::BTreeMap;

use plimsoll_tests::binary::{Broken, EngineKind, Member, Reply, Server, Visitor, process, until};
use plimsoll_tests::on_each_engine;
use rustix::process::{Pid, Resource, Rlimit, prlimit};

use super::left::until_nothing_is_pending;

/// Too few for every account's home in the second test. With 128, one address may have only two connections,
/// and is refused while the server has not noticed the end of an earlier one. An even and an odd number: a
/// home takes two, so the failing call differs.
const OPEN_FILES: [u32; 2] = [192, 193];
/// The number of accounts: their homes' folders, kept open, would take more descriptors than that.
const PEOPLE: usize = 100;

/// Sets the server's limit of descriptors to `count`, or to its hard limit.
fn allow(server: &Server, count: Option<u64>) {
    let pid = Pid::from_raw(i32::try_from(server.pid()).unwrap());
    let before = prlimit(pid, Resource::Nofile, Rlimit { current: Some(4096), maximum: Some(4096) }).unwrap();
    let current = count.or(before.maximum);
    prlimit(pid, Resource::Nofile, Rlimit { current, maximum: Some(4096) }).unwrap();
}

/// Counts an answer: success, or 503 with `Retry-After`.
fn counted(statuses: &mut BTreeMap<u16, usize>, reply: &Reply) {
    assert!(matches!(reply.status, 200 | 201 | 204 | 503), "{} {}", reply.status, reply.text());
    if reply.status == 503 {
        assert!(reply.field("Retry-After").is_some(), "{}", reply.head);
    }
    *statuses.entry(reply.status).or_default() += 1;
}

fn without_descriptors_it_says_so_and_recovers(kind: EngineKind) {
    let data = tempfile::tempdir().unwrap();
    let server = Server::on_data(kind, data.path(), &["--threads", "1"]);
    let mut alice = Member::new(&server, "alice");
    assert_eq!(alice.put("/files/old", b"old").status, 201);
    alice.mkcol("/files/folder");
    let before = process::descriptors(server.pid());
    allow(&server, Some(before as u64));
    let mut statuses = BTreeMap::new();
    let mut late = Visitor::connect(server.at()).expect("the system takes the connection");
    for number in 0..20 {
        counted(&mut statuses, &alice.put("/files/old", b"new"));
        counted(&mut statuses, &alice.put(&format!("/files/folder/{number}"), b"new"));
        counted(&mut statuses, &alice.get("/files/old"));
        counted(&mut statuses, &alice.ask("GET", "/files/folder/", "Accept: application/json\r\n", b""));
    }
    println!("{kind}: {before} descriptors, answers {statuses:?}");
    assert!(statuses.contains_key(&503), "{statuses:?}: there were some left");
    allow(&server, None);
    // Where each connection takes a descriptor, the server may have closed late connections cleanly.
    match late.get("/healthz") {
        Ok(reply) => assert_eq!(reply.status, 200),
        Err(broken) => assert!(matches!(broken, Broken::Ended | Broken::Refused(_)), "{broken:?}"),
    }
    until_nothing_is_pending(data.path(), "alice");
    assert_eq!(alice.put("/files/old", b"newest").status, 204);
    assert_eq!(alice.get("/files/old").body, b"newest");
    drop(late);
    until("the descriptors are back", || process::descriptors(server.pid()) <= before);
    assert_eq!(server.status()["load"]["connections_panicked"], 0);
}

fn more_homes_than_descriptors_are_served(kind: EngineKind) {
    for open_files in OPEN_FILES {
        let data = tempfile::tempdir().unwrap();
        let args = ["--threads", "1"];
        let server = Server::on_data_with_few_open_files(kind, data.path(), &args, open_files);
        for number in 0..PEOPLE {
            let mut person = Member::new(&server, &format!("person-{number}"));
            assert_eq!(person.put("/files/file", b"one each").status, 201, "{number} of {open_files}");
            assert_eq!(person.get("/files/file").status, 200, "{number} of {open_files}");
        }
        println!("{kind}: {} of {open_files} descriptors", process::descriptors(server.pid()));
    }
}

on_each_engine!(alone: without_descriptors_it_says_so_and_recovers, more_homes_than_descriptors_are_served);
