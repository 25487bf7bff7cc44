//! The figures of a contender at one point: means over the repetitions, with their intervals.
//!
//! It derives no model. Invariants: a failed trial is in no mean, but is counted. The use of a process or a
//! disk is a mean over the trials that report it.

use std::collections::BTreeMap;

use super::{RATE, is_replaced, kept, marks, settings};
use crate::experiment::template::Values;
use crate::results::{DiskUse, FinishedTrial, Latency, LinkUse, Measured, ProcessUse, Results};
use crate::stats::MeanInterval;

/// A point of a curve.
#[derive(Clone, Debug)]
pub struct LoadPoint {
    /// The position on the horizontal axis: the number of users, or the planned rate of an open loop.
    pub level: f64,
    /// The number of users.
    pub users: u32,
    /// The values of all variables.
    pub point: Values,
    /// The number of trials that failed, discarded ones included.
    pub failed: usize,
    /// The number of repetitions that do not count because the machine was busy when they began.
    pub left_out: usize,
    /// The figures; none if no repetition counts.
    pub figures: Option<PointFigures>,
}

/// The figures of a point.
#[derive(Clone, Debug)]
pub struct PointFigures {
    /// Whether requests were planned at a rate: then latency has no omitted waits.
    pub is_open: bool,
    /// Requests a second.
    pub throughput: MeanInterval,
    /// The mean latency in seconds.
    pub response: MeanInterval,
    /// The 50th, 90th, 99th and 99.9th percentile of latency in seconds.
    pub percentiles: [MeanInterval; 4],
    /// The 95th percentile in seconds; none if a trial does not have it.
    pub p95: Option<MeanInterval>,
    /// Bytes of bodies a second.
    pub bytes: MeanInterval,
    /// The CPU time of all processes for a request in seconds; none if it is not known of each.
    pub cpu: Option<MeanInterval>,
    /// The memory of all processes in bytes, shared pages divided among their users (PSS), as the largest
    /// value of a trial; none if it is not known of each.
    pub memory: Option<MeanInterval>,
    /// The processes of the contender whose CPU time is known.
    pub processes: Vec<ProcessLoad>,
    /// The busy fraction of each core of the contender's machine; empty if it was not sampled.
    pub cores: Vec<f64>,
    /// The disks of that machine.
    pub disks: Vec<DiskLoad>,
    /// Bytes a second that each link sent or received, the larger of both.
    pub links: Vec<(String, f64)>,
    /// The fraction of a core that the busiest thread of the generator used.
    pub generator_share: f64,
    /// Whether the generator may have limited a trial.
    pub is_limited_by_generator: bool,
    /// Little's law, X (R + Z) / N.
    pub littles_ratio: f64,
    /// Errors in all repetitions.
    pub errors: u64,
    /// Planned starts without a response in all repetitions.
    pub missed_starts: u64,
    /// Signs of a distorted measurement, with the number of trials that have each.
    pub marks: Vec<(String, usize)>,
}

/// The use of processors by a process.
#[derive(Clone, Debug, PartialEq)]
pub struct ProcessLoad {
    /// The name in the experiment.
    pub name: String,
    /// Seconds of CPU time in each second, in user mode.
    pub user: f64,
    /// The same in the kernel.
    pub system: f64,
    /// The largest number of threads; 0 if unknown.
    pub threads: u64,
    /// Bytes a second that it caused to be read from disks; none if they are not known.
    pub read: Option<f64>,
    /// Bytes a second that it caused to be written to disks.
    pub written: Option<f64>,
}

/// The use of a disk.
#[derive(Clone, Debug, PartialEq)]
pub struct DiskLoad {
    /// The name of the device.
    pub name: String,
    /// The fraction of the time with an operation in progress.
    pub busy: f64,
    /// Bytes a second that were read.
    pub read: f64,
    /// Bytes a second that were written.
    pub written: f64,
}

/// Returns the points of a curve, by rising level.
pub(super) fn of(results: &Results, axis: &str, trials: &[&FinishedTrial]) -> Vec<LoadPoint> {
    let mut groups: Vec<(&Values, Vec<&FinishedTrial>)> = Vec::new();
    for trial in trials {
        match groups.iter_mut().find(|(point, _)| **point == trial.point) {
            Some((_, group)) => group.push(trial),
            None => groups.push((&trial.point, vec![trial])),
        }
    }
    let mut points: Vec<LoadPoint> =
        groups.iter().map(|(values, group)| point(results, axis, values, group)).collect();
    points.sort_by(|one, other| one.level.total_cmp(&other.level));
    points
}

pub(super) fn point(results: &Results, axis: &str, values: &Values, trials: &[&FinishedTrial]) -> LoadPoint {
    let measured: Vec<&Measured> = trials.iter().filter_map(|trial| kept(results, trial)).collect();
    let planned = trials.iter().find_map(|trial| settings(results, trial)?.load.users().ok());
    let users = planned.or_else(|| measured.first().map(|one| one.load.users)).unwrap_or(1);
    let users = u32::try_from(users).unwrap_or(u32::MAX);
    let rate = values.get(RATE).filter(|_| axis == RATE).and_then(|text| leading_number(text));
    LoadPoint {
        level: rate.unwrap_or(f64::from(users)),
        users,
        point: values.clone(),
        failed: trials.iter().filter(|trial| trial.measured().is_none()).count(),
        left_out: trials.iter().filter(|trial| is_replaced(results, trial)).count(),
        figures: figures(&measured),
    }
}

/// Parses the number at the start of a rate such as `500/s`.
fn leading_number(text: &str) -> Option<f64> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    text[..end].parse().ok()
}

fn figures(trials: &[&Measured]) -> Option<PointFigures> {
    let mean = |of: &dyn Fn(&Measured) -> f64| {
        MeanInterval::of_positive(&trials.iter().map(|one| of(one)).collect::<Vec<f64>>())
    };
    let latency = |of: fn(&Latency) -> f64| mean(&|one| of(&one.load.latency_us) * 1e-6);
    let p95 = trials.iter().map(|one| one.load.latency_us.p95.map(|us| us * 1e-6));
    let p95 = p95.collect::<Option<Vec<f64>>>();
    let cpu: Vec<f64> = trials.iter().filter_map(|one| cpu_per_request(one)).collect();
    let observed = trials.iter().filter(|one| !one.processes.is_empty());
    let memory: Vec<f64> = observed
        .filter_map(|one| one.processes.iter().map(|process| process.pss_bytes.map(as_float)).sum())
        .collect();
    Some(PointFigures {
        is_open: trials.iter().any(|one| one.load.pace == "open"),
        throughput: mean(&|one| one.load.requests_per_second)?,
        response: latency(|latency| latency.mean)?,
        percentiles: [
            latency(|latency| latency.p50)?,
            latency(|latency| latency.p90)?,
            latency(|latency| latency.p99)?,
            latency(|latency| latency.p999)?,
        ],
        p95: p95.and_then(|values| MeanInterval::of_positive(&values)),
        bytes: mean(&|one| one.load.bytes_per_second)?,
        cpu: MeanInterval::of_positive(&cpu),
        memory: MeanInterval::of_positive(&memory),
        processes: processes(trials),
        cores: cores(trials),
        disks: disks(trials),
        links: links(trials),
        generator_share: mean(&|one| one.load.generator.share)?.mean,
        is_limited_by_generator: trials.iter().any(|one| one.load.generator.is_the_limit),
        littles_ratio: mean(&|one| one.load.littles_law.ratio)?.mean,
        errors: trials.iter().map(|one| one.load.errors_all()).sum(),
        missed_starts: trials.iter().map(|one| one.load.missed_starts).sum(),
        marks: marks::collected(trials),
    })
}

/// Returns the CPU time of all processes for a request in seconds.
pub(crate) fn cpu_per_request(trial: &Measured) -> Option<f64> {
    let busy: f64 = trial.processes.iter().map(|process| process.cpu_seconds()).sum::<Option<f64>>()?;
    let is_known = !trial.processes.is_empty() && trial.load.requests > 0;
    is_known.then(|| busy / as_float(trial.load.requests))
}

/// Groups items by name in the order of their first appearance.
pub(super) fn grouped<'a, T>(items: impl Iterator<Item = (&'a str, T)>) -> Vec<(&'a str, Vec<T>)> {
    let (mut order, mut groups) = (Vec::new(), BTreeMap::<&str, Vec<T>>::new());
    for (name, item) in items {
        if !groups.contains_key(name) {
            order.push(name);
        }
        groups.entry(name).or_default().push(item);
    }
    order.into_iter().filter_map(|name| groups.remove(name).map(|items| (name, items))).collect()
}

fn mean_of(values: impl Iterator<Item = f64>) -> f64 {
    MeanInterval::of(&values.collect::<Vec<f64>>()).map_or(0.0, |found| found.mean)
}

fn processes(trials: &[&Measured]) -> Vec<ProcessLoad> {
    let timed = trials.iter().filter(|one| one.load.seconds > 0.0);
    let items = timed.flat_map(|one| {
        one.processes.iter().map(|process| (process.name.as_str(), (process, one.load.seconds)))
    });
    let load = |(name, uses): (&str, Vec<(&ProcessUse, f64)>)| {
        let mean = |of: fn(&ProcessUse) -> Option<f64>| {
            let known = uses.iter().filter_map(|(process, seconds)| Some(of(process)? / seconds));
            MeanInterval::of(&known.collect::<Vec<f64>>()).map(|found| found.mean)
        };
        Some(ProcessLoad {
            name: name.to_owned(),
            user: mean(|process| process.user_seconds)?,
            system: mean(|process| process.system_seconds)?,
            threads: uses.iter().map(|(process, _)| process.threads).max().unwrap_or(0),
            read: mean(|process| process.disk_read_bytes.map(as_float)),
            written: mean(|process| process.disk_written_bytes.map(as_float)),
        })
    };
    grouped(items).into_iter().filter_map(load).collect()
}

fn cores(trials: &[&Measured]) -> Vec<f64> {
    // Counters of a core that was busy for longer than the time show nothing of the other cores either.
    let possible = trials.iter().filter_map(|one| one.machine.as_ref());
    let possible = possible.filter(|machine| machine.impossible_core().is_none());
    let sampled: Vec<&Vec<f64>> = possible.map(|machine| &machine.cores_busy).collect();
    let count = sampled.iter().map(|cores| cores.len()).max().unwrap_or(0);
    (0..count).map(|core| mean_of(sampled.iter().filter_map(|cores| cores.get(core).copied()))).collect()
}

fn disks(trials: &[&Measured]) -> Vec<DiskLoad> {
    let machines = trials.iter().filter_map(|one| one.machine.as_ref()).filter(|one| one.seconds > 0.0);
    let items = machines
        .flat_map(|machine| machine.disks.iter().map(|disk| (disk.name.as_str(), (disk, machine.seconds))));
    let load = |(name, uses): (&str, Vec<(&DiskUse, f64)>)| DiskLoad {
        name: name.to_owned(),
        busy: mean_of(uses.iter().map(|(disk, _)| disk.busy)),
        read: mean_of(uses.iter().map(|(disk, seconds)| as_float(disk.read_bytes) / seconds)),
        written: mean_of(uses.iter().map(|(disk, seconds)| as_float(disk.written_bytes) / seconds)),
    };
    grouped(items).into_iter().map(load).collect()
}

fn links(trials: &[&Measured]) -> Vec<(String, f64)> {
    let machines = trials.iter().filter_map(|one| one.machine.as_ref()).filter(|one| one.seconds > 0.0);
    let items = machines.flat_map(|machine| {
        let rate = |link: &LinkUse| as_float(link.sent_bytes.max(link.received_bytes)) / machine.seconds;
        machine.links.iter().map(move |link| (link.name.as_str(), rate(link)))
    });
    grouped(items).into_iter().map(|(name, rates)| (name.to_owned(), mean_of(rates.into_iter()))).collect()
}

#[allow(clippy::cast_precision_loss, reason = "a count below 2^52")]
fn as_float(count: u64) -> f64 {
    count as f64
}
