//! Whether this system has the ring that the engine needs, and what to do where it has not.
//!
//! It changes nothing. What must hold: who asks for the engine hears at the start that it cannot be had,
//! and why; a ring that was made has everything that the engine uses.

use std::io;

use io_uring::{IoUring, Probe, opcode};
use rustix::io::Errno;

use crate::limits::{RING_COMPLETIONS, RING_SUBMISSIONS};

/// Why there is no ring.
#[derive(Debug, thiserror::Error)]
pub enum NoRing {
    /// The kernel does not know the ring, or not all of it.
    #[error(
        "this kernel's io_uring is missing or too old for the engine (Linux 6.1 is the first that will do): \
         use --engine epoll"
    )]
    TooOld,
    /// It is switched off, or a filter of system calls forbids it, as most containers' do.
    #[error(
        "io_uring is forbidden here: allow it (sysctl kernel.io_uring_disabled=0; in a container, a seccomp \
         profile that has io_uring_setup, io_uring_enter and io_uring_register) or use --engine epoll"
    )]
    Forbidden,
    /// Anything else.
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

/// Whether a ring can be had.
///
/// # Errors
/// Why not, and what to do.
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

/// A ring of this thread: only it submits, and the kernel's work for it is done when it waits.
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
            let told = reason(errno.into()).to_string();
            assert!(told.contains("--engine epoll") && told.contains(word), "{told}");
        }
    }
}
