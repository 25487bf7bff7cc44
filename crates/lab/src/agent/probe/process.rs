//! The counters of a process and its descendants, from `/proc/PID`.
//!
//! It names no process. Invariants: ended threads count. The counters of an ended process count as far as the
//! kernel adds them to those of its parent; where it does not, the figure is absent. Without a control group,
//! a process that lives between two samples only, and that its parent does not wait for, is not noticed.

use procfs::process::Process;

use super::counter;
use crate::conditions::GroupCounters;
use crate::results::ProcessUse;

/// How far the clock ticks of a parent may be below the sum of those of its ended children: each of them was
/// rounded.
const TICKS_ROUNDED: u64 = 1;

/// A process to sample.
#[derive(Clone, Debug)]
pub(crate) struct SampledProcess {
    /// The name in the experiment.
    pub(crate) name: String,
    /// Its process ID.
    pub(crate) id: u32,
    /// The control group that it has alone with its descendants.
    pub(crate) group: Option<GroupCounters>,
}

/// The counters of a tree of processes.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct ProcessSample {
    user_seconds: f64,
    system_seconds: f64,
    rss_bytes: u64,
    /// The proportional share of memory (PSS), which is not in every sample.
    pss_bytes: Option<u64>,
    voluntary: u64,
    involuntary: u64,
    minor_faults: u64,
    major_faults: u64,
    read_bytes: u64,
    written_bytes: u64,
    threads: u64,
    members: Vec<Member>,
    /// How processes have ended since the sample before.
    ends: Ends,
    /// Whether the process group has processes that are no descendants: their parent has ended before them.
    has_strays: bool,
}

/// A process of a tree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Member {
    id: i32,
    /// Distinguishes processes with the same ID.
    start: u64,
    parent: i32,
    /// Clock ticks of CPU time: of the process, and of its children for which it has waited.
    own_ticks: u64,
    children_ticks: u64,
}

/// How processes of a tree have ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Ends {
    /// At least one has ended: its context switches are in no counter.
    pub(super) is_any: bool,
    /// At least one has ended whose parent has not waited for it: it is in no counter at all.
    pub(super) is_any_uncollected: bool,
}

impl Ends {
    /// Returns those of all samples.
    pub(super) fn of<'a>(samples: impl Iterator<Item = &'a ProcessSample>) -> Ends {
        samples.fold(Ends::default(), |all, sample| all.or(sample.ends))
    }

    fn or(self, other: Ends) -> Ends {
        Ends {
            is_any: self.is_any || other.is_any,
            is_any_uncollected: self.is_any_uncollected || other.is_any_uncollected,
        }
    }

    /// Compares the processes of two samples.
    fn between(before: &[Member], after: &[Member]) -> Ends {
        let same = |one: &Member| after.iter().find(|other| (other.id, other.start) == (one.id, one.start));
        let ended: Vec<&Member> = before.iter().filter(|one| same(one).is_none()).collect();
        let is_collected = |one: &&Member| {
            let parent = before.iter().find(|other| other.id == one.parent);
            let Some((parent, later)) = parent.and_then(|parent| Some((parent, same(parent)?))) else {
                return false;
            };
            let siblings = ended.iter().filter(|other| other.parent == one.parent);
            let ticks: u64 = siblings.map(|other| other.own_ticks + other.children_ticks).sum();
            later.children_ticks.saturating_sub(parent.children_ticks) + TICKS_ROUNDED >= ticks
        };
        Ends { is_any: !ended.is_empty(), is_any_uncollected: !ended.iter().all(is_collected) }
    }
}

impl ProcessSample {
    /// Returns the sum over a process and its descendants. One that has ended meanwhile is left out. A
    /// `complete` sample costs more: it has the proportional share of memory, and all processes of the group.
    pub(super) fn of(sampled: &SampledProcess, is_complete: bool, before: Option<&ProcessSample>) -> Self {
        let mut sample = ProcessSample::default();
        let mut processes = match &sampled.group {
            Some(group) => group.processes().into_iter().filter_map(process).collect(),
            None => tree(sampled.id),
        };
        processes.iter().for_each(|process| sample.add(process));
        sample.ends =
            before.map_or(Ends::default(), |before| Ends::between(&before.members, &sample.members));
        if is_complete {
            if sampled.group.is_none() {
                processes.extend(sample.strays(sampled.id));
            }
            sample.pss_bytes = Some(processes.iter().filter_map(proportional_memory).sum());
        }
        sample
    }

    /// Returns the processes of the process group that are not among the members, and counts their memory.
    fn strays(&mut self, group: u32) -> Vec<Process> {
        let all = procfs::process::all_processes().into_iter().flatten().flatten();
        let mut found = Vec::new();
        for process in all {
            let Ok(stat) = process.stat() else { continue };
            let is_member = self.members.iter().any(|member| member.id == stat.pid);
            if u32::try_from(stat.pgrp) == Ok(group) && !is_member {
                self.rss_bytes += stat.rss * procfs::page_size();
                found.push(process);
            }
        }
        self.has_strays = !found.is_empty();
        found
    }

    fn add(&mut self, process: &Process) {
        let Ok(stat) = process.stat() else { return };
        let children = |ticks: i64| u64::try_from(ticks).unwrap_or_default();
        let seconds =
            |own: u64, ended: i64| (own + children(ended)) as f64 / procfs::ticks_per_second() as f64;
        self.user_seconds += seconds(stat.utime, stat.cutime);
        self.system_seconds += seconds(stat.stime, stat.cstime);
        self.minor_faults += stat.minflt + stat.cminflt;
        self.major_faults += stat.majflt + stat.cmajflt;
        self.rss_bytes += stat.rss * procfs::page_size();
        self.threads += u64::try_from(stat.num_threads).unwrap_or_default();
        self.members.push(Member {
            id: stat.pid,
            start: stat.starttime,
            parent: stat.ppid,
            own_ticks: stat.utime + stat.stime,
            children_ticks: children(stat.cutime) + children(stat.cstime),
        });
        // The files of another user's process need rights.
        if let Ok(io) = process.io() {
            self.read_bytes += io.read_bytes;
            self.written_bytes += io.write_bytes;
        }
        for status in process.tasks().into_iter().flatten().flatten().filter_map(|task| task.status().ok()) {
            self.voluntary += status.voluntary_ctxt_switches.unwrap_or_default();
            self.involuntary += status.nonvoluntary_ctxt_switches.unwrap_or_default();
        }
    }

    /// Returns a sample of a process with this CPU time in user mode, for tests.
    #[cfg(test)]
    pub(super) fn of_user_time(user_seconds: f64) -> ProcessSample {
        ProcessSample { user_seconds, ..ProcessSample::default() }
    }

    /// Returns whether there are processes that are no descendants.
    pub(super) fn has_strays(&self) -> bool {
        self.has_strays
    }

    /// Returns the proportional share of memory, if the sample has it.
    pub(super) fn memory(&self) -> Option<u64> {
        self.pss_bytes
    }

    /// Returns the number of processes.
    pub(super) fn processes(&self) -> u64 {
        self.members.len() as u64
    }

    /// Returns the counters a share of the way to `after`. Amounts of memory are those of the larger one.
    pub(super) fn towards(&self, after: &ProcessSample, share: f64) -> ProcessSample {
        let time = |before: f64, after: f64| before + (after - before).max(0.0) * share;
        let count = |before, after| counter(before, after, share);
        let larger = if after.members.len() > self.members.len() { after } else { self };
        ProcessSample {
            user_seconds: time(self.user_seconds, after.user_seconds),
            system_seconds: time(self.system_seconds, after.system_seconds),
            rss_bytes: self.rss_bytes.max(after.rss_bytes),
            pss_bytes: None,
            voluntary: count(self.voluntary, after.voluntary),
            involuntary: count(self.involuntary, after.involuntary),
            minor_faults: count(self.minor_faults, after.minor_faults),
            major_faults: count(self.major_faults, after.major_faults),
            read_bytes: count(self.read_bytes, after.read_bytes),
            written_bytes: count(self.written_bytes, after.written_bytes),
            threads: self.threads.max(after.threads),
            members: larger.members.clone(),
            ends: self.ends.or(after.ends),
            has_strays: false,
        }
    }
}

/// Returns the differences of two samples, and the largest values of those between them. `ends` are those of
/// the processes since `first`.
pub(super) fn between<'a>(
    first: &ProcessSample,
    last: &ProcessSample,
    inside: &(impl Iterator<Item = &'a ProcessSample> + Clone),
    ends: Ends,
) -> ProcessUse {
    let max = |value: fn(&ProcessSample) -> u64| inside.clone().map(value).max().unwrap_or_default();
    let seconds = |first: f64, last: f64| (!ends.is_any_uncollected).then_some((last - first).max(0.0));
    let count = |first: u64, last: u64| (!ends.is_any_uncollected).then(|| last.saturating_sub(first));
    let switches = |first: u64, last: u64| (!ends.is_any).then(|| last.saturating_sub(first));
    ProcessUse {
        name: String::new(),
        user_seconds: seconds(first.user_seconds, last.user_seconds),
        system_seconds: seconds(first.system_seconds, last.system_seconds),
        rss_bytes: max(|sample| sample.rss_bytes),
        pss_bytes: inside.clone().filter_map(|sample| sample.pss_bytes).max(),
        voluntary_switches: switches(first.voluntary, last.voluntary),
        involuntary_switches: switches(first.involuntary, last.involuntary),
        minor_faults: count(first.minor_faults, last.minor_faults),
        major_faults: count(first.major_faults, last.major_faults),
        disk_read_bytes: count(first.read_bytes, last.read_bytes),
        disk_written_bytes: count(first.written_bytes, last.written_bytes),
        processes: max(ProcessSample::processes),
        threads: max(|sample| sample.threads),
    }
}

fn proportional_memory(process: &Process) -> Option<u64> {
    let rollup = process.smaps_rollup().ok()?;
    rollup.memory_map_rollup.0.first()?.extension.map.get("Pss").copied()
}

fn process(id: u32) -> Option<Process> {
    Process::new(i32::try_from(id).ok()?).ok()
}

/// Returns a process and its descendants.
fn tree(id: u32) -> Vec<Process> {
    let (mut found, mut next) = (Vec::new(), vec![id]);
    while let Some(process) = next.pop().map(process) {
        let Some(process) = process else { continue };
        let tasks = process.tasks().into_iter().flatten().flatten();
        next.extend(tasks.filter_map(|task| task.children().ok()).flatten());
        found.push(process);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(id: i32, parent: i32, own_ticks: u64, children_ticks: u64) -> Member {
        Member { id, start: 1, parent, own_ticks, children_ticks }
    }

    #[test]
    fn an_ended_process_is_collected_if_its_parent_has_its_time() {
        let before = [member(1, 0, 100, 10), member(2, 1, 20, 0), member(3, 1, 30, 5)];
        let ends = |after: &[Member]| Ends::between(&before, after);
        assert_eq!(ends(&before), Ends::default());
        let waited = Ends { is_any: true, is_any_uncollected: false };
        assert_eq!(ends(&[member(1, 0, 110, 65)]), waited);
        assert_eq!(ends(&[member(1, 0, 110, 30), member(3, 1, 31, 5)]), waited);
        let lost = Ends { is_any: true, is_any_uncollected: true };
        // The parent waited for one of them, or for none, or has ended as well.
        assert_eq!(ends(&[member(1, 0, 110, 30)]), lost);
        assert_eq!(ends(&[member(1, 0, 110, 10), member(3, 1, 31, 5)]), lost);
        assert_eq!(ends(&[member(3, 1, 30, 5)]), lost);
        // A new process has the number of an ended one.
        let other = Member { start: 2, ..member(2, 1, 0, 0) };
        assert_eq!(ends(&[member(1, 0, 110, 10), other, member(3, 1, 30, 5)]), lost);
    }

    #[test]
    fn figures_that_an_ended_process_takes_with_it_are_absent() {
        let first = ProcessSample { user_seconds: 1.0, voluntary: 5, ..ProcessSample::default() };
        let last = ProcessSample { user_seconds: 3.0, voluntary: 9, ..first.clone() };
        let of = |ends: Ends| between(&first, &last, &[&last].into_iter(), ends);
        let none = of(Ends::default());
        assert_eq!((none.user_seconds, none.voluntary_switches), (Some(2.0), Some(4)));
        let waited = of(Ends { is_any: true, is_any_uncollected: false });
        assert_eq!((waited.user_seconds, waited.voluntary_switches), (Some(2.0), None));
        let lost = of(Ends { is_any: true, is_any_uncollected: true });
        assert_eq!((lost.user_seconds, lost.minor_faults, lost.disk_read_bytes), (None, None, None));
    }
}
