//! A description of the machine, without which figures cannot be interpreted.
//!
//! It reads the kernel's files and changes nothing. Invariant: an unreadable value is left empty.

use std::fs;
use std::time::{SystemTime, UNIX_EPOCH};

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
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    stamp(since.as_secs())
}

/// Formats a time since 1970, by Howard Hinnant's "chrono-compatible low-level date algorithms".
fn stamp(seconds: u64) -> String {
    let (days, time) = (seconds / 86_400 + 719_468, seconds % 86_400);
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    let (hour, minute, second) = (time / 3600, time / 60 % 60, time % 60);
    format!("{year}-{month:02}-{day:02}T{hour:02}-{minute:02}-{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_is_that_of_the_calendar() {
        assert_eq!(stamp(0), "1970-01-01T00-00-00Z");
        assert_eq!(stamp(951_782_399), "2000-02-28T23-59-59Z");
        assert_eq!(stamp(951_782_400), "2000-02-29T00-00-00Z");
        assert_eq!(stamp(1_798_761_599), "2026-12-31T23-59-59Z");
    }

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
