//! The agent's side: handles requests until its input ends.
//!
//! It decides nothing about an experiment. Invariants: at the end of its input, or at SIGTERM, every
//! process group is ended, the conditions are undone and the agent's folder is removed, also in the middle
//! of a request. A daemon that leaves its process group is found where contenders have control groups.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, Read as _, Seek as _, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::ops::Range;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use serde::Serialize;

use super::limits::OUTPUT_BYTES_MAX;
use super::probe::{Probe, clock, cores_busy};
use super::processes::{Running, command, end, is_running, spawn};
use super::workspace::Workspace;
use super::{Command, FileSet, Greeting, Location, Output, Process, Request, Response, Use, files};
use crate::conditions::missing_programs;
use crate::experiment::conditions::Settings;
use crate::results::Machine;

/// The interval between two checks of a command.
const CHECK_EVERY: Duration = Duration::from_millis(2);
/// The interval between two checks whether the agent is to end.
const NOTICE_END_EVERY: Duration = Duration::from_millis(100);
/// The time over which a core counts as idle or not, and the share that an idle core may be busy.
const IDLE_TIME: Duration = Duration::from_millis(100);
const IDLE_SHARE: f64 = 0.1;
/// The distance of the first ports of two agents with consecutive process IDs.
const PORTS_APART: usize = 61;
/// The ports of contenders, below the ephemeral ports that kernels use by default.
const PORTS: Range<u16> = 18_100..28_100;
/// The first port that needs no rights of root.
const PORT_MIN: u16 = 1024;

/// Handles the requests of `input` until it ends, or `ending` is set.
///
/// # Errors
/// The output is closed. A request that fails is answered with its error.
pub fn serve(
    input: impl BufRead + Send + 'static,
    mut output: impl Write,
    ending: &Arc<AtomicBool>,
) -> Result<()> {
    let requests = requests(input, Arc::clone(ending));
    let mut agent = Server {
        ending: Arc::clone(ending),
        contenders: BTreeMap::new(),
        made: BTreeMap::new(),
        probe: None,
        workspace: None,
        ports: ports_of_agent(std::process::id(), usable_ports(ephemeral_min())),
    };
    while let Some(line) = next(&requests, ending) {
        let response = match serde_json::from_str(&line) {
            Ok(request) => agent.handle(request),
            Err(error) => Err(anyhow::anyhow!("not a request: {error}")),
        };
        let response = match response {
            Ok(value) => Response::Value(value),
            Err(error) => Response::Error(format!("{error:#}")),
        };
        writeln!(output, "{}", serde_json::to_string(&response)?)?;
        output.flush()?;
    }
    Ok(())
}

/// Returns the next request; none at the end of the input, and when `ending` is set.
fn next(requests: &Receiver<String>, ending: &AtomicBool) -> Option<String> {
    loop {
        match requests.recv_timeout(NOTICE_END_EVERY) {
            Err(RecvTimeoutError::Timeout) if !ending.load(Ordering::Relaxed) => {}
            received => return received.ok(),
        }
    }
}

/// Returns the lines of the input. A thread of its own reads them, so that the end of the input is noticed
/// during a request.
fn requests(input: impl BufRead + Send + 'static, ending: Arc<AtomicBool>) -> Receiver<String> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        for line in input.lines() {
            let Ok(line) = line else { break };
            if sender.send(line).is_err() {
                break;
            }
        }
        ending.store(true, Ordering::Relaxed);
    });
    receiver
}

struct Server {
    ending: Arc<AtomicBool>,
    /// The processes of each contender, in the order of their start.
    contenders: BTreeMap<String, Vec<Running>>,
    /// The file sets that are there, by their folders.
    made: BTreeMap<String, FileSet>,
    probe: Option<Probe>,
    workspace: Option<Workspace>,
    /// The ports that were not given out yet.
    ports: std::vec::IntoIter<u16>,
}

impl Server {
    fn handle(&mut self, request: Request) -> Result<serde_json::Value> {
        ensure!(!self.is_ending(), "the agent is ending");
        match request {
            Request::Hello { work } => json(&self.greet(&work)?),
            Request::Clock => json(&clock()),
            Request::Run(command) => json(&self.run(&command)?),
            Request::Ports(count) => json(&self.free_ports(count)?),
            Request::Folder { name } => json(&self.workspace()?.new_folders(&name)?),
            Request::MakeFiles(set) => json(&self.make_files(set)?),
            Request::RemoveFiles(set) => {
                self.made.remove(&set.folder);
                json(&files::remove(&self.workspace()?.root(), &set)?)
            }
            Request::Obstacles(settings) => json(&self.workspace()?.obstacles(&settings)),
            Request::MissingPrograms(programs) => json(&missing_programs(&programs)),
            Request::SetConditions(settings) => json(&self.set_conditions(&settings)?),
            Request::PrepareCache(cache, set) => json(&self.workspace()?.prepare_cache(cache, &set)?),
            Request::Start { name, processes } => json(&self.start(name, &processes)?),
            Request::Stop { name } => {
                self.stop(&name);
                json(&())
            }
            Request::Settle(seconds) => json(&self.settle(Duration::from_secs_f64(seconds))),
            Request::StartProbe { name } => {
                let running = self.contenders.get(&name).map_or(&[][..], Vec::as_slice);
                let processes = running.iter().map(Running::sampled).collect();
                self.probe = Some(Probe::start(processes));
                json(&())
            }
            Request::EndProbe { from, to } => {
                let probe = self.probe.take().context("nothing is sampled")?;
                let drops = self.workspace()?.end_dropping()?;
                json(&Use { drops, ..probe.end(from, to) })
            }
        }
    }

    fn is_ending(&self) -> bool {
        self.ending.load(Ordering::Relaxed)
    }

    fn greet(&mut self, work: &Path) -> Result<Greeting> {
        self.workspace = Some(Workspace::create(work)?);
        Ok(Greeting { version: env!("CARGO_PKG_VERSION").to_owned(), machine: Machine::this() })
    }

    fn workspace(&mut self) -> Result<&mut Workspace> {
        self.workspace.as_mut().context("the first request must be `hello`")
    }

    /// Sets conditions, unless they hold. All contenders are ended first: they run under the old ones.
    fn set_conditions(&mut self, settings: &Settings) -> Result<Location> {
        let workspace = self.workspace()?;
        if workspace.have(settings) {
            return Ok(workspace.location(false));
        }
        self.probe = None;
        self.stop_all();
        self.made.clear();
        let workspace = self.workspace()?;
        workspace.set(settings)?;
        Ok(workspace.location(true))
    }

    /// Makes the files of a set, unless as many of them were made before.
    fn make_files(&mut self, set: FileSet) -> Result<()> {
        let is_made = self.made.get(&set.folder).is_some_and(|made| {
            FileSet { count: set.count, ..made.clone() } == set && made.count >= set.count
        });
        if !is_made {
            let ending = Arc::clone(&self.ending);
            let workspace = self.workspace()?;
            let root = workspace.root();
            let make = || files::make(&root, &set, &|| ending.load(Ordering::Relaxed));
            workspace.applied().without_disk_limits(make)?;
            self.made.insert(set.folder.clone(), set);
        }
        Ok(())
    }

    /// Runs a command to its end, or until the agent ends. Processes that it leaves behind are ended.
    fn run(&self, wanted: &Command) -> Result<Output> {
        let mut command = command(&wanted.words)?;
        // Files, because a pipe could be held open by a process that the command leaves behind.
        let (mut stdout, mut stderr) = (tempfile::tempfile()?, tempfile::tempfile()?);
        command.envs(&wanted.environment).stdin(input_of(wanted)?);
        command.stdout(stdout.try_clone()?).stderr(stderr.try_clone()?);
        let mut child = spawn(&mut command, &wanted.cores)
            .with_context(|| format!("{} cannot be started", wanted.words.join(" ")))?;
        let until = Instant::now() + Duration::from_secs_f64(wanted.seconds_max);
        while is_running(&child) && !self.is_ending() && Instant::now() < until {
            std::thread::sleep(CHECK_EVERY);
        }
        let is_late = is_running(&child);
        let status = end(&mut child)?;
        ensure!(!self.is_ending(), "the agent is ending");
        ensure!(!is_late, "{} did not end in {} s", wanted.words.join(" "), wanted.seconds_max);
        Ok(Output { code: status.code(), stdout: text_of(&mut stdout)?, stderr: text_of(&mut stderr)? })
    }

    /// Returns free ports; each is given out once.
    fn free_ports(&mut self, count: usize) -> Result<Vec<u16>> {
        let is_free = |port: &u16| TcpListener::bind((Ipv4Addr::UNSPECIFIED, *port)).is_ok();
        let ports: Vec<u16> = self.ports.by_ref().filter(is_free).take(count).collect();
        ensure!(
            ports.len() == count,
            "there are not enough free ports below {}, the first ephemeral port: raise \
             net.ipv4.ip_local_port_range",
            ephemeral_min()
        );
        Ok(ports)
    }

    fn start(&mut self, name: String, processes: &[Process]) -> Result<()> {
        self.stop(&name);
        let ending = Arc::clone(&self.ending);
        let conditions = self.workspace()?.applied();
        let mut running = Vec::new();
        for process in processes {
            let folder = process.config.0.parent().context("a configuration file has a folder")?;
            let is_ending = || ending.load(Ordering::Relaxed);
            running.push(Running::start(process, folder, conditions, &is_ending)?);
        }
        self.contenders.insert(name, running);
        Ok(())
    }

    /// Ends the processes of a contender, the last that started first.
    fn stop(&mut self, name: &str) {
        if let Some(mut running) = self.contenders.remove(name) {
            while running.pop().is_some() {}
        }
    }

    fn stop_all(&mut self) {
        let names: Vec<String> = self.contenders.keys().cloned().collect();
        names.iter().for_each(|name| self.stop(name));
    }

    /// Waits until all cores are idle. Returns whether they are.
    fn settle(&self, time_max: Duration) -> bool {
        let until = Instant::now() + time_max;
        while Instant::now() < until && !self.is_ending() {
            let before = cores_busy();
            std::thread::sleep(IDLE_TIME);
            let busy = cores_busy();
            let mut busy = busy.iter().zip(before).map(|(after, before)| after - before);
            if busy.all(|busy| busy <= IDLE_TIME.as_secs_f64() * IDLE_SHARE) {
                return true;
            }
        }
        false
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop_all();
    }
}

/// Returns the ports in the order in which an agent gives them out. Agents on one machine begin at
/// different ports, because a port that one agent has given out is free until its contender listens.
fn ports_of_agent(process: u32, ports: Range<u16>) -> std::vec::IntoIter<u16> {
    let mut ports: Vec<u16> = ports.collect();
    let first = (process as usize).wrapping_mul(PORTS_APART) % ports.len();
    ports.rotate_left(first);
    ports.into_iter()
}

/// Returns the ports of contenders: as many below the first ephemeral port if that is lower than usual,
/// because any outgoing connection may take an ephemeral port.
fn usable_ports(ephemeral_min: u16) -> Range<u16> {
    let end = PORTS.end.min(ephemeral_min.max(PORT_MIN + 1));
    PORTS.start.min(end.saturating_sub(PORTS.end - PORTS.start)).max(PORT_MIN)..end
}

/// Returns the first port that the kernel gives to outgoing connections.
fn ephemeral_min() -> u16 {
    let range = fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap_or_default();
    range.split_whitespace().next().and_then(|port| port.parse().ok()).unwrap_or(PORTS.end)
}

fn json(value: &impl Serialize) -> Result<serde_json::Value> {
    Ok(serde_json::to_value(value)?)
}

/// Returns the standard input of a command.
fn input_of(wanted: &Command) -> Result<Stdio> {
    if wanted.input.is_empty() {
        return Ok(Stdio::null());
    }
    let mut input = tempfile::tempfile()?;
    input.write_all(wanted.input.as_bytes())?;
    input.rewind()?;
    Ok(input.into())
}

/// Returns the output that a command wrote to a file.
fn text_of(output: &mut fs::File) -> Result<String> {
    output.rewind()?;
    let mut bytes = Vec::new();
    output.take(OUTPUT_BYTES_MAX).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agents_begin_at_different_ports_and_give_out_all_of_them() {
        let first: Vec<u16> =
            (1000..1100).map(|process| ports_of_agent(process, PORTS).next().unwrap()).collect();
        let different: std::collections::BTreeSet<u16> = first.iter().copied().collect();
        assert_eq!(different.len(), first.len());
        let all: std::collections::BTreeSet<u16> = ports_of_agent(12345, PORTS).collect();
        assert_eq!(all.len(), PORTS.len());
    }

    #[test]
    fn contenders_get_no_ephemeral_ports() {
        assert_eq!(usable_ports(32_768), PORTS);
        assert_eq!((usable_ports(20_000), usable_ports(10_000)), (10_000..20_000, 1024..10_000));
        assert_eq!(usable_ports(1024), 1024..1025);
    }
}
