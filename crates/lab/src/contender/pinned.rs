//! Starts programs pinned to a core.
//!
//! A child inherits the CPU affinity of the thread that starts it, so a temporary thread pins itself and
//! starts the child. Invariant: the affinity of the caller does not change.

use std::io;
use std::process::{Child, Command};

use rustix::thread::{CpuSet, sched_setaffinity};

/// Starts `command` pinned to `core`, with all its children; on any core if `core` is None.
///
/// # Errors
/// The kernel's error: no such core, or no such program.
pub fn on_core(core: Option<usize>, command: &mut Command) -> io::Result<Child> {
    let Some(core) = core else { return command.spawn() };
    let start = || {
        let mut cores = CpuSet::new();
        cores.set(core);
        sched_setaffinity(None, &cores)?;
        command.spawn()
    };
    std::thread::scope(|scope| scope.spawn(start).join())
        .unwrap_or_else(|_| Err(io::Error::other("the thread that starts programs panicked")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::thread::sched_getaffinity;

    #[test]
    fn a_child_is_on_its_core_and_we_are_where_we_were() {
        let before = sched_getaffinity(None).unwrap();
        let core = (0..CpuSet::MAX_CPU).find(|core| before.is_set(*core)).unwrap();
        let mut command = Command::new("grep");
        command.args(["Cpus_allowed_list", "/proc/self/status"]).stdout(std::process::Stdio::piped());
        let done = on_core(Some(core), &mut command).unwrap().wait_with_output().unwrap();
        let told = String::from_utf8(done.stdout).unwrap();
        assert_eq!(told.split_whitespace().last(), Some(core.to_string().as_str()), "{told}");
        assert_eq!(sched_getaffinity(None).unwrap(), before);
    }
}
