//! Samples of a contender's processes and of its machine while a trial runs, from `/proc`.
//!
//! It is not a profiler. A thread samples throughout the trial; when the generator has reported the
//! measured time, the counters at its two ends are interpolated between the samples beside them.
//! Invariants: the sampling uses at most one percent of a core, for which it becomes less frequent where
//! there are many processes; its own cost is reported.

mod machine;
mod process;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::Use;
use super::limits::{PROBE_SHARE_MAX, SAMPLES_MAX};
use crate::load::cpu;
use machine::MachineSample;
pub(crate) use machine::cores_busy;
use process::ProcessSample;

/// The least time between two samples.
const SAMPLE_EVERY: Duration = Duration::from_millis(50);

/// The counters of one moment.
#[derive(Clone, Debug, Default)]
struct Sample {
    /// The machine's monotonic clock, in seconds.
    at: f64,
    /// CPU time of the sampling thread so far, in seconds.
    cost: f64,
    processes: Vec<ProcessSample>,
    machine: MachineSample,
}

/// A thread that samples until it is ended.
#[derive(Debug)]
pub(super) struct Probe {
    is_ending: Arc<AtomicBool>,
    samples: Arc<Mutex<Vec<Sample>>>,
    thread: Option<JoinHandle<()>>,
    /// The names and process IDs of the sampled processes.
    processes: Vec<(String, u32)>,
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
    pub(super) fn start(processes: Vec<(String, u32)>) -> Probe {
        let is_ending = Arc::new(AtomicBool::new(false));
        let samples = Arc::new(Mutex::new(Vec::new()));
        let thread = {
            let (is_ending, samples, processes) =
                (Arc::clone(&is_ending), Arc::clone(&samples), processes.clone());
            std::thread::spawn(move || sample_until(&is_ending, &samples, &processes))
        };
        Probe { is_ending, samples, thread: Some(thread), processes }
    }

    /// Ends the sampling. Returns the use of resources between two times of [`clock`]; nothing if there are
    /// no two samples.
    pub(super) fn end(mut self, from: f64, to: f64) -> Use {
        self.join();
        let samples = self.samples.lock().unwrap_or_else(PoisonError::into_inner);
        let memory: Vec<u64> =
            self.processes.iter().map(|(_, id)| process::proportional_memory(*id)).collect();
        of_window(&samples, from, to, &self.processes, &memory)
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

fn sample_until(is_ending: &AtomicBool, samples: &Mutex<Vec<Sample>>, processes: &[(String, u32)]) {
    loop {
        // One more sample after the end, so that the end of the measured time lies between two.
        let is_last = is_ending.load(Ordering::Relaxed);
        let (begun, cost) = (Instant::now(), thread_time());
        let sample = Sample {
            at: clock(),
            cost,
            processes: processes.iter().map(|(_, id)| ProcessSample::of_tree(*id)).collect(),
            machine: MachineSample::now(),
        };
        let mut all = samples.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= SAMPLES_MAX {
            all.pop();
        }
        all.push(sample);
        drop(all);
        if is_last {
            return;
        }
        let affordable = Duration::from_secs_f64((thread_time() - cost) / PROBE_SHARE_MAX);
        let next = begun + SAMPLE_EVERY.max(affordable);
        while Instant::now() < next && !is_ending.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(5).min(next.saturating_duration_since(Instant::now())));
        }
    }
}

/// Returns the differences between two times.
fn of_window(samples: &[Sample], from: f64, to: f64, processes: &[(String, u32)], memory: &[u64]) -> Use {
    let (Some(first), Some(last)) = (at(samples, from), at(samples, to)) else { return Use::default() };
    let time = last.at - first.at;
    if time <= 0.0 {
        return Use::default();
    }
    let inside: Vec<&Sample> = samples.iter().filter(|sample| (from..=to).contains(&sample.at)).collect();
    let used = processes.iter().enumerate().filter_map(|(index, (name, _))| {
        let (first, last) = (first.processes.get(index)?, last.processes.get(index)?);
        let inside = inside.iter().filter_map(|sample| sample.processes.get(index)).chain([last]);
        let mut used = process::between(first, last, &inside);
        used.name.clone_from(name);
        used.pss_bytes = memory.get(index).copied().unwrap_or_default();
        Some(used)
    });
    let mut machine = machine::between(&first.machine, &last.machine, time);
    machine.probe_share = (last.cost - first.cost) / time;
    Use { processes: used.collect(), machine: Some(machine), drops: None }
}

/// Returns the counters at a time, interpolated between the two samples beside it.
fn at(samples: &[Sample], time: f64) -> Option<Sample> {
    let after = samples.iter().position(|sample| sample.at >= time)?;
    let Some(before) = after.checked_sub(1) else { return samples.get(after).cloned() };
    let (before, after) = (&samples[before], &samples[after]);
    let share = ((time - before.at) / (after.at - before.at)).clamp(0.0, 1.0);
    let processes = before.processes.iter().zip(&after.processes);
    Some(Sample {
        at: time,
        cost: before.cost + (after.cost - before.cost) * share,
        processes: processes.map(|(before, after)| before.towards(after, share)).collect(),
        machine: before.machine.towards(&after.machine, share),
    })
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
    use super::*;

    #[test]
    fn our_own_work_is_measured_between_two_times() {
        let probe = Probe::start(vec![("test".to_owned(), std::process::id())]);
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
        assert!(own.cpu_seconds() > 0.02 && own.rss_bytes > 0 && own.pss_bytes > 0, "{own:?}");
        // Other tests of this process may have children.
        assert!(own.threads >= 2 && own.processes >= 1, "{own:?}");
    }

    #[test]
    fn a_counter_between_two_samples_is_interpolated() {
        let sample = |at: f64, user: f64| Sample {
            at,
            processes: vec![ProcessSample::of_user_time(user)],
            ..Sample::default()
        };
        let samples = [sample(1.0, 0.0), sample(2.0, 1.0), sample(3.0, 1.5)];
        let used = of_window(&samples, 1.5, 2.5, &[("a".to_owned(), 1)], &[7]);
        assert!((used.processes[0].user_seconds - 0.75).abs() < 1e-9, "{used:?}");
        assert_eq!(used.processes[0].pss_bytes, 7);
        assert_eq!(of_window(&samples, 3.5, 4.0, &[], &[]), Use::default());
        assert_eq!(counter(10, 20, 0.5), 15);
        assert_eq!(counter(10, 0, 0.5), 10);
    }

    #[test]
    fn a_process_that_does_not_exist_has_no_use_and_is_no_error() {
        let probe = Probe::start(vec![("gone".to_owned(), u32::MAX / 2)]);
        let from = clock();
        std::thread::sleep(Duration::from_millis(120));
        let used = probe.end(from, clock());
        assert_eq!((used.processes[0].rss_bytes, used.processes[0].processes), (0, 0));
    }
}
