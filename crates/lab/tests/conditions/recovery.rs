//! An agent that is killed with SIGKILL, and the next one, which puts the machine back.
//!
//! The killed agent is this program itself, which runs the same test with a folder in its environment.
//! Invariant: nothing of the killed agent is left, and nothing of a running agent is undone.

use std::fs;
use std::io::{BufRead as _, BufReader, Lines, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use plimsoll_lab::conditions::{AppliedConditions, obstacles, recover};
use plimsoll_lab::experiment::conditions::{Disk, Image, Link, Settings};

use crate::kernel::{self, AloneOnMachine, is_root, read};

/// The work folder of the agent that is killed.
const WORK: &str = "PLIMSOLL_LAB_TEST_WORK";
/// The test that is also the agent.
const TEST: &str = "recovery::after_a_killed_agent_the_next_one_puts_the_machine_back";
const CONGESTION: &str = "/proc/sys/net/ipv4/tcp_congestion_control";

fn everything() -> Settings {
    let image = Image { kind: "ext4".to_owned(), bytes: 64 << 20, block: None, read_ahead: Some(32 << 10) };
    Settings {
        memory: Some(64 << 20),
        disk: Disk { read: Some(5 << 20), write: Some(5 << 20), operations: Some(500) },
        image: Some(image),
        link: Some(Link { rate: Some(10_000_000), ..Link::default() }),
        ..Settings::default()
    }
}

fn other_congestion() -> Settings {
    let name = if read(Path::new(CONGESTION)) == "reno" { "cubic" } else { "reno" };
    Settings { congestion: Some(name.to_owned()), ..Settings::default() }
}

/// Applies all conditions, and waits to be killed.
fn be_the_agent(work: &Path) {
    let applied = AppliedConditions::apply(&everything(), work).unwrap();
    let _congestion = AppliedConditions::apply(&other_congestion(), work).unwrap();
    let file = fs::File::create(applied.root().join("open")).unwrap();
    let start = || Command::new("sleep").arg("1000").stdin(Stdio::null()).stdout(file).spawn();
    let mut contender = applied.spawn_inside(start).unwrap();
    let line = format!("\napplied {}\n", contender.id());
    std::io::stdout().write_all(line.as_bytes()).unwrap();
    contender.wait().unwrap();
}

/// An agent that has applied all conditions, in a process of its own.
struct StartedAgent {
    process: Child,
    /// Kept open: the process ends when it prints to a closed pipe.
    _output: Lines<BufReader<ChildStdout>>,
    /// The process number of its contender.
    contender: u32,
}

impl StartedAgent {
    fn start(work: &Path) -> StartedAgent {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "--nocapture", TEST]);
        let mut process = command.env(WORK, work).stdout(Stdio::piped()).spawn().unwrap();
        let mut output = BufReader::new(process.stdout.take().unwrap()).lines();
        let number = |line: std::io::Result<String>| line.unwrap().strip_prefix("applied ")?.parse().ok();
        let contender = output.find_map(number).expect("the agent applies all conditions");
        StartedAgent { process, _output: output, contender }
    }

    fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

impl Drop for StartedAgent {
    fn drop(&mut self) {
        self.kill();
    }
}

#[test]
fn after_a_killed_agent_the_next_one_puts_the_machine_back() {
    if let Some(work) = std::env::var_os(WORK) {
        return be_the_agent(Path::new(&work));
    }
    let alone = AloneOnMachine::wait();
    if !is_root() {
        assert!(!obstacles(&everything(), alone.folder()).is_empty());
        assert_eq!(recover().unwrap(), Vec::<String>::new());
        return;
    }
    // An interrupted run of this test may have left something, too.
    recover().unwrap();
    let before = kernel::state();
    let mut agent = StartedAgent::start(alone.folder());
    let (process, contender) = (agent.process.id(), agent.contender);
    let state = || kernel::state_of(process);
    let applied = state();
    let objects = [
        "/dev/loop",
        ".image",
        &format!("plimsoll-lab-{process}-"),
        &format!("pl{process:x}-"),
        ".journal",
        " 5242880",
        " 500",
    ];
    for object in objects {
        assert!(applied.iter().any(|line| line.contains(object)), "{object}: {applied:?}");
    }
    assert_ne!(applied.last(), before.last());
    recover().unwrap();
    assert_eq!(state(), applied, "the agent still runs");
    agent.kill();
    // Another agent that starts now may put back some or all of it.
    let lines = recover().unwrap();
    println!("{}", lines.join("\n"));
    assert_eq!(state(), before, "{lines:?}");
    let status = fs::read_to_string(format!("/proc/{contender}/status")).unwrap_or_default();
    assert!(status.is_empty() || status.contains("State:\tZ"), "{status}");
    assert_eq!(fs::read_dir(alone.folder()).unwrap().count(), 0);
}

#[test]
fn a_failure_in_the_middle_undoes_what_was_set_before() {
    let alone = AloneOnMachine::wait();
    if !is_root() {
        assert!(!obstacles(&everything(), alone.folder()).is_empty());
        return;
    }
    let before = kernel::state();
    // The kernel refuses the MTU after the image is mounted and the namespace is created.
    let link = Some(Link { mtu: Some(100_000), ..Link::default() });
    let settings = Settings { link, ..everything() };
    let failed = format!("{:#}", AppliedConditions::apply(&settings, alone.folder()).unwrap_err());
    assert!(failed.contains("mtu 100000"), "{failed}");
    assert_eq!(kernel::state(), before);
    assert_eq!(fs::read_dir(alone.folder()).unwrap().count(), 0);
}
