//! All trials as comma-separated values, failed and discarded ones too.
//!
//! It derives nothing but sums. Invariants: a missing figure is empty, never 0; every record has the same
//! number of fields.

use crate::experiment::template::Values;
use crate::format::csv::record;
use crate::results::{
    DiskUse, FinishedTrial, LoadFigures, MachineUse, Measured, ProcessUse, Results, TrialResult,
};

/// The columns before and after those of the variables.
const START: [&str; 1] = ["contender"];
const END: [&str; 7] =
    ["percent_of_maximum", "planned_rate", "repetition", "discarded", "begun", "trial_seconds", "failure"];
const FIGURES: [&str; 33] = [
    "loop",
    "measured_seconds",
    "requests",
    "requests_per_second",
    "bytes_per_second",
    "latency_mean_us",
    "latency_p50_us",
    "latency_p90_us",
    "latency_p95_us",
    "latency_p99_us",
    "latency_p999_us",
    "latency_max_us",
    "errors",
    "missed_starts",
    "verified",
    "littles_law_ratio",
    "generator_cpu_seconds",
    "generator_share",
    "generator_is_the_limit",
    "cpu_user_seconds",
    "cpu_system_seconds",
    "cpu_seconds_by_process",
    "rss_bytes",
    "pss_bytes",
    "voluntary_switches",
    "involuntary_switches",
    "cores_busy",
    "disk_read_bytes",
    "disk_written_bytes",
    "disk_busy_max",
    "retransmissions",
    "probe_share",
    "marks",
];

/// Formats all trials: first those at the points of the experiment, in the order in which they ran.
pub(super) fn csv(results: &Results) -> String {
    let names: Vec<&str> = results.experiment.variables();
    let head = record([&START[..], &names, &END, &FIGURES].concat());
    let records = results.all().map(|trial| {
        let discarded = trial.repetition <= results.experiment.order.discarded;
        record(fields(trial, &names, discarded))
    });
    std::iter::once(head).chain(records).collect()
}

fn fields(trial: &FinishedTrial, names: &[&str], discarded: bool) -> Vec<String> {
    let mut fields = vec![trial.contender.clone()];
    fields.extend(names.iter().map(|name| value(&trial.point, name)));
    let reason = match &trial.result {
        TrialResult::Failed(reason) => reason.clone(),
        TrialResult::Measured(_) => String::new(),
    };
    let open_loop = trial.open_loop;
    fields.push(open_loop.map_or_else(String::new, |one| one.percent.to_string()));
    fields.push(open_loop.and_then(|one| one.rate).map_or_else(String::new, |rate| rate.to_string()));
    fields.extend([trial.repetition.to_string(), discarded.to_string(), trial.begun.clone()]);
    fields.extend([format!("{:.3}", trial.seconds), reason]);
    match trial.measured() {
        Some(measured) => fields.extend(figures(measured)),
        None => fields.extend(FIGURES.map(|_| String::new())),
    }
    fields
}

fn value(point: &Values, name: &str) -> String {
    point.get(name).cloned().unwrap_or_default()
}

fn figures(trial: &Measured) -> Vec<String> {
    let mut fields = load(&trial.load);
    fields.extend(processes(&trial.processes));
    fields.extend(trial.machine.as_ref().map_or_else(|| [(); 6].map(|()| String::new()), machine));
    fields.push(trial.marks.join("; "));
    fields
}

/// The number of figures of the load.
const LOAD: usize = 19;

fn load(load: &LoadFigures) -> Vec<String> {
    if load.is_of_tool() {
        let mut fields = vec![String::new(); LOAD];
        fields[0] = load.pace.clone();
        fields[1] = load.seconds.to_string();
        fields[4] = format!("{:.3}", load.bytes_per_second);
        return fields;
    }
    let latency = load.latency_us;
    let mut fields = vec![load.pace.clone(), load.seconds.to_string(), load.requests.to_string()];
    fields.extend([load.requests_per_second, load.bytes_per_second].map(|rate| format!("{rate:.3}")));
    let microseconds = |us: f64| format!("{us:.1}");
    fields.extend([latency.mean, latency.p50, latency.p90].map(microseconds));
    fields.push(latency.p95.map_or_else(String::new, microseconds));
    fields.extend([latency.p99, latency.p999, latency.max].map(microseconds));
    fields.extend([load.errors_all(), load.missed_starts, load.verified].map(|count| count.to_string()));
    let shares = [load.littles_law.ratio, load.generator.cpu_seconds, load.generator.share];
    fields.extend(shares.map(|share| format!("{share:.4}")));
    fields.push(load.generator.is_the_limit.to_string());
    fields
}

/// Returns the sums over all processes; empty if none was observed.
fn processes(processes: &[ProcessUse]) -> [String; 7] {
    if processes.is_empty() {
        return [(); 7].map(|()| String::new());
    }
    let seconds = |of: fn(&ProcessUse) -> Option<f64>| {
        let sum = processes.iter().map(of).sum::<Option<f64>>();
        sum.map_or_else(String::new, |sum| format!("{sum:.4}"))
    };
    let count = |of: fn(&ProcessUse) -> Option<u64>| {
        processes.iter().map(of).sum::<Option<u64>>().map_or_else(String::new, |sum| sum.to_string())
    };
    let known = processes.iter().filter_map(|one| Some((&one.name, one.cpu_seconds()?)));
    let each: Vec<String> = known.map(|(name, seconds)| format!("{name}={seconds:.4}")).collect();
    [
        seconds(|one| one.user_seconds),
        seconds(|one| one.system_seconds),
        each.join("; "),
        count(|one| Some(one.rss_bytes)),
        count(|one| one.pss_bytes),
        count(|one| one.voluntary_switches),
        count(|one| one.involuntary_switches),
    ]
}

fn machine(machine: &MachineUse) -> [String; 6] {
    let cores: Vec<String> = machine.cores_busy.iter().map(|busy| format!("{busy:.3}")).collect();
    let disks = |of: fn(&DiskUse) -> u64| machine.disks.iter().map(of).sum::<u64>().to_string();
    let busiest = machine.disks.iter().map(|disk| disk.busy).reduce(f64::max);
    [
        cores.join(" "),
        disks(|disk| disk.read_bytes),
        disks(|disk| disk.written_bytes),
        busiest.map_or_else(String::new, |busy| format!("{busy:.4}")),
        machine.retransmissions.to_string(),
        format!("{:.4}", machine.probe_share),
    ]
}
