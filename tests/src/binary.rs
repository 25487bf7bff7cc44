//! The real binary, started as a process and watched from outside.
//!
//! It is not [`crate::under()`], which runs an engine inside the test. What must hold: a server never
//! outlives its test; what it prints is always read, so that it never waits for us; who waits says what
//! for, and has a bound.

pub mod figures;
pub mod member;
pub mod process;
pub mod tool;
pub mod visitor;

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{Read, Write as _};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::{Duration, Instant};

pub use plimsoll_engine::Kind;
use rustix::process::{Pid, Signal, kill_process};

pub use member::Member;
pub use tool::{Done, tool};
pub use visitor::{Broken, Reply, Visitor};

pub use crate::under::has_a_ring;

/// Makes a test of each function for every real engine, beside others: `on_each_engine!(one, two);`. Under
/// the engine that nobody has without asking for it, they run in a long run; those that are its exam,
/// always. `forks` has them run also where each connection is a process.
#[macro_export]
macro_rules! on_each_engine {
    ($($name:ident),* $(,)?) => { $crate::on_each_engine!(@ among_others is_long; $($name),*); };
    (alone: $($name:ident),* $(,)?) => { $crate::on_each_engine!(@ alone is_long; $($name),*); };
    (exam: $($name:ident),* $(,)?) => { $crate::on_each_engine!(@ alone has_a_ring; $($name),*); };
    (forks: $($name:ident),* $(,)?) => {
        mod forks {
            $(#[test] fn $name() {
                let _turn = $crate::binary::among_others();
                super::$name($crate::binary::Kind::Process);
            })*
        }
        $crate::on_each_engine!(@ among_others is_long; $($name),*);
    };
    (@ $beside:ident $asked:ident; $($name:ident),*) => {
        mod epoll {
            $(#[test] fn $name() {
                let _turn = $crate::binary::$beside();
                super::$name($crate::binary::Kind::Epoll);
            })*
        }
        mod thread {
            $(#[test] fn $name() {
                let _turn = $crate::binary::$beside();
                super::$name($crate::binary::Kind::Thread);
            })*
        }
        mod uring {
            $(#[test] fn $name() {
                if $crate::binary::$asked() && $crate::binary::has_a_ring() {
                    let _turn = $crate::binary::$beside();
                    super::$name($crate::binary::Kind::Uring);
                }
            })*
        }
    };
}

/// Who may run at the same time: many that only ask whether, or one that measures.
static MACHINE: RwLock<()> = RwLock::new(());

/// A turn for a test that others do not disturb.
pub fn among_others() -> RwLockReadGuard<'static, ()> {
    MACHINE.read().unwrap_or_else(PoisonError::into_inner)
}

/// A turn for a test that measures, or loads the machine.
pub fn alone() -> RwLockWriteGuard<'static, ()> {
    MACHINE.write().unwrap_or_else(PoisonError::into_inner)
}

/// Longer than any step that a test waits for takes, also on a slow machine.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// How often a condition is looked at.
const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// Waits until `reached`, for `time` at most: whether it was.
pub fn reached_within(time: Duration, mut reached: impl FnMut() -> bool) -> bool {
    let start = Instant::now();
    while !reached() {
        if start.elapsed() > time {
            return false;
        }
        std::thread::sleep(LOOK_AGAIN);
    }
    true
}

/// Waits until `reached`; fails, naming `what`, where that takes too long.
pub fn until(what: &str, reached: impl FnMut() -> bool) {
    assert!(reached_within(PATIENCE, reached), "after {PATIENCE:?} still not: {what}");
}

/// The binary under test, as cargo would build it now, in the profile of this test.
pub fn plimsoll() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(build)
}

/// A test lies in `TARGET/PROFILE/deps`, and the binary belongs into `TARGET/PROFILE`.
fn build() -> PathBuf {
    let own = std::env::current_exe().expect("a test knows its own path");
    let built_in = own.ancestors().nth(2).expect("TARGET/PROFILE/deps/TEST");
    let profile = match built_in.file_name().and_then(OsStr::to_str) {
        Some("debug") | None => "dev",
        Some(other) => other,
    };
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| env!("CARGO").into());
    let mut command = Command::new(cargo);
    // The whole workspace, so that dependencies have the same features as in the test's own build.
    command.args(["build", "--quiet", "--workspace", "--bin", "plimsoll", "--profile", profile]);
    command.arg("--target-dir").arg(built_in.parent().expect("TARGET"));
    let built = command.current_dir(env!("CARGO_MANIFEST_DIR")).status().expect("cargo starts");
    assert!(built.success(), "cargo could not build the binary; its own words are above");
    built_in.join("plimsoll")
}

/// The binary as a command, whatever the environment of the test says about plimsoll.
pub fn command() -> Command {
    without_settings(plimsoll())
}

fn without_settings(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("PLIMSOLL_") {
            command.env_remove(name);
        }
    }
    command.stdin(Stdio::null());
    command
}

/// The binary as a command, where the system allows it `open_files` descriptors and no more.
fn with_few_open_files(open_files: u32) -> Command {
    let mut shell = without_settings("sh");
    shell.args(["-c", &format!("ulimit -n {open_files} && exec \"$0\" \"$@\"")]).arg(plimsoll());
    shell
}

/// The binary as a command, where the system allows its account so few processes. That of an administrator
/// may have more all the same; others have to count what they run already.
fn with_few_processes(processes: usize) -> Command {
    let mut shell = without_settings("bash");
    shell.args(["-c", &format!("ulimit -u {processes} && exec \"$0\" \"$@\"")]).arg(plimsoll());
    shell
}

/// An account that has nothing on the machine.
pub const NOBODY: &str = "64123";

/// A program as a command under an account that is not the administrator's.
pub fn as_nobody(program: impl AsRef<OsStr>) -> Command {
    if !rustix::process::geteuid().is_root() {
        return without_settings(program);
    }
    let mut command = without_settings("setpriv");
    command.args(["--reuid", NOBODY, "--regid", NOBODY, "--clear-groups", "--"]).arg(program.as_ref());
    command
}

/// Has `pid`, of a server under that account, be given another process only where the account has fewer than
/// `processes`; as many as this process has, unless it is said.
pub fn limit_processes(pid: u32, processes: Option<u64>) {
    let own = || rustix::process::getrlimit(rustix::process::Resource::Nproc).current;
    let number = processes.or_else(own).map_or("unlimited".to_owned(), |number| number.to_string());
    let mut prlimit = as_nobody("prlimit");
    prlimit.args(["--pid", &pid.to_string(), &format!("--nproc={number}:")]);
    assert!(prlimit.status().expect("prlimit starts").success(), "its limit may be set");
}

/// The binary as a command, where the system gives it one core: what it has for each core, it has once.
pub fn on_one_core() -> Command {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let allowed = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    let core = allowed.and_then(|list| list.trim().split(['-', ',']).next()).expect("a core");
    let mut taskset = without_settings("taskset");
    taskset.args(["--cpu-list", core]).arg(plimsoll());
    taskset
}

fn on_data(mut command: Command, kind: Kind, data: &Path, args: &[&str]) -> Command {
    command.arg("serve").arg("--data").arg(data).args(["--engine", &kind.to_string()]);
    command.args(["--lab-fast-passwords", "true", "--lab-no-attempt-limits", "true"]);
    for (flag, value) in [("--http", "127.0.0.1:0"), ("--signup", "open")] {
        if !args.contains(&flag) {
            command.args([flag, value]);
        }
    }
    command.args(["--access-log", "off"]).args(args);
    command
}

/// Whether this is a long run, which tries more of what chance decides.
pub fn is_long() -> bool {
    std::env::var_os("PLIMSOLL_LONG").is_some()
}

/// Says that a test was left out and why, past the harness, which keeps what a passing test prints.
pub fn skipped(test: &str, reason: &str) {
    // Nobody may be there to read it.
    let _ = std::io::stderr().write_all(format!("skipped: {test}: {reason}\n").as_bytes());
}

/// What a process has printed so far.
#[derive(Clone, Default)]
struct Printed(Arc<Mutex<Vec<u8>>>);

impl Printed {
    /// Reads `from` to its end, on a thread of its own.
    fn reading(mut from: impl Read + Send + 'static) -> Printed {
        let printed = Printed::default();
        let kept = printed.clone();
        std::thread::spawn(move || {
            let mut block = [0; 4096];
            while let Ok(bytes @ 1..) = from.read(&mut block) {
                kept.lock().extend_from_slice(&block[..bytes]);
            }
        });
        printed
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<u8>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.lock()).into_owned()
    }
}

/// A server that runs until it is dropped.
pub struct Server {
    child: Child,
    address: String,
    stdout: Printed,
    stderr: Printed,
    /// Where it runs, and keeps its data unless it is told otherwise: no other server has that folder.
    _home: tempfile::TempDir,
}

impl Server {
    /// Serves `root` under `kind`, at a free port of loopback and without an access log unless `args` say
    /// otherwise; returns when it has printed where it listens.
    pub fn start(kind: Kind, root: &Path, args: &[&str]) -> Server {
        Server::start_reading(Stdio::null(), kind, root, args)
    }

    /// The same, with something on its standard input.
    pub fn start_reading(stdin: impl Into<Stdio>, kind: Kind, root: &Path, args: &[&str]) -> Server {
        Server::start_by(command(), stdin, kind, root, args)
    }

    /// The same, where the system allows it `open_files` descriptors and no more.
    pub fn start_with_few_open_files(kind: Kind, root: &Path, args: &[&str], open_files: u32) -> Server {
        Server::start_by(with_few_open_files(open_files), Stdio::null(), kind, root, args)
    }

    /// The same, where the system says that it may have so few processes.
    pub fn start_with_few_processes(kind: Kind, root: &Path, processes: usize) -> Server {
        Server::start_by(with_few_processes(processes), Stdio::null(), kind, root, &[])
    }

    /// The same, under an account whose limits hold it, as those of an administrator do not; none where there
    /// is none that can run the binary.
    pub fn start_as_nobody(kind: Kind, root: &Path, args: &[&str]) -> Option<Server> {
        let mut tried = as_nobody(plimsoll());
        tried.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
        let can_run = tried.status().is_ok_and(|tried| tried.success());
        can_run.then(|| Server::start_by(as_nobody(plimsoll()), Stdio::null(), kind, root, args))
    }

    /// Serves accounts and nothing else, their files in `data`: log-ins cost next to nothing, and none is
    /// refused for too many before it.
    pub fn on_data(kind: Kind, data: &Path, args: &[&str]) -> Server {
        Server::spawn(on_data(command(), kind, data, args))
    }

    /// The same, where the system allows it `open_files` descriptors and no more.
    pub fn on_data_with_few_open_files(kind: Kind, data: &Path, args: &[&str], open_files: u32) -> Server {
        Server::spawn(on_data(with_few_open_files(open_files), kind, data, args))
    }

    /// The same, by a command that only lacks the arguments.
    fn start_by(
        mut command: Command,
        stdin: impl Into<Stdio>,
        kind: Kind,
        root: &Path,
        args: &[&str],
    ) -> Server {
        let mut site = OsString::from("/=");
        site.push(root);
        command.arg("serve").arg("--site").arg(site).args(["--engine", &kind.to_string()]).args(args);
        for (flag, value) in [("--http", "127.0.0.1:0"), ("--access-log", "off"), ("--signup", "open")] {
            if !args.contains(&flag) {
                command.args([flag, value]);
            }
        }
        command.stdin(stdin);
        Server::spawn(command)
    }

    /// Starts a server by a whole command, and returns when it has printed where it listens.
    pub fn spawn(mut command: Command) -> Server {
        let home = tempfile::tempdir().expect("a folder");
        command.current_dir(home.path()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the binary starts");
        let stdout = Printed::reading(child.stdout.take().expect("a pipe"));
        let stderr = Printed::reading(child.stderr.take().expect("a pipe"));
        let mut server = Server { child, address: String::new(), stdout, stderr, _home: home };
        until("the server has printed where it listens", || {
            assert!(server.is_running(), "the server ended: {}", server.stderr());
            server.address = printed_address(&server.stdout()).unwrap_or_default();
            !server.address.is_empty()
        });
        server
    }

    /// Where it listens, if by TCP.
    pub fn at(&self) -> SocketAddr {
        self.address.strip_prefix("http://").expect("it listens at a port").parse().expect("IP:PORT")
    }

    /// Where it listens for FTP.
    pub fn ftp_at(&self) -> SocketAddr {
        self.beside_at("  ftp://")
    }

    /// Where it listens for classic.
    pub fn classic_at(&self) -> SocketAddr {
        self.beside_at("  classic://")
    }

    fn beside_at(&self, before: &str) -> SocketAddr {
        let mut found = None;
        until("the server has printed where else it listens", || {
            let printed = self.stdout();
            let mut lines = printed.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n'));
            found = lines.find_map(|line| line.strip_prefix(before)?.parse().ok());
            found.is_some()
        });
        found.expect("an address")
    }

    /// The URL of a path that begins with a slash.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.at())
    }

    /// A connection to it.
    pub fn visit(&self) -> Visitor {
        Visitor::connect(self.at()).expect("the server accepts connections")
    }

    /// A connection to it that takes little before the server has to wait.
    pub fn visit_narrowly(&self) -> Visitor {
        Visitor::connect_narrowly(self.at()).expect("the server accepts connections")
    }

    /// What `/api/status` says.
    pub fn status(&self) -> serde_json::Value {
        let reply = self.visit().get("/api/status").expect("the server's status");
        serde_json::from_slice(&reply.body).expect("JSON")
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("the server is there");
    }

    /// Its standard input, if it is a pipe that was not taken yet.
    pub fn take_stdin(&mut self) -> ChildStdin {
        self.child.stdin.take().expect("a pipe")
    }

    pub fn is_running(&mut self) -> bool {
        self.child.try_wait().expect("a child").is_none()
    }

    /// Waits until it refuses connections.
    pub fn wait_until_refused(&self) {
        until("new connections are refused", || Visitor::connect(self.at()).is_err());
    }

    /// Waits until it has ended, and fails where that takes longer than `time`.
    pub fn ends_within(&mut self, time: Duration) -> ExitStatus {
        let ended = reached_within(time, || !self.is_running());
        assert!(ended, "the server did not end within {time:?}; it said: {}", self.stderr());
        self.child.wait().expect("a child")
    }

    /// What it has printed on standard output.
    pub fn stdout(&self) -> String {
        self.stdout.text()
    }

    /// What it has printed on standard error.
    pub fn stderr(&self) -> String {
        self.stderr.text()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            eprintln!("the server's standard error:\n{}", self.stderr());
        }
    }
}

/// The first address in a server's greeting; only a whole line is one.
fn printed_address(greeting: &str) -> Option<String> {
    let lines = greeting.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n'));
    let mut found = lines.filter_map(|line| line.strip_prefix("  "));
    found.find(|line| line.starts_with("http://") || line.starts_with("unix:")).map(str::to_owned)
}

/// A terminal: the end for a person's hands, and the end for a program's standard input.
pub fn terminal() -> (File, File) {
    use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let hands = openpt(flags).expect("a terminal");
    grantpt(&hands).expect("a terminal of our own");
    unlockpt(&hands).expect("a terminal of our own");
    let program = ioctl_tiocgptpeer(&hands, flags).expect("its other end");
    (hands.into(), program.into())
}

/// Types a line.
pub fn type_line(hands: &mut File, line: &str) {
    writeln!(hands, "{line}").expect("the terminal takes it");
}
