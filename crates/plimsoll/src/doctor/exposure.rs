//! Secrets and data that other users of the machine can reach, and the user that the server runs as.
//!
//! [`crate::exposure`] finds them. Invariant: the doctor and the server's start say the same, except that
//! the doctor may run as root beside a server that does not.

use super::Finding;
use crate::config::Config;
use crate::exposure::{Exposure, Reporter, exposures};

const CHECK: &str = "privacy";

pub(super) fn check(config: &Config) -> Vec<Finding> {
    let found = exposures(config, Reporter::Doctor);
    if found.is_empty() {
        return vec![Finding::ok(CHECK, "no secret and no data is open to other users of this machine")];
    }
    let finding = |it: Exposure| Finding::warn(CHECK, it.seen).with_fix(it.remedy, "the same: it stays");
    found.into_iter().map(finding).collect()
}
