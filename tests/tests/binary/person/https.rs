//! The client commands over TLS, which nginx puts in front of the server: trusted by an authority, or by a
//! fingerprint.

use std::io::Write as _;
use std::process::Command;

use plimsoll_tests::binary::tool::{self, Done};
use plimsoll_tests::binary::{self, EngineKind, among_others, until};
use plimsoll_tests::tree::noise;

use super::accounts::{NEVER, on_a_terminal, read_until};
use super::{Person, Workspace, lines};
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
    let _turn = among_others();
    let secured = Secured::open();
    let alice = Person::away(&secured.nginx.url(""));
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
    let _turn = among_others();
    let secured = Secured::open();
    let alice = Person::away(&secured.nginx.url(""));
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
    let _turn = among_others();
    let secured = Secured::open();
    let alice = Person::away(&secured.nginx.url(""));
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
    let _turn = among_others();
    let secured = Secured::open();
    secured.replace_certificate("other");
    let alice = Person::away(&secured.nginx.url(""));
    let refused = || {
        let mut command = alice.command(&["signup", "alice", "--ca", &certificate_file("ca.pem")]);
        tool::run(&mut command).stderr
    };
    until("the new certificate is served", || refused().contains("not valid for this name"));
}
