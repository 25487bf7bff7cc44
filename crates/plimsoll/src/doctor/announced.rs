//! Checks that remote clients can reach the address that FTP announces for data connections.
//!
//! It sends nothing. Invariants: a server on loopback only, or on IPv6 only, gets no finding. Unreadable
//! addresses are reported as such, not judged.

use std::net::{IpAddr, Ipv4Addr};

use super::Finding;
use crate::config::Config;

const CHECK: &str = "data address";
const LASTING: &str = "the key ftp_announce in the configuration, and a reload";
/// The kernel's IPv4 routing table, which includes the machine's own addresses.
const ROUTES: &str = "/proc/net/fib_trie";

pub(super) fn check(config: &Config) -> Vec<Finding> {
    let reached = reached(config, own_addresses);
    reached.map(|reached| judge(&reached, config.live.ftp.ftp_announce.0)).into_iter().collect()
}

/// Returns the IPv4 addresses at which remote clients may reach FTP; `None` if FTP has none.
fn reached(config: &Config, own: impl FnOnce() -> Vec<Ipv4Addr>) -> Option<Vec<Ipv4Addr>> {
    let beyond = config.fixed.ftp_addresses().filter_map(|at| match at.ip() {
        IpAddr::V4(ip) if !ip.is_loopback() => Some(ip),
        _ => None,
    });
    let named: Vec<Ipv4Addr> = beyond.collect();
    match (named.is_empty(), named.iter().any(Ipv4Addr::is_unspecified)) {
        (true, _) => None,
        (false, true) => Some(own()),
        (false, false) => Some(named),
    }
}

fn judge(reached: &[Ipv4Addr], announced: Option<Ipv4Addr>) -> Finding {
    match announced {
        Some(ip) if is_private(ip) => Finding::warn(
            CHECK,
            format!("PASV announces {ip}, which is private: clients elsewhere cannot reach it"),
        )
        .with_fix("--ftp-announce ADDRESS, with the address that clients reach the server by", LASTING),
        Some(ip) => Finding::ok(CHECK, format!("PASV announces {ip}")),
        None if reached.is_empty() => Finding::warn(CHECK, "this machine's addresses cannot be read")
            .with_fix("ip -brief address", LASTING),
        None if reached.iter().copied().all(is_private) => Finding::warn(
            CHECK,
            format!("all of {} are private: PASV works in this network alone", list(reached)),
        )
        .with_fix(
            "if a router passes clients on: --ftp-announce ADDRESS, with the router's own outside",
            LASTING,
        ),
        None => Finding::ok(CHECK, format!("PASV announces what was reached, of {}", list(reached))),
    }
}

/// Returns whether an address is valid only within its own network (RFC 1918, 3927 and 6598).
fn is_private(ip: Ipv4Addr) -> bool {
    let [first, second, ..] = ip.octets();
    let is_shared = first == 100 && (64..128).contains(&second);
    ip.is_private() || ip.is_loopback() || ip.is_link_local() || is_shared
}

/// Returns this machine's own IPv4 addresses, without loopback.
pub(crate) fn own_addresses() -> Vec<Ipv4Addr> {
    own(&std::fs::read_to_string(ROUTES).unwrap_or_default())
}

fn own(routes: &str) -> Vec<Ipv4Addr> {
    let mut last = None;
    let mut own: Vec<Ipv4Addr> = Vec::new();
    for line in routes.lines().map(str::trim) {
        if let Some(ip) = line.strip_prefix("|-- ") {
            last = ip.parse::<Ipv4Addr>().ok();
        } else if line == "/32 host LOCAL" {
            own.extend(last.filter(|ip| !ip.is_loopback() && !own.contains(ip)));
        }
    }
    own
}

fn list(addresses: &[Ipv4Addr]) -> String {
    addresses.iter().map(Ipv4Addr::to_string).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Verdict;

    fn ips(texts: &[&str]) -> Vec<Ipv4Addr> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    fn verdict(reached: &[&str], announced: Option<&str>) -> Verdict {
        judge(&ips(reached), announced.map(|ip| ip.parse().unwrap())).verdict
    }

    #[test]
    fn private_addresses_alone_are_a_warning_until_a_public_one_is_announced() {
        assert_eq!(verdict(&["10.1.2.3", "192.168.0.7"], None), Verdict::Warn);
        assert_eq!(verdict(&["100.64.0.1"], None), Verdict::Warn, "a provider's own (RFC 6598)");
        assert_eq!(verdict(&["100.128.0.1"], None), Verdict::Ok);
        assert_eq!(verdict(&["10.1.2.3", "203.0.113.7"], None), Verdict::Ok);
        assert_eq!(verdict(&["10.1.2.3"], Some("203.0.113.7")), Verdict::Ok);
        assert_eq!(verdict(&["203.0.113.7"], Some("172.16.0.1")), Verdict::Warn);
        assert_eq!(verdict(&[], None), Verdict::Warn, "what cannot be read is not said to be well");
    }

    #[test]
    fn the_check_of_announced_addresses_is_for_ipv4_beyond_loopback() {
        let reached = |at: &str| {
            let config = Config::of(&["--ftp", at]);
            reached(&config, || ips(&["203.0.113.7"]))
        };
        assert_eq!(reached("127.0.0.1:21"), None);
        assert_eq!(reached("[::]:21"), None);
        assert_eq!(reached("10.0.0.1:21,127.0.0.1:21"), Some(ips(&["10.0.0.1"])));
        assert_eq!(reached("10.0.0.1:21,0.0.0.0:21"), Some(ips(&["203.0.113.7"])));
    }

    #[test]
    fn the_machines_own_addresses_are_read_from_its_routes() {
        let routes = "Main:\n  +-- 0.0.0.0/0 3 0 5\n     |-- 127.0.0.1\n        /32 host LOCAL\n\
                      |-- 192.0.2.2\n        /32 host LOCAL\n|-- 192.0.2.255\n  /32 link BROADCAST\n\
                      Local:\n  |-- 192.0.2.2\n  /32 host LOCAL\n|-- 10.0.0.0\n  /8 link UNICAST\n";
        assert_eq!(own(routes), ips(&["192.0.2.2"]));
        assert!(!own(&std::fs::read_to_string(ROUTES).unwrap()).contains(&Ipv4Addr::LOCALHOST));
    }
}
