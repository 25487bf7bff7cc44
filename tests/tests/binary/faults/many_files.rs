//! A folder with ten thousand files: it is listed completely, and counted correctly.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use plimsoll_tests::binary::{EngineKind, Member, Server};
use plimsoll_tests::on_each_engine;

use super::left::folder;

const FILES: usize = 10_000;
/// Wide for a debug build on a busy machine; the measured time is printed.
const LIST_TIME_MAX: Duration = Duration::from_secs(10);

fn ten_thousand_files_are_listed(kind: EngineKind) {
    let data = tempfile::tempdir().unwrap();
    let server = Server::on_data(kind, data.path(), &[]);
    let mut alice = Member::new(&server, "alice");
    alice.mkcol("/files/many");
    // Written without the server: that many syncs would take too long.
    let many = folder(data.path(), "alice", "files").join("many");
    for number in 0..FILES {
        std::fs::write(many.join(format!("file-{number}")), number.to_string()).unwrap();
    }
    let begun = Instant::now();
    let listed = alice.names("/files/many/");
    let took = begun.elapsed();
    println!("{kind}: {FILES} files listed in {took:?}");
    assert!(took < LIST_TIME_MAX, "{took:?}");
    let expected: BTreeSet<String> = (0..FILES).map(|number| format!("file-{number}")).collect();
    assert_eq!(listed.len(), FILES);
    assert!(listed.into_iter().collect::<BTreeSet<_>>() == expected, "each once");
    assert_eq!(alice.put("/files/many/one-more", b"more").status, 201);
    assert_eq!(alice.get("/files/many/file-9999").body, b"9999");
    let listing = alice.ask("GET", "/files/many/", "Accept: */*\r\n", b"");
    assert!(listing.text().contains("file-9999") && listing.text().contains("one-more"));
    let page = alice.ask("GET", "/files/many/?sort=name&from=10000", "Accept: text/html\r\n", b"").text();
    assert!(
        page.contains("10,001 files") && page.contains("one-more") && !page.contains("file-9998"),
        "{page}"
    );
    let begun = Instant::now();
    assert_eq!(alice.ask("DELETE", "/files/many/", "", b"").status, 204);
    println!("{kind}: deleted in {:?}", begun.elapsed());
    assert!(alice.names("/files/").is_empty());
}

/// Uploaded files are counted as they are stored, and again by a server that starts.
fn the_usage_counted_during_uploads_equals_a_recount(kind: EngineKind) {
    let data = tempfile::tempdir().unwrap();
    let server = Server::on_data(kind, data.path(), &["--durability", "none"]);
    let alice = Member::new(&server, "alice");
    std::thread::scope(|scope| {
        for writer in 0..8 {
            let mut own = alice.again(&server);
            scope.spawn(move || {
                for number in 0..50 {
                    let target = format!("/files/{writer}-{number}");
                    assert_eq!(own.put(&target, target.as_bytes()).status, 201);
                }
            });
        }
    });
    let usage = |server: &Server| alice.again(server).get("/api/whoami").json()["usage"].clone();
    let counted = usage(&server);
    assert_eq!(counted["files"], 400);
    drop(server);
    let server = Server::on_data(kind, data.path(), &[]);
    assert_eq!(usage(&server), counted);
}

on_each_engine!(ten_thousand_files_are_listed, the_usage_counted_during_uploads_equals_a_recount);
