//! Checks the certificates of the listeners: whether they can be used, and until when.
//!
//! It creates none. Invariant: certificates that cannot be read are a failure, never skipped.

use std::time::SystemTime;

use super::Finding;
use crate::config::Config;
use crate::encryption::{self, Facts, facts_of};

const CHECK: &str = "certificate";
const RENEW: &str =
    "renew it where it was issued, and put the new one into the same files; the server reads them again";

pub(super) fn check(config: &Config) -> Vec<Finding> {
    if let Err(error) = encryption::check(config) {
        const LASTING: &str = "the keys certificate and key in the configuration";
        return vec![
            Finding::fail(CHECK, format!("{error:#}")).mend("--certificate FILE --key FILE", LASTING),
        ];
    }
    let facts = facts_of(config);
    if facts.is_empty() && config.live.tls.self_signed {
        return vec![Finding::ok(CHECK, "a self-signed one will be made")];
    }
    facts.iter().map(|facts| judge(facts, SystemTime::now())).collect()
}

fn judge(facts: &Facts, now: SystemTime) -> Finding {
    let (names, days) = (facts.names.join(", "), facts.days_left(now));
    let seen = format!("for {names}; {days} days left; SHA-256 {}", facts.fingerprint);
    if days < 0 {
        let seen = format!("for {names}; expired {} days ago: clients refuse it", -days);
        return Finding::fail(CHECK, seen).mend(RENEW, "a program that renews it, such as certbot");
    }
    match facts.is_near_its_end(days) {
        true => Finding::warn(CHECK, seen).mend(RENEW, "a program that renews it, such as certbot"),
        false => Finding::ok(CHECK, seen),
    }
}
