//! A certificate that the server orders by ACME from `pebble`, a real ACME server.
//!
//! strace ends the server at system calls of its own, or fails them. Where it may not attach, a test reports
//! a skip.

#[allow(dead_code, reason = "the tests of the crate acme have this file, too")]
#[path = "../../../crates/acme/tests/pebble/server.rs"]
mod pebble;

use std::fs::{self, DirBuilder, Permissions};
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use pebble::{Behaviour, EXTERNAL, Pebble};
use plimsoll_tests::binary::tool::{run, tool};
use plimsoll_tests::binary::{EngineKind, PATIENCE, Server, command, free_port, plimsoll, until};
use plimsoll_tests::skips::{Need, skip};

use crate::faults::full_disk::{Small, fill};

const CA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/data/tls/ca.pem");
/// A certificate of [`CA`] for [`OLD_NAME`], and its key.
const OLD: &str =
    concat!(include_str!("../../data/tls/server.pem"), include_str!("../../data/tls/server.key"));
const OLD_NAME: &str = "localhost";
/// The name of the ordered certificate, which [`OLD`] lacks: so it is ordered at once.
const NAME: &str = "www.example.org";

/// A server that orders a certificate, its ACME server, and the root certificate of this one.
struct Front {
    folder: tempfile::TempDir,
    state: PathBuf,
    pebble: Pebble,
    http: u16,
    root: String,
}

impl Front {
    fn new() -> Front {
        Front::of(false)
    }

    /// `requires_external` is whether the ACME server requires an account at its operator.
    fn of(requires_external: bool) -> Front {
        let folder = tempfile::tempdir().unwrap();
        let http = free_port();
        let behaviour = Behaviour { valid_seconds: 3600, requires_external, ..Behaviour::default() };
        let pebble = Pebble::start(&behaviour, http);
        let root = folder.path().join("root.pem").display().to_string();
        run(tool("curl").args(["--silent", "--fail", "--cacert", CA, "--output", &root, &pebble.root()]))
            .well();
        let state = folder.path().join("state");
        Front { folder, state, pebble, http, root }
    }

    /// As [`Front::new`], with the old certificate in the state folder.
    fn with_old_certificate() -> Front {
        let front = Front::new();
        front.put_old_certificate();
        front
    }

    fn put_old_certificate(&self) {
        let folder = self.state.join("certificates");
        DirBuilder::new().recursive(true).mode(0o700).create(folder).unwrap();
        fs::write(self.certificate(), OLD).unwrap();
        fs::set_permissions(self.certificate(), Permissions::from_mode(0o600)).unwrap();
    }

    fn certificate(&self) -> PathBuf {
        self.state.join("certificates").join(format!("{NAME}.pem"))
    }

    /// Starts the server under `kind`, as arguments of `program`.
    fn start_by(&self, mut program: Command, kind: EngineKind) -> Server {
        program.args(["serve", "--http", &format!("127.0.0.1:{}", self.http), "--https", "127.0.0.1:0"]);
        program.args(["--engine", &kind.to_string()]);
        self.run(program)
    }

    /// Starts the server by `program`, with the settings of ACME.
    fn run(&self, mut program: Command) -> Server {
        program.args(["--acme", NAME, "--acme-directory", &self.pebble.directory(), "--acme-ca", CA]);
        program.arg("--acme-state").arg(&self.state).arg("--data").arg(self.folder.path().join("data"));
        Server::spawn(program)
    }

    fn start(&self) -> Server {
        self.start_by(command(), EngineKind::Epoll)
    }

    /// As [`Front::start`], with the key of an account at the operator of the ACME server.
    fn start_with_account(&self, key: &Path) -> Server {
        let mut program = command();
        // By the environment, because the command's arguments follow.
        program.env("PLIMSOLL_ACME_EAB_ID", EXTERNAL.0).env("PLIMSOLL_ACME_EAB_KEY_FILE", key);
        self.start_by(program, EngineKind::Epoll)
    }

    /// Starts the server under strace, which tampers with the system calls on the certificate's file.
    fn start_with(&self, injection: &str) -> Server {
        let mut strace = tool("strace");
        // The traced program is the child, not strace.
        strace.args(["-D", "-f", "-qq", "--output"]).arg(self.folder.path().join("trace"));
        let folder = self.state.join("certificates");
        for path in [&folder, &folder.join(format!("{NAME}.pem.new"))] {
            strace.arg(format!("--trace-path={}", path.display()));
        }
        strace.arg(format!("--inject={injection}")).arg(plimsoll());
        self.start_by(strace, EngineKind::Epoll)
    }

    fn uses_new(&self, server: &Server) -> bool {
        is_trusted(server, NAME, &self.root)
    }
}

/// Returns whether a client that trusts `root` gets a page of the server under `name` over HTTPS.
fn is_trusted(server: &Server, name: &str, root: &str) -> bool {
    let port = server.https_at().port();
    let mut curl = tool("curl");
    curl.args(["--silent", "--fail", "--cacert", root, "--resolve", &format!("{name}:{port}:127.0.0.1")]);
    curl.arg(format!("https://{name}:{port}/healthz"));
    run(&mut curl).status.success()
}

/// Returns the metrics, which a client on this machine may read.
fn metrics(server: &Server) -> String {
    server.visit().get("/metrics").unwrap().text()
}

fn uses_old(server: &Server) -> bool {
    is_trusted(server, OLD_NAME, CA)
}

/// Lets the next server order at once, although the last order has failed.
fn forget_attempts(state: &Path) {
    fs::remove_file(state.join("attempts.json")).unwrap();
}

/// Whether strace may attach to a program here; otherwise reports a skip.
fn can_trace() -> bool {
    let can = run(tool("strace").args(["--output", "/dev/null", "true"])).status.success();
    if !can {
        skip(Need::Tracing, "strace may not attach to a process here");
    }
    can
}

#[test]
fn a_server_with_a_domain_orders_its_certificate_and_has_it_after_a_restart() {
    // An engine with threads, and the one with processes.
    for kind in [EngineKind::Epoll, EngineKind::Process] {
        let front = Front::new();
        let server = front.start_by(command(), kind);
        assert!(metrics(&server).contains("plimsoll_acme_renewals_total{result=\"failed\"} 0\n"), "{kind}");
        until("the certificate is in use", || front.uses_new(&server));
        assert!(metrics(&server).contains("plimsoll_acme_renewals_total{result=\"stored\"} 1\n"), "{kind}");
        let days_left = &server.status()["certificates"][0]["days_left"];
        assert_eq!(days_left, 0, "{kind}: the certificate is valid for an hour");
        drop(server);
        assert!(front.uses_new(&front.start_by(command(), kind)), "{kind}");
    }
}

#[test]
fn a_server_killed_while_it_stores_a_certificate_serves_the_old_or_the_new_one() {
    if !can_trace() {
        return;
    }
    let front = Front::with_old_certificate();
    // The file is empty; it is written; it is synced; the folder is synced after the rename.
    for (call, is_stored) in [("ftruncate", false), ("pwrite64", false), ("fsync", false), ("fsync", true)] {
        let number = if is_stored { 2 } else { 1 };
        let mut server = front.start_with(&format!("{call}:signal=KILL:when={number}"));
        assert!(uses_old(&server), "{call} {number}");
        server.ends_within(PATIENCE);
        drop(server);
        let server = front.start();
        assert_eq!((uses_old(&server), front.uses_new(&server)), (!is_stored, is_stored), "{call} {number}");
        drop(server);
        forget_attempts(&front.state);
    }
    // The file that a killed server leaves does not hinder the next order.
    front.put_old_certificate();
    let server = front.start();
    until("the certificate is in use", || front.uses_new(&server));
}

#[test]
fn a_disk_that_is_full_when_a_certificate_is_stored_leaves_the_old_one_in_use() {
    if !can_trace() {
        return;
    }
    let front = Front::with_old_certificate();
    let server = front.start_with("pwrite64:error=ENOSPC");
    until("the log has the failure", || server.stderr().contains("the certificate cannot be stored"));
    assert!(server.stderr().contains("No space left on device"), "{}", server.stderr());
    assert!(uses_old(&server));
    assert_eq!(fs::read_to_string(front.certificate()).unwrap(), OLD);
    drop(server);
    assert!(uses_old(&front.start()));
}

#[test]
fn a_server_whose_state_folder_is_full_serves_the_old_certificate_and_orders_when_there_is_space() {
    let front = Front::new();
    fs::create_dir(&front.state).unwrap();
    let Some(small) = Small::at(&front.state) else { return };
    front.put_old_certificate();
    // The folders that the server would make.
    fs::create_dir(small.0.join("challenges")).unwrap();
    let filler = small.0.join("filler");
    fill(&filler);
    let server = front.start();
    until("the log has the failure", || server.stderr().contains("the certificate could not be ordered"));
    assert!(server.stderr().contains("No space left on device"), "{}", server.stderr());
    assert!(uses_old(&server));
    drop(server);
    fs::remove_file(filler).unwrap();
    let server = front.start();
    until("the certificate is in use", || front.uses_new(&server));
}

#[test]
fn a_server_that_requires_an_account_at_its_operator_gets_the_key_of_the_file() {
    let front = Front::of(true);
    let key = front.folder.path().join("eab.key");
    fs::write(&key, EXTERNAL.1).unwrap();
    fs::set_permissions(&key, Permissions::from_mode(0o600)).unwrap();
    let server = front.start_with_account(&key);
    until("the certificate is in use", || front.uses_new(&server));
}

#[test]
fn a_name_is_proved_by_tls_at_the_port_of_https_alone() {
    let front = Front::new();
    let mut program = command();
    program.args(["serve", "--http", "127.0.0.1:0", "--https", &format!("127.0.0.1:{}", front.http)]);
    program.args(["--acme-challenge", "tls-alpn-01"]);
    let server = front.run(program);
    until("the certificate is in use", || front.uses_new(&server));
    // Without an open challenge, a client that offers its protocol gets no certificate.
    let mut client = tool("openssl");
    client.args(["s_client", "-alpn", "acme-tls/1", "-servername", NAME, "-connect"]);
    let done = run(client.arg(server.https_at().to_string()));
    assert!(!done.status.success() && !done.text().contains("BEGIN CERTIFICATE"), "{}", done.text());
}

#[test]
fn a_server_whose_state_folder_goes_away_keeps_its_ordered_certificate() {
    let front = Front::new();
    let server = front.start();
    until("the certificate is in use", || front.uses_new(&server));
    let moved = front.folder.path().join("elsewhere");
    fs::rename(&front.state, &moved).unwrap();
    server.signal(rustix::process::Signal::HUP);
    until("the log names the folder", || server.stderr().contains("look whether the folder is there"));
    assert!(front.uses_new(&server), "no self-signed one replaces it");
    fs::rename(&moved, &front.state).unwrap();
    server.signal(rustix::process::Signal::HUP);
    until("the folder is read again", || server.stderr().matches("a certificate is in use").count() >= 3);
    assert!(front.uses_new(&server));
}

#[test]
fn a_damaged_certificate_in_the_state_folder_hinders_no_start_and_is_ordered_again() {
    let front = Front::with_old_certificate();
    fs::write(front.certificate(), &OLD[..OLD.len() / 2]).unwrap();
    let server = front.start();
    assert_eq!(server.visit().get("/healthz").unwrap().status, 200);
    until("the certificate is in use", || front.uses_new(&server));
}

#[test]
fn a_certificate_of_another_acme_server_is_replaced_at_once() {
    let front = Front::with_old_certificate();
    let path = |name: &str| front.folder.path().join(name);
    let mut make = tool("openssl");
    make.args([
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:P-256",
        "-nodes",
        "-days",
        "90",
    ]);
    make.args(["-subj", "/CN=staging", "-addext", &format!("subjectAltName=DNS:{NAME}")]);
    run(make.arg("-keyout").arg(path("key")).arg("-out").arg(path("staging"))).well();
    let [chain, key] = ["staging", "key"].map(|name| fs::read_to_string(path(name)).unwrap());
    fs::write(front.certificate(), format!("Issued by https://staging.test/directory\n{chain}{key}"))
        .unwrap();
    let server = front.start();
    assert!(is_trusted(&server, NAME, path("staging").to_str().unwrap()), "it serves until then");
    until("the certificate is in use", || front.uses_new(&server));
    assert!(server.stderr().contains("is of another ACME server"), "{}", server.stderr());
}

#[test]
fn settings_of_acme_that_cannot_work_are_refused_with_what_is_missing() {
    let folder = tempfile::tempdir().unwrap();
    let key = folder.path().join("eab.key");
    fs::write(&key, EXTERNAL.1).unwrap();
    fs::set_permissions(&key, Permissions::from_mode(0o644)).unwrap();
    let key = key.to_str().unwrap();
    let with_https = ["--https", "127.0.0.1:0", "--acme", NAME];
    for (args, reason) in [
        (&["--acme", NAME][..], "--acme needs --https"),
        (&["--https", ":0", "--acme", "*.example.org"], "another ACME client"),
        (&["--https", ":0", "--acme", "192.0.2.1"], "not for IP addresses"),
        (&[&with_https[..], &["--self-signed"]].concat(), "leave out"),
        (&[&with_https[..], &["--acme-directory", "http://localhost/"]].concat(), "https://"),
        (&[&with_https[..], &["--acme-ca", "missing.pem"]].concat(), "--acme-ca"),
        (&[&with_https[..], &["--acme-eab-id", "a"]].concat(), "need each other"),
        (
            &[&with_https[..], &["--acme-challenge", "tls-alpn-01", "--engine", "process"]].concat(),
            "another engine",
        ),
        (
            &[&with_https[..], &["--acme-eab-id", "a", "--acme-eab-key-file", key]].concat(),
            "other users can read",
        ),
    ] {
        let mut serve = command();
        serve.arg("serve").arg("--data").arg(folder.path().join("data")).args(args).arg("--check");
        let done = run(&mut serve);
        assert!(!done.status.success() && done.stderr.contains(reason), "{args:?}: {}", done.stderr);
    }
}
