//! `plimsoll lab` in folders to which other users can write: the files of other users there change nothing.
//!
//! Nothing is measured. Invariant: each folder of another user is one that any user of a machine can make.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::{PermissionsExt as _, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::channel;
use std::time::Duration;

use plimsoll_tests::binary::command;
use rustix::fs::{CWD, FileType, FlockOperation, Mode, flock, mknodat};
use serde_json::{Value, json};

use crate::lab::{RunFolder, text};

/// The user `nobody` of Debian.
const NOBODY: u32 = 65_534;
/// An agent answers its first request in milliseconds. A hung one never does.
const ANSWER_TIME: Duration = Duration::from_secs(20);

/// An agent that answers requests.
struct StartedAgent {
    child: Child,
    output: BufReader<std::process::ChildStdout>,
}

impl StartedAgent {
    fn start() -> StartedAgent {
        let mut agent = command();
        agent.args(["lab", "agent"]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = agent.spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        StartedAgent { child, output }
    }

    /// Sends a request. Panics if there is no response in time.
    fn request(mut self, request: &Value) -> (StartedAgent, Value) {
        let line = format!("{request}\n");
        self.child.stdin.as_mut().unwrap().write_all(line.as_bytes()).unwrap();
        let (sender, receiver) = channel();
        let id = self.child.id();
        std::thread::spawn(move || {
            let mut line = String::new();
            self.output.read_line(&mut line).unwrap();
            let _ = sender.send((self, serde_json::from_str(&line).unwrap()));
        });
        receiver.recv_timeout(ANSWER_TIME).unwrap_or_else(|_| {
            let _ = Command::new("kill").args(["-9", &id.to_string()]).status();
            panic!("the agent hangs at {request}")
        })
    }

    fn greet(work: &Path) -> (StartedAgent, Value) {
        StartedAgent::start().request(&json!({ "hello": { "work": work } }))
    }

    fn end(mut self) {
        drop(self.child.stdin.take());
        self.child.wait().unwrap();
    }
}

/// Gives a file or folder to another user, if this one can.
fn give(path: &Path) {
    if rustix::process::geteuid().is_root() {
        std::os::unix::fs::lchown(path, Some(NOBODY), Some(NOBODY)).unwrap();
    }
}

fn folder_of_mode(path: PathBuf, mode: u32) -> PathBuf {
    fs::create_dir(&path).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    path
}

#[test]
fn another_users_files_in_the_work_folder_are_neither_executed_nor_awaited() {
    let above = tempfile::tempdir().unwrap();
    let victim = above.path().join("victim");
    fs::write(&victim, "root:x:0:0\n").unwrap();
    // As /var/tmp.
    let work = folder_of_mode(above.path().join("work"), 0o1777);
    let journals = folder_of_mode(work.join("plimsoll-lab-journals"), 0o777);
    let owner = json!({ "process": u32::MAX, "start": 1, "boot": "another" });
    let restore =
        json!({ "restore_setting": { "file": victim, "written": "root:x:0:0", "before": "me::0:0" } });
    fs::write(journals.join("1-0.journal"), format!("{owner}\n{restore}\n")).unwrap();
    let created = above.path().join("created");
    symlink(&created, journals.join("lock")).unwrap();
    let agents = folder_of_mode(work.join("plimsoll-lab.aaaaaa"), 0o777);
    for fifo in [journals.join("2-0.journal"), agents.join("lock")] {
        mknodat(CWD, fifo, FileType::Fifo, Mode::from_raw_mode(0o666), 0).unwrap();
    }
    give(&journals);
    give(&agents);
    let (agent, greeting) = StartedAgent::greet(&work);
    agent.end();
    assert!(greeting["value"]["version"].is_string(), "{greeting}");
    assert_eq!(fs::read_to_string(&victim).unwrap(), "root:x:0:0\n");
    assert!(!created.exists());
    assert_eq!(fs::read_dir(&work).unwrap().count(), 2, "what others have made stays");
}

#[test]
fn a_lock_that_another_process_holds_in_the_work_folder_delays_no_agent() {
    let above = tempfile::tempdir().unwrap();
    let work = folder_of_mode(above.path().join("work"), 0o1777);
    let journals = folder_of_mode(work.join("plimsoll-lab-journals"), 0o777);
    fs::write(journals.join("1-0.journal"), "").unwrap();
    let lock = fs::File::create(journals.join("lock")).unwrap();
    flock(&lock, FlockOperation::LockExclusive).unwrap();
    let (agent, greeting) = StartedAgent::greet(&work);
    agent.end();
    assert!(greeting["value"]["version"].is_string(), "{greeting}");
}

#[test]
fn a_work_folder_that_another_user_can_replace_is_refused() {
    let above = tempfile::tempdir().unwrap();
    let open = folder_of_mode(above.path().join("open"), 0o777);
    let below = folder_of_mode(open.join("below"), 0o755);
    for work in [&open, &below, &open.join("new")] {
        let (agent, refused) = StartedAgent::greet(work);
        agent.end();
        assert!(refused["error"].to_string().contains("other users can write to"), "{refused}");
    }
    if rustix::process::geteuid().is_root() {
        let foreign = folder_of_mode(above.path().join("foreign"), 0o755);
        chown(&foreign, Some(NOBODY), None).unwrap();
        let (agent, refused) = StartedAgent::greet(&foreign);
        agent.end();
        assert!(refused["error"].to_string().contains("belongs to user 65534"), "{refused}");
    }
}

#[test]
fn no_other_user_can_write_to_the_folders_of_a_contender() {
    let work = tempfile::tempdir().unwrap();
    let (agent, _) = StartedAgent::greet(work.path());
    let (agent, folders) = agent.request(&json!({ "folder": { "name": "a" } }));
    for folder in ["control", "data"] {
        let path = folders["value"][folder].as_str().unwrap();
        let mode = fs::metadata(path).unwrap().permissions().mode();
        assert_eq!(mode & 0o022, 0, "{path}: {mode:o}");
    }
    agent.end();
}

#[test]
fn a_results_folder_to_which_another_user_can_write_is_refused_before_anything_is_started() {
    let folder = RunFolder::new(crate::lab::EXPERIMENT);
    let victim = folder.path().join("victim");
    fs::write(&victim, "old").unwrap();
    let out = folder_of_mode(folder.path().join("out"), 0o777);
    fs::copy(folder.path().join("experiment.toml"), out.join("experiment.toml")).unwrap();
    symlink(&victim, out.join("trials.jsonl")).unwrap();
    let refused = folder.run(&[]).output().unwrap();
    assert!(!refused.status.success() && text(&refused).contains("chmod go-w"), "{}", text(&refused));
    fs::set_permissions(&out, fs::Permissions::from_mode(0o755)).unwrap();
    // Another user has made it in a folder that was open at that time.
    let refused = folder.run(&[]).output().unwrap();
    assert!(!refused.status.success() && text(&refused).contains("trials.jsonl"), "{}", text(&refused));
    assert_eq!(fs::read_to_string(&victim).unwrap(), "old");
    assert_eq!(folder.remains(), [""; 0]);
}
