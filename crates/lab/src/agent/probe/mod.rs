//! Samples of a contender's processes and of its machine while a trial runs, from `/proc`.
//!
//! It is not a profiler. A thread samples throughout the trial; when the generator has reported the
//! measured time, the counters at its two ends are interpolated between the samples beside them. The counters
//! of control groups are cheap to read, and are read more often than those of processes. Invariants: the
//! sampling uses at most one percent of a core, for which it becomes less frequent where there are many
//! processes; its own cost is reported. A figure that processes take with them when they end is absent.

mod machine;
mod process;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::Use;
use super::limits::{PROBE_SHARE_MAX, SAMPLES_MAX};
use crate::results::ProcessUse;
use machine::MachineSample;
pub(crate) use machine::cores_busy;
use plimsoll_load::cpu;
pub(super) use process::SampledProcess;
use process::{Ends, ProcessSample};

/// The least time between two samples.
const SAMPLE_EVERY: Duration = Duration::from_millis(50);
/// The least time between two samples with the proportional share of memory. The kernel walks all pages of a
/// process for it, and withholds changes of its memory meanwhile.
const COMPLETE_EVERY: Duration = Duration::from_millis(300);

/// The counters of the machine and of control groups at one moment.
#[derive(Clone, Debug, Default)]
struct Sample {
    /// The machine's monotonic clock, in seconds.
    at: f64,
    /// CPU time of the sampling thread so far, in seconds.
    cost: f64,
    machine: MachineSample,
    /// The CPU time of each group in user mode and in the kernel; `None` without a group.
    groups: Vec<Option<[f64; 2]>>,
}

/// The counters of processes at one moment.
#[derive(Clone, Debug, Default)]
struct DetailedSample {
    /// The machine's monotonic clock, in seconds.
    at: f64,
    processes: Vec<ProcessSample>,
}

/// All samples so far.
#[derive(Debug, Default)]
struct Samples {
    plain: Vec<Sample>,
    detailed: Vec<DetailedSample>,
}

/// A thread that samples until it is ended.
#[derive(Debug)]
pub(super) struct Probe {
    is_ending: Arc<AtomicBool>,
    samples: Arc<Mutex<Samples>>,
    thread: Option<JoinHandle<()>>,
    processes: Vec<SampledProcess>,
}

/// Returns the machine's monotonic clock in seconds.
pub fn clock() -> f64 {
    cpu::monotonic().as_secs_f64()
}

fn thread_time() -> f64 {
    cpu::of_this_thread().as_secs_f64()
}

impl Probe {
    /// Starts to sample these processes, with all their descendants.
    pub(super) fn start(processes: Vec<SampledProcess>) -> Probe {
        let is_ending = Arc::new(AtomicBool::new(false));
        let samples = Arc::new(Mutex::new(Samples::default()));
        let sampler = Sampler {
            is_ending: Arc::clone(&is_ending),
            samples: Arc::clone(&samples),
            processes: processes.clone(),
        };
        Probe { is_ending, samples, thread: Some(std::thread::spawn(move || sampler.run())), processes }
    }

    /// Ends the sampling. Returns the use of resources between two times of [`clock`]; nothing if there are
    /// no two samples.
    pub(super) fn end(mut self, from: f64, to: f64) -> Use {
        self.join();
        let samples = self.samples.lock().unwrap_or_else(PoisonError::into_inner);
        of_window(&samples, from, to, &self.processes)
    }

    fn join(&mut self) {
        self.is_ending.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A panic of the thread leaves the samples so far.
            let _ = thread.join();
        }
    }
}

impl Drop for Probe {
    fn drop(&mut self) {
        self.join();
    }
}

/// The thread that samples.
struct Sampler {
    is_ending: Arc<AtomicBool>,
    samples: Arc<Mutex<Samples>>,
    processes: Vec<SampledProcess>,
}

impl Sampler {
    fn run(&self) {
        let (mut detailed_at, mut complete_at) = (Instant::now(), Instant::now());
        loop {
            // One more sample after the end, so that the end of the measured time lies between two.
            let is_last = self.is_ending.load(Ordering::Relaxed);
            let begun = Instant::now();
            let cost = thread_time();
            self.sample(cost);
            let plain = thread_time() - cost;
            if is_last || begun >= detailed_at {
                let is_complete = is_last || begun >= complete_at;
                self.sample_processes(is_complete);
                let cost = affordable(thread_time() - cost - plain);
                match is_complete {
                    true => complete_at = begun + COMPLETE_EVERY.max(cost),
                    false => detailed_at = begun + SAMPLE_EVERY.max(cost),
                }
            }
            if is_last {
                return;
            }
            self.wait_until(begun + SAMPLE_EVERY.max(affordable(plain)));
        }
    }

    fn sample(&self, cost: f64) {
        let sample = Sample {
            at: clock(),
            cost,
            machine: MachineSample::now(),
            groups: self.processes.iter().map(|one| one.group.as_ref()?.cpu_seconds()).collect(),
        };
        push(&mut self.samples().plain, sample);
    }

    fn sample_processes(&self, is_complete: bool) {
        let before = self.samples().detailed.last().cloned().unwrap_or_default();
        let of = |(at, process): (usize, &SampledProcess)| {
            ProcessSample::of(process, is_complete, before.processes.get(at))
        };
        let at = clock();
        let processes = self.processes.iter().enumerate().map(of).collect();
        push(&mut self.samples().detailed, DetailedSample { at, processes });
    }

    fn samples(&self) -> MutexGuard<'_, Samples> {
        self.samples.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait_until(&self, next: Instant) {
        while Instant::now() < next && !self.is_ending.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(5).min(next.saturating_duration_since(Instant::now())));
        }
    }
}

/// Returns the interval at which a sample that costs so many seconds may be repeated: the three kinds
/// together may use the share of the limit.
fn affordable(cost: f64) -> Duration {
    Duration::from_secs_f64(cost.max(0.0) / (PROBE_SHARE_MAX / 3.0))
}

/// Adds a sample. Above the limit, it replaces the last one.
fn push<T>(samples: &mut Vec<T>, sample: T) {
    if samples.len() >= SAMPLES_MAX {
        samples.pop();
    }
    samples.push(sample);
}

/// Returns the differences between two times.
fn of_window(samples: &Samples, from: f64, to: f64, processes: &[SampledProcess]) -> Use {
    let (Some(first), Some(last)) = (at(&samples.plain, from), at(&samples.plain, to)) else {
        return Use::default();
    };
    let time = last.at - first.at;
    if time <= 0.0 {
        return Use::default();
    }
    let used = processes.iter().enumerate().filter_map(|(index, sampled)| {
        let mut used = use_of_process(&samples.detailed, from, to, index)?;
        used.name.clone_from(&sampled.name);
        let group = |sample: &Sample| sample.groups.get(index).copied().flatten();
        if let (Some(first), Some(last)) = (group(&first), group(&last)) {
            // They include processes that have ended.
            let [user, system] = [0, 1].map(|mode| (last[mode] - first[mode]).max(0.0));
            (used.user_seconds, used.system_seconds) = (Some(user), Some(system));
        }
        Some(used)
    });
    let mut machine = machine::between(&first.machine, &last.machine, time);
    machine.probe_share = (last.cost - first.cost) / time;
    Use { processes: used.collect(), machine: Some(machine), drops: None }
}

/// Returns the use of a process between two times by the detailed samples.
fn use_of_process(samples: &[DetailedSample], from: f64, to: f64, index: usize) -> Option<ProcessUse> {
    let of = |sample: &DetailedSample| sample.processes.get(index).cloned();
    let (first, last) = (of(&detailed_at(samples, from)?)?, of(&detailed_at(samples, to)?)?);
    let all = || samples.iter().filter_map(|sample| Some((sample.at, sample.processes.get(index)?)));
    let inside = all().filter(|(at, _)| (from..=to).contains(at)).map(|(_, sample)| sample).chain([&last]);
    // Those that end between the last sample inside and the next may have ended after the time.
    let ended_by = all().find(|(at, _)| *at >= to).map_or(to, |(at, _)| at);
    let ended = all().filter(|(at, _)| *at > from && *at <= ended_by).map(|(_, sample)| sample);
    let mut ends = Ends::of(ended);
    if all().any(|(_, sample)| sample.has_strays()) {
        // No ancestor of theirs gets their counters.
        ends = Ends { is_any: true, is_any_uncollected: true };
    }
    let mut used = process::between(&first, &last, &inside, ends);
    // The last sample of all has the memory, which counts if the processes are the same.
    let end = all().next_back().map(|(_, sample)| sample);
    let end = end.filter(|end| end.processes() == used.processes).and_then(ProcessSample::memory);
    used.pss_bytes = used.pss_bytes.or(end);
    Some(used)
}

/// Returns the two samples beside a time, and its share of the way from one to the other.
fn beside<T>(samples: &[T], at: impl Fn(&T) -> f64, time: f64) -> Option<(&T, &T, f64)> {
    let after = samples.iter().position(|sample| at(sample) >= time)?;
    let (before, after) = (&samples[after.saturating_sub(1)], &samples[after]);
    let between = at(after) - at(before);
    let share = if between > 0.0 { ((time - at(before)) / between).clamp(0.0, 1.0) } else { 0.0 };
    Some((before, after, share))
}

/// Returns the counters at a time, interpolated between the two samples beside it.
fn at(samples: &[Sample], time: f64) -> Option<Sample> {
    let (before, after, share) = beside(samples, |sample| sample.at, time)?;
    let between = |before: f64, after: f64| before + (after - before) * share;
    let groups = before.groups.iter().zip(&after.groups).map(|(before, after)| {
        let (before, after) = before.as_ref().zip(after.as_ref())?;
        Some([0, 1].map(|mode| between(before[mode], after[mode])))
    });
    Some(Sample {
        at: if before.at < time { time } else { before.at },
        cost: between(before.cost, after.cost),
        machine: before.machine.towards(&after.machine, share),
        groups: groups.collect(),
    })
}

/// Returns the counters of processes at a time, interpolated likewise.
fn detailed_at(samples: &[DetailedSample], time: f64) -> Option<DetailedSample> {
    let (before, after, share) = beside(samples, |sample| sample.at, time)?;
    let processes = before.processes.iter().zip(&after.processes);
    let processes = processes.map(|(before, after)| before.towards(after, share)).collect();
    Some(DetailedSample { at: time, processes })
}

/// Returns the value of a counter a share of the way from one to the next. A counter that became smaller (a
/// process ended) keeps its earlier value.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a share of a difference of counters"
)]
fn counter(before: u64, after: u64, share: f64) -> u64 {
    before + (after.saturating_sub(before) as f64 * share).round() as u64
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::CommandExt as _;

    use super::*;
    use crate::conditions::AppliedConditions;
    use crate::experiment::conditions::Settings;

    fn sampled(id: u32) -> SampledProcess {
        SampledProcess { name: "test".to_owned(), id, group: None }
    }

    #[test]
    fn our_own_work_is_measured_between_two_times() {
        let probe = Probe::start(vec![sampled(std::process::id())]);
        std::thread::sleep(Duration::from_millis(120));
        let (from, busy) = (clock(), Instant::now());
        while busy.elapsed() < Duration::from_millis(300) {
            std::hint::black_box((0..100_000_u64).sum::<u64>());
        }
        let to = clock();
        let used = probe.end(from, to);
        let machine = used.machine.unwrap();
        assert!((machine.seconds - (to - from)).abs() < 1e-9);
        assert!(!machine.cores_busy.is_empty() && machine.probe_share < 0.5, "{machine:?}");
        let own = &used.processes[0];
        assert_eq!(own.name, "test");
        assert!(own.rss_bytes > 0, "{own:?}");
        // Other tests of this process may have children, which come and go.
        assert!(own.cpu_seconds().is_none_or(|seconds| seconds > 0.02), "{own:?}");
        assert!(own.threads >= 2 && own.processes >= 1, "{own:?}");
    }

    #[test]
    fn a_counter_between_two_samples_is_interpolated() {
        let of = |at: f64, user: f64| {
            let processes = vec![ProcessSample::of_user_time(user)];
            let plain = Sample { at, groups: vec![Some([user, 2.0 * user])], ..Sample::default() };
            (plain, DetailedSample { at, processes })
        };
        let (plain, detailed) = [of(1.0, 0.0), of(2.0, 1.0), of(3.0, 1.5)].into_iter().unzip();
        let mut samples = Samples { plain, detailed };
        let used = of_window(&samples, 1.5, 2.5, &[sampled(1)]);
        assert_eq!(
            (used.processes[0].user_seconds, used.processes[0].system_seconds),
            (Some(0.75), Some(1.5))
        );
        samples.plain.iter_mut().for_each(|sample| sample.groups = vec![None]);
        let used = of_window(&samples, 1.5, 2.5, &[sampled(1)]);
        assert!((used.processes[0].user_seconds.unwrap() - 0.75).abs() < 1e-9, "{used:?}");
        assert_eq!(of_window(&samples, 3.5, 4.0, &[]), Use::default());
        assert_eq!(counter(10, 20, 0.5), 15);
        assert_eq!(counter(10, 0, 0.5), 10);
    }

    #[test]
    fn a_process_that_does_not_exist_has_no_use_and_is_no_error() {
        let probe = Probe::start(vec![sampled(u32::MAX / 2)]);
        let from = clock();
        std::thread::sleep(Duration::from_millis(120));
        let used = probe.end(from, clock());
        assert_eq!((used.processes[0].rss_bytes, used.processes[0].processes), (0, 0));
    }

    /// A server of the kind that has a process for each session, whose parent does not wait for it: each
    /// process computes for some milliseconds.
    const ORPHANS: &str = "while :; do \
         (sh -c 'n=0; while [ $n -lt 5000 ]; do n=$((n+1)); done; sleep 0.3' &); sleep 0.05; done";

    fn run_orphans(with_group: bool) -> (Option<f64>, ProcessUse) {
        let folder = tempfile::tempdir().unwrap();
        let conditions = AppliedConditions::apply(&Settings::default(), folder.path()).unwrap();
        let group = conditions.contender_group().filter(|_| with_group);
        let mut command = std::process::Command::new("sh");
        command.args(["-c", ORPHANS]).process_group(0);
        let mut child = conditions.spawn_in_group(group.as_ref(), || command.spawn()).unwrap();
        let counters = group.as_ref().map(|group| group.counters().clone());
        let probe = Probe::start(vec![SampledProcess { group: counters, ..sampled(child.id()) }]);
        std::thread::sleep(Duration::from_millis(300));
        let total = |group: &crate::conditions::ContenderGroup| group.counters().cpu_seconds();
        let (from, before) = (clock(), group.as_ref().and_then(total));
        std::thread::sleep(Duration::from_millis(1500));
        let (to, after) = (clock(), group.as_ref().and_then(total));
        std::thread::sleep(Duration::from_millis(120));
        let used = probe.end(from, to);
        child.kill().unwrap();
        child.wait().unwrap();
        let truth = before.zip(after).map(|(before, after)| after[0] + after[1] - before[0] - before[1]);
        (truth, used.processes[0].clone())
    }

    #[test]
    fn processes_that_end_are_in_the_time_of_their_group_and_without_one_the_figure_is_absent() {
        let (_, used) = run_orphans(false);
        assert_eq!((used.cpu_seconds(), used.minor_faults, used.voluntary_switches), (None, None, None));
        let (truth, used) = run_orphans(true);
        let Some(truth) = truth else { return };
        let seconds = used.cpu_seconds().unwrap();
        assert!(truth > 0.0 && (seconds / truth - 1.0).abs() < 0.2, "{seconds} of {truth}: {used:?}");
        assert!(used.pss_bytes.unwrap() > 0 && used.processes > 1, "{used:?}");
        assert_eq!(used.voluntary_switches, None);
    }
}
