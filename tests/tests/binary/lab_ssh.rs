//! `plimsoll lab` with a contender on another machine, which it reaches by ssh.
//!
//! The other machine is a network namespace with an SSH server; without root, it is this machine. No figure
//! is judged.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use plimsoll_tests::binary::{command, reached_within, until};
use rustix::process::{Pid, Signal, geteuid, kill_process};

use crate::lab::{RunFolder, text};

const SSH_PORT: u16 = 22_022;
/// Addresses of a network that RFC 2544 reserves for benchmarks, above those of the laboratory's links.
const HERE: &str = "198.19.255.1";
const THERE: &str = "198.19.255.2";

/// The other machine.
struct OtherMachine {
    /// The network namespace, if this user may create one.
    namespace: Option<String>,
    address: &'static str,
    server: Child,
}

impl OtherMachine {
    fn start(folder: &Path) -> OtherMachine {
        let name = format!("plimsoll-test-{}", std::process::id());
        let namespace = geteuid().is_root().then(|| create_namespace(&name));
        let address = if namespace.is_some() { THERE } else { "127.0.0.1" };
        for key in ["host", "user"] {
            let path = folder.join(key);
            run("ssh-keygen", &["-q", "-t", "ed25519", "-N", "", "-f", path.to_str().unwrap()]);
        }
        let path = |name: &str| folder.join(name).display().to_string();
        let settings = format!(
            "Port {SSH_PORT}\nListenAddress {address}\nHostKey {}\nAuthorizedKeysFile {}\nPidFile none\n\
             PasswordAuthentication no\nUsePAM no\nStrictModes no\nPermitRootLogin yes\n",
            path("host"),
            path("user.pub")
        );
        fs::write(folder.join("settings"), settings).unwrap();
        // The server wants its absolute path, and this folder.
        let _ = fs::create_dir("/run/sshd");
        let words: Vec<&str> = match &namespace {
            Some(name) => vec!["ip", "netns", "exec", name, "/usr/sbin/sshd"],
            None => vec!["/usr/sbin/sshd"],
        };
        let mut server = Command::new(words[0]);
        server.args(&words[1..]).args(["-D", "-e", "-f"]).arg(path("settings")).stderr(Stdio::null());
        let server = server.spawn().unwrap();
        let other = OtherMachine { namespace, address, server };
        let is_ready = || std::net::TcpStream::connect((other.address, SSH_PORT)).is_ok();
        assert!(reached_within(Duration::from_secs(10), is_ready), "no SSH server at {}", other.address);
        other
    }

    /// Returns the experiment with a contender there.
    fn experiment(&self, folder: &Path) -> String {
        let (address, key) = (self.address, folder.join("user"));
        format!(
            r#"
name = "four"
[[files]]
name = "1KiB"
size = "1KiB"
count = 5
[[contenders]]
name = "there"
host = "{address}"
plimsoll = "{}"
prefix = [
  "ssh", "-p", "{SSH_PORT}", "-i", "{}", "-o", "StrictHostKeyChecking=no",
  "-o", "UserKnownHostsFile=/dev/null", "-o", "LogLevel=ERROR", "-o", "BatchMode=yes", "{address}",
]
command = [
  "{{plimsoll}}", "serve", "--engine", "{{engine}}", "--threads", "1", "--http", "{{host}}:{{port}}",
  "--site", "/={{root}}", "--data", "{{dir}}/data", "--access-log", "off",
]
[load]
time = "1s"
users = 2
[sweep]
engine = ["epoll", "thread"]
[order]
repetitions = 2
settle = "0s"
"#,
            Path::new(command().get_program()).display(),
            key.display()
        )
    }
}

impl Drop for OtherMachine {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
        if let Some(name) = &self.namespace {
            run("ip", &["netns", "delete", name]);
        }
    }
}

/// Creates a namespace, with a link to this one.
fn create_namespace(name: &str) -> String {
    let device = format!("plt{}", std::process::id());
    run("ip", &["netns", "add", name]);
    run("ip", &["link", "add", &device, "type", "veth", "peer", "name", "eth0", "netns", name]);
    run("ip", &["address", "add", &format!("{HERE}/30"), "dev", &device]);
    run("ip", &["link", "set", &device, "up"]);
    run("ip", &["-n", name, "address", "add", &format!("{THERE}/30"), "dev", "eth0"]);
    run("ip", &["-n", name, "link", "set", "eth0", "up"]);
    run("ip", &["-n", name, "link", "set", "lo", "up"]);
    name.to_owned()
}

fn run(program: &str, arguments: &[&str]) {
    let done = Command::new(program).args(arguments).output().unwrap();
    assert!(done.status.success(), "{program} {arguments:?}: {}", text(&done));
}

/// Checks the experiment, and one with a condition that the other machine cannot set. The machine cannot be
/// asked at all with a wrong path of plimsoll, or if its SSH server does not answer.
fn check_of_conditions(folder: &RunFolder, experiment: &str) {
    let check = |file: &str, experiment: &str| {
        fs::write(folder.path().join(file), experiment).unwrap();
        let mut check = command();
        check.args(["lab", "check", file, "--work"]).arg(folder.path().join("work"));
        check.current_dir(folder.path()).output().unwrap()
    };
    let possible = check("possible.toml", experiment);
    assert!(possible.status.success() && text(&possible).contains("no mistakes"), "{}", text(&possible));
    let impossible = format!("{experiment}[conditions]\ncongestion = \"none-such\"\n");
    for (file, experiment, code, message) in [
        ("impossible.toml", impossible.clone(), 1, ") cannot set the condition `congestion`: "),
        (
            "moved.toml",
            experiment.replace("plimsoll = \"", "plimsoll = \"/none"),
            1,
            "cannot be asked: the agent",
        ),
        ("closed.toml", experiment.replace("22022", "22021"), 1, "/plimsoll lab agent"),
    ] {
        let checked = check(file, &experiment);
        let line = text(&checked).lines().find(|line| line.contains(message)).map(str::to_owned);
        let line = line.unwrap_or_default();
        assert!(line.contains("the machine of \"there\" ("), "{file}: {}", text(&checked));
        assert_eq!(checked.status.code(), Some(code), "{file}: {}", text(&checked));
    }
    fs::write(folder.path().join("experiment.toml"), impossible).unwrap();
    let refused = folder.run(&[]).output().unwrap();
    let message = "conditions cannot be set on the machine of \"there\"";
    assert!(!refused.status.success() && text(&refused).contains(message), "{}", text(&refused));
    assert!(folder.trials().is_empty() && folder.is_clean());
    fs::remove_dir_all(folder.path().join("out")).unwrap_or_default();
    fs::write(folder.path().join("experiment.toml"), experiment).unwrap();
}

#[test]
fn a_contender_behind_ssh_is_measured_and_a_killed_run_leaves_nothing_there() {
    let _alone = crate::lab_conditions::alone_on_machine();
    let keys = tempfile::tempdir().unwrap();
    let other = OtherMachine::start(keys.path());
    let folder = RunFolder::new(&other.experiment(keys.path()));
    check_of_conditions(&folder, &other.experiment(keys.path()));
    let mut killed = folder.second_trial();
    let finished = folder.trials();
    kill_process(Pid::from_child(&killed), Signal::KILL).unwrap();
    killed.wait().unwrap();
    until("the agent there has ended everything", || folder.is_clean());
    folder.resume(&finished);
    for trial in folder.trials() {
        let measured = &trial["result"]["measured"];
        assert!(measured["load"]["requests"].as_u64() > Some(0), "{trial}");
        assert_eq!(measured["load"]["errors"], serde_json::json!({}), "{trial}");
        let server = &measured["processes"][0];
        assert!(server["rss_bytes"].as_u64() > Some(1 << 20), "its processes are observed there: {trial}");
    }
    assert!(folder.is_clean());
}
