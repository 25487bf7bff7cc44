//! The resources of a contender, their utilisation, and a hint at the bottleneck.
//!
//! It is not a verdict: it sees no lock and no wait. A server with idle helper threads seems to have more
//! processors than its one busy thread can use. Invariant: a utilisation is a measured busy time through the
//! number of servers.

use super::{DiskLoad, LoadPoint, PointFigures, entrant};
use crate::experiment::conditions::{Disk, Settings};
use crate::experiment::core_list;
use crate::experiment::template::fill;
use crate::results::Results;

/// A resource of this utilisation is saturated.
const SATURATED: f64 = 0.9;

/// A resource with its use.
#[derive(Clone, Debug, PartialEq)]
pub struct Resource {
    /// Its name for readers.
    pub name: String,
    /// Its kind.
    pub kind: ResourceKind,
    /// Busy seconds in each second, of all its servers together.
    pub busy: f64,
    /// The number of its servers, such as processors.
    pub servers: u32,
}

/// The kind of a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResourceKind {
    /// The load generator.
    Generator,
    /// The processors that processes of the contender may use.
    Process,
    /// A disk.
    Disk,
    /// All processors of the machine.
    Cores,
    /// A link of a known rate.
    Link,
    /// One processor of the machine.
    Core,
    /// One that no probe sees, such as a lock.
    Unobserved,
}

/// A first answer to the question for the bottleneck.
#[derive(Clone, Debug, PartialEq)]
pub struct Hint {
    /// The saturated resources, the most telling first; none if the bottleneck is none of them.
    pub saturated: Vec<Resource>,
    /// The most utilised resource besides these.
    pub next: Option<Resource>,
    /// The number of users at which they were observed.
    pub users: u32,
}

impl Resource {
    /// Returns the busy fraction of its capacity.
    pub fn utilisation(&self) -> f64 {
        self.busy / f64::from(self.servers.max(1))
    }
}

impl Hint {
    /// Returns the hint in a few words.
    pub fn text(&self) -> String {
        let share = |one: &Resource| format!("{} at {:.0} %", one.name, one.utilisation() * 100.0);
        match (self.saturated.as_slice(), &self.next) {
            ([], None) => "unknown: no resource was observed".to_owned(),
            ([], Some(next)) => {
                format!("none saturated: waits for a lock, the network or a limit ({})", share(next))
            }
            (saturated, _) => saturated.iter().map(share).collect::<Vec<String>>().join(", "),
        }
    }
}

/// The processors, processes and link of a contender.
pub(super) struct ContenderMachine {
    cores: Option<u32>,
    /// The cores that each process may use, as the experiment says it, and their number.
    pinned: Vec<(String, String, u32)>,
    /// Bits a second.
    link: Option<u64>,
    disk: Disk,
}

impl ContenderMachine {
    pub(super) fn new(results: &Results, contender: &str, conditions: &Settings) -> ContenderMachine {
        let own = entrant(results, contender).and_then(|one| one.machine.as_ref());
        let machine = own.unwrap_or(&results.run.machine);
        let cores = u32::try_from(machine.cores).ok().filter(|cores| *cores > 0);
        let known = results.experiment.contenders.iter().find(|one| one.name == contender);
        let point = results.trials.iter().find(|trial| trial.contender == contender);
        let pinned = known.into_iter().flat_map(|one| &one.processes).filter_map(|process| {
            let text = fill(&process.cores.as_ref()?.0, &point?.point).ok()?;
            let count = u32::try_from(core_list(&text).ok()?.len()).ok()?;
            Some((process.name.clone(), text, count))
        });
        let link = conditions.link.and_then(|link| link.rate);
        ContenderMachine { cores, pinned: pinned.collect(), link, disk: conditions.disk }
    }

    /// Returns the resources with a queue that requests of the contender use: its processors and disks.
    pub(super) fn service_resources(&self, figures: &PointFigures) -> Vec<Resource> {
        let mut resources = self.processors(figures);
        if resources.is_empty() {
            resources.extend(self.all_cores(figures));
        }
        resources.extend(figures.disks.iter().filter(|disk| disk.busy > 0.0).map(|disk| self.disk(disk)));
        resources
    }

    /// Returns a disk: busy by its operations, or by its share of a limit of the conditions if that is more.
    fn disk(&self, disk: &DiskLoad) -> Resource {
        #[allow(clippy::cast_precision_loss, reason = "a rate below 2^52")]
        let share = |rate: f64, limit: Option<u64>| limit.map_or(0.0, |limit| rate / limit.max(1) as f64);
        let limited = share(disk.read, self.disk.read).max(share(disk.written, self.disk.write));
        let name = if limited > disk.busy {
            format!("limit of disk {}", disk.name)
        } else {
            format!("disk {}", disk.name)
        };
        Resource { name, kind: ResourceKind::Disk, busy: disk.busy.max(limited), servers: 1 }
    }

    /// Returns the hint of a point. None without figures.
    pub(super) fn hint(&self, point: &LoadPoint) -> Option<Hint> {
        let figures = point.figures.as_ref()?;
        let mut resources = vec![generator(figures)];
        resources.extend(self.service_resources(figures));
        let has_cores = resources.iter().any(|one| one.kind == ResourceKind::Cores);
        resources.extend(self.all_cores(figures).filter(|_| !has_cores));
        resources.extend(self.links(figures));
        let observed = resources.clone();
        resources.extend(busiest_core(figures));
        let mut saturated: Vec<Resource> =
            resources.into_iter().filter(|one| one.utilisation() >= SATURATED).collect();
        if saturated.len() > 1 {
            // A busy core is only reported if no other resource explains it.
            saturated.retain(|one| one.kind != ResourceKind::Core);
        }
        let free = observed.into_iter().filter(|one| one.utilisation() < SATURATED);
        let next = free
            .filter(|one| one.kind != ResourceKind::Generator || one.busy > 0.0)
            .max_by(|one, other| one.utilisation().total_cmp(&other.utilisation()));
        Some(Hint { saturated, next, users: point.users })
    }

    /// Returns the processors of the processes. Processes with the same cores are one resource if their
    /// threads together could use more than these.
    fn processors(&self, figures: &PointFigures) -> Vec<Resource> {
        let mut groups: Vec<(&str, u32, Vec<Resource>)> = Vec::new();
        for process in &figures.processes {
            let pinned = self.pinned.iter().find(|(name, _, _)| *name == process.name);
            let all = self.cores.or_else(|| u32::try_from(figures.cores.len()).ok()).unwrap_or(1).max(1);
            let (set, count) = pinned.map_or(("", all), |(_, set, count)| (set.as_str(), *count));
            let threads = u32::try_from(process.threads).ok().filter(|threads| *threads > 0);
            let own = Resource {
                name: process.name.clone(),
                kind: ResourceKind::Process,
                busy: process.user + process.system,
                servers: threads.map_or(count, |threads| threads.min(count)),
            };
            match groups.iter_mut().find(|(known, _, _)| *known == set) {
                Some((_, _, group)) => group.push(own),
                None => groups.push((set, count, vec![own])),
            }
        }
        groups.into_iter().flat_map(|(set, count, group)| of_group(set, count, group)).collect()
    }

    fn all_cores(&self, figures: &PointFigures) -> impl Iterator<Item = Resource> {
        let count = u32::try_from(figures.cores.len()).ok().filter(|count| *count > 0);
        let busy = figures.cores.iter().sum();
        count.into_iter().map(move |servers| Resource {
            name: if servers == 1 { "the core".to_owned() } else { format!("all {servers} cores") },
            kind: ResourceKind::Cores,
            busy,
            servers,
        })
    }

    fn links(&self, figures: &PointFigures) -> Vec<Resource> {
        let Some(rate) = self.link else { return Vec::new() };
        #[allow(clippy::cast_precision_loss, reason = "a rate below 2^52")]
        let link = |(name, bytes): &(String, f64)| Resource {
            name: format!("link {name}"),
            kind: ResourceKind::Link,
            busy: bytes * 8.0 / rate.max(1) as f64,
            servers: 1,
        };
        figures.links.iter().filter(|(name, _)| name != "lo").map(link).collect()
    }
}

fn of_group(set: &str, count: u32, group: Vec<Resource>) -> Vec<Resource> {
    let wanted: u32 = group.iter().map(|one| one.servers).sum();
    let on = |names: &str| match set {
        "" => format!("CPU of {names}"),
        one if count == 1 => format!("core {one} of {names}"),
        several => format!("cores {several} of {names}"),
    };
    if wanted <= count || group.len() == 1 {
        return group.into_iter().map(|one| Resource { name: on(&one.name), ..one }).collect();
    }
    let names: Vec<&str> = group.iter().map(|one| one.name.as_str()).collect();
    let busy = group.iter().map(|one| one.busy).sum();
    vec![Resource { name: on(&names.join(", ")), kind: ResourceKind::Process, busy, servers: count }]
}

fn generator(figures: &PointFigures) -> Resource {
    let share = figures.generator_share;
    let busy = if figures.is_limited_by_generator { share.max(SATURATED) } else { share };
    Resource { name: "the load generator".to_owned(), kind: ResourceKind::Generator, busy, servers: 1 }
}

fn busiest_core(figures: &PointFigures) -> Option<Resource> {
    let cores = figures.cores.iter().enumerate();
    let (core, busy) = cores.max_by(|one, other| one.1.total_cmp(other.1))?;
    let name = format!("core {core} of the machine");
    Some(Resource { name, kind: ResourceKind::Core, busy: *busy, servers: 1 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_is_busy_by_its_operations_or_by_its_share_of_a_limit() {
        let disk = Disk { read: Some(100), ..Disk::default() };
        let machine = ContenderMachine { cores: None, pinned: Vec::new(), link: None, disk };
        let load = |busy, read| DiskLoad { name: "vda".to_owned(), busy, read, written: 1e9 };
        let limited = machine.disk(&load(0.1, 98.0));
        assert_eq!((limited.name.as_str(), limited.busy), ("limit of disk vda", 0.98));
        let busy = machine.disk(&load(0.9, 10.0));
        assert_eq!((busy.name.as_str(), busy.busy), ("disk vda", 0.9));
    }

    #[test]
    fn processes_on_one_core_are_one_resource() {
        let process = |name: &str| Resource {
            name: name.to_owned(),
            kind: ResourceKind::Process,
            busy: 0.45,
            servers: 1,
        };
        let shared = of_group("0", 1, vec![process("front"), process("store")]);
        assert_eq!((shared.len(), shared[0].name.as_str()), (1, "core 0 of front, store"));
        assert!((shared[0].utilisation() - 0.9).abs() < 1e-12);
        let separate = of_group("", 2, vec![process("front"), process("store")]);
        assert_eq!((separate.len(), separate[1].name.as_str()), (2, "CPU of store"));
    }
}
