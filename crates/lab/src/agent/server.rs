//! The agent's side: handles requests until its input ends.
//!
//! It decides nothing about an experiment. Invariants: at the end of its input, or at SIGTERM, every
//! process is ended and the agent's folder is removed, also in the middle of a request.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use serde::Serialize;
use tempfile::TempDir;

use super::probe::{Probe, clock, cores_busy};
use super::processes::{Running, command, end, spawn};
use super::{Command, FileSet, Greeting, Output, Process, Request, Response, files};
use crate::results::Machine;

/// The interval between two checks of a command.
const CHECK_EVERY: Duration = Duration::from_millis(2);
/// The time over which a core counts as idle or not, and the share that an idle core may be busy.
const IDLE_TIME: Duration = Duration::from_millis(100);
const IDLE_SHARE: f64 = 0.1;
/// The ports of contenders, below the kernel's ephemeral ports.
const PORTS: std::ops::Range<u16> = 18_100..28_100;

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
        folder: None,
        contenders: BTreeMap::new(),
        probe: None,
        ports: PORTS,
    };
    while let Ok(line) = requests.recv() {
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
    /// The agent's folder, which is removed with it.
    folder: Option<TempDir>,
    /// The processes of each contender, in the order of their start.
    contenders: BTreeMap<String, Vec<Running>>,
    probe: Option<Probe>,
    /// The ports that were not given out yet.
    ports: std::ops::Range<u16>,
}

impl Server {
    fn handle(&mut self, request: Request) -> Result<serde_json::Value> {
        ensure!(!self.is_ending(), "the agent is ending");
        match request {
            Request::Hello { work } => json(&self.greet(&work)?),
            Request::Clock => json(&clock()),
            Request::Run(command) => json(&self.run(&command)?),
            Request::Ports(count) => json(&self.free_ports(count)?),
            Request::Folder { name } => json(&self.new_folder(&name)?),
            Request::MakeFiles(set) => json(&files::make(&self.root()?, &set)?),
            Request::RemoveFiles(set) => json(&files::remove(&self.root()?, &set)?),
            Request::Cache(mode, set) => json(&self.set_cache(mode, &set)?),
            Request::Start { name, processes } => json(&self.start(name, &processes)?),
            Request::Stop { name } => {
                self.stop(&name);
                json(&())
            }
            Request::Settle(seconds) => json(&self.settle(Duration::from_secs_f64(seconds))),
            Request::StartProbe { name } => {
                let running = self.contenders.get(&name).map_or(&[][..], Vec::as_slice);
                let processes = running.iter().map(|one| (one.name.clone(), one.id())).collect();
                self.probe = Some(Probe::start(processes));
                json(&())
            }
            Request::EndProbe { from, to } => {
                let probe = self.probe.take().context("nothing is sampled")?;
                json(&probe.end(from, to))
            }
        }
    }

    fn is_ending(&self) -> bool {
        self.ending.load(Ordering::Relaxed)
    }

    fn greet(&mut self, work: &Path) -> Result<Greeting> {
        fs::create_dir_all(work).with_context(|| format!("cannot create {}", work.display()))?;
        let folder = tempfile::Builder::new().prefix("plimsoll-lab.").tempdir_in(work)?;
        let root = folder.path().join("files");
        fs::create_dir(&root)?;
        // Servers that drop root's rights must be able to read the files.
        for path in [folder.path(), &root] {
            fs::set_permissions(path, fs::Permissions::from_mode(0o755))?;
        }
        let greeting = Greeting {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            machine: Machine::this(),
            folder: folder.path().to_owned(),
            root,
            program: std::env::current_exe()?,
        };
        self.folder = Some(folder);
        Ok(greeting)
    }

    fn folder(&self) -> Result<&Path> {
        self.folder.as_ref().map(TempDir::path).context("the first request must be `hello`")
    }

    fn root(&self) -> Result<PathBuf> {
        Ok(self.folder()?.join("files"))
    }

    /// Creates a folder; servers that drop root's rights must be able to write to it.
    fn new_folder(&self, name: &str) -> Result<PathBuf> {
        let prefix = format!("{}.", name.replace('/', "-"));
        let folder = tempfile::Builder::new().prefix(&prefix).tempdir_in(self.folder()?)?.keep();
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o777))?;
        Ok(folder)
    }

    fn set_cache(&self, mode: super::CacheMode, set: &FileSet) -> Result<()> {
        files::set_cache(&self.root()?, mode, set)
    }

    /// Runs a command to its end, or until the agent ends.
    fn run(&self, wanted: &Command) -> Result<Output> {
        let mut command = command(&wanted.words)?;
        command.envs(&wanted.environment).stdin(Stdio::piped());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = spawn(&mut command, &wanted.cores)
            .with_context(|| format!("{} cannot be started", wanted.words.join(" ")))?;
        if let Some(mut stdin) = child.stdin.take() {
            // A command that reads no input closes it, which is no error.
            let _ = stdin.write_all(wanted.input.as_bytes());
        }
        let (stdout, stderr) = (read_all(child.stdout.take()), read_all(child.stderr.take()));
        let until = Instant::now() + Duration::from_secs_f64(wanted.seconds_max);
        let status = loop {
            if let Some(status) = child.try_wait()? {
                break status;
            }
            if self.is_ending() || Instant::now() > until {
                end(&mut child);
                ensure!(!self.is_ending(), "the agent is ending");
                bail!("{} did not end in {} s", wanted.words.join(" "), wanted.seconds_max);
            }
            std::thread::sleep(CHECK_EVERY);
        };
        let text = |thread: std::thread::JoinHandle<String>| thread.join().unwrap_or_default();
        Ok(Output { code: status.code(), stdout: text(stdout), stderr: text(stderr) })
    }

    /// Returns free ports; each is given out once.
    fn free_ports(&mut self, count: usize) -> Result<Vec<u16>> {
        let is_free = |port: &u16| TcpListener::bind((Ipv4Addr::UNSPECIFIED, *port)).is_ok();
        let ports: Vec<u16> = self.ports.by_ref().filter(is_free).take(count).collect();
        ensure!(
            ports.len() == count,
            "there are not enough free ports from {} to {}",
            PORTS.start,
            PORTS.end
        );
        Ok(ports)
    }

    fn start(&mut self, name: String, processes: &[Process]) -> Result<()> {
        self.stop(&name);
        let mut running = Vec::new();
        for process in processes {
            let folder = process.config.0.parent().context("a configuration file has a folder")?;
            let is_ending = || self.is_ending();
            running.push(Running::start(process, folder, &is_ending)?);
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
        let names: Vec<String> = self.contenders.keys().cloned().collect();
        names.iter().for_each(|name| self.stop(name));
    }
}

fn json(value: &impl Serialize) -> Result<serde_json::Value> {
    Ok(serde_json::to_value(value)?)
}

fn read_all(pipe: Option<impl std::io::Read + Send + 'static>) -> std::thread::JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            // The bytes before an error are still of use.
            let _ = pipe.read_to_end(&mut bytes);
        }
        String::from_utf8_lossy(&bytes).into_owned()
    })
}
