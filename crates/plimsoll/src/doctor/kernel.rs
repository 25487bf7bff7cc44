//! Checks that the kernel has the required system calls.
//!
//! It does not judge by version numbers. Invariant: each required call is tried.

use plimsoll_engine::EngineKind;
use rustix::rand::{GetRandomFlags, getrandom};

use super::Finding;
use crate::config::Config;

const LASTING: &str = "a kernel of Linux 5.11 or later";

pub(super) fn check(config: &Config) -> Vec<Finding> {
    let mut findings = vec![check_calls(), check_chance()];
    if config.fixed.engine == EngineKind::Uring {
        findings.push(check_ring());
    }
    findings
}

/// Checks io_uring, if the engine `uring` is configured.
fn check_ring() -> Finding {
    match EngineKind::Uring.check() {
        Ok(()) => Finding::ok("io_uring", "the kernel has what the engine uring needs"),
        Err(error) => Finding::fail("io_uring", error.to_string()).with_fix(
            "sudo sysctl -w kernel.io_uring_disabled=0, or --engine epoll",
            "a kernel of Linux 6.1 or later that allows io_uring, or engine = \"epoll\"",
        ),
    }
}

/// Checks openat2, which confines names to their folder, and epoll_pwait2, which has precise timeouts.
fn check_calls() -> Finding {
    match plimsoll_engine::check_kernel() {
        Ok(()) => Finding::ok(
            "kernel",
            "openat2 keeps names beneath their folder, and epoll_pwait2 has precise timeouts",
        ),
        Err(error) => Finding::fail("kernel", error.to_string()).with_fix(
            "allow openat2 and epoll_pwait2 where a container's seccomp profile forbids them",
            LASTING,
        ),
    }
}

/// Checks the kernel's random number generator, which session tokens need.
fn check_chance() -> Finding {
    match getrandom(&mut [0; 16], GetRandomFlags::NONBLOCK) {
        Ok(16) => Finding::ok("chance", "the kernel gives random bytes"),
        _ => Finding::fail("chance", "the kernel has no random bytes yet, so no token could be drawn")
            .with_fix("wait until the machine has run for a minute", "a virtual machine with virtio-rng"),
    }
}
