//! The real binary, started as a process and watched from outside.
//!
//! It is not [`crate::under()`], which runs an engine inside the test. A server never outlives its test.
//! Its output is always read, so that it never blocks on a full pipe. Every wait names its condition and
//! must have a bound.

pub mod figures;
pub mod member;
pub mod ports;
pub mod process;
pub mod tool;
pub mod visitor;

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{Read, Write as _};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::{Duration, Instant};

pub use plimsoll_engine::EngineKind;
use rustix::process::{Pid, Signal, kill_process};

pub use member::Member;
pub use ports::free_port;
pub use tool::{Done, tool};
pub use visitor::{Broken, Reply, Visitor};

pub use crate::under::has_a_ring;

/// Defines a test of each function for every real engine: `on_each_engine!(one, two);`. Tests run
/// concurrently; those under `alone` and `exam` run without others, in a module `alone`. Under the opt-in
/// engine `uring`, only `exam` tests run outside a long run. `forks` adds a run under the engine `process`.
/// `sample` tests run under epoll alone outside a long run: they are dear, and the engine hardly matters.
#[macro_export]
macro_rules! on_each_engine {
    ($($name:ident),* $(,)?) => {
        $crate::on_each_engine!(@ among_others (super) [#[cfg(feature = "every-engine")]]; $($name),*);
    };
    (alone: $($name:ident),* $(,)?) => {
        mod alone {
            $crate::on_each_engine!(@ alone (super::super) [#[cfg(feature = "every-engine")]]; $($name),*);
        }
    };
    (sample: $($name:ident),* $(,)?) => {
        mod epoll {
            $crate::on_each_engine!(@@ among_others (super) Epoll; $($name),*);
        }
        #[cfg(feature = "every-engine")]
        mod thread {
            $crate::on_each_engine!(@@ among_others (super) Thread; $($name),*);
        }
        #[cfg(feature = "every-engine")]
        mod uring {
            $crate::on_each_engine!(@@ among_others (super) Uring; $($name),*);
        }
    };
    (exam: $($name:ident),* $(,)?) => {
        mod alone {
            $crate::on_each_engine!(@ alone (super::super) []; $($name),*);
        }
    };
    (forks: $($name:ident),* $(,)?) => {
        mod forks {
            $(#[test] fn $name() {
                let _permit = $crate::binary::among_others();
                super::$name($crate::binary::EngineKind::Process);
            })*
        }
        $crate::on_each_engine!($($name),*);
    };
    (@ $beside:ident ($($parent:tt)*) [$($uring:tt)*]; $($name:ident),*) => {
        mod epoll {
            $crate::on_each_engine!(@@ $beside ($($parent)*) Epoll; $($name),*);
        }
        mod thread {
            $crate::on_each_engine!(@@ $beside ($($parent)*) Thread; $($name),*);
        }
        $($uring)*
        mod uring {
            $crate::on_each_engine!(@@ $beside ($($parent)*) Uring; $($name),*);
        }
    };
    (@@ $beside:ident $parent:tt $kind:ident; $($name:ident),*) => {
        $($crate::on_each_engine!(@@@ $beside $parent $kind $name);)*
    };
    (@@@ $beside:ident ($($parent:tt)*) $kind:ident $name:ident) => {
        #[test]
        fn $name() {
            use $crate::binary::EngineKind;
            if EngineKind::$kind != EngineKind::Uring || $crate::binary::has_a_ring() {
                let _permit = $crate::binary::$beside();
                $($parent)*::$name(EngineKind::$kind);
            }
        }
    };
}

/// Serialises tests: many functional tests run together, a test that measures runs alone.
static MACHINE: RwLock<()> = RwLock::new(());

/// Takes a permit for a test that tolerates other tests beside it.
pub fn among_others() -> RwLockReadGuard<'static, ()> {
    MACHINE.read().unwrap_or_else(PoisonError::into_inner)
}

/// Takes the exclusive permit, for a test that measures or loads the machine. `cargo xtask test` runs several
/// programs at the same time, and selects these tests by a module of this name.
pub fn alone() -> RwLockWriteGuard<'static, ()> {
    let thread = std::thread::current();
    let test = thread.name().unwrap_or_default();
    assert!(test.contains("alone::"), "{test} must be in a module `alone`");
    MACHINE.write().unwrap_or_else(PoisonError::into_inner)
}

/// Returns an address of this machine at which nothing listens.
pub fn free_address() -> String {
    format!("127.0.0.1:{}", free_port())
}

/// Longer than any step that a test waits for, also on a slow machine.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// How often a condition is polled.
const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// Waits until `reached`, for at most `time`, and returns whether it was.
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

/// Waits until `reached`. Fails with `condition` if that takes too long.
pub fn until(condition: &str, reached: impl FnMut() -> bool) {
    assert!(reached_within(PATIENCE, reached), "after {PATIENCE:?} still not: {condition}");
}

/// The environment variable with the path of the binary under test, if it is built already.
const BINARY: &str = "PLIMSOLL_TEST_BINARY";

/// Returns the binary under test: the given one, or as cargo would build it now in the test's profile.
pub fn plimsoll() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| std::env::var_os(BINARY).map_or_else(build, PathBuf::from))
}

/// Builds the binary. The test's executable is in `TARGET/PROFILE/deps`, and the binary belongs in
/// `TARGET/PROFILE`.
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

/// Returns the binary as a command, without any `PLIMSOLL_` variable of the test's environment.
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

/// Returns the binary as a command that may open at most `open_files` descriptors.
fn with_few_open_files(open_files: u32) -> Command {
    let mut shell = without_settings("sh");
    shell.args(["-c", &format!("ulimit -n {open_files} && exec \"$0\" \"$@\"")]).arg(plimsoll());
    shell
}

/// Returns the binary as a command with `hosts` as its /etc/hosts, which only root may mount.
fn with_hosts(hosts: &Path) -> Command {
    let mount = "mount --bind \"$0\" /etc/hosts && exec \"$@\"";
    let mut unshare = without_settings("unshare");
    unshare.args(["--mount", "--propagation", "private", "sh", "-c", mount]).arg(hosts).arg(plimsoll());
    unshare
}

/// Returns the binary as a command whose account may have at most `processes` processes. The limit does not
/// bind root; for other accounts it includes their present processes.
fn with_few_processes(processes: usize) -> Command {
    let mut shell = without_settings("bash");
    shell.args(["-c", &format!("ulimit -u {processes} && exec \"$0\" \"$@\"")]).arg(plimsoll());
    shell
}

/// A user id that owns nothing on the machine.
pub const NOBODY: &str = "64123";

/// Returns a command that runs the program under an unprivileged account.
pub fn as_nobody(program: impl AsRef<OsStr>) -> Command {
    if !rustix::process::geteuid().is_root() {
        return without_settings(program);
    }
    let mut command = without_settings("setpriv");
    command.args(["--reuid", NOBODY, "--regid", NOBODY, "--clear-groups", "--"]).arg(program.as_ref());
    command
}

/// Sets the process limit of `pid`, a server under that account: fork fails when the account has
/// `processes` processes. Without a number, it restores the limit of this process.
pub fn limit_processes(pid: u32, processes: Option<u64>) {
    let own = || rustix::process::getrlimit(rustix::process::Resource::Nproc).current;
    let number = processes.or_else(own).map_or("unlimited".to_owned(), |number| number.to_string());
    let mut prlimit = as_nobody("prlimit");
    prlimit.args(["--pid", &pid.to_string(), &format!("--nproc={number}:")]);
    assert!(prlimit.status().expect("prlimit starts").success(), "its limit may be set");
}

/// Returns the binary as a command that is pinned to one core, so that per-core resources exist once.
pub fn on_one_core() -> Command {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let allowed = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    let core = allowed.and_then(|list| list.trim().split(['-', ',']).next()).expect("a core");
    let mut taskset = without_settings("taskset");
    taskset.args(["--cpu-list", core]).arg(plimsoll());
    taskset
}

fn on_data(mut command: Command, kind: EngineKind, data: &Path, args: &[&str]) -> Command {
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

/// Returns whether this is a long run, which tries more seeds and repetitions.
pub fn is_long() -> bool {
    std::env::var_os("PLIMSOLL_LONG").is_some()
}

/// The output of a process so far.
#[derive(Clone, Default)]
struct Printed {
    bytes: Arc<Mutex<Vec<u8>>>,
    /// Whether every process that could write has closed its end, and all that they wrote was read.
    has_ended: Arc<AtomicBool>,
}

impl Printed {
    /// Reads `from` to its end on a separate thread.
    fn reading(mut from: impl Read + Send + 'static) -> Printed {
        let printed = Printed::default();
        let kept = printed.clone();
        std::thread::spawn(move || {
            let mut block = [0; 4096];
            while let Ok(bytes @ 1..) = from.read(&mut block) {
                kept.lock().extend_from_slice(&block[..bytes]);
            }
            kept.has_ended.store(true, Ordering::Release);
        });
        printed
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<u8>> {
        self.bytes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn has_ended(&self) -> bool {
        self.has_ended.load(Ordering::Acquire)
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
    /// The working directory and default data folder, which no other server shares.
    _home: tempfile::TempDir,
}

impl Server {
    /// Serves `root` under `kind`, at a free loopback port and without an access log unless `args` override
    /// that. Returns when the server has printed its address.
    pub fn start(kind: EngineKind, root: &Path, args: &[&str]) -> Server {
        Server::start_reading(Stdio::null(), kind, root, args)
    }

    /// As [`Server::start`], with the given standard input.
    pub fn start_reading(stdin: impl Into<Stdio>, kind: EngineKind, root: &Path, args: &[&str]) -> Server {
        Server::start_by(command(), stdin, kind, root, args)
    }

    /// As [`Server::start`], with at most `open_files` descriptors.
    pub fn start_with_few_open_files(
        kind: EngineKind,
        root: &Path,
        args: &[&str],
        open_files: u32,
    ) -> Server {
        Server::start_by(with_few_open_files(open_files), Stdio::null(), kind, root, args)
    }

    /// As [`Server::start`], with a limit on the account's processes.
    pub fn start_with_few_processes(kind: EngineKind, root: &Path, processes: usize) -> Server {
        Server::start_by(with_few_processes(processes), Stdio::null(), kind, root, &[])
    }

    /// As [`Server::start`], under an unprivileged account, to which limits apply. Returns `None` if that
    /// account cannot run the binary.
    pub fn start_as_nobody(kind: EngineKind, root: &Path, args: &[&str]) -> Option<Server> {
        let mut tried = as_nobody(plimsoll());
        tried.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
        let can_run = tried.status().is_ok_and(|tried| tried.success());
        can_run.then(|| Server::start_by(as_nobody(plimsoll()), Stdio::null(), kind, root, args))
    }

    /// Serves accounts only, with their files in `data`. Logins are cheap, and attempts are not limited.
    pub fn on_data(kind: EngineKind, data: &Path, args: &[&str]) -> Server {
        Server::spawn(on_data(command(), kind, data, args))
    }

    /// As [`Server::on_data`], with at most `open_files` descriptors.
    pub fn on_data_with_few_open_files(
        kind: EngineKind,
        data: &Path,
        args: &[&str],
        open_files: u32,
    ) -> Server {
        Server::spawn(on_data(with_few_open_files(open_files), kind, data, args))
    }

    /// As [`Server::on_data`], with `hosts` as its /etc/hosts, which only root may mount.
    pub fn on_data_with_hosts(kind: EngineKind, data: &Path, args: &[&str], hosts: &Path) -> Server {
        Server::spawn(on_data(with_hosts(hosts), kind, data, args))
    }

    /// As [`Server::start`], from a command that lacks only the arguments.
    fn start_by(
        mut command: Command,
        stdin: impl Into<Stdio>,
        kind: EngineKind,
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

    /// Starts a server by a complete command. Returns when the server has printed its address.
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

    /// Returns its TCP address for HTTP.
    pub fn at(&self) -> SocketAddr {
        self.address.strip_prefix("http://").expect("it listens at a port").parse().expect("IP:PORT")
    }

    /// Returns its FTP address.
    pub fn ftp_at(&self) -> SocketAddr {
        self.beside_at("  ftp://")
    }

    /// Returns its address for HTTPS.
    pub fn https_at(&self) -> SocketAddr {
        self.beside_at("  https://")
    }

    /// Returns its address for FTP that begins with TLS.
    pub fn ftps_at(&self) -> SocketAddr {
        self.beside_at("  ftps://")
    }

    /// Returns its address for classic.
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

    /// Returns the URL of a path that begins with a slash.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.at())
    }

    /// Connects to the server.
    pub fn visit(&self) -> Visitor {
        Visitor::connect(self.at()).expect("the server accepts connections")
    }

    /// Connects with a small receive buffer, so that the server soon has to wait.
    pub fn visit_narrowly(&self) -> Visitor {
        Visitor::connect_narrowly(self.at()).expect("the server accepts connections")
    }

    /// Returns the status from `/api/status`.
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

    /// Returns its standard input, if that is a pipe and was not taken before.
    pub fn take_stdin(&mut self) -> ChildStdin {
        self.child.stdin.take().expect("a pipe")
    }

    pub fn is_running(&mut self) -> bool {
        self.child.try_wait().expect("a child").is_none()
    }

    /// Waits until the server refuses connections.
    pub fn wait_until_refused(&self) {
        until("new connections are refused", || Visitor::connect(self.at()).is_err());
    }

    /// Waits until the server has ended and all that it printed was read. Fails if its end takes longer than
    /// `time`.
    pub fn ends_within(&mut self, time: Duration) -> ExitStatus {
        let ended = reached_within(time, || !self.is_running());
        assert!(ended, "the server did not end within {time:?}; it said: {}", self.stderr());
        until("its output has ended", || self.stdout.has_ended() && self.stderr.has_ended());
        self.child.wait().expect("a child")
    }

    /// Returns its standard output so far.
    pub fn stdout(&self) -> String {
        self.stdout.text()
    }

    /// Returns its standard error so far.
    pub fn stderr(&self) -> String {
        self.stderr.text()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The server may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            eprintln!("the server's standard error:\n{}", self.stderr());
        }
    }
}

/// Returns the first address in a server's greeting. An incomplete line is ignored.
fn printed_address(greeting: &str) -> Option<String> {
    let lines = greeting.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n'));
    let mut found = lines.filter_map(|line| line.strip_prefix("  "));
    let schemes = ["http://", "https://", "unix:"];
    found.find(|line| schemes.iter().any(|scheme| line.starts_with(scheme))).map(str::to_owned)
}

/// Opens a pseudoterminal: the master end for the test, and the other end for a program's standard input.
pub fn terminal() -> (File, File) {
    use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let hands = openpt(flags).expect("a terminal");
    grantpt(&hands).expect("a terminal of our own");
    unlockpt(&hands).expect("a terminal of our own");
    let program = ioctl_tiocgptpeer(&hands, flags).expect("its other end");
    (hands.into(), program.into())
}

/// Writes a line, as if it were typed.
pub fn type_line(hands: &mut File, line: &str) {
    writeln!(hands, "{line}").expect("the terminal takes it");
}
