//! Checks that the kernel has enough local ports for outgoing connections.
//!
//! Accepted connections take none of them. A proxy, a front or a load test takes one for each connection to
//! the same address. Invariant: a range that cannot be read is never reported as good.

use super::Finding;
use super::data_ports::{RANGE, both};
use crate::config::Config;

const CHECK: &str = "outgoing ports";
/// With fewer, a proxy or a load test that opens a connection for each request runs out of them.
const PORTS_FEW: u32 = 16_384;
/// The kernel's default.
const SETTING: &str = r#"net.ipv4.ip_local_port_range="32768 60999""#;

pub(super) fn check(_: &Config) -> Vec<Finding> {
    vec![judge(&std::fs::read_to_string(RANGE).unwrap_or_default())]
}

/// Judges the kernel's value of `range`.
fn judge(range: &str) -> Finding {
    let Some(drawn) = both(range.split_whitespace()) else {
        return Finding::warn(CHECK, "the kernel does not report the range of ports");
    };
    let (first, last) = (u32::from(*drawn.start()), u32::from(*drawn.end()));
    let ports = (last + 1).saturating_sub(first);
    let seen = format!("{first}-{last}, which is {ports} connections from here to one address");
    if ports >= PORTS_FEW {
        return Finding::ok(CHECK, seen);
    }
    Finding::warn(CHECK, seen).with_fix(
        format!("sudo sysctl -w {SETTING}"),
        format!("echo '{}' | sudo tee /etc/sysctl.d/92-plimsoll.conf", SETTING.replace('"', "")),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Verdict;

    #[test]
    fn few_ports_are_a_warning_with_the_setting_that_fixes_it() {
        let usual = judge("32768\t60999\n");
        assert_eq!(usual.verdict, Verdict::Ok);
        assert_eq!(usual.seen, "32768-60999, which is 28232 connections from here to one address");
        let few = judge("60000\t60999\n");
        assert_eq!(few.verdict, Verdict::Warn);
        assert!(few.seen.contains("1000 connections"), "{}", few.seen);
        assert_eq!(few.now.unwrap(), r#"sudo sysctl -w net.ipv4.ip_local_port_range="32768 60999""#);
        let lasting = few.lasting.unwrap();
        assert!(lasting.starts_with("echo 'net.ipv4.ip_local_port_range=32768 60999' | "), "{lasting}");
    }

    #[test]
    fn an_unreadable_setting_is_a_warning() {
        for range in ["", "many", "1024 99999"] {
            assert_eq!(judge(range).verdict, Verdict::Warn, "{range}");
        }
    }
}
