//! The steps that undo a condition, as data that can be written to a journal.
//!
//! It sets no condition. Invariants: a step can be repeated; a step whose change was never made, or is
//! already undone, does nothing.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use rustix::process::{Pid, Signal, kill_process};
use serde::{Deserialize, Serialize};

use super::limits::RELEASE_TIME_MAX;
use super::link::namespace_file;
use super::program::run;

/// Interval between two attempts to release a resource of the kernel.
const RETRY_INTERVAL: Duration = Duration::from_millis(50);

/// A step that undoes one change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum UndoStep {
    /// Ends the processes of a control group, and removes it.
    RemoveGroup { folder: PathBuf },
    /// Writes `before` to a file of the kernel, unless a line of it is no longer the written value.
    RestoreSetting { file: PathBuf, written: String, before: String },
    /// Removes a network interface.
    RemoveInterface { name: String },
    /// Removes a network namespace.
    RemoveNamespace { name: String },
    /// Unmounts a file system.
    Unmount { folder: PathBuf },
    /// Detaches the loop devices of an image.
    DetachLoop { image: PathBuf },
    /// Removes a file.
    RemoveFile { file: PathBuf },
    /// Removes an empty folder.
    RemoveFolder { folder: PathBuf },
}

impl UndoStep {
    /// Undoes the change. Returns a line that describes it, or None if there was nothing to undo.
    ///
    /// # Errors
    /// The kernel's or the program's error.
    pub(super) fn perform(&self) -> Result<Option<String>> {
        match self {
            UndoStep::RemoveGroup { folder } => remove_group(folder),
            UndoStep::RestoreSetting { file, written, before } => restore(file, written, before),
            UndoStep::RemoveInterface { name } => remove_interface(name),
            UndoStep::RemoveNamespace { name } => remove_namespace(name),
            UndoStep::Unmount { folder } => unmount(folder),
            UndoStep::DetachLoop { image } => detach(image),
            UndoStep::RemoveFile { file } => removed(fs::remove_file(file), file),
            UndoStep::RemoveFolder { folder } => removed(fs::remove_dir(folder), folder),
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

fn remove_group(folder: &Path) -> Result<Option<String>> {
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

fn restore(file: &Path, written: &str, before: &str) -> Result<Option<String>> {
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

    #[test]
    fn a_step_without_its_change_does_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let absent = folder.path().join("absent");
        let name = "no-such-name".to_owned();
        for step in [
            UndoStep::RemoveGroup { folder: absent.clone() },
            UndoStep::RestoreSetting { file: absent.clone(), written: String::new(), before: String::new() },
            UndoStep::RemoveInterface { name: name.clone() },
            UndoStep::RemoveNamespace { name },
            UndoStep::Unmount { folder: absent.clone() },
            UndoStep::DetachLoop { image: absent.clone() },
            UndoStep::RemoveFile { file: absent.clone() },
            UndoStep::RemoveFolder { folder: absent },
        ] {
            assert_eq!(step.perform().unwrap(), None, "{step:?}");
        }
    }

    #[test]
    fn a_setting_is_restored_unless_another_program_has_changed_it() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("setting");
        let step = UndoStep::RestoreSetting {
            file: file.clone(),
            written: "reno".to_owned(),
            before: "bbr".to_owned(),
        };
        fs::write(&file, "reno\n").unwrap();
        assert!(step.perform().unwrap().unwrap().contains("bbr"));
        assert_eq!(fs::read_to_string(&file).unwrap(), "bbr");
        fs::write(&file, "cubic\n").unwrap();
        assert_eq!(step.perform().unwrap(), None);
        assert_eq!(fs::read_to_string(&file).unwrap(), "cubic\n");
    }
}
