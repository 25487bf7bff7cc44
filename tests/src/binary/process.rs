//! Figures of a running process from the kernel: descriptors, threads, memory.
//!
//! It reads `/proc` and changes nothing. A figure that cannot be read fails the test; it is never taken for
//! zero.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Returns the number of descriptors that `pid` has open.
pub fn descriptors(pid: u32) -> usize {
    fs::read_dir(format!("/proc/{pid}/fd")).expect("the process is there").count()
}

/// Returns the paths of the files below `folder` that `pid` has open.
pub fn open_files_below(pid: u32, folder: &Path) -> Vec<PathBuf> {
    let all = fs::read_dir(format!("/proc/{pid}/fd")).expect("the process is there");
    // A descriptor may be closed between the listing and the read.
    let paths = all.filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
    paths.filter(|path| path.starts_with(folder)).collect()
}

/// Returns the number of threads of `pid`.
pub fn threads(pid: u32) -> usize {
    fs::read_dir(format!("/proc/{pid}/task")).expect("the process is there").count()
}

/// Returns the number of threads of `pid` whose name begins with `prefix`.
pub fn threads_named(pid: u32, prefix: &str) -> usize {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).expect("the process is there");
    // A thread may end between the listing and the read.
    let names = tasks.filter_map(|task| fs::read_to_string(task.ok()?.path().join("comm")).ok());
    names.filter(|name| name.starts_with(prefix)).count()
}

/// Returns the child processes of `pid`, including zombies.
pub fn children(pid: u32) -> Vec<u32> {
    let all = fs::read_dir("/proc").expect("the system tells about processes");
    let numbers = all.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let mut children: Vec<u32> = numbers.filter(|child| parent(*child) == Some(pid)).collect();
    children.sort_unstable();
    children
}

/// Returns the parent of `pid`, or `None` if the process has ended between the listing and the read.
fn parent(pid: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // "pid (name) state parent", and the name may be anything.
    stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse().ok()
}

/// Returns whether `pid` exists and is no zombie.
pub fn is_running(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
}

/// Returns the number of connections that wait in the kernel for a program to accept them at an IPv4 address.
pub fn queued_connections(at: SocketAddr) -> u64 {
    const LISTENING: &str = "0A";
    let all = fs::read_to_string("/proc/net/tcp").expect("the system tells about sockets");
    let port = format!(":{:04X}", at.port());
    let queued = all.lines().filter_map(|line| {
        let [_, local, _, state, queues, ..] = line.split_whitespace().collect::<Vec<&str>>()[..] else {
            return None;
        };
        // Of a listening socket, the second number is that of the connections.
        let (_, queued) = queues.split_once(':').filter(|_| state == LISTENING && local.ends_with(&port))?;
        u64::from_str_radix(queued, 16).ok()
    });
    queued.sum()
}

/// Returns the sockets of `pid` by their inode numbers.
pub fn sockets(pid: u32) -> Vec<String> {
    let all = fs::read_dir(format!("/proc/{pid}/fd")).expect("the process is there");
    // A descriptor may be closed between the listing and the read.
    let places = all.filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
    let names = places.map(|place| place.display().to_string());
    names.filter(|place| place.starts_with("socket:")).collect()
}

/// Returns the peak resident memory of `pid` in KiB.
pub fn peak_kib(pid: u32) -> u64 {
    field(&read(pid, "status"), "VmHWM:")
}

/// Returns the resident memory of `pid` in KiB.
pub fn resident_kib(pid: u32) -> u64 {
    field(&read(pid, "status"), "VmRSS:")
}

/// Returns the proportional set size of `pid` in KiB: shared pages count in part.
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

/// Raises the soft limit on open files to the hard limit, for this process and its children.
pub fn raise_open_files() {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum })
        .expect("up to its hard limit, a process may raise it");
}
