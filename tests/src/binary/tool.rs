//! Third-party programs that run as clients.
//!
//! It contains nothing specific to one program. A program ends in time or is killed with all processes that
//! it started. No configuration or proxy setting of this machine affects it.

use std::io::{Read, Seek as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};

use super::reached_within;

/// Longer than any program here takes, also on a slow machine.
const TIME_MAX: Duration = Duration::from_secs(60);

/// The result of a program's run.
pub struct Done {
    pub status: ExitStatus,
    pub stdout: Vec<u8>,
    pub stderr: String,
}

impl Done {
    /// Returns its standard output as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    /// Fails unless the program ended successfully.
    pub fn well(self) -> Done {
        assert!(self.status.success(), "{}: {}\n{}", self.status, self.text(), self.stderr);
        self
    }
}

/// Returns a program as a command without proxies in its environment, and with English messages.
pub fn tool(program: &str) -> Command {
    let mut command = Command::new(program);
    for name in ["http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"] {
        command.env_remove(name);
    }
    command.env("LC_ALL", "C.UTF-8").stdin(Stdio::null());
    command
}

/// Returns the first of `programs` that is installed.
pub fn first_installed(programs: &[&str]) -> String {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let is_there = |program: &&&str| std::env::split_paths(&folders).any(|at| at.join(program).is_file());
    let found = programs.iter().find(is_there);
    (*found.unwrap_or_else(|| panic!("none of {programs:?} is installed: run tests/install"))).to_owned()
}

/// Returns a standard input that has this text.
pub fn typed(text: &str) -> Stdio {
    let mut given = tempfile::tempfile().expect("a file");
    given.write_all(text.as_bytes()).expect("room for a file");
    given.rewind().expect("a file");
    Stdio::from(given)
}

/// Runs a command to its end.
pub fn run(command: &mut Command) -> Done {
    run_within(TIME_MAX, command)
}

/// As [`run`], for a command that may take this long.
pub fn run_within(time: Duration, command: &mut Command) -> Done {
    let name = command.get_program().to_string_lossy().into_owned();
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    let spawned = command.spawn();
    let mut child = spawned.unwrap_or_else(|error| panic!("{name}: {error}; run tests/install"));
    let (stdout, stderr) = (child.stdout.take().expect("a pipe"), child.stderr.take().expect("a pipe"));
    let (stdout, stderr) = (reading(stdout), reading(stderr));
    let in_time = reached_within(time, || child.try_wait().expect("a child").is_some());
    kill(&mut child);
    let status = child.wait().expect("a child");
    let (stdout, stderr) = (stdout.join().expect("no panic"), stderr.join().expect("no panic"));
    let stderr = String::from_utf8_lossy(&stderr).into_owned();
    assert!(in_time, "{name} did not end within {time:?}; it said: {stderr}");
    Done { status, stdout, stderr }
}

fn reading(mut from: impl Read + Send + 'static) -> std::thread::JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut all = Vec::new();
        // After a read error, the bytes before it are the result.
        let _ = from.read_to_end(&mut all);
        all
    })
}

/// Kills a child and all processes of its group.
pub fn kill(child: &mut Child) {
    // The group may be empty by now.
    let _ = kill_process_group(Pid::from_child(child), Signal::KILL);
}
