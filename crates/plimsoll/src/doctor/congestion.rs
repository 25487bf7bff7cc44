//! Checks the congestion control that the kernel uses for TCP.
//!
//! It measures nothing. Invariant: an algorithm that is slow on loopback causes a warning only if all
//! clients use loopback. For distant networks, it may be the better choice.

use super::Finding;
use crate::config::Config;

const CHECK: &str = "congestion";
const SETTING: &str = "net.ipv4.tcp_congestion_control";
/// Algorithms that pace by their own timer, which on loopback is slower than the machine.
const PACING: [&str; 1] = ["bbr"];
/// The replacements, the better one first; every kernel has the last.
const UNPACED: [&str; 2] = ["cubic", "reno"];

pub(super) fn check(config: &Config) -> Vec<Finding> {
    let read = |name: &str| std::fs::read_to_string(format!("/proc/sys/net/ipv4/{name}")).unwrap_or_default();
    let available = read("tcp_available_congestion_control");
    vec![judge(read("tcp_congestion_control").trim(), &available, config.fixed.is_local())]
}

/// Judges the kernel's values of `current` and `available`. `is_local` means that all clients use loopback.
fn judge(current: &str, available: &str, is_local: bool) -> Finding {
    if current.is_empty() {
        return Finding::warn(CHECK, "the kernel does not report which it uses");
    }
    if !PACING.contains(&current) {
        return Finding::ok(CHECK, current);
    }
    if !is_local {
        let seen = format!("{current}, for far networks; by loopback it paces what is uploaded");
        return Finding::ok(CHECK, seen);
    }
    let is_there = |name: &&&str| available.split_whitespace().any(|one| one == **name);
    let better = UNPACED.iter().find(is_there).unwrap_or(&"reno");
    let seen = format!("{current} paces what is uploaded by loopback, as all is here; downloads do without");
    Finding::warn(CHECK, seen).with_fix(
        format!("sudo sysctl -w {SETTING}={better}"),
        format!("echo {SETTING}={better} | sudo tee /etc/sysctl.d/93-plimsoll.conf"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Verdict;

    #[test]
    fn bbr_is_a_warning_where_all_clients_use_loopback() {
        let paced = judge("bbr", "reno bbr cubic\n", true);
        assert_eq!(paced.verdict, Verdict::Warn);
        assert_eq!(paced.now.unwrap(), "sudo sysctl -w net.ipv4.tcp_congestion_control=cubic");
        assert!(paced.lasting.unwrap().contains("tcp_congestion_control=cubic"));
        let beyond = judge("bbr", "reno bbr cubic\n", false);
        assert!(beyond.verdict == Verdict::Ok && beyond.seen.contains("loopback"), "{beyond:?}");
        assert_eq!(judge("cubic", "reno cubic\n", true).verdict, Verdict::Ok);
    }

    #[test]
    fn the_suggested_congestion_control_is_one_that_the_kernel_has() {
        assert!(judge("bbr", "reno bbr\n", true).now.unwrap().ends_with("=reno"));
    }

    #[test]
    fn an_unreadable_setting_is_a_warning() {
        assert_eq!(judge("", "", true).verdict, Verdict::Warn);
    }
}
