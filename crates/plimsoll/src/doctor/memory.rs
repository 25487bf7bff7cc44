//! Checks that there is enough memory to serve and to hash passwords.
//!
//! It does not measure the server's own use. Invariant: the limit of a container (cgroup) counts, if there
//! is one.

use super::Finding;
use crate::config::Config;

const CHECK: &str = "memory";
/// With less memory, many simultaneous logins or listings are refused.
const BYTES_FEW: u64 = 256 << 20;
const BYTES_LEAST: u64 = 48 << 20;

pub(super) fn check(_: &Config) -> Vec<Finding> {
    let read = |path| std::fs::read_to_string(path).unwrap_or_default();
    let container = read("/sys/fs/cgroup/memory.max").trim().parse::<u64>().ok();
    let available = available(&read("/proc/meminfo"));
    vec![judge(available.into_iter().chain(container).min())]
}

/// Returns the memory that is available without swapping, in bytes.
fn available(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    kib.checked_mul(1024)
}

fn judge(bytes: Option<u64>) -> Finding {
    let Some(bytes) = bytes else {
        return Finding::warn(CHECK, "the kernel does not report how much there is");
    };
    let seen = format!("{} MiB can be had", bytes >> 20);
    let finding = match bytes {
        BYTES_FEW.. => return Finding::ok(CHECK, seen),
        BYTES_LEAST.. => Finding::warn(CHECK, seen),
        _ => Finding::fail(CHECK, seen),
    };
    finding.with_fix(
        "ps aux --sort=-rss | head, and end what is not needed",
        "a larger machine, or MemoryMax= in its unit",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Verdict;

    #[test]
    fn available_memory_is_read_and_judged() {
        let bytes = available("MemTotal:  100 kB\nMemAvailable:    2048 kB\n");
        assert_eq!(bytes, Some(2 << 20));
        assert_eq!(judge(bytes).verdict, Verdict::Fail);
        assert_eq!(judge(Some(100 << 20)).verdict, Verdict::Warn);
        assert_eq!(judge(Some(1 << 30)).verdict, Verdict::Ok);
        assert_eq!((available(""), judge(None).verdict), (None, Verdict::Warn));
    }
}
