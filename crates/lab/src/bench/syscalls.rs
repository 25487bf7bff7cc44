//! System calls of a server under load, counted by `strace -c` in a trial of their own.
//!
//! Tracing slows a server many times over, so that trial yields no other figures. Invariant: the tracer
//! must be detached before the next trial.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use rustix::process::{Pid, Signal, kill_process};

use super::limits::STRACE_TIME_MAX;
use crate::contender::Group;

const LOOK_EVERY: Duration = Duration::from_millis(20);

/// A tracer attached to a server.
pub(super) struct Tracer {
    strace: Child,
}

impl Tracer {
    /// Attaches to every process of `group`; the counts go to `file`.
    pub(super) fn attach(group: Group, file: &Path) -> Result<Tracer> {
        let processes = group.processes();
        let mut command = Command::new("strace");
        command.args(["-c", "-f", "-q", "-S", "calls", "-o"]).arg(file);
        command.args(processes.iter().flat_map(|process| ["-p".to_owned(), process.to_string()]));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let strace = command.spawn().context("strace cannot be started: apt-get install strace")?;
        let mut tracer = Tracer { strace };
        tracer.wait_for("attach", || processes.iter().all(|process| is_traced(*process)))?;
        Ok(tracer)
    }

    /// Detaches from the server, so that strace writes the counts.
    pub(super) fn detach(mut self) -> Result<()> {
        kill_process(Pid::from_child(&self.strace), Signal::INT)?;
        let until = Instant::now() + STRACE_TIME_MAX;
        while self.strace.try_wait()?.is_none() {
            if Instant::now() > until {
                bail!("strace does not let go");
            }
            std::thread::sleep(LOOK_EVERY);
        }
        Ok(())
    }

    fn wait_for(&mut self, what: &str, is_so: impl Fn() -> bool) -> Result<()> {
        let until = Instant::now() + STRACE_TIME_MAX;
        while !is_so() {
            if self.strace.try_wait()?.is_some() || Instant::now() > until {
                bail!("strace does not {what}: root may trace anything, others only what they started");
            }
            std::thread::sleep(LOOK_EVERY);
        }
        Ok(())
    }
}

impl Drop for Tracer {
    fn drop(&mut self) {
        // After `detach` it has ended; killing a tracer detaches it too.
        let _ = self.strace.kill();
        let _ = self.strace.wait();
    }
}

fn is_traced(process: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let mut tracers = status.lines().filter_map(|line| line.strip_prefix("TracerPid:"));
    tracers.next().is_some_and(|tracer| tracer.trim() != "0")
}

/// Parses the output of `strace -c` into calls by name: the count is in the fourth column, the name in the
/// last.
pub(super) fn read(text: &str) -> BTreeMap<String, u64> {
    let rows = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let calls = rows.filter_map(|row| {
        let (share, calls, name) = (row.first()?, row.get(3)?, row.last()?);
        let is_row = share.parse::<f64>().is_ok() && row.len() >= 5 && *name != "total";
        is_row.then_some(((*name).to_owned(), calls.parse().ok()?))
    });
    calls.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_read_from_the_columns_of_strace() {
        let text = "% time     seconds  usecs/call     calls    errors syscall\n\
                    ------ ----------- ----------- --------- --------- ----------------\n \
                    60.00    0.000600           1       600           sendto\n \
                    40.00    0.000400           2       200        10 recvfrom\n\
                    ------ ----------- ----------- --------- --------- ----------------\n\
                    100.00    0.001000           1       800        10 total\n";
        let calls = read(text);
        assert_eq!(calls.len(), 2);
        assert_eq!((calls["sendto"], calls["recvfrom"]), (600, 200));
    }
}
