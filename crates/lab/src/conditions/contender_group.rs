//! A control group for each process of a contender, which counts the CPU time of all its descendants.
//!
//! It limits nothing. Invariants: the counters include processes that have ended, whether or not they were
//! waited for; removing the group ends the processes that are left in it, also daemons.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use super::groups::{Controller, Hierarchy};
use super::journal::Journal;
use super::undo::UndoStep;

/// The group of a process of a contender. Dropping it removes the group.
#[derive(Debug)]
pub struct ContenderGroup {
    counters: GroupCounters,
    /// Dropped last: it removes the group.
    _journal: Journal,
}

/// The counters of a group.
#[derive(Clone, Debug)]
pub struct GroupCounters {
    folder: PathBuf,
    is_v2: bool,
}

impl ContenderGroup {
    /// Creates a group, within that of the journal number `outer` if there is one of version 2.
    ///
    /// # Errors
    /// This user may create none, or this kernel has none.
    pub(super) fn create(work: &Path, outer: Option<u32>) -> Result<ContenderGroup> {
        let controller = Controller::Processor;
        let hierarchy = Hierarchy::of(controller).context("no control group accounts for CPU time")?;
        let is_v2 = matches!(hierarchy, Hierarchy::V2(_));
        let outer = outer.filter(|_| is_v2);
        let mut journal = Journal::create(work)?;
        let folder = journal.names.group(&hierarchy, outer);
        journal.record(UndoStep::RemoveGroup { controller, outer })?;
        fs::create_dir(&folder).with_context(|| format!("{}", folder.display()))?;
        Ok(ContenderGroup { counters: GroupCounters { folder, is_v2 }, _journal: journal })
    }

    /// Returns its counters.
    pub fn counters(&self) -> &GroupCounters {
        &self.counters
    }

    pub(super) fn folder(&self) -> &Path {
        &self.counters.folder
    }

    pub(super) fn is_v2(&self) -> bool {
        self.counters.is_v2
    }
}

impl GroupCounters {
    /// Returns the CPU time of all its processes so far in seconds, in user mode and in the kernel; `None` if
    /// the group was removed.
    pub fn cpu_seconds(&self) -> Option<[f64; 2]> {
        if self.is_v2 {
            let text = fs::read_to_string(self.folder.join("cpu.stat")).ok()?;
            let microseconds = |name: &str| value(&text, name);
            return Some([microseconds("user_usec")? * 1e-6, microseconds("system_usec")? * 1e-6]);
        }
        let nanoseconds = |name: &str| {
            let text = fs::read_to_string(self.folder.join(name)).ok()?;
            text.trim().parse::<f64>().ok()
        };
        Some([nanoseconds("cpuacct.usage_user")? * 1e-9, nanoseconds("cpuacct.usage_sys")? * 1e-9])
    }

    /// Returns the numbers of its processes.
    pub fn processes(&self) -> Vec<u32> {
        let text = fs::read_to_string(self.folder.join("cgroup.procs")).unwrap_or_default();
        text.lines().filter_map(|line| line.parse().ok()).collect()
    }
}

/// Returns the value of a line `NAME VALUE`.
fn value(text: &str, name: &str) -> Option<f64> {
    let words = text.lines().filter_map(|line| line.split_once(' '));
    words.into_iter().find(|(word, _)| *word == name)?.1.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_counters_of_version_2_are_microseconds_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let text = "usage_usec 3500000\nuser_usec 1500000\nsystem_usec 2000000\nnr_periods 0\n";
        fs::write(folder.path().join("cpu.stat"), text).unwrap();
        fs::write(folder.path().join("cgroup.procs"), "7\n12\n").unwrap();
        let counters = GroupCounters { folder: folder.path().to_owned(), is_v2: true };
        assert_eq!(counters.cpu_seconds(), Some([1.5, 2.0]));
        assert_eq!(counters.processes(), [7, 12]);
        let removed = GroupCounters { folder: folder.path().join("removed"), is_v2: false };
        assert_eq!((removed.cpu_seconds(), removed.processes()), (None, Vec::new()));
    }
}
