//! SIGHUP: a new configuration for new connections, the old one for open connections, and reopened log
//! files.

use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use plimsoll_tests::binary::{EngineKind, Server, Visitor, command, terminal, until};
use plimsoll_tests::tree::noise;
use plimsoll_tests::{Tree, on_each_engine};
use rustix::process::Signal;

const RELOADED: &str = "the configuration was reloaded";
const NOT_RELOADED: &str = "nothing was reloaded";
/// More than the kernel buffers between a server and a client that does not read.
const LARGE_BYTES: usize = 24 << 20;
const CLIENTS: usize = 16;
const RELOADS: usize = 20;

/// A server with a configuration file that can be rewritten.
struct Configured {
    folder: tempfile::TempDir,
    server: Server,
}

impl Configured {
    fn start(kind: EngineKind, settings: &str) -> Configured {
        let folder = tempfile::tempdir().unwrap();
        let tree = Tree::new().file("old/which.txt", "old\n").file("new/which.txt", "new\n");
        tree.file("old/large.bin", noise(5, LARGE_BYTES)).plant(folder.path());
        write(&folder, settings);
        let mut serve = command();
        serve.arg("serve").arg("--config").arg(folder.path().join("plimsoll.toml"));
        serve.args(["--engine", &kind.to_string(), "--http", "127.0.0.1:0"]);
        let server = Server::spawn(serve);
        Configured { folder, server }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Rewrites the file, sends the signal, and returns when the log has one more `outcome`.
    fn reload(&self, settings: &str, outcome: &str) {
        write(&self.folder, settings);
        let count = || self.server.stderr().matches(outcome).count();
        let before = count();
        self.server.signal(Signal::HUP);
        until(outcome, || count() > before);
    }

    fn version(&self) -> Vec<u8> {
        self.server.visit().get("/which.txt").unwrap().body
    }
}

/// Writes the configuration, where `OLD` and `NEW` are folders, and `LOG` is a file.
fn write(folder: &tempfile::TempDir, settings: &str) {
    let place = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let text = settings.replace("OLD", &place("old")).replace("NEW", &place("new"));
    std::fs::write(place("plimsoll.toml"), text.replace("LOG", &place("access.log"))).unwrap();
}

const OLD: &str = "site = [\"/=OLD\"]\naccess_log = \"LOG\"\n";
const NEW: &str = "site = [\"/=NEW\"]\naccess_log = \"LOG\"\n";

/// An open connection keeps its configuration, also in the middle of a download; a new one gets the new
/// one.
fn a_connection_keeps_the_configuration_that_it_began_with(kind: EngineKind) {
    let configured = Configured::start(kind, OLD);
    let mut kept = configured.server.visit();
    assert_eq!(kept.get("/which.txt").unwrap().body, b"old\n");
    let mut reader = configured.server.visit_narrowly();
    reader.send("GET /large.bin HTTP/1.1\r\nHost: test\r\n\r\n").unwrap();
    let (_, length) = reader.head().unwrap();
    configured.reload(NEW, RELOADED);
    assert_eq!(configured.version(), b"new\n");
    assert_eq!(kept.get("/which.txt").unwrap().body, b"old\n");
    let mut body = Vec::new();
    while body.len() < length {
        let more = reader.some_body().unwrap();
        assert!(!more.is_empty(), "cut off after {} bytes", body.len());
        body.extend_from_slice(&more);
    }
    assert!(body == noise(5, LARGE_BYTES), "every byte");
}

/// Clients with continuous requests on keep-alive connections get no error.
fn reloads_under_load_cause_no_error(kind: EngineKind) {
    let configured = Configured::start(kind, OLD);
    let (at, ended, answers) = (configured.server.at(), AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for client in 0..CLIENTS {
            let (ended, answers) = (&ended, &answers);
            scope.spawn(move || {
                while !ended.load(Ordering::Relaxed) {
                    let mut visitor = Visitor::connect(at).unwrap();
                    let mut seen = Vec::new();
                    // Some stay for a while, others reconnect.
                    for _ in 0..1 + client * 10 {
                        let reply = visitor.get("/which.txt").unwrap();
                        assert_eq!(reply.status, 200);
                        seen.push(reply.body);
                        answers.fetch_add(1, Ordering::Relaxed);
                    }
                    assert!(seen.windows(2).all(|two| two[0] == two[1]), "one connection, one configuration");
                }
            });
        }
        for number in 0..RELOADS {
            let more = answers.load(Ordering::Relaxed) + CLIENTS;
            until("the clients go on", || answers.load(Ordering::Relaxed) > more);
            configured.reload(if number % 2 == 0 { NEW } else { OLD }, RELOADED);
        }
        ended.store(true, Ordering::Relaxed);
    });
    assert_eq!(configured.server.status()["load"]["connections_panicked"], 0);
}

/// A wrong file is reported with its line, and a missing folder is reported, too. Neither changes anything.
fn a_configuration_that_is_wrong_changes_nothing(kind: EngineKind) {
    let configured = Configured::start(kind, OLD);
    configured.reload("site = [\"/=NEW\"]\naccess_log = \"LOG\"\ncolour = 1\n", NOT_RELOADED);
    assert!(configured.server.stderr().contains("line 3: there is no key"), "{}", configured.server.stderr());
    assert_eq!(configured.version(), b"old\n");
    configured
        .reload("site = [\"/=NEW/missing\"]\naccess_log = \"LOG\"\nlog.level = \"error\"", NOT_RELOADED);
    assert_eq!(configured.version(), b"old\n");
    configured.reload("site = [\"/=NEW\", \"/=OLD\"]\naccess_log = \"LOG\"\n", NOT_RELOADED);
    configured.reload(NEW, RELOADED);
    assert_eq!(configured.version(), b"new\n");
}

/// Settings that cannot change at runtime are kept, and reported; the others take effect.
fn settings_that_need_a_restart_are_kept_and_reported(kind: EngineKind) {
    let configured = Configured::start(kind, OLD);
    configured.reload(&format!("{NEW}data = \"./elsewhere\"\ngrace = \"1s\"\n"), RELOADED);
    let log = configured.server.stderr();
    let line = log.lines().find(|line| line.contains("need a restart")).expect("the log reports it");
    assert!(line.contains("data, grace"), "{line}");
    assert_eq!(configured.version(), b"new\n");
}

/// Limits of new connections, and the level of the log.
fn limits_and_the_level_of_the_log_are_reloaded(kind: EngineKind) {
    let configured = Configured::start(kind, OLD);
    let mut old = configured.server.visit();
    assert_eq!(old.get("/which.txt").unwrap().status, 200);
    configured.reload(&format!("{OLD}limits.idle_time = \"50ms\"\n"), RELOADED);
    let mut new = configured.server.visit();
    assert_eq!(new.get("/which.txt").unwrap().status, 200);
    assert!(new.some_body().unwrap().is_empty(), "an idle connection ends soon");
    assert_eq!(old.get("/which.txt").unwrap().status, 200, "the older one has more time");
    // The level takes effect before the reload is logged, so this reload is not.
    write(
        &configured.folder,
        &format!("{OLD}log.level = \"error\"\nsignup = \"open\"\n[lab]\nfast_passwords = true\n"),
    );
    let before = configured.server.stderr().matches(RELOADED).count();
    configured.server.signal(Signal::HUP);
    until("it is reloaded", || {
        configured.server.status()["lab"] == serde_json::json!(["lab.fast_passwords"])
    });
    configured.reload("colour = 1", NOT_RELOADED);
    assert_eq!(
        configured.server.stderr().matches(RELOADED).count(),
        before,
        "{}",
        configured.server.stderr()
    );
}

/// The log reports active laboratory settings, also after a reload; the status lists the active ones.
fn a_reload_that_turns_on_laboratory_settings_is_reported(kind: EngineKind) {
    let configured = Configured::start(kind, OLD);
    let lab = "[lab]\nno_attempt_limits = true\nsync_each = true\n";
    configured.reload(&format!("{OLD}{lab}"), RELOADED);
    let (status, log) = (configured.server.status(), configured.server.stderr());
    assert_eq!(status["lab"], serde_json::json!(["lab.no_attempt_limits"]), "the other needs a restart");
    assert!(log.contains("need a restart") && log.contains("\"lab.sync_each\""), "{log}");
    assert!(log.contains("a laboratory are on") && log.contains("lab.no_attempt_limits"), "{log}");
}

/// As logrotate does it: the file is renamed, and the signal makes the server open a new one.
fn a_log_that_was_moved_away_is_opened_again(kind: EngineKind) {
    let configured = Configured::start(kind, OLD);
    let (log, moved) = (configured.path("access.log"), configured.path("access.log.1"));
    let lines = |path: &PathBuf| std::fs::read_to_string(path).unwrap_or_default();
    configured.version();
    until("the first request is logged", || lines(&log).contains("GET /which.txt"));
    std::fs::rename(&log, &moved).unwrap();
    configured.reload(OLD, RELOADED);
    until("there is a new file", || log.exists());
    assert_eq!(configured.server.visit().get("/missing").unwrap().status, 404);
    until("the next request is in it", || lines(&log).contains("GET /missing"));
    assert!(!lines(&moved).contains("/missing") && !lines(&log).contains("/which.txt"));
}

/// A closed terminal also sends SIGHUP; a server started there must end.
fn a_terminal_that_goes_away_ends_the_server(kind: EngineKind) {
    let folder = tempfile::tempdir().unwrap();
    let (hands, program) = terminal();
    let same = program.try_clone().unwrap();
    let mut server = Server::start_reading(Stdio::from(program), kind, folder.path(), &[]);
    server.signal(Signal::HUP);
    until("the terminal is there, so it reloads", || server.stderr().contains(RELOADED));
    drop(hands);
    // A process that another test has just forked has `hands` open until it executes its program.
    until("the terminal is gone", || !same.is_terminal());
    server.signal(Signal::HUP);
    assert_eq!(server.ends_within(Duration::from_secs(10)).code(), Some(0), "{}", server.stderr());
}

fn cache_control_is_reloaded_and_entity_tags_survive_a_restart(kind: EngineKind) {
    let with = |value: &str| format!("{OLD}site_cache_control = [\"/={value}\"]\n");
    let configured = Configured::start(kind, &with("max-age=60"));
    let first = configured.server.visit().get("/which.txt").unwrap();
    assert_eq!(first.field("Cache-Control"), Some("max-age=60"));
    configured.reload(&with("public, max-age=600"), RELOADED);
    let second = configured.server.visit().get("/which.txt").unwrap();
    assert_eq!(second.field("Cache-Control"), Some("public, max-age=600"));
    let Configured { folder, server } = configured;
    drop(server);
    let old = folder.path().join("old");
    let server = Server::start(kind, &old, &[]);
    let tag = first.field("ETag").unwrap();
    assert_eq!(server.visit().get("/which.txt").unwrap().field("ETag"), Some(tag));
    let known = format!("If-None-Match: {tag}\r\n");
    assert_eq!(server.visit().ask("GET", "/which.txt", &known, b"").unwrap().status, 304);
}

on_each_engine!(forks:
    cache_control_is_reloaded_and_entity_tags_survive_a_restart,
    a_connection_keeps_the_configuration_that_it_began_with,
    reloads_under_load_cause_no_error,
    a_configuration_that_is_wrong_changes_nothing,
    settings_that_need_a_restart_are_kept_and_reported,
    limits_and_the_level_of_the_log_are_reloaded,
    a_reload_that_turns_on_laboratory_settings_is_reported,
    a_log_that_was_moved_away_is_opened_again,
    a_terminal_that_goes_away_ends_the_server,
);
