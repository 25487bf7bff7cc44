//! The disk is full: uploads are refused with that reason, existing files stay, and no partial upload is
//! left.
//!
//! The disk is a small tmpfs, which only root may mount; without that permission, the test reports a skip.

use std::ffi::CStr;
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use plimsoll_tests::binary::member::{PASSWORD, log_in};
use plimsoll_tests::binary::{EngineKind, Member, Server, reached_within, until};
use plimsoll_tests::on_each_engine;
use plimsoll_tests::skips::{Need, skip};
use plimsoll_tests::tree::noise;
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use rustix::process::Signal;
use serde_json::json;

use super::left::until_nothing_is_pending;

const DISK: &CStr = c"size=4m,mode=0700";
const OLD_BYTES: usize = 500_000;
/// More than half of the disk's size.
const OVER_HALF_BYTES: usize = 2_200_000;
/// A removed file's space must be free within this time.
const FREED_TIME: Duration = Duration::from_secs(5);
/// More than the disk's size.
const TOO_MUCH_BYTES: usize = 6 << 20;

/// A small disk, mounted until it is dropped.
pub(crate) struct Small(pub(crate) PathBuf);

impl Small {
    /// Mounts it, or skips the test where only root may.
    pub(crate) fn at(folder: &Path) -> Option<Small> {
        Small::with_options(folder, DISK)
    }

    /// As [`Small::at`], with these options of tmpfs.
    pub(crate) fn with_options(folder: &Path, options: &CStr) -> Option<Small> {
        let mounted = mount("plimsoll-test", folder, "tmpfs", MountFlags::empty(), options);
        if let Err(error) = &mounted {
            skip(Need::Mounts, &format!("mount: {error}"));
        }
        mounted.ok().map(|()| Small(folder.to_owned()))
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _ = unmount(&self.0, UnmountFlags::DETACH);
    }
}

fn assert_too_much(alice: &mut Member, target: &str, fields: &str, bytes: &[u8]) {
    let refused = alice.ask("PUT", target, fields, bytes);
    assert_eq!(refused.status, 507, "{}", refused.text());
    assert!(refused.text().contains("disk is full"), "{}", refused.text());
}

fn a_full_disk_takes_nothing_and_loses_nothing(kind: EngineKind) {
    let folder = tempfile::tempdir().unwrap();
    let Some(small) = Small::at(folder.path()) else { return };
    let data = small.0.join("data");
    let server = Server::on_data(kind, &data, &["--transfer-log", "off"]);
    let mut alice = Member::new(&server, "alice");
    let (old, too_much) = (noise(3, OLD_BYTES), noise(5, TOO_MUCH_BYTES));
    assert_eq!(alice.put("/files/file", &old).status, 201);
    for _ in 0..3 {
        assert_too_much(&mut alice.again(&server), "/files/file", "", &too_much);
        assert_too_much(&mut alice.again(&server), "/files/new", "", &too_much);
        until_nothing_is_pending(&data, "alice");
        let mut alice = alice.again(&server);
        assert!(alice.get("/files/file").body == old, "the old file is whole");
        assert_eq!(alice.get("/files/new").status, 404);
    }
    // Once every byte is taken, neither a small file nor a folder fits.
    let filler = small.0.join("filler");
    let filled = std::fs::write(&filler, &too_much);
    assert!(filled.is_err(), "the disk is small");
    assert_too_much(&mut alice.again(&server), "/files/small", "", b"no room");
    let mut alice = alice.again(&server);
    assert!(alice.get("/files/file").body == old);
    assert_eq!(alice.names("/files/"), ["file"]);
    // Deleting needs no space, and frees some.
    std::fs::remove_file(filler).unwrap();
    assert_eq!(alice.ask("DELETE", "/files/file", "", b"").status, 204);
    assert_eq!(alice.put("/files/again", &old).status, 201, "the server goes on");
    let known = alice.get("/api/whoami").json();
    let bytes = |of: &str| known[of]["bytes"].as_u64().unwrap();
    assert_eq!(bytes("usage") - bytes("trash"), OLD_BYTES as u64);
}

/// The bytes of one write. It shrinks until not even one byte fits.
const PIECE_BYTES: usize = 64 * 1024;

/// Fills the disk that has `filler`.
pub(crate) fn fill(filler: &Path) {
    let mut file = File::options().append(true).create(true).open(filler).unwrap();
    let mut bytes = PIECE_BYTES;
    while bytes > 0 {
        if !matches!(file.write(&vec![1; bytes]), Ok(1..)) {
            bytes /= 2;
        }
    }
}

fn ready(server: &Server) -> u16 {
    server.visit().get("/readyz").unwrap().status
}

fn status_of_log_in(server: &Server) -> u16 {
    let body = json!({ "name": "alice", "password": PASSWORD }).to_string();
    server.visit().ask("POST", "/api/sessions", "", body.as_bytes()).unwrap().status
}

fn a_log_out_on_a_full_disk_ends_the_session_for_good(kind: EngineKind) {
    let folder = tempfile::tempdir().unwrap();
    let Some(small) = Small::at(folder.path()) else { return };
    let (data, filler) = (small.0.join("data"), small.0.join("filler"));
    let start = || Server::on_data(kind, &data, &["--transfer-log", "off"]);
    let server = start();
    let mut alice = Member::new(&server, "alice");
    // The home must exist before the disk is full.
    assert_eq!(alice.put("/files/a", b"a").status, 201);
    let mut other = alice.again(&server);
    other.token = log_in(&mut other.visitor, "alice").unwrap();
    until("it is ready", || ready(&server) == 200);
    // SQLite may still have free pages in its files: logins use them up.
    until("no log-in has room", || {
        fill(&filler);
        status_of_log_in(&server) == 507
    });
    until("it is not ready", || ready(&server) == 503);
    assert_eq!(alice.ask("DELETE", "/api/sessions/current", "", b"").status, 204);
    assert_eq!(alice.get("/api/whoami").status, 401);
    assert_eq!(other.get("/api/whoami").status, 200);
    server.signal(Signal::KILL);
    drop(server);
    let server = start();
    assert_eq!(alice.again(&server).get("/api/whoami").status, 401, "after kill -9, on the full disk");
    assert_eq!(other.again(&server).get("/api/whoami").status, 200);
    std::fs::remove_file(&filler).unwrap();
    until("it is ready again", || ready(&server) == 200);
    assert_eq!(status_of_log_in(&server), 201);
    assert_eq!(alice.again(&server).get("/api/whoami").status, 401, "there is room again");
}

/// A served file is kept open for the next request. Once removed, it must not occupy its space for long.
fn a_removed_file_that_was_served_frees_its_space_soon(kind: EngineKind) {
    let folder = tempfile::tempdir().unwrap();
    let Some(small) = Small::at(folder.path()) else { return };
    let server = Server::on_data(kind, &small.0.join("data"), &["--transfer-log", "off"]);
    let mut alice = Member::new(&server, "alice");
    let large = noise(7, OVER_HALF_BYTES);
    for name in ["/files/one", "/files/two"] {
        let is_stored = || alice.again(&server).put(name, &large).status == 201;
        assert!(reached_within(FREED_TIME, is_stored), "{name} has no room after {FREED_TIME:?}");
        assert!(alice.get(name).body == large);
        assert_eq!(alice.ask("DELETE", name, "", b"").status, 204);
    }
}

mod forks_alone {
    #[test]
    fn a_log_out_on_a_full_disk_ends_the_session_for_good() {
        let _permit = plimsoll_tests::binary::alone();
        super::a_log_out_on_a_full_disk_ends_the_session_for_good(super::EngineKind::Process);
    }
}

on_each_engine!(alone:
    a_full_disk_takes_nothing_and_loses_nothing,
    a_removed_file_that_was_served_frees_its_space_soon,
    a_log_out_on_a_full_disk_ends_the_session_for_good,
);
