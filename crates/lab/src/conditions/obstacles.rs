//! Finds the conditions that this machine cannot set, before anything is started.
//!
//! It changes nothing lasting: a temporary namespace for a probe is removed. Invariant: each obstacle names
//! its condition as experiment files do, and has a remedy.

use std::fs;
use std::path::Path;

use rustix::fs::statvfs;
use serde::{Deserialize, Serialize};

use super::congestion;
use super::groups::{Controller, Hierarchy, disk_of};
use super::journal::Journal;
use super::journal_folder::JournalFolder;
use super::link::create_namespace;
use super::program::{find_program, run_words};
use crate::experiment::conditions::{Cache, Disk, Image, Link, Settings};

const CAP_NET_ADMIN: u32 = 12;
const CAP_SYS_ADMIN: u32 = 21;

/// A condition that this machine cannot set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Obstacle {
    /// The key of the condition in an experiment file.
    pub condition: String,
    /// The reason why it cannot be set.
    pub reason: String,
    /// The remedy, in one line.
    pub remedy: String,
}

impl std::fmt::Display for Obstacle {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "`{}`: {}: {}", self.condition, self.reason, self.remedy)
    }
}

/// Returns the conditions of `settings` that this machine cannot set with `work` as its work folder.
pub fn obstacles(settings: &Settings, work: &Path) -> Vec<Obstacle> {
    obstacles_with(settings, work, effective_capabilities())
}

/// Returns the conditions of a list of settings that this machine cannot set, each once.
pub fn distinct_obstacles(all: &[Settings], work: &Path) -> Vec<Obstacle> {
    let (mut looked_at, mut distinct): (Vec<Settings>, Vec<Obstacle>) = (Vec::new(), Vec::new());
    for settings in all {
        let settings = Settings { cache: Cache::default(), ..settings.clone() };
        if looked_at.contains(&settings) {
            continue;
        }
        for obstacle in obstacles(&settings, work) {
            if !distinct.contains(&obstacle) {
                distinct.push(obstacle);
            }
        }
        looked_at.push(settings);
    }
    distinct
}

/// Returns the effective capabilities of this process, a bit each (capabilities(7)).
fn effective_capabilities() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let digits = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    digits.and_then(|digits| u64::from_str_radix(digits.trim(), 16).ok()).unwrap_or(0)
}

fn obstacles_with(settings: &Settings, work: &Path, capabilities: u64) -> Vec<Obstacle> {
    let mut list = ObstacleList { found: Vec::new(), capabilities };
    if settings.memory.is_some()
        && list.needs("memory", CAP_SYS_ADMIN)
        && Hierarchy::of(Controller::Memory).is_none()
    {
        list.add("memory", "no control group has the memory controller", MOUNT_GROUPS);
    }
    if settings.disk != Disk::default() {
        list.check_disk(settings, work);
    }
    if let Some(image) = &settings.image {
        list.check_image(image, work);
    }
    if let Some(link) = &settings.link {
        list.check_link(link, work);
    }
    if let Some(name) = &settings.congestion
        && list.needs("congestion", CAP_NET_ADMIN)
        && !congestion::is_available(name)
    {
        let available = congestion::available().join(", ");
        let reason = format!("the kernel has no congestion control {name:?}");
        list.add("congestion", reason, format!("use one of {available}, or load the module tcp_{name}"));
    }
    list.found
}

const MOUNT_GROUPS: &str = "mount control groups with this controller, or boot a kernel that has it";

struct ObstacleList {
    found: Vec<Obstacle>,
    capabilities: u64,
}

impl ObstacleList {
    fn add(&mut self, condition: &str, reason: impl Into<String>, remedy: impl Into<String>) {
        let (condition, reason, remedy) = (condition.to_owned(), reason.into(), remedy.into());
        self.found.push(Obstacle { condition, reason, remedy });
    }

    /// Returns whether the process has a capability, and a folder in which changes can be noted. Adds an
    /// obstacle if not.
    fn needs(&mut self, condition: &str, capability: u32) -> bool {
        let has_it = self.capabilities & (1 << capability) != 0;
        if !has_it {
            let name = if capability == CAP_NET_ADMIN { "CAP_NET_ADMIN" } else { "CAP_SYS_ADMIN" };
            self.add(condition, format!("the agent lacks {name}"), "run the agent as root");
            return false;
        }
        // Without a journal, nothing could be put back after the end of the agent.
        let journals = JournalFolder::create().map_err(|error| format!("{error:#}"));
        let Err(reason) = journals else { return true };
        self.add(condition, reason, "run the agent as root, which alone can write to /run");
        false
    }

    fn needs_program(&mut self, condition: &str, program: &str, package: &str) -> bool {
        let is_installed = find_program(program).is_some();
        if !is_installed {
            let remedy = format!("install it, on Debian: apt-get install {package}");
            self.add(condition, format!("{program} is not installed"), remedy);
        }
        is_installed
    }

    fn check_disk(&mut self, settings: &Settings, work: &Path) {
        let disk = &settings.disk;
        let keys =
            [("disk_read", disk.read), ("disk_write", disk.write), ("disk_operations", disk.operations)];
        let keys = || keys.iter().filter(|(_, limit)| limit.is_some()).map(|(key, _)| *key);
        let Some(first) = keys().next() else { return };
        if !self.needs(first, CAP_SYS_ADMIN) {
            return;
        }
        let hierarchy = Hierarchy::of(Controller::Disk);
        if hierarchy.is_none() {
            self.add(first, "no control group has the blkio (v1) or io (v2) controller", MOUNT_GROUPS);
        }
        if settings.image.is_some() {
            return;
        }
        let remedy = "set `file_system` and `image`: the limit then applies to the loop device";
        if let Err(error) = disk_of(work) {
            self.add(first, format!("{error:#}"), remedy);
        }
        if matches!(hierarchy, Some(Hierarchy::V1(_))) {
            for key in keys().filter(|key| *key != "disk_read") {
                self.add(key, "control groups of version 1 do not limit write-back of one contender", remedy);
            }
        }
    }

    fn check_image(&mut self, image: &Image, work: &Path) {
        let package = if image.kind == "xfs" { "xfsprogs" } else { "e2fsprogs" };
        self.needs_program("file_system", &format!("mkfs.{}", image.kind), package);
        self.needs_program("file_system", "losetup", "mount");
        if !Path::new("/dev/loop-control").exists() {
            self.add("file_system", "there are no loop devices", "load the module loop: modprobe loop");
        }
        self.needs("file_system", CAP_SYS_ADMIN);
        let free = statvfs(work).map(|space| space.f_bavail.saturating_mul(space.f_frsize));
        match free {
            Ok(free) if free >= image.bytes => {}
            Ok(free) => {
                let reason = format!("{} of {} bytes are free in {}", free, image.bytes, work.display());
                self.add("image", reason, "free space, use a smaller image or another work folder");
            }
            Err(error) => {
                let reason = format!("{}: {error}", work.display());
                self.add("image", reason, "create the work folder");
            }
        }
    }

    fn check_link(&mut self, link: &Link, work: &Path) {
        let programs = [("ip", "iproute2"), ("tc", "iproute2")];
        let has_programs = programs.map(|(program, package)| self.needs_program("link", program, package));
        let has_rights = self.needs("link", CAP_NET_ADMIN) && self.needs("link", CAP_SYS_ADMIN);
        if !has_rights || has_programs.contains(&false) {
            return;
        }
        if link.rate.is_some()
            && let Err(reason) = probe_queue(work, "tbf rate 1mbit burst 10kb limit 10kb")
        {
            self.add("link", reason, "boot a kernel with CONFIG_NET_SCH_TBF");
        }
        if let Some(key) = link.delay.map(|_| "delay").or(link.loss.map(|_| "loss"))
            && let Err(reason) = probe_queue(work, "netem delay 1ms loss 1%")
        {
            let remedy = "boot a kernel with CONFIG_NET_SCH_NETEM, on Debian: the package linux-image-amd64";
            self.add(key, format!("the kernel has no netem: {reason}"), remedy);
        }
    }
}

/// Adds a queue to the loopback of a temporary namespace. The error is the program's message.
fn probe_queue(work: &Path, queue: &str) -> Result<(), String> {
    let probe = || {
        let mut journal = Journal::create(work)?;
        let name = create_namespace(&mut journal)?;
        run_words("tc", &format!("-n {name} qdisc add dev lo root {queue}"))
    };
    probe().map(|_| ()).map_err(|error| format!("{error:#}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn without_rights_each_condition_that_needs_them_is_reported() {
        let image = Image { kind: "ext4".to_owned(), bytes: 1 << 20, block: None, read_ahead: None };
        let settings = Settings {
            memory: Some(1 << 26),
            disk: Disk { read: Some(1 << 20), ..Disk::default() },
            image: Some(image),
            link: Some(Link { delay: Some(Duration::from_millis(1)), ..Link::default() }),
            congestion: Some("reno".to_owned()),
            ..Settings::default()
        };
        let found = obstacles_with(&settings, Path::new("/tmp"), 0);
        for condition in ["memory", "disk_read", "file_system", "link", "congestion"] {
            let is_reported = found.iter().any(|obstacle| {
                obstacle.condition == condition
                    && obstacle.reason.starts_with("the agent lacks CAP_")
                    && obstacle.remedy == "run the agent as root"
            });
            assert!(is_reported, "{condition}: {found:?}");
        }
        assert_eq!(obstacles_with(&Settings::default(), Path::new("/tmp"), 0), []);
    }

    #[test]
    fn an_image_larger_than_the_free_space_is_reported() {
        let image = Image { kind: "ext4".to_owned(), bytes: 1 << 60, block: None, read_ahead: None };
        let settings = Settings { image: Some(image), ..Settings::default() };
        let found = obstacles_with(&settings, Path::new("/tmp"), u64::MAX);
        assert!(found.iter().any(|obstacle| obstacle.condition == "image"), "{found:?}");
    }
}
