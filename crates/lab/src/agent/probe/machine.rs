//! The counters of a machine: cores, disks, network and pressure.
//!
//! It reads only files of `/proc`. Invariant: a counter that the kernel does not report is left out, not 0.

use std::collections::BTreeMap;

use procfs::{Current as _, CurrentSI as _, DiskStats, KernelStats};

use super::counter;
use crate::results::{DiskUse, LinkUse, MachineUse, Pressure};

/// The unit of `/proc/diskstats`, whatever the disk's own sectors are.
const SECTOR_BYTES: u64 = 512;

/// The counters of one moment.
#[derive(Clone, Debug, Default)]
pub(super) struct MachineSample {
    /// For each core: the seconds in which it was neither idle nor waiting for a disk.
    cores_busy: Vec<f64>,
    disks: BTreeMap<String, Disk>,
    /// By interface: bytes received and sent.
    links: BTreeMap<String, [u64; 2]>,
    retransmissions: u64,
    /// Microseconds for which a task waited for a core, for memory and for a disk.
    pressure: Option<[u64; 3]>,
}

/// The counters of a disk.
#[derive(Clone, Copy, Debug, Default)]
struct Disk {
    read_bytes: u64,
    written_bytes: u64,
    reads: u64,
    writes: u64,
    busy_milliseconds: u64,
}

impl MachineSample {
    /// Reads the counters.
    pub(super) fn now() -> MachineSample {
        MachineSample {
            cores_busy: cores_busy(),
            disks: disks(),
            links: links(),
            retransmissions: procfs::net::snmp().map_or(0, |counters| counters.tcp_retrans_segs),
            pressure: pressure(),
        }
    }

    /// Returns the counters a share of the way to `after`.
    pub(super) fn towards(&self, after: &MachineSample, share: f64) -> MachineSample {
        let count = |before, after| counter(before, after, share);
        let cores = self.cores_busy.iter().zip(&after.cores_busy);
        let disk = |name: &String, before: &Disk| {
            let after = after.disks.get(name).unwrap_or(before);
            Disk {
                read_bytes: count(before.read_bytes, after.read_bytes),
                written_bytes: count(before.written_bytes, after.written_bytes),
                reads: count(before.reads, after.reads),
                writes: count(before.writes, after.writes),
                busy_milliseconds: count(before.busy_milliseconds, after.busy_milliseconds),
            }
        };
        let link = |name: &String, before: &[u64; 2]| {
            let after = after.links.get(name).unwrap_or(before);
            [0, 1].map(|direction| count(before[direction], after[direction]))
        };
        MachineSample {
            cores_busy: cores.map(|(before, after)| before + (after - before) * share).collect(),
            disks: self.disks.iter().map(|(name, before)| (name.clone(), disk(name, before))).collect(),
            links: self.links.iter().map(|(name, before)| (name.clone(), link(name, before))).collect(),
            retransmissions: count(self.retransmissions, after.retransmissions),
            pressure: self
                .pressure
                .zip(after.pressure)
                .map(|(before, after)| [0, 1, 2].map(|resource| count(before[resource], after[resource]))),
        }
    }
}

/// Returns the differences of two samples that are `time` seconds apart.
pub(super) fn between(first: &MachineSample, last: &MachineSample, time: f64) -> MachineUse {
    let cores = first.cores_busy.iter().zip(&last.cores_busy);
    let disks = last.disks.iter().filter_map(|(name, last)| Some((name, first.disks.get(name)?, last)));
    let disks = disks.map(|(name, first, last)| DiskUse {
        name: name.clone(),
        read_bytes: last.read_bytes.saturating_sub(first.read_bytes),
        written_bytes: last.written_bytes.saturating_sub(first.written_bytes),
        reads: last.reads.saturating_sub(first.reads),
        writes: last.writes.saturating_sub(first.writes),
        busy: last.busy_milliseconds.saturating_sub(first.busy_milliseconds) as f64 / 1000.0 / time,
    });
    let links = last.links.iter().filter_map(|(name, last)| Some((name, first.links.get(name)?, last)));
    let links = links.map(|(name, first, last)| LinkUse {
        name: name.clone(),
        received_bytes: last[0].saturating_sub(first[0]),
        sent_bytes: last[1].saturating_sub(first[1]),
    });
    MachineUse {
        seconds: time,
        cores_busy: cores.map(|(first, last)| (last - first).max(0.0) / time).collect(),
        disks: disks.filter(|disk| disk.reads + disk.writes > 0).collect(),
        links: links.filter(|link| link.received_bytes + link.sent_bytes > 0).collect(),
        retransmissions: last.retransmissions.saturating_sub(first.retransmissions),
        pressure: first.pressure.zip(last.pressure).map(|(first, last)| {
            let share = |resource: usize| last[resource].saturating_sub(first[resource]) as f64 / 1e6 / time;
            Pressure { cpu: share(0), memory: share(1), io: share(2) }
        }),
        probe_share: 0.0,
    }
}

/// Returns how long each core has been busy since boot, in seconds.
pub(crate) fn cores_busy() -> Vec<f64> {
    let Ok(stats) = KernelStats::current() else { return Vec::new() };
    let busy = |core: &procfs::CpuTime| {
        let rest = [core.irq, core.softirq].into_iter().flatten().sum::<u64>();
        (core.user + core.nice + core.system + rest) as f64 / procfs::ticks_per_second() as f64
    };
    stats.cpu_time.iter().map(busy).collect()
}

/// Returns the counters of all disks, without their partitions: those would count the same operations twice.
fn disks() -> BTreeMap<String, Disk> {
    let Ok(DiskStats(disks)) = DiskStats::current() else { return BTreeMap::new() };
    let is_whole = |name: &str| std::path::Path::new("/sys/block").join(name).exists();
    let counters = disks.into_iter().filter(|disk| disk.reads + disk.writes > 0 && is_whole(&disk.name));
    let counters = counters.map(|disk| {
        let counters = Disk {
            read_bytes: disk.sectors_read * SECTOR_BYTES,
            written_bytes: disk.sectors_written * SECTOR_BYTES,
            reads: disk.reads,
            writes: disk.writes,
            busy_milliseconds: disk.time_in_progress,
        };
        (disk.name, counters)
    });
    counters.collect()
}

fn links() -> BTreeMap<String, [u64; 2]> {
    let links = procfs::net::dev_status().unwrap_or_default();
    links.into_values().map(|link| (link.name, [link.recv_bytes, link.sent_bytes])).collect()
}

fn pressure() -> Option<[u64; 3]> {
    let cpu = procfs::CpuPressure::current().ok()?.some.total;
    let memory = procfs::MemoryPressure::current().ok()?.some.total;
    let io = procfs::IoPressure::current().ok()?.some.total;
    Some([cpu, memory, io])
}
