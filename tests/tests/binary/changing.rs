//! A file that changes at the origin while several clients request it through the proxy's cache, for every
//! channel.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use plimsoll_tests::binary::{EngineKind, Server};
use plimsoll_tests::on_each_engine;

use super::reverse_proxy::proxy;

/// More than the cache stores in memory, and than the origin copies into a channel.
const SIZE: usize = 150_000;
const CLIENTS: usize = 3;
/// The least number of times that the file changes for each channel.
const CHANGES: usize = 60;
/// Requests of a client, one closely behind the other, on one connection.
const REQUESTS: usize = 120;

/// Replaces the file of the site by the next version, which has one byte throughout.
fn replace(site: &Path, version: usize) {
    let (new, file) = (site.join("new"), site.join("x"));
    std::fs::write(&new, vec![b'a' + u8::try_from(version % 26).unwrap(); SIZE]).unwrap();
    std::fs::rename(new, file).unwrap();
}

fn each_client_gets_a_whole_version_of_a_file_that_changes(kind: EngineKind) {
    let (site, sockets) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    replace(site.path(), 0);
    let at = |name: &str| sockets.path().join(name).display().to_string();
    let (socket, channel) = (format!("unix:{}", at("http")), at("channel"));
    let flags = ["--hot-time", "0s", "--site-cache-control", "/=no-cache"];
    let listen = ["--http", "127.0.0.1:0", "--http", &socket, "--channel", &channel];
    let origin = Server::start(kind, site.path(), &[&flags[..], &listen].concat());
    let tcp = format!("http://{}", origin.at());
    let shared = format!("unix:{channel}");
    for (name, url) in [("tcp", &tcp), ("unix", &socket), ("shm", &shared), ("shm-copy", &shared)] {
        let cache = at(&format!("cache-{name}"));
        let proxy = proxy(kind, &["--origin", url, "--channel", name, "--cache", &cache]);
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut version = 0;
                while version < CHANGES || !is_over.load(Ordering::Relaxed) {
                    version += 1;
                    replace(site.path(), version);
                    std::thread::sleep(std::time::Duration::from_millis(4));
                }
            });
            let clients: Vec<_> = (0..CLIENTS).map(|_| scope.spawn(|| visit(&proxy, name))).collect();
            let visits: Vec<_> = clients.into_iter().map(|client| client.join()).collect();
            is_over.store(true, Ordering::Relaxed);
            visits.into_iter().for_each(|visit| visit.unwrap());
        });
    }
}

/// Gets the file again and again, and checks that each answer is one whole version.
fn visit(proxy: &Server, channel: &str) {
    let mut visitor = proxy.visit();
    for _ in 0..REQUESTS {
        let reply = visitor.get("/x").unwrap();
        assert_eq!(reply.status, 200, "{channel}: {}", reply.text());
        let is_whole = reply.body.len() == SIZE && reply.body.iter().all(|byte| *byte == reply.body[0]);
        assert!(is_whole, "{channel}: {} bytes", reply.body.len());
    }
}

on_each_engine!(each_client_gets_a_whole_version_of_a_file_that_changes);
