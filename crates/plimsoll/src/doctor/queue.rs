//! Checks the kernel's limit of the accept queue.
//!
//! It is not the number of open connections. Invariant: a limit that cannot be read is not judged.

use super::Finding;
use crate::config::Config;

/// With fewer, a burst of clients must retry after a second.
const WAITING_FEW: u64 = 1024;

pub(super) fn check(_: &Config) -> Vec<Finding> {
    let read = std::fs::read_to_string("/proc/sys/net/core/somaxconn");
    vec![judge(read.ok().and_then(|text| text.trim().parse().ok()))]
}

fn judge(waiting: Option<u64>) -> Finding {
    let (check, setting) = ("accept queue", "net.core.somaxconn=4096");
    match waiting {
        Some(waiting @ WAITING_FEW..) => Finding::ok(check, format!("{waiting} connections may wait")),
        Some(waiting) => Finding::warn(check, format!("only {waiting} connections may wait")).with_fix(
            format!("sudo sysctl -w {setting}"),
            format!("echo {setting} | sudo tee /etc/sysctl.d/90-plimsoll.conf"),
        ),
        None => Finding::warn(check, "the kernel does not report how many connections may wait"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Verdict;

    #[test]
    fn a_short_queue_is_a_warning_with_the_setting_that_fixes_it() {
        assert_eq!(judge(Some(4096)).verdict, Verdict::Ok);
        let short = judge(Some(128));
        assert_eq!(short.verdict, Verdict::Warn);
        assert!(short.now.unwrap().contains("somaxconn=4096"));
        assert_eq!(judge(None).verdict, Verdict::Warn);
    }
}
