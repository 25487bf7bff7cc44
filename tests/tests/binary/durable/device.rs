//! An ext4 file system on a test disk, and on images of that disk after a power cut.
//!
//! It needs root, `/dev/fuse` and loop devices, and reports a missing one. Every mount and loop device must
//! be released on drop.

use std::path::{Path, PathBuf};
use std::process::Command;

use plimsoll_tests::binary::tool::{self, tool};
use plimsoll_tests::skips::{Need, skip};

use super::fuse::Mounted;

/// The size of the disk: enough for a journal, and for the writers' files.
pub(super) const DISK_BYTES: usize = 96 << 20;

/// Returns whether such a device is not available here, and then skips the test.
pub(super) fn is_missing() -> bool {
    let open = |device| std::fs::OpenOptions::new().read(true).write(true).open(device).map(drop);
    let needed = open("/dev/fuse").and_then(|()| open("/dev/loop-control")).and_then(|()| may_mount());
    if let Err(error) = &needed {
        skip(Need::Mounts, &format!("it needs root, /dev/fuse and loop devices: {error}"));
    }
    needed.is_err()
}

/// A container may have the devices without the permission to mount.
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

/// A mounted ext4 file system. Fields are dropped in this order.
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
    /// Mounts the file system in the file `disk`; the journal is replayed.
    pub(super) fn mount(disk: &Path, at: &Path) -> Ext4 {
        Ext4::mount_device(Loop::over(disk), at)
    }

    /// Creates the file system, and mounts it.
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

    /// Returns the mount point.
    pub(super) fn at(&self) -> &Path {
        &self.mount.0
    }
}
