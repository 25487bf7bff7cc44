//! What the kernel tells about a running process: descriptors, threads, memory.
//!
//! It reads `/proc` and changes nothing. What must hold: a figure that cannot be read fails the test; it is
//! never taken for zero.

use std::fs;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// How many descriptors `pid` has open.
pub fn descriptors(pid: u32) -> usize {
    fs::read_dir(format!("/proc/{pid}/fd")).expect("the process is there").count()
}

/// How many threads `pid` has.
pub fn threads(pid: u32) -> usize {
    fs::read_dir(format!("/proc/{pid}/task")).expect("the process is there").count()
}

/// How many threads of `pid` have a name that begins with `prefix`.
pub fn threads_named(pid: u32, prefix: &str) -> usize {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).expect("the process is there");
    // A thread may end between the two looks.
    let names = tasks.filter_map(|task| fs::read_to_string(task.ok()?.path().join("comm")).ok());
    names.filter(|name| name.starts_with(prefix)).count()
}

/// The processes that `pid` has made, also those that have ended and were not waited for.
pub fn children(pid: u32) -> Vec<u32> {
    let all = fs::read_dir("/proc").expect("the system tells about processes");
    let numbers = all.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let mut children: Vec<u32> = numbers.filter(|child| parent(*child) == Some(pid)).collect();
    children.sort_unstable();
    children
}

/// Who made `pid`, if that is there: it may have ended between the two looks.
fn parent(pid: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // "pid (name) state parent", and the name may be anything.
    stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse().ok()
}

/// Whether `pid` is there and has not ended.
pub fn is_running(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
}

/// The sockets that `pid` has, by their numbers in the system.
pub fn sockets(pid: u32) -> Vec<String> {
    let all = fs::read_dir(format!("/proc/{pid}/fd")).expect("the process is there");
    // A descriptor may be closed between the two looks.
    let places = all.filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
    let told = places.map(|place| place.display().to_string());
    told.filter(|place| place.starts_with("socket:")).collect()
}

/// The most memory that `pid` has had resident so far, in KiB.
pub fn peak_kib(pid: u32) -> u64 {
    field(&read(pid, "status"), "VmHWM:")
}

/// The memory that `pid` has resident, in KiB.
pub fn resident_kib(pid: u32) -> u64 {
    field(&read(pid, "status"), "VmRSS:")
}

/// The memory of `pid`, what it shares with others counted in part, in KiB.
pub fn proportional_kib(pid: u32) -> u64 {
    field(&read(pid, "smaps_rollup"), "Pss:")
}

fn read(pid: u32, name: &str) -> String {
    fs::read_to_string(format!("/proc/{pid}/{name}")).expect("the process is there")
}

fn field(text: &str, name: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix(name)).expect("the field is there");
    line.trim().trim_end_matches(" kB").parse().expect("a number of kB")
}

/// Lets this process, and those it starts, have as many open files as it may.
pub fn raise_open_files() {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum })
        .expect("up to its hard limit, a process may raise it");
}
