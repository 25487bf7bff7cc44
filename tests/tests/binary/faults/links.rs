//! Links out of a home that change between any check and any use: nothing outside is ever read or written.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use plimsoll_tests::binary::{EngineKind, Member, Server};
use plimsoll_tests::on_each_engine;

use super::left::{folder, names, until_nothing_is_pending};

/// The duration of the swaps.
const SWAP_TIME: Duration = Duration::from_millis(2500);
const SECRET: &[u8] = b"nobody's business";
const INSIDE: &[u8] = b"one's own";

/// Alternates `name` between a folder with a file and a link to a folder outside, so that a race between
/// check and use can occur.
fn swap(home: &Path, outside: &Path, over: &AtomicBool) -> u64 {
    let (spare, name, link) = (home.join("spare"), home.join("name"), home.join("link"));
    let mut swaps = 0;
    std::fs::create_dir(&name).unwrap();
    std::fs::write(name.join("file"), INSIDE).unwrap();
    while !over.load(Ordering::Relaxed) {
        symlink(outside, &link).unwrap();
        std::fs::rename(&name, &spare).unwrap();
        std::fs::rename(&link, &name).unwrap();
        std::thread::yield_now();
        std::fs::remove_file(&name).unwrap();
        std::fs::rename(&spare, &name).unwrap();
        swaps += 2;
    }
    swaps
}

/// As [`swap`], for the file itself.
fn swap_file(home: &Path, outside: &Path, over: &AtomicBool) -> u64 {
    let (next, name) = (home.join("next"), home.join("single"));
    let mut swaps = 0;
    while !over.load(Ordering::Relaxed) {
        symlink(outside.join("file"), &next).unwrap();
        std::fs::rename(&next, &name).unwrap();
        std::thread::yield_now();
        std::fs::write(&next, INSIDE).unwrap();
        std::fs::rename(&next, &name).unwrap();
        swaps += 2;
    }
    swaps
}

fn read_all(mut alice: Member, over: &AtomicBool, seen: &AtomicU64) {
    while !over.load(Ordering::Relaxed) {
        for target in ["/files/name/file", "/files/single", "/files/name/", "/files/name/only-outside"] {
            let reply = alice.get(target);
            assert!(!reply.text().contains("nobody"), "{target}: what is outside was read");
            assert!(!reply.text().contains("only-outside\""), "{target}: what is outside was listed");
            assert!(matches!(reply.status, 200 | 301 | 308 | 403 | 404 | 409), "{target}: {}", reply.status);
            seen.fetch_add(u64::from(reply.body == INSIDE), Ordering::Relaxed);
        }
    }
}

fn write_all(mut alice: Member, over: &AtomicBool, written: &AtomicU64) {
    let copy = "Destination: /files/name/copy\r\n";
    let asks = [
        ("PUT", "/files/name/new", ""),
        ("PUT", "/files/single", ""),
        ("COPY", "/files/kept", copy),
        ("MKCOL", "/files/name/made", ""),
        ("DELETE", "/files/name/made", ""),
        ("DELETE", "/files/name/only-outside", ""),
    ];
    while !over.load(Ordering::Relaxed) {
        for (method, target, fields) in asks {
            let body: &[u8] = if method == "PUT" { b"new" } else { b"" };
            let reply = alice.ask(method, target, fields, body);
            assert!(reply.status < 500, "{method} {target}: {} {}", reply.status, reply.text());
            written.fetch_add(u64::from(reply.status < 300), Ordering::Relaxed);
        }
    }
}

fn links_that_change_all_the_time_lead_nowhere(kind: EngineKind) {
    let (data, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    for name in ["file", "only-outside"] {
        std::fs::write(outside.path().join(name), SECRET).unwrap();
    }
    let server = Server::on_data(kind, data.path(), &[]);
    let mut alice = Member::new(&server, "alice");
    assert_eq!(alice.put("/files/kept", INSIDE).status, 201);
    let home = folder(data.path(), "alice", "files");
    let (over, seen, written) = (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0));
    let swaps = std::thread::scope(|scope| {
        let folders = scope.spawn(|| swap(&home, outside.path(), &over));
        let files = scope.spawn(|| swap_file(&home, outside.path(), &over));
        scope.spawn(|| read_all(alice.again(&server), &over, &seen));
        let writer = scope.spawn(|| write_all(alice.again(&server), &over, &written));
        let begun = Instant::now();
        while begun.elapsed() < SWAP_TIME && !writer.is_finished() {
            std::thread::sleep(Duration::from_millis(10));
        }
        over.store(true, Ordering::Relaxed);
        folders.join().unwrap() + files.join().unwrap()
    });
    let (seen, written) = (seen.into_inner(), written.into_inner());
    println!("{kind}: {swaps} swaps, {seen} reads and {written} writes that were done");
    assert!(swaps > 100 && seen > 10 && written > 10, "{swaps}, {seen}, {written}: hardly a race");
    assert_eq!(names(outside.path()), ["file", "only-outside"]);
    for name in ["file", "only-outside"] {
        assert_eq!(std::fs::read(outside.path().join(name)).unwrap(), SECRET);
    }
    until_nothing_is_pending(data.path(), "alice");
}

on_each_engine!(links_that_change_all_the_time_lead_nowhere);
