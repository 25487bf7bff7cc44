//! Tests that this machine cannot run, because it lacks something.
//!
//! Such a test fails, because a test that did nothing must not look like one that passed.
//! `PLIMSOLL_ALLOW_SKIPS` names the needs that may be missing, separated by commas. The test then passes,
//! and `cargo xtask test` counts it as skipped.

#![allow(
    unreachable_pub,
    dead_code,
    clippy::panic,
    clippy::print_stderr,
    missing_docs,
    reason = "more than one crate's tests have this file, and none has each need"
)]

use std::fmt;
use std::io::Write as _;

/// The environment variable with the needs that may be missing.
const ALLOWED: &str = "PLIMSOLL_ALLOW_SKIPS";

/// Something that a machine may lack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// Clients that `tests/tools/install` installs from a package index.
    Clients,
    Ipv6,
    /// Mounting file systems, which takes root, FUSE and loop devices.
    Mounts,
    /// An unprivileged account besides root, which can run the binary.
    SecondUser,
    /// Attaching strace to a process.
    Tracing,
    /// The io_uring features that the engine needs.
    Uring,
}

impl fmt::Display for Need {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Need::Clients => "clients",
            Need::Ipv6 => "ipv6",
            Need::Mounts => "mounts",
            Need::SecondUser => "second-user",
            Need::Tracing => "tracing",
            Need::Uring => "uring",
        })
    }
}

/// Reports that the running test cannot be run here. Fails it, unless that is allowed.
pub fn skip(need: Need, reason: &str) {
    let allowed = std::env::var(ALLOWED).unwrap_or_default();
    assert!(
        is_allowed(need, &allowed),
        "this machine lacks what the test needs: {reason}. To skip such tests, set {ALLOWED}={need}"
    );
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("a test");
    // The harness captures the usual macros' output. Standard error may be closed.
    let _ = std::io::stderr().write_all(format!("skipped: {test}: {need}: {reason}\n").as_bytes());
}

fn is_allowed(need: Need, allowed: &str) -> bool {
    allowed.split(',').any(|name| name.trim() == need.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_named_need_may_be_missing() {
        assert!(is_allowed(Need::Uring, "ipv6, uring"));
        assert!(!is_allowed(Need::Uring, "ipv6"));
        assert!(!is_allowed(Need::Uring, ""));
        assert!(!is_allowed(Need::Uring, "1"));
    }
}
