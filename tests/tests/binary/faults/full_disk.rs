//! The disk is full: who uploads is told so, what was there stays, and nothing is left of what came.
//!
//! The disk is a small tmpfs, which only root may mount; where that is not permitted, the test says so.

use std::path::{Path, PathBuf};

use plimsoll_tests::binary::{Kind, Member, Server, skipped};
use plimsoll_tests::on_each_engine;
use plimsoll_tests::tree::noise;
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};

use super::left::until_nothing_is_pending;

const DISK: &std::ffi::CStr = c"size=4m,mode=0700";
const OLD_BYTES: usize = 500_000;
/// More than the disk has.
const TOO_MUCH_BYTES: usize = 6 << 20;

/// A small disk, until it is dropped.
pub(crate) struct Small(pub(crate) PathBuf);

impl Small {
    pub(crate) fn at(folder: &Path) -> Result<Small, String> {
        if !rustix::process::geteuid().is_root() {
            return Err("only root may mount a small disk".to_owned());
        }
        mount("plimsoll-test", folder, "tmpfs", MountFlags::empty(), DISK)
            .map_err(|error| format!("mount: {error}"))?;
        Ok(Small(folder.to_owned()))
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

fn a_full_disk_takes_nothing_and_loses_nothing(kind: Kind) {
    let folder = tempfile::tempdir().unwrap();
    let small = match Small::at(folder.path()) {
        Ok(small) => small,
        Err(reason) => return skipped("faults::full_disk", &reason),
    };
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
    // To the last byte, then there is no room for a small one either, and none for a folder's.
    let filler = small.0.join("filler");
    let filled = std::fs::write(&filler, &too_much);
    assert!(filled.is_err(), "the disk is small");
    assert_too_much(&mut alice.again(&server), "/files/small", "", b"no room");
    let mut alice = alice.again(&server);
    assert!(alice.get("/files/file").body == old);
    assert_eq!(alice.names("/files/"), ["file"]);
    // Deleting needs no room, and makes some.
    std::fs::remove_file(filler).unwrap();
    assert_eq!(alice.ask("DELETE", "/files/file", "", b"").status, 204);
    assert_eq!(alice.put("/files/again", &old).status, 201, "the server goes on");
    let usage = alice.get("/api/whoami").json()["usage"].clone();
    assert_eq!(usage, serde_json::json!({ "bytes": OLD_BYTES, "files": 1, "folders": 0 }));
}

on_each_engine!(alone: a_full_disk_takes_nothing_and_loses_nothing);
