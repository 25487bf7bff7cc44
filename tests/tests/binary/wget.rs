//! wget as a client: a file, a resumed file, and a whole tree through the listing pages.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use plimsoll_tests::binary::{EngineKind, Server, tool, until};
use plimsoll_tests::tree::noise;
use plimsoll_tests::{Tree, on_each_engine};

const LARGE_BYTES: usize = 16 << 20;

/// Creates the served folder, and an empty one next to it for wget's output.
fn folders(tree: &Tree) -> (tempfile::TempDir, PathBuf, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let (site, out) = (folder.path().join("site"), folder.path().join("out"));
    std::fs::create_dir(&out).unwrap();
    tree.plant(&site);
    (folder, site, out)
}

pub(super) fn wget() -> Command {
    let mut wget = tool("wget");
    wget.args(["--no-config", "--no-proxy", "--no-hsts", "--tries=1"]);
    wget
}

fn a_file_and_its_head(kind: EngineKind) {
    let (_folder, site, out) = folders(&Tree::new().file("large.bin", noise(13, LARGE_BYTES)));
    let server = Server::start(kind, &site, &[]);
    let done = tool::run(wget().arg("-S").arg("-P").arg(&out).arg(server.url("/large.bin"))).well();
    assert!(done.stderr.contains("HTTP/1.1 200 OK"), "{}", done.stderr);
    assert!(std::fs::read(out.join("large.bin")).unwrap() == noise(13, LARGE_BYTES));
    tool::run(wget().arg("--spider").arg(server.url("/large.bin"))).well();
    // 8: "Server issued an error response" (wget's manual).
    let missing = tool::run(wget().arg("--spider").arg(server.url("/missing.bin")));
    assert_eq!(missing.status.code(), Some(8), "{}", missing.stderr);
}

fn a_download_that_was_cut_off_is_resumed(kind: EngineKind) {
    let (_folder, site, out) = folders(&Tree::new().file("large.bin", noise(17, LARGE_BYTES)));
    let server = Server::start(kind, &site, &[]);
    assert_resumed(wget, &server.url("/large.bin"), &out, &noise(17, LARGE_BYTES));
}

/// Asserts that `wget` resumes its download of `/large.bin`, which has these `bytes`, into the folder `out`.
pub(super) fn assert_resumed(wget: impl Fn() -> Command, url: &str, out: &Path, bytes: &[u8]) {
    let part = out.join("large.bin");
    let mut slow = wget();
    slow.arg("--limit-rate=2m").arg("-P").arg(out).arg(url).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = slow.spawn().unwrap();
    until("a part has come", || std::fs::metadata(&part).is_ok_and(|part| part.len() > 100_000));
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(std::fs::metadata(&part).unwrap().len() < bytes.len() as u64, "it was to be cut off");
    let done = tool::run(wget().arg("-S").arg("-c").arg("-P").arg(out).arg(url)).well();
    assert!(done.stderr.contains("206 Partial Content"), "{}", done.stderr);
    assert!(std::fs::read(&part).unwrap() == bytes);
    // A complete file is left as it is.
    tool::run(wget().arg("-c").arg("-P").arg(out).arg(url)).well();
    assert!(std::fs::read(&part).unwrap() == bytes);
}

/// A file is fetched only if it is newer than the copy.
fn a_copy_that_is_new_enough_is_left(kind: EngineKind) {
    let (_folder, site, out) = folders(&Tree::new().file("note.txt", "first\n"));
    // The file is changed and requested at once, so nothing may be cached.
    let server = Server::start(kind, &site, &["--hot-time", "0s"]);
    let (copy, url) = (out.join("note.txt"), server.url("/note.txt"));
    let fetch = || tool::run(wget().arg("-S").arg("-N").arg("-P").arg(&out).arg(&url)).well().stderr;
    assert!(fetch().contains("HTTP/1.1 200 OK"));
    assert!(fetch().contains("HTTP/1.1 304 Not Modified"));
    std::fs::write(site.join("note.txt"), "second\n").unwrap();
    let later = std::time::SystemTime::now() + std::time::Duration::from_secs(10);
    std::fs::File::options().write(true).open(site.join("note.txt")).unwrap().set_modified(later).unwrap();
    assert!(fetch().contains("HTTP/1.1 200 OK"));
    assert_eq!(std::fs::read(copy).unwrap(), b"second\n");
}

/// Returns every file below `root`, by its relative path.
fn files(root: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                found.insert(path.strip_prefix(root).unwrap().to_owned(), std::fs::read(&path).unwrap());
            }
        }
    }
    found
}

/// Names with characters that are special in a URL, in HTML or in a shell. (`%41.txt` is not among them:
/// wget requests it correctly, but writes `A.txt`.)
fn a_tree_is_mirrored_through_the_listing_pages(kind: EngineKind) {
    let mut tree = Tree::new().file("empty", "").file("a/b/c/deep.bin", noise(19, 300_000));
    let names = [
        "with space.txt",
        "100%.txt",
        "what?.txt",
        "one#two.txt",
        "plus+and&amp;.txt",
        "<b>.txt",
        "\"quoted\".txt",
        "it's.txt",
        "semi;colon.txt",
        "a:b.txt",
        "Grüße.txt",
        "日本語.txt",
        "back\\slash.txt",
        "~tilde.txt",
        "[1].txt",
        "a=b.txt",
        "folder with space/ü/100% & more/file.txt",
        "-rf.txt",
    ];
    for (seed, name) in (100..).zip(names) {
        tree = tree.file(name, noise(seed, 700));
    }
    for number in 0..200 {
        tree = tree.file(format!("many/{number}.txt"), format!("{number}\n"));
    }
    let (_folder, site, out) = folders(&tree);
    let server = Server::start(kind, &site, &[]);
    let mut mirror = wget();
    // The pages are not part of the tree.
    mirror.args(["-r", "-l", "inf", "-np", "-nH", "-R", "index.html*"]);
    mirror.args(["--restrict-file-names=unix,nocontrol", "-e", "robots=off"]);
    let done = tool::run(mirror.arg("-P").arg(&out).arg(server.url("/"))).well();
    let (served, mirrored) = (files(&site), files(&out));
    for (name, bytes) in &served {
        assert!(mirrored.get(name) == Some(bytes), "{name:?} is missing or other: {}", done.stderr);
    }
    assert_eq!(mirrored.len(), served.len(), "nothing else: {:?}", mirrored.keys());
}

/// A listing is not fetched again in each of its orders.
fn a_recursive_download_fetches_each_listing_once(kind: EngineKind) {
    let tree = Tree::new().file("a.txt", "a").file("sub/b.txt", "b").file("sub/deep/c.txt", "c");
    let (folder, site, out) = folders(&tree);
    let log = folder.path().join("access.log");
    let server = Server::start(kind, &site, &["--access-log", log.to_str().unwrap()]);
    tool::run(wget().args(["-r", "-l", "inf", "-np", "-nH", "-P"]).arg(&out).arg(server.url("/"))).well();
    assert_eq!(std::fs::read(out.join("sub/deep/c.txt")).unwrap(), b"c");
    // wget asks for robots.txt, too, and for the last file last.
    until("the log has the last file", || {
        std::fs::read_to_string(&log).unwrap().contains("GET /sub/deep/c.txt")
    });
    let log = std::fs::read_to_string(&log).unwrap();
    for target in ["/", "/sub/", "/sub/deep/"] {
        assert_eq!(log.matches(&format!("\"GET {target} ")).count(), 1, "{target}: {log}");
    }
    assert!(!log.contains('?'), "{log}");
}

/// The start page of `make run` is right at any address.
fn the_links_of_the_start_page_lead_somewhere_at_any_port(kind: EngineKind) {
    let (_folder, _, out) = folders(&Tree::new());
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
    let page = std::fs::read_to_string(docs.join("index.html")).unwrap();
    for fixed in ["8080", "127.0.0.1", "localhost", "target/release"] {
        assert!(!page.contains(fixed), "{fixed}");
    }
    let server = Server::start(kind, &docs, &[]);
    // 401 and 403 of pages that need an account are no broken links.
    let reached = wget()
        .args(["-r", "-l", "1", "-nH", "-X", "/files,/shared", "-P"])
        .arg(&out)
        .arg(server.url("/"))
        .output();
    assert!(reached.unwrap().status.success());
    for there in ["index.html", "examples/index.html", "examples/load-line.txt", "examples/engines.txt"] {
        assert!(out.join(there).is_file(), "{there}");
    }
}

on_each_engine!(
    a_file_and_its_head,
    a_download_that_was_cut_off_is_resumed,
    a_copy_that_is_new_enough_is_left,
    a_tree_is_mirrored_through_the_listing_pages,
    a_recursive_download_fetches_each_listing_once,
    the_links_of_the_start_page_lead_somewhere_at_any_port,
);
