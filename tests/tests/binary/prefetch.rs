//! `--prefetch`: files within the budget are cached before the first connection, and the log reports the
//! others.

use plimsoll_tests::binary::{EngineKind, Server, until};
use plimsoll_tests::tree::noise;
use plimsoll_tests::{Tree, on_each_engine};

fn the_files_of_a_site_are_cached_before_the_first_request(kind: EngineKind) {
    let folder = tempfile::tempdir().unwrap();
    let tree = Tree::new()
        .file("index.html", "<p>the index</p>")
        .file("docs/a.txt", "text a\n")
        .file("docs/a.txt.gz", "packed a")
        .file(".hidden", "hidden\n")
        .file("large.bin", noise(1, 200_000))
        .link("link.txt", "docs/a.txt");
    tree.plant(folder.path());
    let server = Server::start(kind, folder.path(), &["--prefetch", "--hot-time", "1d"]);
    until("the log tells", || server.stderr().contains("did not fit"));
    let log = server.stderr();
    assert!(log.contains("prefetch: 3 files (") && log.contains("; 1 file ("), "{log}");
    assert!(log.contains("; 0 files (0 B) did not fit"), "{log}");
    // The files are removed before any request, so that the answers must come from memory.
    for name in ["index.html", "docs/a.txt", "docs/a.txt.gz"] {
        std::fs::remove_file(folder.path().join(name)).unwrap();
    }
    let mut visitor = server.visit();
    assert_eq!(visitor.get("/").unwrap().text(), "<p>the index</p>");
    assert_eq!(visitor.get("/index.html").unwrap().text(), "<p>the index</p>");
    assert_eq!(visitor.get("/docs/a.txt").unwrap().text(), "text a\n");
    let packed = visitor.get_with("/docs/a.txt", "Accept-Encoding: gzip, deflate, br\r\n").unwrap();
    assert_eq!(packed.text(), "packed a");
    assert!(visitor.get("/large.bin").unwrap().body == noise(1, 200_000));
    assert_eq!(visitor.get("/.hidden").unwrap().status, 404);
    let hot = server.status()["hot_set"].clone();
    assert!(hot["hits"].as_u64() >= Some(4), "{hot}");
}

fn files_that_do_not_fit_are_reported(kind: EngineKind) {
    let folder = tempfile::tempdir().unwrap();
    let tree = (0..40).fold(Tree::new(), |tree, at| tree.file(format!("{at}.bin"), noise(at, 20_000)));
    tree.file("large.bin", noise(99, 500_000)).plant(folder.path());
    let server = Server::start(kind, folder.path(), &["--prefetch=true", "--hot-bytes", "400KiB"]);
    until("the log tells", || server.stderr().contains("did not fit"));
    let log = server.stderr();
    assert!(log.contains("prefetch: ") && !log.contains("prefetch: 40 files"), "{log}");
    assert!(log.contains("; 0 files (0 B) larger") && !log.contains("0 files (0 B) did not fit"), "{log}");
    let hot = server.status()["hot_set"].clone();
    assert!(hot["bytes"].as_u64() <= Some(400 * 1024) && hot["entries"].as_u64() > Some(0), "{hot}");
    assert!(server.visit().get("/large.bin").unwrap().body == noise(99, 500_000));
}

on_each_engine!(the_files_of_a_site_are_cached_before_the_first_request, files_that_do_not_fit_are_reported);
