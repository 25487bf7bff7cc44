//! `plimsoll lab` with conditions: they hold during a run, and nothing of them is left after any end.
//!
//! No figure is judged but a link's rate, which nothing can exceed. Invariant: tests that change the machine
//! run one after another, also beside those of the laboratory itself.

use std::fs::{self, File};

use plimsoll_tests::binary::until;
use rustix::fs::{FlockOperation, flock};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::lab::{RunFolder, text};

/// An experiment whose files and servers are behind a link, on an image, and have little memory.
const EXPERIMENT: &str = r#"
name = "conditions"
[[files]]
name = "64KiB"
size = "64KiB"
count = 3
[[contenders]]
name = "ours"
command = [
  "{plimsoll}", "serve", "--engine", "epoll", "--threads", "1", "--http", "{host}:{port}",
  "--site", "/={root}", "--data", "{dir}/data", "--access-log", "off",
]
[[contenders]]
name = "again"
command = [
  "{plimsoll}", "serve", "--engine", "thread", "--threads", "1", "--http", "{host}:{port}",
  "--site", "/={root}", "--data", "{dir}/data", "--access-log", "off",
]
[load]
time = "1s"
users = 2
[conditions]
cache = "cold"
memory = "256MiB"
file_system = "ext2"
image = "64MiB"
block = "1KiB"
disk_read = "50MB"
link = "{speed}"
[sweep]
speed = ["10Mbit/s", "100Mbit/s"]
[order]
repetitions = 1
settle = "0s"
"#;

/// Waits until no other test changes the machine.
pub(crate) fn alone_on_machine() -> File {
    let user = rustix::process::geteuid().as_raw();
    let path = std::env::temp_dir().join(format!("plimsoll-lab-conditions-tests-{user}.lock"));
    let lock = fs::OpenOptions::new().create(true).append(true).open(path).unwrap();
    flock(&lock, FlockOperation::LockExclusive).unwrap();
    lock
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Returns the objects that conditions have created on this machine, and the limits of its disks.
fn state() -> Vec<String> {
    let of_ours = |text: &str| text.contains("plimsoll-lab");
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
    let mut state: Vec<String> = mounts.lines().filter(|line| of_ours(line)).map(str::to_owned).collect();
    for folder in ["/var/run/netns", "/sys/fs/cgroup", "/sys/fs/cgroup/memory", "/sys/fs/cgroup/blkio"] {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        let names = entries.map(|entry| entry.path().display().to_string());
        state.extend(names.filter(|name| of_ours(name)));
    }
    for limit in ["read_bps", "write_bps", "read_iops", "write_iops"] {
        let file = format!("/sys/fs/cgroup/blkio/blkio.throttle.{limit}_device");
        state.extend(fs::read_to_string(file).into_iter().filter(|limits| !limits.is_empty()));
    }
    state
}

/// Returns the processes of `plimsoll lab agent` below a process.
pub(crate) fn agents_of(run: u32) -> Vec<Pid> {
    let children = fs::read_to_string(format!("/proc/{run}/task/{run}/children")).unwrap();
    children.split_whitespace().filter_map(|id| Pid::from_raw(id.parse().unwrap())).collect()
}

/// Returns whether a thread of a process runs. A zombie does not: its files are closed and unlocked.
fn is_running(process: Pid) -> bool {
    let threads = fs::read_dir(format!("/proc/{}/task", process.as_raw_nonzero())).into_iter().flatten();
    let mut stats =
        threads.flatten().filter_map(|thread| fs::read_to_string(thread.path().join("stat")).ok());
    stats.any(|stat| !stat.rsplit_once(") ").unwrap().1.starts_with(['Z', 'X']))
}

fn refused_without_root(folder: &RunFolder) {
    let refused = folder.run(&["--quick"]).output().unwrap();
    assert!(!refused.status.success());
    assert!(text(&refused).contains("run the agent as root"), "{}", text(&refused));
    assert!(folder.trials().is_empty() && folder.is_clean());
}

#[test]
fn a_run_under_conditions_measures_under_them_and_leaves_none_behind() {
    let _alone = alone_on_machine();
    let folder = RunFolder::new(EXPERIMENT);
    if !is_root() {
        return refused_without_root(&folder);
    }
    let before = state();
    let done = folder.run(&["--quick"]).output().unwrap();
    assert!(done.status.success(), "{}", text(&done));
    let trials = folder.trials();
    assert_eq!(trials.len(), 4);
    for trial in &trials {
        let measured = &trial["result"]["measured"];
        let load = &measured["load"];
        assert!(load["requests"].as_u64() > Some(0), "{trial}");
        assert_eq!(load["errors"], serde_json::json!({}), "{trial}");
        let limit = if trial["point"]["speed"] == "10Mbit/s" { 10e6 } else { 100e6 };
        let bits = load["bytes"].as_f64().unwrap() * 8.0 / load["seconds"].as_f64().unwrap();
        // Responses that had begun in the warm-up end in the measured time.
        let begun = 2.0 * 8.0 * f64::from(64 << 10) / load["seconds"].as_f64().unwrap();
        assert!(bits <= limit + begun, "{bits} bits a second: {trial}");
        assert!(!measured["marks"].to_string().contains("stayed in the page cache"), "{trial}");
    }
    assert_eq!(state(), before);
    assert_eq!(folder.remains(), [""; 0]);
}

#[test]
fn conditions_of_a_killed_run_are_undone_by_the_next_which_resumes_it() {
    let _alone = alone_on_machine();
    let folder = RunFolder::new(EXPERIMENT);
    if !is_root() {
        return refused_without_root(&folder);
    }
    let before = state();
    let mut run = folder.second_trial();
    let finished = folder.trials();
    assert!(state().len() > before.len(), "{:?}", state());
    // The agents cannot undo anything either.
    let agents = agents_of(run.id());
    assert_eq!(agents.len(), 2);
    kill_process(Pid::from_child(&run), Signal::KILL).unwrap();
    for agent in &agents {
        kill_process(*agent, Signal::KILL).unwrap();
    }
    run.wait().unwrap();
    // A killed process ends only after its system call, for example a write to a slow disk.
    // Until then it holds the lock of its folder, and the next agent leaves the folder alone.
    until("the killed agents have ended", || !agents.iter().any(|agent| is_running(*agent)));
    assert!(state().len() > before.len());
    folder.resume(&finished);
    assert_eq!(state(), before);
    assert_eq!(folder.remains(), [""; 0]);
}

#[test]
fn a_run_under_conditions_that_is_interrupted_leaves_none_behind() {
    let _alone = alone_on_machine();
    let folder = RunFolder::new(EXPERIMENT);
    if !is_root() {
        return refused_without_root(&folder);
    }
    let before = state();
    let run = folder.second_trial();
    let finished = folder.trials();
    kill_process(Pid::from_child(&run), Signal::INT).unwrap();
    assert_eq!(run.wait_with_output().unwrap().status.code(), Some(1));
    until("the agents have ended everything", || folder.is_clean() && state() == before);
    folder.resume(&finished);
}

#[test]
fn conditions_that_this_machine_cannot_set_are_listed_with_a_remedy_before_anything_is_started() {
    let impossible = EXPERIMENT.replace("link = \"{speed}\"", "congestion = \"none-such\"");
    let folder = RunFolder::new(
        &impossible
            .replace("speed = [\"10Mbit/s\", \"100Mbit/s\"]", "users = [1]")
            .replace("users = 2\n", ""),
    );
    let mut check = plimsoll_tests::binary::command();
    let check = check
        .args(["lab", "check", "experiment.toml", "--json"])
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert_eq!(check.status.code(), Some(1), "{}", text(&check));
    let json: Value = serde_json::from_slice(&check.stdout).unwrap();
    let obstacle = json[0]["obstacles"].as_array().unwrap().last().unwrap();
    assert_eq!(obstacle["condition"], "congestion", "{json}");
    assert!(!obstacle["remedy"].as_str().unwrap().is_empty());
    let refused = folder.run(&[]).output().unwrap();
    assert!(text(&refused).contains("conditions cannot be set: "), "{}", text(&refused));
    assert!(folder.trials().is_empty() && folder.is_clean());
}
