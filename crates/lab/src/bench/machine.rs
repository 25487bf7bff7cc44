//! A description of the machine, without which figures cannot be interpreted.
//!
//! It reads the kernel's files and changes nothing. Invariant: an unreadable value is left empty.

use std::fs;
use std::time::SystemTime;

use plimsoll_wire::calendar::{format_rfc3339, since_1970};
use serde::{Deserialize, Serialize};

use super::congestion;

/// The properties of a machine that affect figures.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Machine {
    /// The CPU model.
    pub cpu: String,
    /// Number of cores.
    pub cores: usize,
    /// Memory in MiB.
    pub memory_mib: u64,
    /// The kernel's release.
    pub kernel: String,
    /// The distribution.
    pub system: String,
    /// The congestion control before the run.
    pub congestion: String,
    /// The MTU of loopback in bytes.
    pub loopback_mtu: String,
    /// Maximum length of a listener's accept queue.
    pub somaxconn: String,
    /// Range of the ephemeral ports.
    pub ports: String,
}

impl Machine {
    /// Describes this machine.
    pub fn this() -> Machine {
        let line = |path: &str| fs::read_to_string(path).unwrap_or_default().trim().replace('\t', " ");
        Machine {
            cpu: after(&line("/proc/cpuinfo"), "model name", ':'),
            cores: crate::contender::cores_busy().len(),
            memory_mib: memory_mib(&line("/proc/meminfo")),
            kernel: line("/proc/sys/kernel/osrelease"),
            system: after(&line("/etc/os-release"), "PRETTY_NAME", '=').trim_matches('"').to_owned(),
            congestion: congestion::current(),
            loopback_mtu: line("/sys/class/net/lo/mtu"),
            somaxconn: line("/proc/sys/net/core/somaxconn"),
            ports: line("/proc/sys/net/ipv4/ip_local_port_range"),
        }
    }
}

/// Returns the text after `name` and `mark` in the first line that begins with `name`.
fn after(text: &str, name: &str, mark: char) -> String {
    let mut lines = text.lines().filter(|line| line.starts_with(name));
    lines.next().and_then(|line| line.split_once(mark)).map_or("", |(_, value)| value.trim()).to_owned()
}

fn memory_mib(meminfo: &str) -> u64 {
    let kib = after(meminfo, "MemTotal", ':');
    kib.trim_end_matches(" kB").parse::<u64>().map_or(0, |kib| kib / 1024)
}

/// Returns the current time in UTC as `2026-11-22T01-02-03Z`, suitable as a folder name.
pub fn now() -> String {
    format_rfc3339(since_1970(SystemTime::now())).replace(':', "-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_is_known() {
        let machine = Machine::this();
        assert!(machine.cores > 0 && machine.memory_mib > 0 && !machine.kernel.is_empty(), "{machine:?}");
    }

    #[test]
    fn a_field_is_what_stands_after_its_name() {
        assert_eq!(after("model\t: 1\nmodel name : A B\nmodel name : C", "model name", ':'), "A B");
        assert_eq!(memory_mib("MemTotal:       2097152 kB\n"), 2048);
    }
}
