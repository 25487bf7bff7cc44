//! A description of the machine, without which figures cannot be interpreted.
//!
//! It reads the kernel's files and changes nothing. Invariant: an unreadable value is left empty.

use std::fs;

pub use crate::results::Machine;

impl Machine {
    /// Describes this machine.
    pub fn this() -> Machine {
        let line = |path: &str| fs::read_to_string(path).unwrap_or_default().trim().replace('\t', " ");
        Machine {
            cpu: after(&line("/proc/cpuinfo"), "model name", ':'),
            cores: line("/proc/stat").lines().filter(|line| is_core(line)).count(),
            memory_mib: memory_mib(&line("/proc/meminfo")),
            kernel: line("/proc/sys/kernel/osrelease"),
            system: after(&line("/etc/os-release"), "PRETTY_NAME", '=').trim_matches('"').to_owned(),
            congestion: line("/proc/sys/net/ipv4/tcp_congestion_control"),
            loopback_mtu: line("/sys/class/net/lo/mtu"),
            somaxconn: line("/proc/sys/net/core/somaxconn"),
            ports: line("/proc/sys/net/ipv4/ip_local_port_range"),
        }
    }
}

/// Returns whether a line of `/proc/stat` is that of a core: `cpu0 …`.
fn is_core(line: &str) -> bool {
    line.strip_prefix("cpu").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
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
