//! A running contender: start, readiness check, response check, and termination with all its processes.
//!
//! It requests one file to check the server; it generates no load. Invariant: no process started here
//! outlives its value, however the run ends.

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use rustix::process::{Pid, Signal, kill_process_group};

use super::limits::{ANSWER_TIME_MAX, END_TIME_MAX, QUOTED_BYTES_MAX, START_TIME_MAX};
use super::{Contender, Group, Places, find_program, on_core};

/// Interval between checks of its state.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Range of the ports to try, below the kernel's ephemeral ports.
const PORTS: std::ops::Range<u16> = 18_100..28_100;

/// A server that accepts connections.
#[derive(Debug)]
pub struct Running {
    /// The contender's description.
    pub contender: Contender,
    /// The port on 127.0.0.1.
    pub port: u16,
    child: Child,
}

impl Running {
    /// Starts a contender on `core` and waits until it accepts connections.
    ///
    /// # Errors The reason why it did not start, with the end of its output.
    pub fn start(
        contender: &Contender,
        core: Option<usize>,
        logs: bool,
        places: &Started<'_>,
    ) -> Result<Running> {
        let port = free_port(places.ports_from).context("no port is free")?;
        let dir = places.own.join(&contender.name);
        fs::create_dir_all(&dir)?;
        // Some servers drop root privileges before they open their logs.
        fs::set_permissions(&dir, fs::Permissions::from_mode(0o1777))?;
        let logs = if logs { &contender.logs_on } else { &contender.logs_off };
        let filled = Places { root: places.root, port, dir: &dir, plimsoll: places.plimsoll, logs };
        fs::write(filled.config(), filled.fill(&contender.config))?;
        let said = dir.join("said");
        let child = on_core(core, &mut command(contender, &filled, &said)?)
            .with_context(|| format!("{} cannot be started", contender.name))?;
        let mut running = Running { contender: contender.clone(), port, child };
        running.wait().with_context(|| format!("{}: {}", contender.name, last_of(&said)))?;
        Ok(running)
    }

    /// Returns its process group.
    pub fn group(&self) -> Group {
        Group(self.child.id())
    }

    /// Checks that the response to `path` has the bytes of `file`.
    ///
    /// # Errors
    /// The response line received instead, or the connection's error.
    pub fn check(&self, path: &str, file: &Path) -> Result<()> {
        let answer =
            self.first_answer(path).with_context(|| format!("{} does not answer", self.contender.name))?;
        let end = answer.windows(4).position(|at| at == b"\r\n\r\n").map(|at| at + 4);
        let (head, body) = answer.split_at(end.unwrap_or(0));
        let told = String::from_utf8_lossy(head.split(|byte| *byte == b'\r').next().unwrap_or_default());
        ensure!(
            body == fs::read(file)?,
            "{} answers {path} with {told:?} and other bytes",
            self.contender.name
        );
        Ok(())
    }

    /// Retries until a response is received: some servers reset connections until fully started.
    fn first_answer(&self, path: &str) -> std::io::Result<Vec<u8>> {
        let until = Instant::now() + ANSWER_TIME_MAX;
        loop {
            match self.ask(path) {
                Err(_) if Instant::now() < until => std::thread::sleep(LOOK_EVERY),
                answered => return answered,
            }
        }
    }

    fn ask(&self, path: &str) -> std::io::Result<Vec<u8>> {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port))?;
        stream.set_read_timeout(Some(ANSWER_TIME_MAX))?;
        write!(stream, "GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer)?;
        Ok(answer)
    }

    fn wait(&mut self) -> Result<()> {
        let until = Instant::now() + START_TIME_MAX;
        while Instant::now() < until {
            if let Some(status) = self.child.try_wait()? {
                bail!("it ended with {status}");
            }
            if TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).is_ok() {
                return Ok(());
            }
            std::thread::sleep(LOOK_EVERY);
        }
        bail!("it does not answer within {} s", START_TIME_MAX.as_secs())
    }

    fn has_ended(&mut self) -> bool {
        let until = Instant::now() + END_TIME_MAX;
        while Instant::now() < until {
            // A process whose status is unreadable is treated as ended.
            if self.child.try_wait().map_or(true, |status| status.is_some()) {
                return true;
            }
            std::thread::sleep(LOOK_EVERY);
        }
        false
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let group = Pid::from_child(&self.child);
        // An error means that the group is empty, which is the goal.
        let _ = kill_process_group(group, Signal::TERM);
        self.has_ended();
        let _ = kill_process_group(group, Signal::KILL);
        let _ = self.child.wait();
    }
}

/// The folders, the program and the ports for starting a contender.
#[derive(Clone, Copy, Debug)]
pub struct Started<'a> {
    /// The folder that is served.
    pub root: &'a Path,
    /// A folder in which each contender gets its own subfolder.
    pub own: &'a Path,
    /// The plimsoll program under measurement.
    pub plimsoll: &'a Path,
    /// Offset of the first port to try, from the start of the range.
    pub ports_from: u16,
}

fn command(contender: &Contender, places: &Places<'_>, said: &Path) -> Result<Command> {
    let mut words = contender.command.iter().map(|word| places.fill(word)).filter(|word| !word.is_empty());
    let program = words.next().unwrap_or_default();
    let at: PathBuf = find_program(&program).with_context(|| format!("{program} is not installed"))?;
    let said = File::create(said)?;
    let mut command = Command::new(at);
    command.args(words).current_dir(places.dir).stdin(Stdio::null());
    command.envs(contender.environment.iter().map(|(name, value)| (name, places.fill(value))));
    // A process group of its own: Ctrl-C reaches only this program, which then ends the group.
    command.stdout(said.try_clone()?).stderr(said).process_group(0);
    Ok(command)
}

/// Finds a port without a listener. If another process takes it meanwhile, the server reports an error.
fn free_port(from: u16) -> Option<u16> {
    let mut ports = PORTS.skip(usize::from(from));
    ports.find(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok())
}

/// Returns the end of a server's output.
fn last_of(said: &Path) -> String {
    let said = fs::read(said).unwrap_or_default();
    let from = said.len().saturating_sub(QUOTED_BYTES_MAX);
    String::from_utf8_lossy(&said[from..]).trim().to_owned()
}
