//! The state of the kernel that conditions change, read without the code under test.
//!
//! It changes nothing. Invariant: objects of other programs, also of agents that run at the same time,
//! are not in the state that is compared.

use std::fs::{self, File};
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::fs::{FlockOperation, flock};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use tempfile::TempDir;

/// The right to change the machine, which one test has at a time, and an empty folder for it.
pub(crate) struct AloneOnMachine {
    folder: TempDir,
    _lock: File,
}

impl AloneOnMachine {
    pub(crate) fn wait() -> AloneOnMachine {
        // A user cannot open the lock file of another one; only root changes the machine.
        let user = rustix::process::geteuid().as_raw();
        let path = std::env::temp_dir().join(format!("plimsoll-lab-conditions-tests-{user}.lock"));
        let lock = fs::OpenOptions::new().create(true).append(true).open(path).unwrap();
        flock(&lock, FlockOperation::LockExclusive).unwrap();
        AloneOnMachine { folder: TempDir::new().unwrap(), _lock: lock }
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }
}

pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

pub(crate) fn find(program: &str) -> Option<PathBuf> {
    let folders = ["/usr/sbin", "/usr/bin", "/sbin", "/bin"].map(Path::new);
    folders.map(|folder| folder.join(program)).into_iter().find(|path| path.is_file())
}

/// Returns the standard output of a program that succeeds.
pub(crate) fn text_of(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(find(program).unwrap()).args(arguments).output().unwrap();
    assert!(output.status.success(), "{program} {arguments:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

pub(crate) fn read(file: &Path) -> String {
    let text = fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    text.trim().to_owned()
}

/// Runs `work` on a thread in a network namespace.
pub(crate) fn in_namespace<T: Send>(name: &str, work: impl FnOnce() -> T + Send) -> T {
    let file = File::open(Path::new("/var/run/netns").join(name)).unwrap();
    let work = || {
        move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network)).unwrap();
        work()
    };
    std::thread::scope(|scope| scope.spawn(work).join().unwrap())
}

/// Returns the control groups of a process, or of `self`.
pub(crate) fn process_groups(process: &str) -> String {
    read(&Path::new("/proc").join(process).join("cgroup"))
}

/// Returns whether a controller has a hierarchy of version 1.
pub(crate) fn has_v1(controller: &str) -> bool {
    Path::new("/sys/fs/cgroup").join(controller).join("cgroup.procs").exists()
}

/// A mount and its loop device.
pub(crate) struct Mount {
    pub(crate) kind: String,
    /// The device's folder in `/sys/block`.
    pub(crate) block: PathBuf,
}

/// Returns the mount with the folder.
pub(crate) fn mount_of(folder: &Path) -> Mount {
    let mounts = read(Path::new("/proc/self/mounts"));
    let parent = folder.parent().unwrap().to_str().unwrap();
    let line = mounts.lines().find(|line| line.split(' ').nth(1) == Some(parent)).unwrap();
    let fields: Vec<&str> = line.split(' ').collect();
    let block = Path::new("/sys/block").join(fields[0].trim_start_matches("/dev/"));
    Mount { kind: fields[2].to_owned(), block }
}

/// Returns the objects of a process that sets conditions, and the machine's values, one a line.
pub(crate) fn state_of(process: u32) -> Vec<String> {
    let (name, device) = (format!("plimsoll-lab-{process}-"), format!("pl{process:x}-"));
    let own = |text: &str| text.contains(&name);
    let mut state = Vec::new();
    let mounts = read(Path::new("/proc/self/mounts"));
    state.extend(mounts.lines().filter(|line| own(line)).map(str::to_owned));
    for entry in fs::read_dir("/sys/block").unwrap().flatten() {
        let backing = fs::read_to_string(entry.path().join("loop/backing_file")).unwrap_or_default();
        if own(&backing) {
            state.push(backing);
        }
    }
    for folder in ["memory", "blkio", "unified", ""].map(|name| Path::new("/sys/fs/cgroup").join(name)) {
        state.extend(names(&folder).filter(|name| own(name)));
        for file in ["read_bps", "write_bps", "read_iops", "write_iops"] {
            let file = folder.join(format!("blkio.throttle.{file}_device"));
            state.extend(fs::read_to_string(file));
        }
        state.extend(fs::read_to_string(folder.join("cgroup.subtree_control")));
    }
    state.extend(names(Path::new("/var/run/netns")).filter(|name| own(name)));
    state.extend(names(Path::new("/sys/class/net")).filter(|name| name.starts_with(&device)));
    let journal = format!("{process}-");
    state.extend(names(Path::new("/run/plimsoll-lab")).filter(|name| name.starts_with(&journal)));
    for name in ["tcp_allowed_congestion_control", "tcp_congestion_control"] {
        state.push(read(&Path::new("/proc/sys/net/ipv4").join(name)));
    }
    state
}

/// Returns the state of this process.
pub(crate) fn state() -> Vec<String> {
    state_of(std::process::id())
}

fn names(folder: &Path) -> impl Iterator<Item = String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned())
}
