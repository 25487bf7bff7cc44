//! The first minute: the commands of a server's greeting, typed at a terminal, and `make demo`.

use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use plimsoll_tests::binary::{
    EngineKind, Server, Visitor, among_others, command, plimsoll, terminal, tool, type_line, until,
};
use plimsoll_tests::{Tree, on_each_engine};
use rustix::process::{Pid, Signal, kill_process_group};

const PASSWORD: &str = "correct horse";

/// The beginnings of password prompts, of this client and of curl.
const PROMPTS: [&str; 3] = ["Password ", "The same again", "Enter host password"];

/// A shell on a pseudoterminal, and the terminal's master end.
struct Shell {
    hands: File,
    shown: Arc<Mutex<Vec<u8>>>,
    child: std::process::Child,
    /// How many bytes of the output were processed.
    read: usize,
}

impl Shell {
    fn open(home: &Path) -> Shell {
        let (hands, program) = terminal();
        let mut shell = tool("setsid");
        shell.args(["--ctty", "--wait", "sh"]).current_dir(home);
        shell.env("HOME", home).env("PS1", "[$?] ready> ").env_remove("XDG_STATE_HOME").env_remove("ENV");
        shell.stdin(program.try_clone().unwrap()).stdout(program.try_clone().unwrap()).stderr(program);
        let child = shell.spawn().expect("setsid is part of util-linux");
        let (shown, mut from) = (Arc::<Mutex<Vec<u8>>>::default(), hands.try_clone().unwrap());
        let kept = Arc::clone(&shown);
        std::thread::spawn(move || {
            let mut block = [0; 4096];
            while let Ok(bytes @ 1..) = from.read(&mut block) {
                kept.lock().unwrap().extend_from_slice(&block[..bytes]);
            }
        });
        let mut shell = Shell { hands, shown, child, read: 0 };
        shell.until_ready();
        shell
    }

    fn unread(&self) -> String {
        String::from_utf8_lossy(&self.shown.lock().unwrap()[self.read..]).into_owned()
    }

    /// Waits for the shell's prompt, and types the password at each password prompt. Returns the output.
    fn until_ready(&mut self) -> String {
        let mut all = String::new();
        loop {
            let is_question =
                |last: &str| PROMPTS.iter().any(|begin| last.starts_with(begin)) && last.contains(':');
            let last = |shown: &str| shown.rsplit('\n').next().unwrap_or_default().to_owned();
            until("the shell is ready, or somebody asks", || {
                let last = last(&self.unread());
                last.ends_with("ready> ") || is_question(&last)
            });
            let shown = self.unread();
            self.read += shown.len();
            all += &shown;
            if !is_question(&last(&shown)) {
                return all;
            }
            type_line(&mut self.hands, PASSWORD);
        }
    }

    /// Types a line, which must succeed, and returns its output.
    fn types(&mut self, line: &str) -> String {
        type_line(&mut self.hands, line);
        let shown = self.until_ready();
        assert!(shown.ends_with("[0] ready> "), "{line}: {shown}");
        assert!(!shown.contains(PASSWORD), "nobody sees the password: {shown}");
        shown
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        tool::kill(&mut self.child);
        let _ = self.child.wait();
    }
}

/// Returns the lines of a greeting that are to be typed.
fn steps(server: &Server) -> Vec<String> {
    until("the greeting ends", || server.stdout().contains("To end:"));
    let greeting = server.stdout();
    greeting.lines().filter(|line| line.contains("  # ")).map(|line| line.trim().to_owned()).collect()
}

fn serve(kind: EngineKind, data: &Path, args: &[&str]) -> Server {
    let mut serve = command();
    serve.args(["serve", "--engine", &kind.to_string(), "--http", "127.0.0.1:0", "--access-log", "off"]);
    serve.arg("--data").arg(data).args(args).env("PLIMSOLL_LAB_FAST_PASSWORDS", "true");
    Server::spawn(serve)
}

/// Types every line, in order and unchanged, in a plain shell.
fn every_line_of_the_greeting_can_be_typed(kind: EngineKind) {
    let place = tempfile::tempdir().unwrap();
    Tree::new().file("site/small.txt", "small\n").plant(place.path());
    let site = format!("/={}", place.path().join("site").display());
    for sign_up in ["open", "closed"] {
        let data = place.path().join(format!("the data, {sign_up}"));
        let server = serve(kind, &data, &["--signup", sign_up, "--site", &site]);
        let home = tempfile::tempdir().unwrap();
        let mut shell = Shell::open(home.path());
        let steps = steps(&server);
        assert!(steps.len() >= 8, "{steps:?}");
        let mut shown = String::new();
        for step in steps {
            shown += &shell.types(&step);
        }
        let ends = ["\nhello.txt\r\n", "hello.txt\r\n"];
        assert!(ends.iter().any(|end| shown.contains(end)), "ls shows the file: {shown}");
        assert!(shown.contains("\nHello, sea.\r\n"), "curl shows what is in it: {shown}");
        assert!(shown.contains("small.txt"), "and the site: {shown}");
    }
}

fn demo(program: &Path, temporary: &Path) -> Command {
    // Tests that run in the background may ignore the signal, and a shell cannot trap a signal that it
    // ignored at its start.
    let mut demo = tool("env");
    demo.args(["--default-signal=INT", concat!(env!("CARGO_MANIFEST_DIR"), "/../demo/run")]);
    demo.arg(program).env("TMPDIR", temporary);
    demo
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn the_demo_shows_all_ten_requests_and_leaves_nothing_behind() {
    let _permit = among_others();
    let temporary = tempfile::tempdir().unwrap();
    let done = tool::run(&mut demo(plimsoll(), temporary.path())).well();
    let output = done.text();
    for command in ["signup", "login", "put", "ls", "get", "share", "shared", "shares", "rm", "logout"] {
        assert!(output.contains(&format!("$ plimsoll {command}")), "{command} is not in: {output}");
    }
    assert!(output.ends_with("All ten requests worked, and every byte arrived as sent.\n"), "{output}");
    assert_eq!(entries(temporary.path()), Vec::<PathBuf>::new());
}

#[test]
fn a_demo_with_a_byte_too_many_fails_and_leaves_nothing_behind() {
    let _permit = among_others();
    let (temporary, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let liar = folder.path().join("plimsoll");
    let script = format!(
        "#!/bin/sh\ncase $1 in serve) exec '{0}' \"$@\";; esac\n'{0}' \"$@\" || exit\n\
         if [ \"$1\" = get ] && [ -f back/backup.tar ]; then echo >>back/backup.tar; fi\n",
        plimsoll().display()
    );
    std::fs::write(&liar, script).unwrap();
    std::fs::set_permissions(&liar, std::fs::Permissions::from_mode(0o755)).unwrap();
    let done = tool::run(&mut demo(&liar, temporary.path()));
    assert_eq!(done.status.code(), Some(1), "{}", done.text());
    assert!(!done.text().contains("All ten"), "{}", done.text());
    assert_eq!(entries(temporary.path()), Vec::<PathBuf>::new());
}

#[test]
fn a_demo_that_is_interrupted_ends_its_server_and_leaves_nothing_behind() {
    let _permit = among_others();
    let temporary = tempfile::tempdir().unwrap();
    let mut demo = demo(plimsoll(), temporary.path());
    let mut child = demo.stdout(Stdio::null()).stderr(Stdio::null()).process_group(0).spawn().unwrap();
    let mut address = None;
    until("the demo's server listens", || {
        let greeting = entries(temporary.path()).first().map(|place| place.join("greeting"));
        let greeting = greeting.and_then(|path| std::fs::read_to_string(path).ok()).unwrap_or_default();
        address = greeting.lines().find_map(|line| line.strip_prefix("  http://")?.parse().ok());
        address.is_some()
    });
    // A little later, so that the interruption hits the demo at any point.
    std::thread::sleep(Duration::from_millis(100));
    kill_process_group(Pid::from_child(&child), Signal::INT).expect("the demo runs");
    until("the demo has ended", || child.try_wait().unwrap().is_some());
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(entries(temporary.path()), Vec::<PathBuf>::new());
    assert!(Visitor::connect(address.unwrap()).is_err(), "the server has ended");
}

on_each_engine!(every_line_of_the_greeting_can_be_typed);
