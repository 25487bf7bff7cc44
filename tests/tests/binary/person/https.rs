//! The client commands over TLS, which nginx puts in front of the server: trusted by an authority, or by a
//! fingerprint. And downloads from the server's own listener whose connection is cut.

use std::fs::File;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use plimsoll_tests::binary::tool::{self, Done};
use plimsoll_tests::binary::{self, EngineKind, Server, among_others, until};
use plimsoll_tests::on_each_engine;
use plimsoll_tests::tree::noise;

use super::accounts::{NEVER, on_a_terminal, read_until};
use super::wire::Wire;
use super::{Person, Workspace, lines, serving};
use crate::web_servers::{WebServer, certificate_file, copy_certificate};

/// A server behind nginx, which speaks TLS with a certificate of the tests.
struct Secured {
    _place: Workspace,
    work: tempfile::TempDir,
    nginx: WebServer,
}

impl Secured {
    fn open() -> Secured {
        let (place, work) = (Workspace::open(EngineKind::Epoll), tempfile::tempdir().unwrap());
        let pass = format!(
            "client_max_body_size 0; location / {{ proxy_pass {}; proxy_http_version 1.1; \
             proxy_request_buffering off; proxy_buffering off; proxy_set_header Host $http_host; }}",
            place.server.url("")
        );
        let nginx = WebServer::nginx_over_tls(work.path(), "server", &pass);
        Secured { _place: place, work, nginx }
    }

    fn replace_certificate(&self, name: &str) {
        copy_certificate(name, self.work.path());
        self.nginx.reload();
    }
}

/// Returns a certificate's fingerprint, as openssl writes it.
fn fingerprint(certificate: &str) -> String {
    let mut openssl = tool::tool("openssl");
    openssl.args(["x509", "-noout", "-fingerprint", "-sha256", "-in", &certificate_file(certificate)]);
    let printed = tool::run(&mut openssl).well().text();
    printed.trim().split_once('=').unwrap().1.to_owned()
}

/// Runs a command that has no terminal to ask on.
fn without_terminal(person: &Person, args: &[&str]) -> Done {
    let mut command = Command::new("setsid");
    command.arg("--wait").arg(binary::plimsoll()).args(args);
    person.settle(&mut command);
    tool::run(&mut command)
}

/// Runs a command on a terminal, answers its question, and returns the output and whether it succeeded.
fn answered(person: &Person, args: &[&str], answer: &str) -> (String, bool) {
    let args = [args, &["--password-file", "password"]].concat();
    person.writes("password", format!("{}\n", super::PASSWORD));
    let (mut hands, mut child) = on_a_terminal(person, &args);
    let question = read_until(&mut hands, "(yes/no)");
    assert!(question.contains("(yes/no)"), "{question}");
    hands.write_all(format!("{answer}\n").as_bytes()).unwrap();
    let shown = read_until(&mut hands, NEVER);
    (question + &shown, child.wait().unwrap().success())
}

#[test]
fn every_command_works_over_tls_with_the_certificate_of_an_authority() {
    let _permit = among_others();
    let secured = Secured::open();
    let alice = Person::logged_out(&secured.nginx.url(""));
    let types =
        |args: &[&str]| tool::run(alice.command(args).env("PLIMSOLL_CA", certificate_file("ca.pem"))).well();
    let large = noise(5, 9_000_000);
    alice.writes("small", "small");
    alice.writes("large", &large);
    for account in ["alice", "bob"] {
        types(&["signup", account]);
    }
    types(&["login", "alice"]);
    types(&["mkdir", "a"]);
    types(&["put", "small", "large", "a/"]);
    assert_eq!(lines(types(&["ls", "a"])).len(), 2);
    types(&["mv", "a/small", "b"]);
    types(&["cp", "b", "c"]);
    types(&["get", "a/large", "got"]);
    assert!(alice.reads("got") == large);
    types(&["share", "c", "bob"]);
    types(&["shares"]);
    types(&["rm", "b"]);
    alice.writes("new", "battery staple");
    types(&["passwd", "--new-password-file", "new"]);
    types(&["login", "bob"]);
    types(&["shared"]);
    types(&["get", "alice:c", "shared"]);
    assert_eq!(alice.reads("shared"), b"small");
    types(&["whoami"]);
    types(&["logout"]);
    let by_flag = ["login", "bob", "--ca", &certificate_file("ca.pem")];
    alice.types(&by_flag).well();
}

#[test]
fn an_unknown_certificate_is_refused_without_a_terminal_with_the_flags_that_help() {
    let _permit = among_others();
    let secured = Secured::open();
    let alice = Person::logged_out(&secured.nginx.url(""));
    let fingerprint = fingerprint("server.pem");
    let refused = without_terminal(&alice, &["signup", "alice"]);
    assert_eq!(refused.status.code(), Some(1), "{}", refused.stderr);
    for word in ["no authority", &fingerprint, "--fingerprint", "--ca FILE", "PLIMSOLL_CA"] {
        assert!(refused.stderr.contains(word), "{word}: {}", refused.stderr);
    }
    // A fingerprint that is given once is remembered.
    without_terminal(&alice, &["signup", "alice", "--fingerprint", &fingerprint]).well();
    without_terminal(&alice, &["login", "alice"]).well();
    without_terminal(&alice, &["ls"]).well();
    alice.fails(&["ls", "--fingerprint", &"0".repeat(64)], 1, &["another fingerprint", &fingerprint]);
    alice.fails(&["ls", "--fingerprint", "12"], 2, &["64 hexadecimal digits"]);
    alice.fails(&["ls", "--ca", &certificate_file("other.pem")], 1, &["no authority in", "other.pem"]);
    alice.fails(&["ls", "--ca", "missing"], 1, &["missing", "certificates"]);
    alice.types(&["ls"]).well();
}

#[test]
fn a_certificate_is_trusted_on_first_use_by_a_person_at_a_terminal_and_never_asked_for_again() {
    let _permit = among_others();
    let secured = Secured::open();
    let alice = Person::logged_out(&secured.nginx.url(""));
    let (shown, is_done) = answered(&alice, &["signup", "alice"], "no");
    assert!(!is_done && shown.contains("nothing was sent"), "{shown}");
    let (shown, is_done) = answered(&alice, &["signup", "alice"], "yes");
    assert!(is_done && shown.contains(&fingerprint("server.pem")), "{shown}");
    without_terminal(&alice, &["login", "alice"]).well();

    secured.replace_certificate("other");
    until("the new certificate is served", || !without_terminal(&alice, &["ls"]).status.success());
    // Also at a terminal, it is an error and no question.
    let (mut hands, mut child) = on_a_terminal(&alice, &["ls"]);
    let shown = read_until(&mut hands, NEVER);
    let is_expected = shown.contains("not the one that is remembered") && !shown.contains("yes/no");
    assert!(is_expected && !child.wait().unwrap().success(), "{shown}");
    for fingerprint in [fingerprint("server.pem"), fingerprint("other.pem")] {
        assert!(shown.contains(&fingerprint), "{shown}");
    }
    without_terminal(&alice, &["ls", "--fingerprint", &fingerprint("other.pem")]).well();
    without_terminal(&alice, &["ls"]).well();
}

#[test]
fn a_server_with_another_name_is_not_asked_about() {
    let _permit = among_others();
    let secured = Secured::open();
    secured.replace_certificate("other");
    let alice = Person::logged_out(&secured.nginx.url(""));
    let refused = || {
        let mut command = alice.command(&["signup", "alice", "--ca", &certificate_file("ca.pem")]);
        tool::run(&mut command).stderr
    };
    until("the new certificate is served", || refused().contains("not valid for this name"));
}

/// More than the buffers of a connection.
const CUT_BYTES: usize = 10 << 20;

fn serve_https(kind: EngineKind, folder: &Path) -> Server {
    copy_certificate("server", folder);
    let (certificate, key) = (folder.join("tls.pem"), folder.join("tls.key"));
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).unwrap();
    let mut serve = serving(kind, &folder.join("data"), "127.0.0.1:0");
    serve.args(["--https", "127.0.0.1:0", "--certificate"]).arg(certificate).arg("--key").arg(key);
    Server::spawn(serve)
}

/// Returns a command that trusts the tests' authority.
fn trusting(person: &Person, args: &[&str]) -> Command {
    let mut command = person.command(args);
    command.env("PLIMSOLL_CA", certificate_file("ca.pem"));
    command
}

/// Downloads, with the file `stream` as standard output. Cuts the connection in the middle, and does
/// `meanwhile` before the client's next request.
fn cut_download(alice: &Person, wire: &Wire, args: &[&str], meanwhile: impl FnOnce()) -> Output {
    wire.hold_after_down((CUT_BYTES / 2) as i64);
    let stream = File::create(alice.path("stream")).unwrap();
    let child = trusting(alice, args).stdout(stream).stderr(Stdio::piped()).spawn().unwrap();
    until("the wire holds it up", || wire.is_held());
    meanwhile();
    wire.cut();
    child.wait_with_output().unwrap()
}

/// The client resumes by itself. If it cannot, neither the file exists nor does the command succeed.
fn a_download_that_is_cut_never_makes_a_complete_file(kind: EngineKind) {
    let folder = tempfile::tempdir().unwrap();
    let server = serve_https(kind, folder.path());
    let wire = Wire::to(server.https_at());
    let alice = Person::logged_out(&wire.https_url());
    let types = |args: &[&str]| tool::run(&mut trusting(&alice, args)).well();
    types(&["signup", "alice"]);
    types(&["login", "alice"]);
    alice.writes("large", noise(7, CUT_BYTES));
    types(&["put", "large"]);
    let resumed = cut_download(&alice, &wire, &["get", "large", "whole"], || {});
    assert!(resumed.status.success(), "{}", String::from_utf8_lossy(&resumed.stderr));
    assert!(alice.reads("whole") == noise(7, CUT_BYTES));
    let other = Person::logged_out(&server.url(""));
    other.types(&["login", "alice"]).well();
    for args in [&["get", "large", "cut"][..], &["get", "large", "-"]] {
        types(&["put", "large"]);
        let cut = cut_download(&alice, &wire, args, || drop(other.types(&["rm", "large"]).well()));
        assert_eq!(cut.status.code(), Some(1), "{args:?}: {}", String::from_utf8_lossy(&cut.stderr));
    }
    assert!(!alice.path("cut").exists());
    assert!(alice.reads("stream").len() < CUT_BYTES);
}

on_each_engine!(a_download_that_is_cut_never_makes_a_complete_file);
