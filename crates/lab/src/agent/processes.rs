//! The processes of contenders: start, readiness, and the end with all their children.
//!
//! It sends no load. Invariant: no process group started here outlives its value. A daemon that leaves its
//! process group is found where it has a control group.

use std::fs::{self, File};
use std::io;
use std::net::{TcpStream, ToSocketAddrs as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use rustix::thread::{CpuSet, sched_setaffinity};

use super::Process;
use super::limits::{END_TIME_MAX, QUOTED_BYTES_MAX, START_TIME_MAX};
use super::probe::SampledProcess;
use crate::conditions::{AppliedConditions, ContenderGroup, find_program};

/// The interval between two checks of a process.
const CHECK_EVERY: Duration = Duration::from_millis(10);
/// The time for one attempt to connect.
const CONNECT_TIME: Duration = Duration::from_secs(1);

/// A running process, the leader of its process group.
#[derive(Debug)]
pub(super) struct Running {
    /// The name in the experiment.
    pub(super) name: String,
    child: Child,
    /// Dropped after the child has ended: it ends what is left over.
    group: Option<ContenderGroup>,
}

impl Running {
    /// Starts a process under conditions and waits until it accepts connections. Its output goes to a file
    /// of `folder`. `is_ending` ends the wait.
    pub(super) fn start(
        process: &Process,
        folder: &Path,
        conditions: &AppliedConditions,
        is_ending: &dyn Fn() -> bool,
    ) -> Result<Running> {
        // A server that is there already would be taken for this one.
        let taken = process.ready.iter().find(|address| accepts(address));
        ensure!(
            taken.is_none(),
            "another server accepts connections at {}",
            taken.map_or("", String::as_str)
        );
        let (path, config) = &process.config;
        fs::write(path, config).with_context(|| format!("cannot write {}", path.display()))?;
        let output = folder.join(format!("{}.output", process.name));
        let file = File::create(&output)?;
        let mut command = command(&process.words)?;
        command.envs(&process.environment).current_dir(folder).stdin(Stdio::null());
        command.stdout(file.try_clone()?).stderr(file);
        let group = conditions.contender_group();
        let child = conditions
            .spawn_in_group(group.as_ref(), || spawn(&mut command, &process.cores))
            .with_context(|| format!("process {:?} cannot be started", process.name))?;
        let mut running = Running { name: process.name.clone(), child, group };
        running
            .wait_until_ready(&process.ready, is_ending)
            .with_context(|| format!("process {:?}: {}", process.name, end_of(&output)))?;
        Ok(running)
    }

    /// Returns what is to be sampled of it.
    pub(super) fn sampled(&self) -> SampledProcess {
        let group = self.group.as_ref().map(|group| group.counters().clone());
        SampledProcess { name: self.name.clone(), id: self.child.id(), group }
    }

    fn wait_until_ready(&mut self, ready: &[String], is_ending: &dyn Fn() -> bool) -> Result<()> {
        let until = Instant::now() + START_TIME_MAX;
        for address in ready {
            while !accepts(address) {
                if let Some(status) = self.child.try_wait()? {
                    bail!("it ended with {status}");
                }
                if is_ending() {
                    bail!("the run was ended");
                }
                if Instant::now() > until {
                    bail!("it does not accept connections at {address} after {} s", START_TIME_MAX.as_secs());
                }
                std::thread::sleep(CHECK_EVERY);
            }
        }
        // A process without an address to wait for has at least started.
        match self.child.try_wait()? {
            Some(status) if !status.success() => bail!("it ended with {status}"),
            _ => Ok(()),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // The status of the process is not needed.
        let _ = end(&mut self.child);
    }
}

/// Returns whether a process accepts connections at an address.
fn accepts(address: &str) -> bool {
    let mut addresses = address.to_socket_addrs().into_iter().flatten();
    addresses.any(|address| TcpStream::connect_timeout(&address, CONNECT_TIME).is_ok())
}

/// Returns whether a child has not ended yet. It is not reaped, so that its process group keeps its number.
pub(super) fn is_running(child: &Child) -> bool {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    waitid(WaitId::Pid(Pid::from_child(child)), options).is_ok_and(|status| status.is_none())
}

/// Ends a child with its whole process group: by SIGTERM, then by SIGKILL.
pub(super) fn end(child: &mut Child) -> io::Result<ExitStatus> {
    let group = Pid::from_child(child);
    // Errors of the signals mean that the group is empty, which is the goal.
    if is_running(child) {
        let _ = kill_process_group(group, Signal::TERM);
    }
    let until = Instant::now() + END_TIME_MAX;
    while is_running(child) && Instant::now() < until {
        std::thread::sleep(CHECK_EVERY);
    }
    let _ = kill_process_group(group, Signal::KILL);
    child.wait()
}

/// Returns a command whose process has a group of its own.
pub(super) fn command(words: &[String]) -> Result<Command> {
    let (program, arguments) = words.split_first().context("a command has no program")?;
    let path = find_program(program).with_context(|| format!("{program} is not installed"))?;
    let mut command = Command::new(path);
    command.args(arguments).process_group(0);
    Ok(command)
}

/// Starts a command on some cores; on any if there are none.
pub(crate) fn spawn(command: &mut Command, cores: &[usize]) -> io::Result<Child> {
    if cores.is_empty() {
        return command.spawn();
    }
    // A child inherits the affinity of the thread that starts it.
    let start = || {
        let mut set = CpuSet::new();
        cores.iter().filter(|core| **core < CpuSet::MAX_CPU).for_each(|core| set.set(*core));
        sched_setaffinity(None, &set)?;
        command.spawn()
    };
    std::thread::scope(|scope| scope.spawn(start).join())
        .unwrap_or_else(|_| Err(io::Error::other("the thread that starts processes panicked")))
}

/// Returns the end of the output of a process.
fn end_of(output: &Path) -> String {
    let output = fs::read(output).unwrap_or_default();
    let from = output.len().saturating_sub(QUOTED_BYTES_MAX);
    String::from_utf8_lossy(&output[from..]).trim().to_owned()
}
