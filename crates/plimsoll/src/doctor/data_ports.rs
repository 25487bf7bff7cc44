//! Checks that the kernel does not use FTP's data ports for outgoing connections.
//!
//! It binds no port. Invariant: reserved ports count as free, like ports outside the kernel's range.

use std::ops::RangeInclusive;

use plimsoll_proto::ftp::Ports;

use super::Finding;
use crate::config::Config;

const CHECK: &str = "data ports";
/// The range from which the kernel takes the local ports of outgoing connections.
pub(super) const RANGE: &str = "/proc/sys/net/ipv4/ip_local_port_range";
const RESERVED: &str = "net.ipv4.ip_local_reserved_ports";

pub(super) fn check(config: &Config) -> Vec<Finding> {
    if !config.fixed.has_ftp() {
        return Vec::new();
    }
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let reserved = read(&format!("/proc/sys/{}", RESERVED.replace('.', "/")));
    vec![judge(config.live.ftp.ftp_ports.0, &read(RANGE), reserved.trim())]
}

/// Judges `ports` by the kernel's values of `range` and `reserved`.
fn judge(ports: Ports, range: &str, reserved: &str) -> Finding {
    let Ports { first, last } = ports;
    let ports_text = format!("{first}-{last}");
    let Some(drawn) = both(range.split_whitespace()) else {
        return Finding::warn(
            CHECK,
            format!("{ports_text}; the kernel does not report its own range of ports"),
        );
    };
    let seen = format!("the kernel connects from {}-{}", drawn.start(), drawn.end());
    let kept: Vec<RangeInclusive<u16>> =
        reserved.split(',').filter_map(|part| both(part.split('-'))).collect();
    let is_clear = |port: u16| !drawn.contains(&port) || kept.iter().any(|kept| kept.contains(&port));
    if (first..=last).all(is_clear) {
        return Finding::ok(CHECK, format!("{ports_text}; {seen}, which leaves them free"));
    }
    let all = if reserved.is_empty() { ports_text.clone() } else { format!("{reserved},{ports_text}") };
    Finding::warn(CHECK, format!("{ports_text}; {seen}, and so takes some of them for itself")).with_fix(
        format!("sudo sysctl -w {RESERVED}={all}"),
        format!("echo {RESERVED}={all} | sudo tee /etc/sysctl.d/91-plimsoll.conf  # or set other ftp_ports"),
    )
}

/// Parses a range of one or two numbers.
pub(super) fn both<'a>(mut numbers: impl Iterator<Item = &'a str>) -> Option<RangeInclusive<u16>> {
    let first = numbers.next()?.trim().parse().ok()?;
    let last = numbers.next().map_or(Some(first), |last| last.trim().parse().ok())?;
    Some(first..=last)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Verdict;

    const PORTS: Ports = Ports { first: 20_000, last: 29_999 };

    #[test]
    fn ephemeral_ports_are_a_warning_unless_they_are_reserved() {
        assert_eq!(judge(PORTS, "32768\t60999\n", "").verdict, Verdict::Ok);
        let taken = judge(PORTS, "10000\t65535\n", "");
        assert_eq!(taken.verdict, Verdict::Warn);
        assert!(taken.now.unwrap().ends_with("ip_local_reserved_ports=20000-29999"));
        let partly = judge(PORTS, "29999\t65535\n", "8080,20000-29998");
        assert_eq!(partly.verdict, Verdict::Warn, "the last one");
        assert!(partly.now.unwrap().ends_with("=8080,20000-29998,20000-29999"), "what was reserved stays");
        assert_eq!(judge(PORTS, "10000\t65535\n", "8080,20000-25000,25001-30000").verdict, Verdict::Ok);
    }

    #[test]
    fn a_range_that_cannot_be_read_is_not_said_to_be_well() {
        assert_eq!(judge(PORTS, "", "").verdict, Verdict::Warn);
    }
}
