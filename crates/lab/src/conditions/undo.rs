//! The steps that undo a condition, as data that can be written to a journal.
//!
//! It sets no condition. Invariants: a step names only an object that the laboratory itself makes, by the
//! names of its journal, or a setting of a fixed list; it has no path. A step can be repeated; a step whose
//! change was never made, or is already undone, does nothing.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use rustix::process::{Pid, Signal, kill_process};
use serde::{Deserialize, Serialize};

use super::groups::{Controller, Hierarchy};
use super::limits::{RELEASE_TIME_MAX, RETRY_INTERVAL};
use super::link::namespace_file;
use super::program::run;
use super::setting::{KernelSetting, SettingValues};
use crate::own_path;

/// The beginning of the names of all objects but the network interface.
pub(super) const NAME: &str = "plimsoll-lab-";

/// The names of the objects of one journal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ObjectNames {
    /// The process that made them.
    pub(super) process: u32,
    /// The number of the journal within its process.
    pub(super) sequence: u32,
    /// The folder of the image and of its mount point.
    pub(super) work: PathBuf,
}

impl ObjectNames {
    /// Returns the name of control groups and of the network namespace.
    pub(super) fn name(&self) -> String {
        format!("{NAME}{}-{}", self.process, self.sequence)
    }

    /// Returns the name of the network interface. Names of interfaces have at most 15 bytes.
    pub(super) fn interface(&self) -> String {
        format!("pl{:x}-{:x}", self.process, self.sequence)
    }

    /// Returns the path of the image.
    pub(super) fn image(&self) -> PathBuf {
        self.work.join(format!("{}.image", self.name()))
    }

    /// Returns the path at which the image is mounted.
    pub(super) fn mount_point(&self) -> PathBuf {
        self.work.join(format!("{}.mount", self.name()))
    }

    /// Returns the folder of the control group in a hierarchy: below the root, or in the group of the journal
    /// number `outer` of the same process.
    pub(super) fn group(&self, hierarchy: &Hierarchy, outer: Option<u32>) -> PathBuf {
        let outer = outer.map(|sequence| ObjectNames { sequence, ..self.clone() }.name());
        outer.map_or(hierarchy.root().to_owned(), |outer| hierarchy.root().join(outer)).join(self.name())
    }
}

/// A step that undoes one change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum UndoStep {
    /// Ends the processes of the control group in the hierarchy of a controller, and removes it.
    RemoveGroup {
        controller: Controller,
        /// The number of the journal with the group that contains it, if it is not below the root.
        outer: Option<u32>,
    },
    /// Puts a setting back, unless it has no longer the written value.
    Restore(KernelSetting),
    /// Removes the network interface.
    RemoveInterface,
    /// Removes the network namespace.
    RemoveNamespace,
    /// Unmounts the image.
    Unmount,
    /// Removes the mount point.
    RemoveMountPoint,
    /// Detaches the loop devices of the image.
    DetachLoop,
    /// Removes the image.
    RemoveImage,
}

impl UndoStep {
    /// Undoes the change. Returns a line that describes it, or None if there was nothing to undo.
    ///
    /// # Errors
    /// The kernel's or the program's error.
    pub(super) fn perform(&self, names: &ObjectNames) -> Result<Option<String>> {
        match self {
            UndoStep::RemoveGroup { controller, outer } => match Hierarchy::of(*controller) {
                Some(hierarchy) => remove_group(&names.group(&hierarchy, *outer)),
                None => Ok(None),
            },
            UndoStep::Restore(setting) => setting.values().map_or(Ok(None), |values| restore(&values)),
            UndoStep::RemoveInterface => remove_interface(&names.interface()),
            UndoStep::RemoveNamespace => remove_namespace(&names.name()),
            UndoStep::DetachLoop => detach(&names.image()),
            UndoStep::Unmount | UndoStep::RemoveMountPoint | UndoStep::RemoveImage => {
                self.perform_in_work(names)
            }
        }
    }

    /// Performs a step in the work folder, which no other user may have replaced meanwhile.
    fn perform_in_work(&self, names: &ObjectNames) -> Result<Option<String>> {
        if !names.work.exists() {
            return Ok(None);
        }
        own_path::irreplaceable(&names.work).context("a change cannot be undone")?;
        let (image, mount_point) = (names.image(), names.mount_point());
        match self {
            UndoStep::Unmount => unmount(&mount_point),
            UndoStep::RemoveMountPoint => removed(fs::remove_dir(&mount_point), &mount_point),
            _ => removed(fs::remove_file(&image), &image),
        }
    }
}

fn removed(result: io::Result<()>, path: &Path) -> Result<Option<String>> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        result => {
            result.with_context(|| format!("{} cannot be removed", path.display()))?;
            Ok(Some(format!("removed {}", path.display())))
        }
    }
}

/// Repeats `attempt` until it returns true. Returns whether it did in time.
fn retry(mut attempt: impl FnMut() -> Result<bool>) -> Result<bool> {
    let until = Instant::now() + RELEASE_TIME_MAX;
    loop {
        if attempt()? {
            return Ok(true);
        }
        if Instant::now() >= until {
            return Ok(false);
        }
        std::thread::sleep(RETRY_INTERVAL);
    }
}

pub(super) fn remove_group(folder: &Path) -> Result<Option<String>> {
    if !folder.exists() {
        return Ok(None);
    }
    let mut ended = BTreeSet::new();
    let is_removed = retry(|| {
        end_processes(folder, &mut ended)?;
        // A group is busy until its last process has released its memory.
        Ok(fs::remove_dir(folder).is_ok() || !folder.exists())
    })?;
    ensure!(is_removed, "{} is still in use", folder.display());
    let processes = if ended.is_empty() { String::new() } else { format!(" and ended processes {ended:?}") };
    Ok(Some(format!("removed control group {}{processes}", folder.display())))
}

fn end_processes(folder: &Path, ended: &mut BTreeSet<i32>) -> Result<()> {
    let processes = match fs::read_to_string(folder.join("cgroup.procs")) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        processes => processes.with_context(|| format!("{}", folder.display()))?,
    };
    let own = rustix::process::getpid();
    for process in processes.lines().filter_map(|line| Pid::from_raw(line.parse().ok()?)) {
        // An error means that the process has ended meanwhile.
        if process != own && kill_process(process, Signal::KILL).is_ok() {
            ended.insert(process.as_raw_nonzero().get());
        }
    }
    Ok(())
}

fn restore(values: &SettingValues) -> Result<Option<String>> {
    let SettingValues { file, written, before } = values;
    let current = match fs::read_to_string(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        current => current.with_context(|| format!("{}", file.display()))?,
    };
    // Another program has changed the value since: that change is not ours to undo.
    if !has_value(&current, written) {
        return Ok(None);
    }
    fs::write(file, before).with_context(|| format!("{} cannot be set to {before:?}", file.display()))?;
    Ok(Some(format!("set {} to {before:?}", file.display())))
}

/// Returns whether a line is the written value, or, of `+NAME`, which adds to a list, whether a word is.
fn has_value(current: &str, written: &str) -> bool {
    let added = written.strip_prefix('+');
    current.lines().any(|line| line.trim() == written)
        || added.is_some_and(|name| current.split_whitespace().any(|word| word == name))
}

fn remove_interface(name: &str) -> Result<Option<String>> {
    if !Path::new("/sys/class/net").join(name).exists() {
        return Ok(None);
    }
    run("ip", &["link", "delete", name])?;
    Ok(Some(format!("removed network interface {name}")))
}

fn remove_namespace(name: &str) -> Result<Option<String>> {
    if !namespace_file(name).exists() {
        return Ok(None);
    }
    run("ip", &["netns", "delete", name])?;
    Ok(Some(format!("removed network namespace {name}")))
}

fn unmount(folder: &Path) -> Result<Option<String>> {
    if !is_mounted(folder)? {
        return Ok(None);
    }
    let folder_text = folder.to_string_lossy();
    let is_unmounted = retry(|| Ok(run("umount", &[&folder_text]).is_ok() || !is_mounted(folder)?))?;
    if !is_unmounted {
        // The file system disappears from the tree now, and is released with its last open file.
        run("umount", &["--lazy", &folder_text])?;
    }
    Ok(Some(format!("unmounted {folder_text}")))
}

/// Returns whether `folder` is a mount point. The kernel writes blanks in paths as `\040`.
fn is_mounted(folder: &Path) -> Result<bool> {
    let mounts = fs::read_to_string("/proc/self/mounts")?;
    let escaped = folder.to_string_lossy().replace('\\', "\\134").replace(' ', "\\040");
    Ok(mounts.lines().any(|line| line.split(' ').nth(1) == Some(escaped.as_str())))
}

fn detach(image: &Path) -> Result<Option<String>> {
    let mut detached = BTreeSet::new();
    let is_detached = retry(|| {
        let devices = loop_devices(image);
        for device in &devices {
            // A busy device is detached by the kernel with its last user. An error shows in the list.
            if run("losetup", &["--detach", device]).is_ok() {
                detached.insert(device.clone());
            }
        }
        Ok(devices.is_empty())
    })?;
    ensure!(is_detached, "the loop device of {} is still in use", image.display());
    if detached.is_empty() {
        return Ok(None);
    }
    let devices: Vec<String> = detached.into_iter().collect();
    Ok(Some(format!("detached {} from {}", devices.join(", "), image.display())))
}

/// Returns the loop devices that have the image as their backing file.
fn loop_devices(image: &Path) -> Vec<String> {
    let entries = fs::read_dir("/sys/block").into_iter().flatten().flatten();
    let has_image = |device: &PathBuf| {
        let file = fs::read_to_string(device.join("loop/backing_file")).unwrap_or_default();
        // The kernel marks the path of an unlinked file.
        let file = file.trim_end_matches('\n');
        Path::new(file.strip_suffix(" (deleted)").unwrap_or(file)) == image
    };
    let devices = entries.map(|entry| entry.path()).filter(has_image);
    devices.filter_map(|device| Some(format!("/dev/{}", device.file_name()?.to_str()?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conditions::setting::ThrottledOperation;

    #[test]
    fn a_step_without_its_change_does_nothing() {
        let folder = tempfile::tempdir().unwrap();
        // No process has this number.
        let names = |work: &Path| ObjectNames { process: u32::MAX, sequence: 0, work: work.to_owned() };
        let operation = ThrottledOperation::ReadBytes;
        for step in [
            UndoStep::RemoveGroup { controller: Controller::Memory, outer: None },
            UndoStep::RemoveGroup { controller: Controller::Disk, outer: Some(1) },
            UndoStep::Restore(KernelSetting::Throttle { operation, device: u32::MAX, limit: 1 }),
            UndoStep::RemoveInterface,
            UndoStep::RemoveNamespace,
            UndoStep::Unmount,
            UndoStep::DetachLoop,
            UndoStep::RemoveImage,
            UndoStep::RemoveMountPoint,
        ] {
            for work in [folder.path(), &folder.path().join("missing")] {
                assert_eq!(step.perform(&names(work)).unwrap(), None, "{step:?}");
            }
        }
    }

    #[test]
    fn a_setting_is_restored_unless_another_program_has_changed_it() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("setting");
        let values =
            SettingValues { file: file.clone(), written: "reno".to_owned(), before: "bbr".to_owned() };
        fs::write(&file, "reno\n").unwrap();
        assert!(restore(&values).unwrap().unwrap().contains("bbr"));
        assert_eq!(fs::read_to_string(&file).unwrap(), "bbr");
        fs::write(&file, "cubic\n").unwrap();
        assert_eq!(restore(&values).unwrap(), None);
        assert_eq!(fs::read_to_string(&file).unwrap(), "cubic\n");
    }

    #[test]
    fn nothing_is_removed_in_a_work_folder_that_another_user_can_replace() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
        let names = ObjectNames { process: u32::MAX, sequence: 0, work: folder.path().to_owned() };
        fs::write(names.image(), "").unwrap();
        let refused = format!("{:#}", UndoStep::RemoveImage.perform(&names).unwrap_err());
        assert!(refused.contains("other users can write"), "{refused}");
        assert!(names.image().exists());
    }
}
