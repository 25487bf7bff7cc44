//! Checks which proxies may name their clients, for whom connections and password attempts are counted.
//!
//! It connects to none. Invariant: a proxy that is not trusted is not taken for one.

use super::Finding;
use crate::config::Config;

const CHECK: &str = "proxies";

pub(super) fn check(config: &Config) -> Vec<Finding> {
    let (live, fixed) = (&config.live, &config.fixed);
    let trusted: Vec<_> = live.trusted_proxy.iter().map(ToString::to_string).collect();
    if trusted.is_empty() && !fixed.proxy_protocol.is_empty() {
        const SEEN: &str = "every peer is believed when its PROXY header names a client, and so escapes \
                            the shares and budgets of an address";
        let flag = "--trusted-proxy ADDR, the address of the proxy";
        return vec![Finding::warn(CHECK, SEEN).with_fix(flag, "trusted_proxy = [\"ADDR\"]")];
    }
    let channel = if fixed.channel.is_empty() { "" } else { ", and the peers of --channel" };
    vec![Finding::ok(
        CHECK,
        match (&trusted[..], channel) {
            ([], "") => {
                "none is trusted: behind one, all clients would share the connections of one address; \
                     --trusted-proxy ADDR names it"
                    .to_owned()
            }
            ([], _) => "clients are those that the peers of --channel name".to_owned(),
            (some, channel) => format!("clients are those that {}{channel} name", some.join(", ")),
        },
    )]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Verdict;

    fn found(args: &[&str]) -> Finding {
        check(&Config::of(args)).remove(0)
    }

    #[test]
    fn the_trusted_proxies_are_shown_and_their_lack_is_explained() {
        assert!(found(&[]).seen.contains("--trusted-proxy"));
        assert!(found(&["--trusted-proxy", "10.0.0.1,unix"]).seen.contains("10.0.0.1, unix"));
        assert!(found(&["--channel", "/run/channel"]).seen.contains("--channel"));
        assert_eq!(found(&["--channel", "/run/channel"]).verdict, Verdict::Ok);
    }

    #[test]
    fn a_header_that_every_peer_may_send_is_a_warning() {
        let open = found(&["--proxy-protocol=http"]);
        assert_eq!(open.verdict, Verdict::Warn);
        assert!(open.lasting.unwrap().contains("trusted_proxy"));
        assert_eq!(found(&["--proxy-protocol=http", "--trusted-proxy", "unix"]).verdict, Verdict::Ok);
    }
}
