//! fork(2), and the end of forked processes.
//!
//! It does not do the work of a process. Invariants: only a process with one thread is forked, so that the
//! child may call any function. The child ends without running its parent's exit handlers.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};

use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal};

/// Links of the folder `/proc/self/task` in addition to one for each thread.
const LINKS_BESIDE_THREADS: u64 = 2;

/// Forks this process. Returns the child's ID in the parent, and `None` in the child.
///
/// # Errors
/// Fails if this process has more than one thread, or if the kernel allows no more processes.
pub(super) fn fork() -> io::Result<Option<Pid>> {
    if threads()? != 1 {
        return Err(io::Error::other("only a process with one thread can be forked"));
    }
    // SAFETY: after a fork with several threads, the child may call hardly any function: another thread may
    // have held a lock, such as the allocator's, which is never released. This process has one thread, which
    // is here and holds none.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        pid => Ok(Pid::from_raw(pid)),
    }
}

/// Returns how many threads this process has: each has a folder in that of the tasks, and so adds a link to
/// it.
fn threads() -> io::Result<u64> {
    let links = rustix::fs::stat("/proc/self/task")?.st_nlink;
    #[allow(clippy::useless_conversion, reason = "its type is another on other machines")]
    Ok(u64::from(links).saturating_sub(LINKS_BESIDE_THREADS))
}

/// Runs `work` and ends the process with the code that it returns, or with `panicked`.
pub(super) fn end_with(panicked: i32, work: impl FnOnce() -> i32) -> ! {
    // Unwinding further would run the parent's code in the child.
    let code = catch_unwind(AssertUnwindSafe(work)).unwrap_or(panicked);
    // SAFETY: it does not return, and runs nothing. The exit handlers of a process (atexit, flushing of
    // buffers) are the parent's, and the parent runs them.
    unsafe { libc::_exit(code) }
}

/// Has the kernel kill this process when its parent ends.
///
/// # Errors
/// Fails if the parent has ended already, or if the kernel refuses.
pub(super) fn end_with_parent(parent: Pid) -> io::Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    // The parent may have ended before the request.
    if getppid() == Some(parent) { Ok(()) } else { Err(io::Error::other("the parent process has ended")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_with_threads_is_not_forked() {
        // Every test runs on a thread of its own.
        assert!(threads().unwrap() > 1);
        assert!(fork().unwrap_err().to_string().contains("one thread"));
    }
}
