//! The generator's CPU time, the cores that its threads may use, and the machine's monotonic clock.
//!
//! It measures no server. Invariants: a thread's CPU time is the kernel's figure, including time in the
//! kernel; the monotonic clock is the one that other processes of the machine read.

use std::io;
use std::time::Duration;

use rustix::thread::{CpuSet, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};

/// Returns the CPU time of this thread so far.
#[must_use]
pub fn of_this_thread() -> Duration {
    read(ClockId::ThreadCPUTime)
}

/// Returns the time of CLOCK_MONOTONIC, which counts from the boot of the machine.
#[must_use]
pub fn monotonic() -> Duration {
    read(ClockId::Monotonic)
}

fn read(clock: ClockId) -> Duration {
    let time = clock_gettime(clock);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// Pins this thread, and those that it starts, to the given cores.
///
/// # Errors
/// An error if a core does not exist or is not permitted.
pub(crate) fn keep_to(cpus: &[usize]) -> io::Result<()> {
    if cpus.is_empty() {
        return Ok(());
    }
    let mut set = CpuSet::new();
    for cpu in cpus {
        if *cpu >= CpuSet::MAX_CPU {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        set.set(*cpu);
    }
    Ok(sched_setaffinity(None, &set)?)
}
