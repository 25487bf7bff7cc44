//! Control groups: the memory limit and the disk limits of a contender's processes.
//!
//! Both versions of the kernel's interface are supported, also mixed on one machine. It starts no process
//! itself. Invariants: a process started through [`ProcessGroups::spawn`] never runs outside its groups;
//! the caller's process is outside them before and after.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::{Mutex, PoisonError};

use anyhow::{Context as _, Result, ensure};
use rustix::fs::{major, minor};
use serde::{Deserialize, Serialize};

use super::contender_group::ContenderGroup;
use super::journal::Journal;
use super::link::enter_namespace;
use super::setting::{KernelSetting, ThrottledOperation};
use super::undo::{NAME, UndoStep};
use crate::experiment::conditions::{Disk, Settings};

/// Serialises the moments in which the whole process is in a group of version 2.
static MOVED: Mutex<()> = Mutex::new(());

/// A controller of control groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Controller {
    Memory,
    Disk,
    /// The accounting of CPU time, which each group of version 2 has without a controller.
    Processor,
}

impl Controller {
    /// Returns its name under version 1.
    fn name_v1(self) -> &'static str {
        match self {
            Controller::Memory => "memory",
            Controller::Disk => "blkio",
            Controller::Processor => "cpuacct",
        }
    }

    /// Returns its name under version 2.
    pub(super) fn name(self) -> &'static str {
        match self {
            Controller::Memory => "memory",
            Controller::Disk => "io",
            Controller::Processor => "cpu",
        }
    }
}

/// The mount point of the hierarchy that has a controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Hierarchy {
    /// Version 1: a hierarchy of its own.
    V1(PathBuf),
    /// Version 2: the unified hierarchy.
    V2(PathBuf),
}

impl Hierarchy {
    /// Finds the hierarchy of a controller.
    pub(super) fn of(controller: Controller) -> Option<Hierarchy> {
        Hierarchy::find(&fs::read_to_string("/proc/self/mounts").ok()?, controller)
    }

    /// Returns the folder of its root group.
    pub(super) fn root(&self) -> &Path {
        match self {
            Hierarchy::V1(root) | Hierarchy::V2(root) => root,
        }
    }

    fn find(mounts: &str, controller: Controller) -> Option<Hierarchy> {
        let (v1, v2) = (controller.name_v1(), controller.name());
        let mounted = |kind: &'static str| {
            mounts.lines().filter_map(move |line| {
                let fields: Vec<&str> = line.split(' ').collect();
                (*fields.get(2)? == kind)
                    .then_some((PathBuf::from(fields.get(1)?), fields.get(3)?.to_owned()))
            })
        };
        let mut of_v1 = mounted("cgroup").filter(|(_, options)| options.split(',').any(|one| one == v1));
        let has_controller = |folder: &PathBuf| {
            let controllers = fs::read_to_string(folder.join("cgroup.controllers")).unwrap_or_default();
            controller == Controller::Processor || controllers.split_whitespace().any(|name| name == v2)
        };
        // A controller is in one hierarchy at a time; the accounting of CPU time may be in both.
        let of_v2 = || mounted("cgroup2").find(|(folder, _)| has_controller(folder));
        match of_v1.next() {
            Some((folder, _)) => Some(Hierarchy::V1(folder)),
            None => of_v2().map(|(folder, _)| Hierarchy::V2(folder)),
        }
    }
}

/// Returns the number (`MAJ:MIN`) of the whole disk with the files of a folder.
///
/// # Errors
/// The file system is not on a block device: it is in memory, remote, or on several devices.
pub(super) fn disk_of(folder: &Path) -> Result<String> {
    let device = fs::metadata(folder).with_context(|| format!("{}", folder.display()))?.dev();
    let number = format!("{}:{}", major(device), minor(device));
    let block = fs::canonicalize(format!("/sys/dev/block/{number}"));
    let block = block.with_context(|| format!("{} is not on a block device", folder.display()))?;
    if !block.join("partition").exists() {
        return Ok(number);
    }
    // The kernel limits whole disks only.
    let disk = block.parent().context("a partition without a disk")?.join("dev");
    Ok(fs::read_to_string(disk)?.trim().to_owned())
}

/// The disk on which limits are set.
#[derive(Clone, Copy, Debug)]
pub(super) struct LimitedDisk<'a> {
    /// Its number, `MAJ:MIN`.
    pub(super) number: &'a str,
    /// The number in its name if it is the loop device of the conditions, which no other process uses.
    pub(super) loop_device: Option<u32>,
}

/// The control groups and the network namespace of a contender's processes.
#[derive(Debug, Default)]
pub(super) struct ProcessGroups {
    /// Folders of version 1, which threads can join.
    v1: Vec<PathBuf>,
    /// A folder of version 2, which only a whole process can join.
    v2: Option<PathBuf>,
    /// The name of the network namespace.
    pub(super) namespace: Option<String>,
    disk_limits: Vec<DiskLimit>,
}

/// A limit of a disk, as text for a file of the kernel.
#[derive(Debug)]
struct DiskLimit {
    file: PathBuf,
    limited: String,
    unlimited: String,
}

impl ProcessGroups {
    /// Creates the groups. A group for memory is created even without a limit: undoing it ends all
    /// processes that are left over.
    ///
    /// # Errors
    /// The kernel's error.
    pub(super) fn create(
        settings: &Settings,
        disk: LimitedDisk<'_>,
        journal: &mut Journal,
    ) -> Result<ProcessGroups> {
        let mut groups = ProcessGroups::default();
        match Hierarchy::of(Controller::Memory) {
            Some(Hierarchy::V1(root)) => groups.limit_memory_v1(&root, settings.memory, journal)?,
            Some(Hierarchy::V2(root)) => {
                let group = groups.join_v2(&root, Controller::Memory, journal)?;
                if let Some(bytes) = settings.memory {
                    set(&group.join("memory.max"), &bytes.to_string())?;
                    set_if_exists(&group.join("memory.swap.max"), "0")?;
                }
            }
            None => ensure!(settings.memory.is_none(), "no control groups limit memory"),
        }
        if settings.disk == Disk::default() {
            return Ok(groups);
        }
        match Hierarchy::of(Controller::Disk).context("no control groups limit disks")? {
            Hierarchy::V1(root) => groups.limit_disk_v1(&root, &settings.disk, disk, journal)?,
            Hierarchy::V2(root) => {
                let file = groups.join_v2(&root, Controller::Disk, journal)?.join("io.max");
                let limited = limits_v2(&settings.disk, disk.number);
                let unlimited = format!("{} rbps=max wbps=max riops=max wiops=max", disk.number);
                set(&file, &limited)?;
                groups.disk_limits.push(DiskLimit { file, limited, unlimited });
            }
        }
        Ok(groups)
    }

    fn limit_memory_v1(&mut self, root: &Path, bytes: Option<u64>, journal: &mut Journal) -> Result<()> {
        let group = create_group(root, Controller::Memory, journal)?;
        if let Some(bytes) = bytes.map(|bytes| bytes.to_string()) {
            set(&group.join("memory.limit_in_bytes"), &bytes)?;
            // Memory and swap together: without it, the contender swaps instead of running short.
            set_if_exists(&group.join("memory.memsw.limit_in_bytes"), &bytes)?;
        }
        self.v1.push(group);
        Ok(())
    }

    /// The kernel charges write-back to the root group. The loop device is therefore limited there, and the
    /// processes join the root group, so that one limit applies to all of its operations.
    fn limit_disk_v1(
        &mut self,
        root: &Path,
        limits: &Disk,
        disk: LimitedDisk<'_>,
        journal: &mut Journal,
    ) -> Result<()> {
        let group = match disk.loop_device {
            Some(_) => root.to_owned(),
            None => create_group(root, Controller::Disk, journal)?,
        };
        for (operation, limit) in limits_v1(limits) {
            let file = group.join(operation.file());
            let limited = format!("{} {limit}", disk.number);
            let unlimited = format!("{} 0", disk.number);
            match disk.loop_device {
                Some(device) => journal.set(&KernelSetting::Throttle { operation, device, limit })?,
                None => set(&file, &limited)?,
            }
            self.disk_limits.push(DiskLimit { file, limited, unlimited });
        }
        self.v1.push(group);
        Ok(())
    }

    fn join_v2(&mut self, root: &Path, controller: Controller, journal: &mut Journal) -> Result<PathBuf> {
        let file = root.join("cgroup.subtree_control");
        let enabled = fs::read_to_string(&file).with_context(|| format!("{}", file.display()))?;
        if !enabled.split_whitespace().any(|name| name == controller.name()) {
            journal.set(&KernelSetting::Controller(controller))?;
        }
        if self.v2.is_none() {
            self.v2 = Some(create_group(root, controller, journal)?);
        }
        self.v2.clone().context("the group was just created")
    }

    /// Runs `start` on a thread of its own, which is in the groups, in the `own` group of the contender and
    /// in the namespace: its children are in them from their first instruction.
    ///
    /// # Errors
    /// The error of `start`, or the kernel's.
    pub(super) fn spawn(
        &self,
        own: Option<&ContenderGroup>,
        start: impl FnOnce() -> io::Result<Child> + Send,
    ) -> io::Result<Child> {
        let folder = own.map(ContenderGroup::folder);
        let is_v2 = own.is_some_and(ContenderGroup::is_v2);
        // A group of version 2 is within that with the limits.
        let v2 = folder.filter(|_| is_v2).or(self.v2.as_deref());
        let start = || {
            for group in self.v1.iter().map(PathBuf::as_path).chain(folder.filter(|_| !is_v2)) {
                fs::write(group.join("tasks"), "0")?;
            }
            if let Some(namespace) = &self.namespace {
                enter_namespace(namespace)?;
            }
            match v2 {
                Some(group) => spawn_v2(group, start),
                None => start(),
            }
        };
        std::thread::scope(|scope| scope.spawn(start).join())
            .unwrap_or_else(|_| Err(io::Error::other("the thread that starts programs panicked")))
    }

    /// Runs `work` without the limits of the disk, which hold again afterwards.
    ///
    /// # Errors
    /// The error of `work`, or the kernel's.
    pub(super) fn without_disk_limits<T>(&self, work: impl FnOnce() -> Result<T>) -> Result<T> {
        self.disk_limits.iter().try_for_each(|limit| set(&limit.file, &limit.unlimited))?;
        let result = work();
        self.disk_limits.iter().try_for_each(|limit| set(&limit.file, &limit.limited))?;
        result
    }

    /// Returns whether there is a group of version 2.
    pub(super) fn has_v2(&self) -> bool {
        self.v2.is_some()
    }

    /// Returns the folders of the groups.
    pub(super) fn folders(&self) -> impl Iterator<Item = &Path> {
        self.v1.iter().chain(&self.v2).map(PathBuf::as_path)
    }
}

/// Threads of one process cannot be in different groups of version 2: the process itself joins the group
/// while it starts a child.
fn spawn_v2(group: &Path, start: impl FnOnce() -> io::Result<Child>) -> io::Result<Child> {
    let _moved = MOVED.lock().unwrap_or_else(PoisonError::into_inner);
    let groups = fs::read_to_string("/proc/self/cgroup")?;
    let own = groups.lines().find_map(|line| line.strip_prefix("0::/")).unwrap_or_default();
    let is_of_laboratory = |name: &OsStr| name.to_string_lossy().starts_with(NAME);
    let is_root = |above: &&Path| !above.file_name().is_some_and(is_of_laboratory);
    let own = group.ancestors().find(is_root).unwrap_or(group).join(own);
    fs::write(group.join("cgroup.procs"), "0")?;
    let started = start();
    fs::write(own.join("cgroup.procs"), "0")?;
    started
}

fn create_group(root: &Path, controller: Controller, journal: &mut Journal) -> Result<PathBuf> {
    let folder = root.join(journal.names.name());
    journal.record(UndoStep::RemoveGroup { controller, outer: None })?;
    fs::create_dir(&folder).with_context(|| format!("{}", folder.display()))?;
    Ok(folder)
}

fn set(file: &Path, value: &str) -> Result<()> {
    fs::write(file, value).with_context(|| format!("{} cannot be set to {value:?}", file.display()))
}

fn set_if_exists(file: &Path, value: &str) -> Result<()> {
    if file.exists() { set(file, value) } else { Ok(()) }
}

/// Returns the limited operations of version 1 and their limits.
fn limits_v1(limits: &Disk) -> impl Iterator<Item = (ThrottledOperation, u64)> {
    let operations = [
        (ThrottledOperation::ReadBytes, limits.read),
        (ThrottledOperation::WriteBytes, limits.write),
        (ThrottledOperation::Reads, limits.operations),
        (ThrottledOperation::Writes, limits.operations),
    ];
    operations.into_iter().filter_map(|(operation, limit)| Some((operation, limit?)))
}

/// Returns the value of `io.max`.
fn limits_v2(limits: &Disk, disk: &str) -> String {
    let keys = [
        ("rbps", limits.read),
        ("wbps", limits.write),
        ("riops", limits.operations),
        ("wiops", limits.operations),
    ];
    let words = keys.into_iter().filter_map(|(key, limit)| Some(format!(" {key}={}", limit?)));
    disk.to_owned() + &words.collect::<String>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conditions::undo::remove_group;

    #[test]
    fn the_hierarchy_of_a_controller_is_found_in_both_versions() {
        let unified = tempfile::tempdir().unwrap();
        fs::write(unified.path().join("cgroup.controllers"), "cpu io memory\n").unwrap();
        let v2 = format!("cgroup2 {} cgroup2 rw 0 0\n", unified.path().display());
        let mixed = format!("{v2}cgroup /sys/fs/cgroup/blkio cgroup rw,relatime,blkio 0 0\n");
        let found = Hierarchy::find(&mixed, Controller::Memory);
        assert_eq!(found, Some(Hierarchy::V2(unified.path().into())));
        let v1 = mixed.replace(&v2, "");
        assert_eq!(
            Hierarchy::find(&v1, Controller::Disk),
            Some(Hierarchy::V1("/sys/fs/cgroup/blkio".into()))
        );
        assert_eq!(Hierarchy::find(&v1, Controller::Memory), None);
    }

    #[test]
    fn the_limits_of_a_disk_are_in_the_words_of_both_versions() {
        let limits = Disk { read: Some(5), write: None, operations: Some(7) };
        assert_eq!(limits_v2(&limits, "7:1"), "7:1 rbps=5 riops=7 wiops=7");
        let v1: Vec<_> = limits_v1(&limits).collect();
        assert_eq!(
            v1,
            [
                (ThrottledOperation::ReadBytes, 5),
                (ThrottledOperation::Reads, 7),
                (ThrottledOperation::Writes, 7)
            ]
        );
    }

    #[test]
    fn a_child_starts_in_a_group_of_version_2_and_the_caller_leaves_it() {
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
        let is_unified = |line: &&str| line.split(' ').nth(2) == Some("cgroup2");
        let Some(mount) = mounts.lines().find(is_unified) else {
            assert!(matches!(Hierarchy::of(Controller::Memory), None | Some(Hierarchy::V1(_))));
            return;
        };
        let name = format!("plimsoll-lab-{}-version-2", std::process::id());
        let group = Path::new(mount.split(' ').nth(1).unwrap()).join(&name);
        let created = fs::create_dir(&group);
        if !rustix::process::geteuid().is_root() {
            assert_eq!(created.unwrap_err().kind(), io::ErrorKind::PermissionDenied);
            return;
        }
        created.unwrap();
        let unified_group = |process: &str| {
            let groups = fs::read_to_string(format!("/proc/{process}/cgroup")).unwrap();
            groups.lines().find(|line| line.starts_with("0::")).unwrap().to_owned()
        };
        let before = unified_group("self");
        let groups = ProcessGroups { v2: Some(group.clone()), ..ProcessGroups::default() };
        let mut child =
            groups.spawn(None, || std::process::Command::new("sleep").arg("1000").spawn()).unwrap();
        assert_eq!(unified_group(&child.id().to_string()), format!("0::/{name}"));
        assert_eq!(unified_group("self"), before);
        let child_ended = std::thread::spawn(move || child.wait().unwrap());
        remove_group(&group).unwrap();
        assert!(!child_ended.join().unwrap().success());
    }
}
