//! The figures of a trial: those of the generator, and what the contender and its machine used meanwhile.
//!
//! It computes nothing. Invariants: times are in seconds and sizes in bytes, unless the name says otherwise;
//! counters are differences over the measured time.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The figures that `plimsoll load --json` prints.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LoadFigures {
    /// The number of users.
    pub users: u64,
    /// The measured time.
    pub seconds: f64,
    /// Complete and correct responses.
    pub requests: u64,
    /// Bytes of their bodies.
    pub bytes: u64,
    /// Errors by kind.
    pub errors: BTreeMap<String, u64>,
    /// Bodies that were compared with their expected contents.
    pub verified: u64,
    /// Checks after the response that failed, by kind: of uploads, and of bodies that are saved.
    pub failed_checks: BTreeMap<String, u64>,
    /// Planned starts of an open loop for which no user was free by the end.
    pub missed_starts: u64,
    /// Requests that ended in the warm-up.
    pub warm_up_requests: u64,
    /// Requests that ended after the measured time.
    pub requests_after_end: u64,
    /// Requests that were never answered.
    pub unanswered: u64,
    /// Responses a second.
    pub requests_per_second: f64,
    /// Bytes of bodies a second.
    pub bytes_per_second: f64,
    /// Latencies in microseconds.
    pub latency_us: Latency,
    /// `closed` or `open`; `none` for a load tool, which has no requests.
    #[serde(rename = "loop")]
    pub pace: String,
    /// Little's law.
    pub littles_law: LittlesLaw,
    /// The time of each user, if each has a number of requests.
    pub users_each: Vec<UserFigures>,
    /// When the users sent their first request.
    pub starts: Option<Starts>,
    /// The measured time by the monotonic clock of the generator's machine.
    pub window: Option<Window>,
    /// The generator's own cost.
    pub generator: Generator,
}

/// Latencies in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[allow(missing_docs, reason = "each is a quantile, by its name")]
pub struct Latency {
    pub mean: f64,
    pub p50: f64,
    pub p90: f64,
    /// None in the results of a generator that did not print it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p95: Option<f64>,
    pub p99: f64,
    pub p999: f64,
    pub max: f64,
}

/// Little's law: the ratio of rate times time to the number of users, ideally 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LittlesLaw {
    /// Users of a closed loop; mean number of requests in progress of an open one.
    pub users: f64,
    /// X (R + Z) / N.
    pub ratio: f64,
}

/// The time of one user.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct UserFigures {
    /// The number of the user, from 0.
    pub user: u64,
    /// From the common start to the end of its last request.
    pub seconds: f64,
    /// Complete and correct responses.
    pub requests: u64,
    /// Bytes of their bodies.
    pub bytes: u64,
    /// Requests without such a response.
    pub errors: u64,
}

/// The measured time by a machine's monotonic clock, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Window {
    /// Its start.
    pub from: f64,
    /// Its end.
    pub to: f64,
}

/// When the users sent their first request after the common start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Starts {
    /// The time between the first and the last of them.
    pub spread_seconds: f64,
}

/// The generator's own cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Generator {
    /// CPU time of its threads in the measured time.
    pub cpu_seconds: f64,
    /// The fraction of a core that its busiest thread used.
    pub share: f64,
    /// Whether it may have limited the figures.
    pub is_the_limit: bool,
}

/// The use of resources by a process of a contender, with all its children.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ProcessUse {
    /// The name in the experiment.
    pub name: String,
    /// CPU time in user mode, with that of processes that have ended. This and each other figure is `None`
    /// where ended processes took it with them.
    pub user_seconds: Option<f64>,
    /// CPU time in the kernel.
    pub system_seconds: Option<f64>,
    /// The largest resident memory of all samples, of all its processes together.
    pub rss_bytes: u64,
    /// The largest proportional share of memory (PSS) of its samples, which are fewer.
    pub pss_bytes: Option<u64>,
    /// Context switches because it waited.
    pub voluntary_switches: Option<u64>,
    /// Context switches because its time slice ended.
    pub involuntary_switches: Option<u64>,
    /// Page faults that needed no disk.
    pub minor_faults: Option<u64>,
    /// Page faults that read the disk.
    pub major_faults: Option<u64>,
    /// Bytes that it caused to be read from disks.
    pub disk_read_bytes: Option<u64>,
    /// Bytes that it caused to be written to disks.
    pub disk_written_bytes: Option<u64>,
    /// The largest number of its processes.
    pub processes: u64,
    /// The largest number of its threads.
    pub threads: u64,
}

/// The use of a machine's resources.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct MachineUse {
    /// The time between the two samples that the other figures are differences of.
    pub seconds: f64,
    /// The fraction of the time that each core was neither idle nor waiting for a disk.
    pub cores_busy: Vec<f64>,
    /// The disks that were used.
    pub disks: Vec<DiskUse>,
    /// The network interfaces that were used.
    pub links: Vec<LinkUse>,
    /// TCP segments that were sent again.
    pub retransmissions: u64,
    /// The fraction of the time for which a task waited; `None` if the kernel does not report it (PSI).
    pub pressure: Option<Pressure>,
    /// The fraction of a core that the sampling itself used.
    pub probe_share: f64,
}

/// The activity of a disk.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct DiskUse {
    /// The name of the device.
    pub name: String,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Read operations.
    pub reads: u64,
    /// Write operations.
    pub writes: u64,
    /// The fraction of the time with an operation in progress.
    pub busy: f64,
}

/// The activity of a network interface.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LinkUse {
    /// The name of the interface.
    pub name: String,
    /// Bytes received.
    pub received_bytes: u64,
    /// Bytes sent.
    pub sent_bytes: u64,
}

/// The fraction of the time for which at least one task waited for a resource (PSI, `some`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Pressure {
    /// For a core.
    pub cpu: f64,
    /// For memory.
    pub memory: f64,
    /// For a disk.
    pub io: f64,
}

/// The loop of a load tool.
const NO_LOOP: &str = "none";

impl LoadFigures {
    /// Creates the figures of a load tool, still without bytes and seconds.
    pub(crate) fn of_tool() -> LoadFigures {
        LoadFigures { pace: NO_LOOP.to_owned(), ..LoadFigures::default() }
    }

    /// Returns whether these are the figures of a load tool: it has bytes and seconds, and no requests.
    pub fn is_of_tool(&self) -> bool {
        self.pace == NO_LOOP
    }

    /// Returns the number of errors of all kinds.
    pub fn errors_all(&self) -> u64 {
        self.errors.values().sum()
    }
}

/// The busy fraction of a core that only an error of its counters explains: they are read a moment apart.
const IMPOSSIBLY_BUSY: f64 = 1.1;

impl MachineUse {
    /// Returns a core that was busy for longer than the time, and its busy fraction.
    pub fn impossible_core(&self) -> Option<(usize, f64)> {
        self.cores_busy.iter().copied().enumerate().find(|(_, busy)| *busy > IMPOSSIBLY_BUSY)
    }
}

impl ProcessUse {
    /// Returns the CPU time; `None` if it is not known.
    pub fn cpu_seconds(&self) -> Option<f64> {
        Some(self.user_seconds? + self.system_seconds?)
    }
}
