//! Checks the certificates of the listeners: whether they can be used, and until when.
//!
//! It creates none. Invariant: certificates that cannot be read are a failure, never skipped.

use std::time::SystemTime;

use super::Finding;
use crate::config::Config;
use crate::encryption::{self, Facts, facts_of, is_stand_in};

const CHECK: &str = "certificate";
/// The remedies for a certificate that an operator renews.
const BY_HAND: (&str, &str) = (
    "renew it where it was issued, and put the new one into the same files; the server reads them again",
    "a program that renews it, such as certbot; or --acme",
);
/// The remedies for one that the server should have renewed.
const BY_ACME: (&str, &str) =
    ("fix what the server's log says of its orders", "the checks below, which name what an order needs");

pub(super) fn check(config: &Config) -> Vec<Finding> {
    if let Err(error) = encryption::check(config) {
        const LASTING: &str = "the keys certificate and key in the configuration";
        return vec![
            Finding::fail(CHECK, format!("{error:#}")).with_fix("--certificate FILE --key FILE", LASTING),
        ];
    }
    if is_stand_in(config) {
        return vec![Finding::ok(
            CHECK,
            "none yet: the server orders one by ACME; until then, a self-signed one",
        )];
    }
    let facts = facts_of(config);
    if facts.is_empty() && config.live.tls.self_signed {
        return vec![Finding::ok(CHECK, "a self-signed one will be made")];
    }
    let remedy = if config.fixed.acme().is_some() { BY_ACME } else { BY_HAND };
    facts.iter().map(|facts| judge(facts, remedy, SystemTime::now())).collect()
}

fn judge(facts: &Facts, (now_by, lasting): (&str, &str), now: SystemTime) -> Finding {
    let (names, days) = (facts.names.join(", "), facts.days_left(now));
    let seen = format!("for {names}; {days} days left; SHA-256 {}", facts.fingerprint);
    if days < 0 {
        let seen = format!("for {names}; expired {} days ago: clients refuse it", -days);
        return Finding::fail(CHECK, seen).with_fix(now_by, lasting);
    }
    match facts.is_near_its_end(days) {
        true => Finding::warn(CHECK, seen).with_fix(now_by, lasting),
        false => Finding::ok(CHECK, seen),
    }
}
