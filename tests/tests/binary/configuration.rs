//! The precedence of a setting's sources: flag, environment, file, default. And the messages for a wrong
//! file.

use std::path::{Path, PathBuf};

use plimsoll_tests::binary::{Done, EngineKind, Server, among_others, command, tool, until};
use plimsoll_tests::{Tree, on_each_engine};

struct Workspace {
    folder: tempfile::TempDir,
}

impl Workspace {
    fn new() -> Workspace {
        let folder = tempfile::tempdir().unwrap();
        Tree::new().file("site/small.txt", "small\n").plant(folder.path());
        Workspace { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a configuration file with this text, where `SITE` is an existing folder.
    fn file(&self, text: &str) -> PathBuf {
        let path = self.path("plimsoll.toml");
        std::fs::write(&path, text.replace("SITE", self.path("site").to_str().unwrap())).unwrap();
        path
    }
}

/// Runs `plimsoll serve --config FILE --check ARGS`, with environment variables.
fn check(file: &Path, args: &[&str], variables: &[(&str, &str)]) -> Done {
    let mut serve = command();
    serve.arg("serve").arg("--config").arg(file).arg("--check").args(args);
    serve.envs(variables.iter().copied());
    tool::run(&mut serve)
}

/// Asserts that a file is refused: exit code 1, and all of `words` on standard error.
fn refused(place: &Workspace, text: &str, words: &[&str]) {
    let done = check(&place.file(text), &[], &[]);
    assert_eq!(done.status.code(), Some(1), "{text}: {}", done.stderr);
    for word in words.iter().chain(&["plimsoll.toml, line "]) {
        assert!(done.stderr.contains(word), "{text}: {word:?} is not in: {}", done.stderr);
    }
}

#[test]
fn a_flag_counts_more_than_the_environment_that_more_than_the_file_that_more_than_the_default() {
    let _permit = among_others();
    let place = Workspace::new();
    let all = "http = [\":7001\", \":7002\"]\nsite = [\"/=SITE\"]\ngrace = \"11s\"\nthreads = 11\n";
    let file = place.file(all);
    let output = check(&file, &[], &[]).well().text();
    for word in [":7001\n", ":7002\n", "grace 11s", "loops: 11", "admit   no new account"] {
        assert!(output.contains(word), "{word:?} is not in: {output}");
    }
    let set = [("PLIMSOLL_GRACE", "22s"), ("PLIMSOLL_THREADS", "22"), ("PLIMSOLL_HTTP", ":7003")];
    let output = check(&file, &["--threads", "33"], &set).well().text();
    for word in [":7003\n", "grace 22s", "loops: 33"] {
        assert!(output.contains(word), "{word:?} is not in: {output}");
    }
    assert!(!output.contains(":7001"), "a list is replaced as a whole: {output}");
    let file = place.file("http = [\":0\"]\nsite = [\"/=SITE\"]");
    assert!(check(&file, &[], &[]).well().text().contains("grace 30s"), "the default");
}

#[test]
fn the_effects_of_ftp_settings_are_printed_where_ftp_is_on() {
    let _permit = among_others();
    let place = Workspace::new();
    let file =
        place.file("http = [\":0\"]\nsite = [\"/=SITE\"]\nftp_ports = \"21000-21010\"\nxferlog = \"-\"\n");
    let off = check(&file, &[], &[]).well().text();
    assert!(!off.contains("FTP"), "{off}");
    let set = [("PLIMSOLL_FTP", ":7021,[::1]:7021"), ("PLIMSOLL_FTP_ANNOUNCE", "203.0.113.7")];
    let output = check(&file, &["--ftp-guests", "true"], &set).well().text();
    for word in [
        "listen  ftp://127.0.0.1:7021\n",
        "listen  ftp://[::1]:7021\n",
        "ports 21000-21010; clients get the address 203.0.113.7\n",
        "guests over FTP: to read the site under /\n",
        "xferlog on standard output\n",
        "admit   no new account",
    ] {
        assert!(output.contains(word), "{word:?} is not in: {output}");
    }
    let beyond = check(&file, &["--ftp", "0.0.0.0:7021"], &[]).well().text();
    assert!(beyond.contains("admit   no new account"), "not all listeners are on this machine: {beyond}");
}

#[test]
fn the_environment_can_name_the_file() {
    let _permit = among_others();
    let place = Workspace::new();
    let file = place.file("http = [\":0\"]\nsite = [\"/docs=SITE\"]\nlog.level = \"debug\"");
    let mut serve = command();
    serve.args(["serve", "--check"]).env("PLIMSOLL_CONFIG", file);
    let output = tool::run(&mut serve).well().text();
    assert!(output.contains(" under /docs\n") && output.contains("text from debug\n"), "{output}");
}

#[test]
fn a_file_that_is_wrong_exits_1_with_the_line_and_what_to_do() {
    let _permit = among_others();
    let place = Workspace::new();
    refused(&place, "site = [\"/=SITE\"]\nhtpp = \":1\"", &["line 2", "\"htpp\"", "did you mean \"http\"?"]);
    refused(&place, "[limits]\n\nhead_tim = \"1s\"", &["line 3", "limits.head_tim", "\"limits.head_time\""]);
    refused(&place, "\nengine = \"steam\"", &["line 2", "steam", "epoll"]);
    refused(&place, "limits.head_bytes = \"1TiB\"", &["line 1", "from 1KiB to 63KiB"]);
    refused(&place, "site = [\"/api=SITE\"]", &["line 1", "belongs to the server"]);
    refused(&place, "data = ", &["line 1", "no TOML"]);
    refused(&place, "ftp = \"unix:/run/ftp\"", &["line 1", "FTP needs an address of IP", ":2121"]);
    refused(&place, "ftp_ports = \"20-30\"", &["line 1", "FIRST-LAST", "from 1024 on"]);
    refused(&place, "ftp_announce = \"example.org\"", &["line 1", "203.0.113.7", "none"]);
    let missing = check(&place.path("nothing.toml"), &[], &[]);
    assert_eq!(missing.status.code(), Some(1));
    assert!(missing.stderr.contains("nothing.toml") && missing.stderr.contains("--config names a TOML file"));
}

/// A file's limits apply to connections, and active laboratory settings are reported everywhere.
fn a_server_serves_as_its_file_says(kind: EngineKind) {
    let place = Workspace::new();
    let text = "http = \"127.0.0.1:0\"\nsite = [\"/=SITE\"]\naccess_log = \"off\"\n\
                [log]\nformat = \"json\"\n[limits]\nidle_time = \"50ms\"\n[lab]\nfast_passwords = true\n";
    let mut serve = command();
    serve.arg("serve").arg("--config").arg(place.file(text)).args(["--engine", &kind.to_string()]);
    let server = Server::spawn(serve);
    let mut visitor = server.visit();
    assert_eq!(visitor.get("/small.txt").unwrap().body, b"small\n");
    // With the default limit, this would wait for more than a minute and fail.
    assert!(visitor.some_body().unwrap().is_empty(), "an idle connection ends");
    assert_eq!(server.status()["lab"], serde_json::json!(["lab.fast_passwords"]));
    assert!(server.stdout().contains("lab.fast_passwords is on"), "{}", server.stdout());
    until("the log says it", || server.stderr().contains("lab.fast_passwords"));
    for line in server.stderr().lines() {
        let event: serde_json::Value = serde_json::from_str(line).expect("every line is an object");
        assert!(event["timestamp"].is_string() && event["level"].is_string(), "{event}");
        assert!(event["message"].is_string(), "{event}");
    }
}

on_each_engine!(a_server_serves_as_its_file_says);
