//! The disk becomes read-only while the server runs, as the kernel remounts it after a disk error. Writes
//! are refused with 503, reads work, and writes work again once the disk is writable.
//!
//! The disk is a small tmpfs below the accounts' folder, which only root may mount; without that
//! permission, the test reports a skip.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use plimsoll_tests::binary::member::PASSWORD;
use plimsoll_tests::binary::{EngineKind, Member, Server, tool, until};
use plimsoll_tests::on_each_engine;
use rustix::mount::{MountFlags, mount_remount};

use super::full_disk::Small;
use crate::reverse_proxy::proxy;

fn make(disk: &Small, flags: MountFlags) {
    mount_remount(&disk.0, flags, c"").unwrap_or_else(|error| panic!("remount {flags:?}: {error}"));
}

fn assert_is_to_be_tried_later(alice: &mut Member, method: &str, target: &str, fields: &str) {
    let refused = alice.ask(method, target, fields, b"");
    assert_eq!(refused.status, 503, "{method}: {}", refused.text());
    assert!(refused.field("retry-after").is_some_and(|after| after.parse::<u32>().is_ok()), "{method}");
    assert!(refused.text().contains("read-only"), "{method}: {}", refused.text());
}

/// Returns curl's protocol trace of an FTP upload or `command`.
fn ftp(server: &Server, folder: &Path, args: &[&str]) -> String {
    let url = format!("ftp://{}/new", server.ftp_at());
    let mut curl = tool("curl");
    curl.args(["--silent", "--verbose", "--user", &format!("alice:{PASSWORD}"), "--url", &url]).args(args);
    tool::run(curl.current_dir(folder)).stderr
}

fn a_read_only_disk_is_a_passing_fault_and_not_a_missing_right(kind: EngineKind) {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    std::fs::create_dir_all(data.join("accounts")).unwrap();
    let Some(disk) = Small::at(&data.join("accounts")) else { return };
    let server = Server::on_data(kind, &data, &["--ftp", "127.0.0.1:0"]);
    let mut alice = Member::new(&server, "alice");
    assert_eq!(alice.put("/files/file", b"old").status, 201);
    std::fs::write(folder.path().join("new"), "new").unwrap();
    make(&disk, MountFlags::RDONLY);
    let destination = "Destination: /files/other\r\n";
    for (method, target, fields) in [
        ("PUT", "/files/new", ""),
        ("PUT", "/files/file", ""),
        ("DELETE", "/files/file", ""),
        ("MKCOL", "/files/folder", ""),
        ("MOVE", "/files/file", destination),
        ("COPY", "/files/file", destination),
        ("POST", "/uploads", "Tus-Resumable: 1.0.0\r\nUpload-Length: 3\r\nUpload-Metadata: path bmV3\r\n"),
    ] {
        assert_is_to_be_tried_later(&mut alice.again(&server), method, target, fields);
    }
    for args in
        [&["-T", "new"][..], &["-Q", "DELE file"], &["-Q", "MKD folder"], &["-Q", "MFMT 20200101000000 file"]]
    {
        let shown = ftp(&server, folder.path(), args);
        assert!(shown.contains("< 450 "), "{args:?}: {shown}");
    }
    assert_eq!(alice.again(&server).get("/files/file").body, b"old");
    make(&disk, MountFlags::empty());
    assert_eq!(alice.again(&server).put("/files/file", b"new").status, 204);
    assert!(ftp(&server, folder.path(), &["-T", "new"]).contains("< 226 "));
}

fn a_proxy_starts_without_a_cache_that_is_read_only_and_uses_it_later(kind: EngineKind) {
    let (site, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    std::fs::write(site.path().join("x"), vec![b'x'; 100_000]).unwrap();
    let Some(disk) = Small::at(folder.path()) else { return };
    let cache = folder.path().join("cache");
    std::fs::create_dir(&cache).unwrap();
    std::fs::set_permissions(&cache, std::fs::Permissions::from_mode(0o700)).unwrap();
    make(&disk, MountFlags::RDONLY);
    let fresh = ["--site-cache-control", "/=max-age=60"];
    let origin = Server::start(kind, site.path(), &fresh);
    let (url, path) = (format!("http://{}", origin.at()), cache.display().to_string());
    let proxy = proxy(kind, &["--origin", &url, "--cache", &path]);
    let status = || {
        let reply = proxy.visit().get("/x").unwrap();
        assert_eq!((reply.status, reply.body.len()), (200, 100_000));
        reply.field("Cache-Status").unwrap().to_owned()
    };
    assert!(status().contains("fwd=bypass"));
    // A thread of the proxy writes its log.
    until("the log says why", || proxy.stderr().contains("the cache cannot be written"));
    make(&disk, MountFlags::empty());
    until("the cache is used", || status().contains("; hit"));
}

on_each_engine!(alone:
    a_read_only_disk_is_a_passing_fault_and_not_a_missing_right,
    a_proxy_starts_without_a_cache_that_is_read_only_and_uses_it_later,
);
