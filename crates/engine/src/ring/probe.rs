//! Probes whether this kernel has the io_uring features that the engine needs, with advice if it does not.
//!
//! It changes nothing. Invariants: a missing feature is reported at the start, with its reason. A ring that
//! was created has every feature that the engine uses.

use std::io;

use io_uring::{IoUring, Probe, opcode};
use rustix::io::Errno;

use crate::limits::{RING_COMPLETIONS, RING_SUBMISSIONS};

/// The reason why no ring can be created.
#[derive(Debug, thiserror::Error)]
pub enum NoRing {
    /// The kernel has no io_uring, or lacks some of its features.
    #[error(
        "this kernel's io_uring is missing or too old for the engine (Linux 6.1 is the first that will do): \
         use --engine epoll"
    )]
    TooOld,
    /// It is disabled, or a seccomp filter forbids it, as in most containers.
    #[error(
        "io_uring is forbidden here: allow it (sysctl kernel.io_uring_disabled=0; in a container, a seccomp \
         profile that has io_uring_setup, io_uring_enter and io_uring_register) or use --engine epoll"
    )]
    Forbidden,
    /// Any other error.
    #[error("there is no ring to be had: {0}; use --engine epoll")]
    Failed(#[from] io::Error),
}

impl From<NoRing> for io::Error {
    fn from(error: NoRing) -> io::Error {
        match error {
            NoRing::Failed(error) => error,
            NoRing::TooOld => io::Error::new(io::ErrorKind::Unsupported, error),
            NoRing::Forbidden => io::Error::new(io::ErrorKind::PermissionDenied, error),
        }
    }
}

/// Checks that a ring can be created.
///
/// # Errors
/// The reason, with advice for the operator.
pub fn check_ring() -> Result<(), NoRing> {
    let ring = build()?;
    let mut probe = Probe::new();
    ring.submitter().register_probe(&mut probe).map_err(reason)?;
    let needed = [
        opcode::Recv::CODE,
        opcode::Send::CODE,
        opcode::Accept::CODE,
        opcode::Close::CODE,
        opcode::PollAdd::CODE,
        opcode::AsyncCancel::CODE,
    ];
    if needed.into_iter().all(|code| probe.is_supported(code)) { Ok(()) } else { Err(NoRing::TooOld) }
}

/// Creates a ring for this thread: only this thread submits, and deferred kernel work runs when it waits.
pub(super) fn build() -> Result<IoUring, NoRing> {
    let ring = IoUring::builder()
        .setup_single_issuer()
        .setup_coop_taskrun()
        .setup_defer_taskrun()
        .setup_cqsize(RING_COMPLETIONS)
        .setup_clamp()
        .build(RING_SUBMISSIONS)
        .map_err(reason)?;
    let has = ring.params();
    if has.is_feature_nodrop() && has.is_feature_ext_arg() && has.is_feature_skip_cqe_on_success() {
        Ok(ring)
    } else {
        Err(NoRing::TooOld)
    }
}

fn reason(error: io::Error) -> NoRing {
    match Errno::from_io_error(&error) {
        Some(Errno::NOSYS | Errno::INVAL) => NoRing::TooOld,
        Some(Errno::PERM | Errno::ACCESS) => NoRing::Forbidden,
        _ => NoRing::Failed(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_says_what_to_do() {
        for (errno, word) in [
            (Errno::NOSYS, "Linux 6.1"),
            (Errno::INVAL, "Linux 6.1"),
            (Errno::PERM, "kernel.io_uring_disabled"),
            (Errno::NOMEM, "memory"),
        ] {
            let message = reason(errno.into()).to_string();
            assert!(message.contains("--engine epoll") && message.contains(word), "{message}");
        }
    }
}
