//! Checks that the clock has a plausible year, and that a time service keeps it right.
//!
//! It measures no drift. Invariant: without a visible time service, the clock is never reported as correct.

use std::path::Path;
use std::time::{Duration, SystemTime};

use super::Finding;
use crate::config::Config;

const CHECK: &str = "clock";
/// The years 2026 and 2100: the program runs neither before nor after.
const EARLIEST: Duration = Duration::from_secs(1_767_225_600);
const LATEST: Duration = Duration::from_secs(4_102_444_800);
/// Time services, by the names that the kernel shortens to 15 bytes.
const KEEPERS: [&str; 6] = ["chronyd", "ntpd", "systemd-timesyn", "openntpd", "ptp4l", "ntp-daemon"];

pub(super) fn check(_: &Config) -> Vec<Finding> {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    vec![judge(now, daemon().as_deref())]
}

fn judge(now: Duration, daemon: Option<&str>) -> Finding {
    match daemon {
        _ if !(EARLIEST..LATEST).contains(&now) => {
            Finding::fail(CHECK, format!("it says {} s since 1970, which cannot be", now.as_secs()))
                .with_fix("sudo date --set '2026-01-31 12:00', with the time of now", KEEP)
        }
        Some(daemon) => Finding::ok(CHECK, format!("{daemon} keeps it right")),
        None => Finding::warn(CHECK, "nothing here keeps it right; sessions and shares end by it")
            .with_fix("date --utc, and compare; in a container the host keeps it", KEEP),
    }
}

const KEEP: &str = "sudo apt-get install systemd-timesyncd  # or chrony";

/// Returns the name of the time service, if one is visible.
fn daemon() -> Option<String> {
    if Path::new("/run/systemd/timesync/synchronized").exists() {
        return Some("systemd-timesyncd".to_owned());
    }
    let processes = std::fs::read_dir("/proc").ok()?;
    let names = processes.flatten().filter_map(|entry| {
        let name = std::fs::read_to_string(entry.path().join("comm")).ok()?;
        Some(name.trim().to_owned())
    });
    names.into_iter().find(|name| KEEPERS.contains(&name.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Verdict;

    #[test]
    fn an_impossible_year_is_a_failure_and_an_unsynchronised_clock_a_warning() {
        let year = |years: u64| Duration::from_secs(years * 31_557_600);
        assert_eq!(judge(year(0), Some("chronyd")).verdict, Verdict::Fail);
        assert_eq!(judge(year(200), Some("chronyd")).verdict, Verdict::Fail);
        assert_eq!(judge(year(57), None).verdict, Verdict::Warn);
        assert_eq!(judge(year(57), Some("chronyd")).verdict, Verdict::Ok);
    }
}
