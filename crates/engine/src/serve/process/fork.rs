//! fork(2), and the end of what comes of it.
//!
//! It is not where a process does its work. What must hold: only a process with one thread is forked, so that
//! what comes of it may do whatever its parent may; it ends without running what is its parent's to run.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};

use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal};

/// What the folder of a process' threads has of links beside one for each of them.
const LINKS_BESIDE_THREADS: u64 = 2;

/// Makes a second process of this one: in this one it is the other's number, in the other none.
///
/// # Errors
/// Where this process has more than one thread; and what the system says when it has no more processes.
pub(super) fn fork() -> io::Result<Option<Pid>> {
    if threads()? != 1 {
        return Err(io::Error::other("only a process with one thread can be forked"));
    }
    // SAFETY: the child of a process with threads may call next to nothing, because another thread may have
    // held a lock (of the allocator, say) that nobody is left to let go. This process has one thread, which
    // is here and holds none.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        pid => Ok(Pid::from_raw(pid)),
    }
}

/// How many threads this process has: each is a folder in that of its tasks, and so a link to it.
fn threads() -> io::Result<u64> {
    let links = rustix::fs::stat("/proc/self/task")?.st_nlink;
    #[allow(clippy::useless_conversion, reason = "its type is another on other machines")]
    Ok(u64::from(links).saturating_sub(LINKS_BESIDE_THREADS))
}

/// Does `work` and ends the process with the code that it returns, or with `panicked`.
pub(super) fn end_with(panicked: i32, work: impl FnOnce() -> i32) -> ! {
    // Who unwinds from here would go on as the parent does.
    let code = catch_unwind(AssertUnwindSafe(work)).unwrap_or(panicked);
    // SAFETY: it does not return, and runs nothing. What else would be run at the end of a process (what was
    // registered with atexit, buffers to be flushed) is its parent's, and run by that.
    unsafe { libc::_exit(code) }
}

/// Has this process killed when its parent ends, in whatever way.
///
/// # Errors
/// Where the parent has ended already, or the system refuses.
pub(super) fn end_with_parent(parent: Pid) -> io::Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    // It may have ended before it was asked for.
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
