//! The cost of a contender: the CPU time of all its processes, from `/proc`.
//!
//! It is not a profiler. Invariants: ended threads and reaped children count too; an unreadable value is
//! not treated as zero.

use std::fs;
use std::time::Duration;

/// Unit of CPU times in `/proc`: USER_HZ, which is 100 for every program on Linux.
const TICKS_PER_SECOND: u64 = 100;
/// Fields of `/proc/PID/stat` after the name: process group, then own and children's time, user and system.
const GROUP: usize = 2;
const TIMES: std::ops::Range<usize> = 11..15;

/// The process group of a contender.
#[derive(Clone, Copy, Debug)]
pub struct Group(pub u32);

impl Group {
    /// Returns the ids of its processes. Reads all of `/proc`, so it must not run during a measurement.
    pub fn processes(self) -> Vec<u32> {
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        let processes = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        processes.filter(|process| stat(*process).is_some_and(|stat| stat.group == self.0)).collect()
    }
}

/// The CPU time of some processes at one moment.
#[derive(Clone, Debug)]
pub struct Spent {
    /// CPU time of all, ended threads included, in ticks.
    ticks: u64,
    /// Running threads by id, with their CPU time in nanoseconds.
    threads: Vec<(u32, u64)>,
}

impl Spent {
    /// Reads the CPU time of `processes` until now. A process that has ended is not included.
    pub fn by(processes: &[u32]) -> Spent {
        let ticks = processes.iter().filter_map(|process| stat(*process)).map(|stat| stat.ticks).sum();
        Spent { ticks, threads: processes.iter().flat_map(|process| threads(*process)).collect() }
    }

    /// Returns the CPU time since `before`: in nanoseconds if the threads are the same, else in ticks.
    pub fn since(&self, before: &Spent) -> Duration {
        let same = |(now, then): (&(u32, u64), &(u32, u64))| now.0 == then.0;
        let is_exact = !self.threads.is_empty()
            && self.threads.len() == before.threads.len()
            && self.threads.iter().zip(&before.threads).all(same);
        let sum = |spent: &Spent| spent.threads.iter().map(|(_, nanoseconds)| nanoseconds).sum::<u64>();
        if is_exact {
            return Duration::from_nanos(sum(self).saturating_sub(sum(before)));
        }
        Duration::from_millis(self.ticks.saturating_sub(before.ticks) * 1000 / TICKS_PER_SECOND)
    }
}

/// Returns the threads of a process and their CPU times, ordered by id.
fn threads(process: u32) -> Vec<(u32, u64)> {
    let entries = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    let ids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let run = |id: u32| {
        let text = fs::read_to_string(format!("/proc/{process}/task/{id}/schedstat")).ok()?;
        Some((id, text.split_whitespace().next()?.parse().ok()?))
    };
    let mut threads: Vec<(u32, u64)> = ids.filter_map(run).collect();
    threads.sort_unstable();
    threads
}

struct Stat {
    group: u32,
    ticks: u64,
}

fn stat(process: u32) -> Option<Stat> {
    parse(&fs::read_to_string(format!("/proc/{process}/stat")).ok()?)
}

/// Parses `/proc/PID/stat`. A name may contain any byte, so fields are counted from the last bracket.
fn parse(text: &str) -> Option<Stat> {
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
    let times = fields.get(TIMES)?.iter().map(|time| time.parse::<u64>().ok());
    Some(Stat { group: fields.get(GROUP)?.parse().ok()?, ticks: times.sum::<Option<u64>>()? })
}

/// Returns how long each core has been busy since boot: neither idle nor waiting for a disk.
pub fn cores_busy() -> Vec<Duration> {
    let text = fs::read_to_string("/proc/stat").unwrap_or_default();
    text.lines().filter_map(core_busy).collect()
}

/// Parses `cpu0 user nice system idle iowait irq softirq steal …`. Guests' time is included in `user`.
fn core_busy(line: &str) -> Option<Duration> {
    let rest = line.strip_prefix("cpu").filter(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))?;
    let times: Vec<u64> = rest.split_whitespace().skip(1).filter_map(|time| time.parse().ok()).collect();
    let busy: u64 = [0, 1, 2, 5, 6].iter().filter_map(|at| times.get(*at)).sum();
    Some(Duration::from_millis(busy * 1000 / TICKS_PER_SECOND))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_a_process_is_read_whatever_its_name() {
        let stat = parse("7 (a) b) S 1 42 42 0 -1 0 0 0 0 0 10 20 3 4 20 0 1 0 5 0 0").unwrap();
        assert_eq!((stat.group, stat.ticks), (42, 37));
        assert!(parse("7 (a) S 1").is_none());
    }

    #[test]
    fn threads_that_stay_are_counted_exactly_and_those_that_ended_in_ticks() {
        let spent = |ticks, threads: &[(u32, u64)]| Spent { ticks, threads: threads.to_vec() };
        let before = spent(100, &[(1, 5_000), (2, 7_000)]);
        assert_eq!(spent(103, &[(1, 6_000), (2, 9_500)]).since(&before), Duration::from_nanos(3_500));
        assert_eq!(spent(103, &[(1, 6_000), (3, 9_500)]).since(&before), Duration::from_millis(30));
        assert_eq!(spent(103, &[(1, 6_000)]).since(&before), Duration::from_millis(30));
    }

    #[test]
    fn a_core_is_busy_with_all_but_idling_and_waiting() {
        let busy = core_busy("cpu1 100 1 50 9999 777 2 3 44 5 6").unwrap();
        assert_eq!(busy, Duration::from_millis(1560));
        assert_eq!(core_busy("cpu  100 1 50 9999 777 2 3 44 5 6"), None);
        assert!(!cores_busy().is_empty());
    }

    #[test]
    fn our_own_group_is_found_and_takes_time() {
        let own = Group(rustix::process::getpgrp().as_raw_nonzero().get().unsigned_abs());
        assert!(own.processes().contains(&std::process::id()));
        let before = Spent::by(&[std::process::id()]);
        let mut taken = Duration::ZERO;
        while taken < Duration::from_millis(20) {
            std::hint::black_box((0..100_000u64).sum::<u64>());
            taken = Spent::by(&[std::process::id()]).since(&before);
        }
        assert!(Group(u32::MAX).processes().is_empty());
    }
}
