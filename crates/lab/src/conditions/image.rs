//! A file system on a loop image, for kinds, block sizes and read-aheads that the machine's disk has not.
//!
//! It makes no files in it. Invariants: the loop device uses direct I/O: the page cache of the backing
//! file would defeat the memory limit. No initialisation is left to a kernel thread during trials.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};

use super::journal::Journal;
use super::program::run;
use super::setting::{KernelSetting, loop_device};
use super::undo::UndoStep;
use crate::experiment::conditions::Image;

/// The folder of the files in the image, beside the `lost+found` of its file system.
const FILES: &str = "files";

/// A mounted image.
#[derive(Debug)]
pub(super) struct MountedImage {
    /// The folder for files.
    pub(super) root: PathBuf,
    /// The number of the loop device, `MAJ:MIN`.
    pub(super) number: String,
    /// The number in the name of the loop device.
    pub(super) device: u32,
}

/// Creates and mounts an image in the work folder of the journal.
///
/// # Errors
/// The program's or the kernel's error.
pub(super) fn mount(image: &Image, journal: &mut Journal) -> Result<MountedImage> {
    let backing = journal.names.image();
    make_file_system(image, &backing, journal)?;
    journal.record(UndoStep::DetachLoop)?;
    let device = run("losetup", &["--direct-io=on", "--find", "--show", text(&backing)?])?;
    let path = device.trim();
    let number = path.strip_prefix("/dev/loop").and_then(|number| number.parse().ok());
    let device: u32 = number.with_context(|| format!("losetup printed {path:?}, and no loop device"))?;
    let setting = |name: &str| -> Result<String> {
        let file = loop_device(device).join(name);
        let value = fs::read_to_string(&file).with_context(|| format!("{}", file.display()))?;
        Ok(value.trim().to_owned())
    };
    ensure!(
        setting("loop/dio")? == "1",
        "the file system of {} has no direct I/O: use a work folder on ext4 or xfs",
        journal.names.work.display()
    );
    if let Some(bytes) = image.read_ahead {
        let (kibibytes, before) = (bytes.div_ceil(1024), setting("queue/read_ahead_kb")?.parse()?);
        journal.set(&KernelSetting::ReadAhead { device, kibibytes, before })?;
    }
    let folder = journal.names.mount_point();
    journal.record(UndoStep::RemoveMountPoint)?;
    fs::create_dir(&folder).with_context(|| format!("{}", folder.display()))?;
    journal.record(UndoStep::Unmount)?;
    run("mount", &["-t", &image.kind, path, text(&folder)?])?;
    let root = folder.join(FILES);
    fs::create_dir(&root).with_context(|| format!("{}", root.display()))?;
    Ok(MountedImage { root, number: setting("dev")?, device })
}

fn make_file_system(image: &Image, backing: &Path, journal: &mut Journal) -> Result<()> {
    journal.record(UndoStep::RemoveImage)?;
    let file = File::create_new(backing).with_context(|| format!("{}", backing.display()))?;
    file.set_len(image.bytes)?;
    let block = image.block.map(|bytes| bytes.to_string());
    let mut arguments = vec!["-q"];
    let size;
    if image.kind == "xfs" {
        size = block.map(|bytes| format!("size={bytes}"));
        arguments.push("-f");
    } else {
        size = block;
        // No block is reserved for root: contenders drop its rights.
        arguments.extend(["-F", "-m", "0", "-E"]);
        let is_journalled = image.kind == "ext4";
        arguments.push(if is_journalled {
            "lazy_itable_init=0,lazy_journal_init=0"
        } else {
            "lazy_itable_init=0"
        });
    }
    arguments.extend(size.iter().flat_map(|size| ["-b", size]));
    arguments.push(text(backing)?);
    run(&format!("mkfs.{}", image.kind), &arguments)?;
    // Direct I/O bypasses the dirty pages of the backing file.
    file.sync_all().with_context(|| format!("{}", backing.display()))
}

fn text(path: &Path) -> Result<&str> {
    path.to_str().with_context(|| format!("{} is not in UTF-8", path.display()))
}
