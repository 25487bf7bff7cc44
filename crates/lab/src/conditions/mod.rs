//! Sets the conditions of a trial on the machine of the contender, and puts the machine back.
//!
//! Settings are typed values of an [`experiment`](crate::experiment); the agent applies them. The page cache
//! is prepared for each trial, all other conditions hold until they are undone. It starts no contender and
//! measures nothing. Invariants: each change is in the undo journal before it is made. Changes
//! are undone in reverse order: by their own process, or by [`recover`] if that was killed.

mod cache;
mod congestion;
mod contender_group;
mod groups;
mod image;
mod journal;
mod journal_folder;
mod limits;
mod link;
mod obstacles;
mod program;
mod setting;
mod undo;

use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context as _, Result, bail};

use crate::experiment::conditions::{Cache, Disk, Settings};
use groups::{LimitedDisk, ProcessGroups, disk_of};
use journal::Journal;

pub use cache::{PeriodicDrop, cached_bytes};
pub use contender_group::{ContenderGroup, GroupCounters};
pub use journal::recover;
pub use obstacles::{Obstacle, distinct_obstacles, obstacles};
pub(crate) use program::{find_program, missing_programs};

/// The conditions that hold on this machine until the value is dropped.
#[derive(Debug)]
pub struct AppliedConditions {
    root: PathBuf,
    address: Option<Ipv4Addr>,
    groups: ProcessGroups,
    /// Whether the files are to be dropped before the next trial, also if the cache is warm. The pages of
    /// new files are charged to their writer and not to the limited groups.
    is_charged_outside: AtomicBool,
    limits_memory: bool,
    journal: Option<Journal>,
}

impl AppliedConditions {
    /// Sets all conditions but that of the page cache, with images and mounts in the folder `work`.
    ///
    /// # Errors
    /// The obstacles, or the kernel's error. All changes made before are undone.
    pub fn apply(settings: &Settings, work: &Path) -> Result<AppliedConditions> {
        let obstacles = obstacles(settings, work);
        if !obstacles.is_empty() {
            let lines = obstacles.iter().map(ToString::to_string);
            bail!("conditions cannot be set: {}", lines.collect::<Vec<_>>().join("; "));
        }
        let work = &work.canonicalize().with_context(|| format!("{}", work.display()))?;
        let mut applied = AppliedConditions {
            root: work.clone(),
            address: None,
            groups: ProcessGroups::default(),
            is_charged_outside: AtomicBool::new(settings.memory.is_some()),
            limits_memory: settings.memory.is_some(),
            journal: None,
        };
        let nothing = Settings { cache: settings.cache, ..Settings::default() };
        if *settings != nothing {
            // A value that an earlier agent has left behind must not be taken for the machine's own.
            recover().context("an earlier agent was killed")?;
            let mut journal = Journal::create(work)?;
            applied.set(settings, &mut journal)?;
            applied.journal = Some(journal);
        }
        Ok(applied)
    }

    fn set(&mut self, settings: &Settings, journal: &mut Journal) -> Result<()> {
        let (mut number, mut loop_device) = (String::new(), None);
        if let Some(image) = &settings.image {
            let mounted = image::mount(image, journal).context("`file_system`")?;
            self.root = mounted.root;
            (number, loop_device) = (mounted.number, Some(mounted.device));
        }
        let mut namespace = None;
        if let Some(link) = &settings.link {
            let link = link::create(link, journal).context("`link`")?;
            self.address = Some(link.address);
            namespace = Some(link.namespace);
        }
        if let Some(name) = &settings.congestion {
            congestion::set(name, namespace.as_deref(), journal).context("`congestion`")?;
        }
        if loop_device.is_none() && settings.disk != Disk::default() {
            number = disk_of(&journal.names.work)?;
        }
        // Last, because undoing them first ends the processes that use everything else.
        self.groups = ProcessGroups::create(settings, LimitedDisk { number: &number, loop_device }, journal)?;
        self.groups.namespace = namespace;
        Ok(())
    }

    /// Returns the folder where files are to be made: in the mounted image if there is one.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the address of the contender, if there is a link.
    pub fn address(&self) -> Option<IpAddr> {
        self.address.map(IpAddr::V4)
    }

    /// Returns the words before a command that is to run in the namespace of the link, if there is one.
    ///
    /// [`spawn_inside`](Self::spawn_inside) needs no prefix.
    pub fn command_prefix(&self) -> Vec<String> {
        let words = |name: &String| ["ip", "netns", "exec", name].map(str::to_owned).to_vec();
        self.groups.namespace.as_ref().map(words).unwrap_or_default()
    }

    /// Returns the folders of the control groups that [`spawn_inside`](Self::spawn_inside) uses.
    pub fn control_groups(&self) -> impl Iterator<Item = &Path> {
        self.groups.folders()
    }

    /// Starts a process in the control groups and in the namespace of the link: from its first instruction.
    ///
    /// `start` runs on another thread. Undoing the conditions ends the process and its descendants, if the
    /// kernel has control groups for memory.
    ///
    /// # Errors
    /// The error of `start`, or the kernel's.
    pub fn spawn_inside(&self, start: impl FnOnce() -> io::Result<Child> + Send) -> io::Result<Child> {
        self.groups.spawn(None, start)
    }

    /// Creates a group of its own for a process of a contender; `None` where that is not permitted.
    pub fn contender_group(&self) -> Option<ContenderGroup> {
        let limited = self.journal.as_ref().filter(|_| self.groups.has_v2());
        ContenderGroup::create(&self.root, limited.map(|journal| journal.names.sequence)).ok()
    }

    /// As [`spawn_inside`](Self::spawn_inside), in a group of the contender too.
    ///
    /// # Errors
    /// The error of `start`, or the kernel's.
    pub fn spawn_in_group(
        &self,
        group: Option<&ContenderGroup>,
        start: impl FnOnce() -> io::Result<Child> + Send,
    ) -> io::Result<Child> {
        self.groups.spawn(group, start)
    }

    /// Runs `make`, which creates files in [`root`](Self::root), without the limits of the disk, and syncs
    /// the files before the limits hold again. Otherwise a set of files would take as long as the contender
    /// would take to write it.
    ///
    /// # Errors
    /// The error of `make`, or the kernel's.
    pub fn without_disk_limits<T>(&self, make: impl FnOnce() -> Result<T>) -> Result<T> {
        self.groups.without_disk_limits(|| {
            let made = make()?;
            self.is_charged_outside.fetch_or(self.limits_memory, Ordering::Relaxed);
            cache::sync(&self.root)?;
            Ok(made)
        })
    }

    /// Prepares the page cache for a trial that uses the files of a folder: `cache` is the trial's condition.
    /// The limits of the disk do not hold meanwhile.
    ///
    /// Returns how many bytes of the files the page cache has: None if it is left as it is, or without
    /// `fincore`. The kernel drops no page that a process has mapped.
    ///
    /// # Errors
    /// A file or the kernel's setting cannot be used.
    pub fn before_trial(&self, cache: Cache, files: &Path) -> Result<Option<u64>> {
        let is_charged_outside = self.is_charged_outside.swap(false, Ordering::Relaxed);
        if cache == Cache::Warm && !is_charged_outside {
            return Ok(None);
        }
        self.groups.without_disk_limits(|| {
            if is_charged_outside || cache != Cache::Prefetched {
                cache::drop_files(files)?;
            }
            if cache == Cache::Prefetched {
                cache::prefetch(files, |start| self.spawn_inside(start))?;
            }
            cached_bytes(files)
        })
    }

    /// Undoes all conditions in reverse order, and returns a line for each.
    ///
    /// # Errors
    /// The steps that failed. All others are done, and [`recover`] repeats the failed ones.
    pub fn undo(mut self) -> Result<Vec<String>> {
        self.journal.take().map_or(Ok(Vec::new()), |mut journal| journal.undo())
    }
}
