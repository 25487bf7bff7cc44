//! A file system of ext4 on a disk of ours, and on images of what a power cut leaves of that disk.
//!
//! It needs root, `/dev/fuse` and loop devices, and says so where it lacks one. What must hold: whatever was
//! mounted and attached is let go when it is dropped.

use std::path::{Path, PathBuf};
use std::process::Command;

use plimsoll_tests::binary::tool::{self, tool};

use super::fuse::Mounted;

/// Bytes of the disk: room for a journal, and for what the writers keep.
pub(super) const DISK_BYTES: usize = 96 << 20;

/// Why there can be no such device here, if there cannot.
pub(super) fn missing() -> Option<String> {
    if !rustix::process::geteuid().is_root() {
        return Some("only root may mount a file system".to_owned());
    }
    for device in ["/dev/fuse", "/dev/loop-control"] {
        if let Err(error) = std::fs::OpenOptions::new().read(true).write(true).open(device) {
            return Some(format!("{device}: {error}"));
        }
    }
    may_mount().err().map(|error| format!("mount: {error}"))
}

/// A container may have the devices and yet not the right.
fn may_mount() -> std::io::Result<()> {
    let folder = tempfile::tempdir()?;
    Mounted::new(&folder.path().join("disk"), 4096).map(drop)
}

fn run(command: &mut Command) -> String {
    tool::run(command).well().text().trim().to_owned()
}

/// A loop device over a file.
struct Loop(String);

impl Loop {
    fn over(file: &Path) -> Loop {
        Loop(run(tool("losetup").args(["--find", "--show"]).arg(file)))
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = Command::new("losetup").args(["--detach", &self.0]).status();
    }
}

/// An ext4 file system that is mounted. Fields are dropped in this order.
pub(super) struct Ext4 {
    mount: Unmounting,
    _loop: Loop,
}

struct Unmounting(PathBuf);

impl Drop for Unmounting {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

impl Ext4 {
    /// Mounts what is in the file `disk`; the journal is replayed.
    pub(super) fn mount(disk: &Path, at: &Path) -> Ext4 {
        Ext4::mount_device(Loop::over(disk), at)
    }

    /// Makes the file system first.
    pub(super) fn make(disk: &Path, at: &Path) -> Ext4 {
        let device = Loop::over(disk);
        let options = ["-q", "-F", "-b", "4096", "-E", "nodiscard,lazy_itable_init=0"];
        run(tool("mkfs.ext4").args(options).arg(&device.0));
        Ext4::mount_device(device, at)
    }

    fn mount_device(device: Loop, at: &Path) -> Ext4 {
        std::fs::create_dir_all(at).unwrap();
        run(tool("mount").args(["-t", "ext4", &device.0]).arg(at));
        Ext4 { mount: Unmounting(at.to_owned()), _loop: device }
    }

    /// Where it is mounted.
    pub(super) fn at(&self) -> &Path {
        &self.mount.0
    }
}
