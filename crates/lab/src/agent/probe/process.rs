//! The counters of a process and its descendants, from `/proc/PID`.
//!
//! It names no process. Invariants: ended threads and reaped children count, as far as the kernel adds
//! their counters to those of their parent; context switches of ended threads are the exception.

use procfs::process::Process;

use super::counter;
use crate::results::ProcessUse;

/// The counters of a tree of processes.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct ProcessSample {
    pub(super) user_seconds: f64,
    pub(super) system_seconds: f64,
    rss_bytes: u64,
    voluntary: u64,
    involuntary: u64,
    minor_faults: u64,
    major_faults: u64,
    read_bytes: u64,
    written_bytes: u64,
    processes: u64,
    threads: u64,
}

impl ProcessSample {
    /// Returns the sum over a process and its descendants. One that has ended meanwhile is left out.
    pub(super) fn of_tree(id: u32) -> ProcessSample {
        let mut sample = ProcessSample::default();
        tree(id).iter().for_each(|process| sample.add(process));
        sample
    }

    fn add(&mut self, process: &Process) {
        let Ok(stat) = process.stat() else { return };
        let ticks = |own: u64, children: i64| {
            (own + u64::try_from(children).unwrap_or_default()) as f64 / procfs::ticks_per_second() as f64
        };
        self.user_seconds += ticks(stat.utime, stat.cutime);
        self.system_seconds += ticks(stat.stime, stat.cstime);
        self.minor_faults += stat.minflt + stat.cminflt;
        self.major_faults += stat.majflt + stat.cmajflt;
        self.rss_bytes += stat.rss * procfs::page_size();
        self.threads += u64::try_from(stat.num_threads).unwrap_or_default();
        self.processes += 1;
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

    /// Returns the counters a share of the way to `after`.
    pub(super) fn towards(&self, after: &ProcessSample, share: f64) -> ProcessSample {
        let time = |before: f64, after: f64| before + (after - before).max(0.0) * share;
        let count = |before, after| counter(before, after, share);
        ProcessSample {
            user_seconds: time(self.user_seconds, after.user_seconds),
            system_seconds: time(self.system_seconds, after.system_seconds),
            rss_bytes: self.rss_bytes.max(after.rss_bytes),
            voluntary: count(self.voluntary, after.voluntary),
            involuntary: count(self.involuntary, after.involuntary),
            minor_faults: count(self.minor_faults, after.minor_faults),
            major_faults: count(self.major_faults, after.major_faults),
            read_bytes: count(self.read_bytes, after.read_bytes),
            written_bytes: count(self.written_bytes, after.written_bytes),
            processes: self.processes.max(after.processes),
            threads: self.threads.max(after.threads),
        }
    }
}

/// Returns the differences of two samples, and the largest values of those between them.
pub(super) fn between<'a>(
    first: &ProcessSample,
    last: &ProcessSample,
    inside: &(impl Iterator<Item = &'a ProcessSample> + Clone),
) -> ProcessUse {
    let max = |value: fn(&ProcessSample) -> u64| inside.clone().map(value).max().unwrap_or_default();
    ProcessUse {
        name: String::new(),
        user_seconds: (last.user_seconds - first.user_seconds).max(0.0),
        system_seconds: (last.system_seconds - first.system_seconds).max(0.0),
        rss_bytes: max(|sample| sample.rss_bytes),
        pss_bytes: 0,
        voluntary_switches: last.voluntary.saturating_sub(first.voluntary),
        involuntary_switches: last.involuntary.saturating_sub(first.involuntary),
        minor_faults: last.minor_faults.saturating_sub(first.minor_faults),
        major_faults: last.major_faults.saturating_sub(first.major_faults),
        disk_read_bytes: last.read_bytes.saturating_sub(first.read_bytes),
        disk_written_bytes: last.written_bytes.saturating_sub(first.written_bytes),
        processes: max(|sample| sample.processes),
        threads: max(|sample| sample.threads),
    }
}

/// Returns the proportional share of memory (PSS) of a process and its descendants.
pub(super) fn proportional_memory(id: u32) -> u64 {
    let pss = |process: &Process| {
        let rollup = process.smaps_rollup().ok()?;
        rollup.memory_map_rollup.0.first()?.extension.map.get("Pss").copied()
    };
    tree(id).iter().filter_map(pss).sum()
}

/// Returns a process and its descendants.
fn tree(id: u32) -> Vec<Process> {
    let (mut found, mut next) = (Vec::new(), vec![id]);
    while let Some(id) = next.pop() {
        let Ok(process) = Process::new(i32::try_from(id).unwrap_or(i32::MAX)) else { continue };
        let tasks = process.tasks().into_iter().flatten().flatten();
        next.extend(tasks.filter_map(|task| task.children().ok()).flatten());
        found.push(process);
    }
    found
}
