//! Accounts and sessions: sign-up, login, identity, password change, logout.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::{Child, Command};

use plimsoll_tests::binary::{self, EngineKind, among_others, free_address, tool};
use plimsoll_tests::on_each_engine;
use rustix::termios::{LocalModes, tcgetattr};

use super::{PASSWORD, Person, Workspace};

/// The use of an account from sign-up to logout, in a typical order.
fn an_account_is_made_used_and_left(kind: EngineKind) {
    let place = Workspace::open(kind);
    let alice = Person::logged_out(&place.server.url(""));
    alice.fails(&["ls"], 1, &["Not logged in", "plimsoll login"]);
    assert!(alice.types(&["signup", "alice"]).well().text().contains("plimsoll login alice"));
    alice.fails(&["signup", "alice"], 1, &["taken"]);
    assert!(alice.types(&["login", "alice"]).well().text().contains("Logged in as alice"));
    let known = alice.json(&["whoami"]);
    assert_eq!((&known["account"], &known["usage"]["bytes"]), (&"alice".into(), &0.into()));
    assert!(alice.types(&["whoami"]).well().text().contains("alice"));
    alice.types(&["logout"]).well();
    alice.fails(&["whoami"], 1, &["Not logged in"]);
}

on_each_engine!(forks: an_account_is_made_used_and_left);

fn sessions(person: &Person) -> Vec<PathBuf> {
    let read = std::fs::read_dir(person.state().join("plimsoll/sessions"));
    read.map(|entries| entries.map(|entry| entry.unwrap().path()).collect()).unwrap_or_default()
}

#[test]
fn json_is_what_the_help_says() {
    let _permit = among_others();
    let place = Workspace::open(EngineKind::Epoll);
    let alice = Person::logged_out(&place.server.url(""));
    assert_eq!(alice.json(&["signup", "alice"])["name"], "alice");
    let session = alice.json(&["login", "alice"]);
    assert_eq!((&session["account"], &session["server"]), (&"alice".into(), &alice.server.as_str().into()));
    assert!(session.get("token").is_none(), "a token is never printed");
    alice.writes("new", "battery staple");
    assert_eq!(alice.json(&["passwd", "--new-password-file", "new"])["account"], "alice");
    assert_eq!(alice.json(&["logout"])["server"], alice.server.as_str());
}

#[test]
fn a_wrong_password_is_reported_and_no_session_is_saved() {
    let _permit = among_others();
    let place = Workspace::open(EngineKind::Epoll);
    let alice = Person::logged_out(&place.server.url(""));
    alice.types(&["signup", "alice"]).well();
    let done = tool::run(alice.command(&["login", "alice"]).env("PLIMSOLL_PASSWORD", "wrong horse"));
    assert_eq!(done.status.code(), Some(1));
    assert!(done.stderr.contains("password is wrong"), "{}", done.stderr);
    assert!(sessions(&alice).is_empty());
}

#[test]
fn the_session_is_in_a_file_of_the_person_s_alone() {
    let _permit = among_others();
    let place = Workspace::open(EngineKind::Epoll);
    let alice = Person::at(&place.server.url(""), "alice");
    let kept = sessions(&alice);
    assert_eq!(kept.len(), 1);
    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&kept[0]), mode(kept[0].parent().unwrap())), (0o600, 0o700));
    std::fs::set_permissions(&kept[0], std::fs::Permissions::from_mode(0o644)).unwrap();
    alice.fails(&["ls"], 1, &["Others can read", "chmod 600"]);
    std::fs::set_permissions(&kept[0], std::fs::Permissions::from_mode(0o600)).unwrap();
    alice.types(&["logout"]).well();
    assert!(sessions(&alice).is_empty());
}

#[test]
fn a_changed_password_ends_other_sessions_and_says_how_to_go_on() {
    let _permit = among_others();
    let place = Workspace::open(EngineKind::Epoll);
    let here = Person::at(&place.server.url(""), "alice");
    let other = Person::logged_out(&place.server.url(""));
    other.types(&["login", "alice"]).well();
    here.writes("old", "wrong horse\n");
    here.writes("new", "battery staple\n");
    here.fails(
        &["passwd", "--password-file", "old", "--new-password-file", "new"],
        1,
        &["old password is wrong"],
    );
    here.types(&["passwd", "--new-password-file", "new"]).well();
    here.types(&["ls"]).well();
    other.fails(&["ls"], 1, &["plimsoll login alice"]);
    other.fails(&["login", "alice"], 1, &["wrong"]);
    here.types(&["login", "alice", "--password-file", "new"]).well();
}

#[test]
fn an_unreachable_server_is_reported_at_once() {
    let _permit = among_others();
    let unbound = free_address();
    let alice = Person::logged_out(&format!("http://{unbound}"));
    alice.fails(&["login", "alice"], 1, &["No server answers", "plimsoll serve"]);
    let unbound = format!("https://{unbound}");
    alice.fails(&["login", "alice", "--server", &unbound], 1, &["No server answers", "plimsoll serve"]);
    alice.fails(&["login", "alice", "--server", "ftp://localhost"], 2, &["https://HOST:PORT"]);
}

#[test]
fn a_log_out_leaves_no_account_in_use() {
    let _permit = among_others();
    let place = Workspace::open(EngineKind::Epoll);
    let both = Person::at(&place.server.url(""), "alice");
    both.types(&["signup", "bob"]).well();
    both.types(&["login", "bob"]).well();
    assert_eq!(both.json(&["whoami"])["account"], "bob", "the last login counts");
    assert_eq!(both.json(&["whoami", "--account", "alice"])["account"], "alice");
    both.fails(&["whoami", "--account", "carol"], 1, &["plimsoll login carol"]);
    let output = both.types(&["logout"]).well().text();
    assert!(
        output.contains("Logged out bob of ") && output.contains("Still logged in there: alice"),
        "{output}"
    );
    both.fails(&["whoami"], 1, &["No account is in use", "Still logged in: alice", "--account alice"]);
    both.fails(&["rm", "report.pdf"], 1, &["No account is in use"]);
    assert_eq!(both.json(&["whoami", "--account", "alice"])["account"], "alice");
    // A logout of an account that is not active leaves the active one.
    both.types(&["login", "bob"]).well();
    both.types(&["logout", "--account", "alice"]).well();
    assert_eq!(both.json(&["whoami"])["account"], "bob");
}

#[test]
fn with_json_every_command_prints_one_document_also_when_it_fails() {
    let _permit = among_others();
    let place = Workspace::open(EngineKind::Epoll);
    let alice = Person::at(&place.server.url(""), "alice");
    alice.types(&["signup", "bob"]).well();
    let document = |args: &[&str], code: i32| -> serde_json::Value {
        let done = alice.types(&[args, &["--json"]].concat());
        assert_eq!(done.status.code(), Some(code), "{args:?}: {}", done.stderr);
        assert_eq!(done.stderr.is_empty(), code == 0, "{args:?}: {}", done.stderr);
        serde_json::from_slice(&done.stdout).unwrap_or_else(|error| panic!("{args:?}: {error}"))
    };
    assert_eq!(document(&["mkdir", "a", "b"], 0)["done"][1]["path"], "b");
    let twice = document(&["mkdir", "a", "c"], 1);
    assert_eq!((&twice["failed"][0]["path"], &twice["done"][0]["path"]), (&"a".into(), &"c".into()));
    let moved = document(&["mv", "b", "d"], 0);
    assert_eq!((&moved["done"][0]["path"], &moved["done"][0]["to"]), (&"b".into(), &"d".into()));
    assert_eq!(document(&["cp", "-r", "d", "e"], 0)["done"][0]["to"], "e");
    let missing = document(&["rm", "-r", "e", "nothing"], 1);
    assert_eq!(
        (&missing["done"][0]["path"], &missing["failed"][0]["path"]),
        (&"e".into(), &"nothing".into())
    );
    let share = document(&["share", "a", "bob"], 0);
    assert_eq!(document(&["unshare", "a", "bob"], 0)["ended"][0], share["id"]);
    for (args, code) in [(&["unshare", "a", "bob"][..], 1), (&["get", "nothing"], 1), (&["rm"], 2)] {
        let refused = document(args, code);
        let error = refused["error"].as_str().or(refused["failed"][0]["error"].as_str());
        assert!(error.is_some_and(|error| !error.is_empty()), "{args:?}: {refused}");
    }
}

#[test]
fn a_server_may_be_named_without_a_scheme() {
    let _permit = among_others();
    let place = Workspace::open(EngineKind::Epoll);
    let alice = Person::at(&place.server.url(""), "alice");
    let authority = alice.server.trim_start_matches("http://").trim_end_matches('/').to_owned();
    assert_eq!(alice.json(&["whoami", "--server", &authority])["account"], "alice");
}

/// Starts a command on a new pseudoterminal, and returns the terminal's master end.
pub(super) fn on_a_terminal(alice: &Person, args: &[&str]) -> (File, Child) {
    let (hands, terminal) = binary::terminal();
    let mut command = Command::new("setsid");
    command.arg("--ctty").arg("--wait").arg(binary::plimsoll()).args(args);
    alice.settle(&mut command);
    command.env_remove("PLIMSOLL_PASSWORD").stdin(terminal.try_clone().unwrap());
    command.stdout(terminal.try_clone().unwrap()).stderr(terminal);
    (hands, command.spawn().expect("setsid is there"))
}

/// Reads the terminal's output until it contains `end`, or until the other end is closed.
pub(super) fn read_until(hands: &mut File, end: &str) -> String {
    let (mut shown, mut block) = (String::new(), [0; 1024]);
    while !shown.contains(end)
        && let Ok(bytes @ 1..) = hands.read(&mut block)
    {
        shown.push_str(&String::from_utf8_lossy(&block[..bytes]));
    }
    shown
}

/// A text that no terminal shows.
pub(super) const NEVER: &str = "\0";
const ASKED: &str = "Password of alice: ";

/// A password typed at the prompt is used, and not echoed.
#[test]
fn a_password_is_read_from_the_terminal_without_echo() {
    let _permit = among_others();
    let place = Workspace::open(EngineKind::Epoll);
    let alice = Person::logged_out(&place.server.url(""));
    alice.types(&["signup", "alice"]).well();
    let (mut hands, mut child) = on_a_terminal(&alice, &["login", "alice"]);
    assert!(read_until(&mut hands, ASKED).contains(ASKED));
    hands.write_all(format!("{PASSWORD}\n").as_bytes()).unwrap();
    let shown = read_until(&mut hands, NEVER);
    assert!(child.wait().unwrap().success(), "{shown}");
    assert!(shown.contains("Logged in as alice") && !shown.contains(PASSWORD), "{shown}");
    assert_eq!(sessions(&alice).len(), 1);
}

/// Ctrl-C at the prompt ends the command, and restores the terminal's echo.
#[test]
fn a_terminal_is_left_as_it_was() {
    let _permit = among_others();
    let alice = Person::logged_out("http://127.0.0.1:9");
    let (mut hands, mut child) = on_a_terminal(&alice, &["login", "alice"]);
    let shows = |hands: &File| tcgetattr(hands).unwrap().local_modes.contains(LocalModes::ECHO);
    read_until(&mut hands, ASKED);
    assert!(!shows(&hands), "a password is not shown");
    hands.write_all(b"\x03").unwrap();
    let shown = read_until(&mut hands, NEVER);
    assert!(!child.wait().unwrap().success(), "{shown}");
    assert!(shows(&hands), "{shown}");
}

/// Progress is drawn on a terminal only.
#[test]
fn progress_is_shown_on_a_terminal_alone() {
    let _permit = among_others();
    let place = Workspace::open(EngineKind::Epoll);
    let alice = Person::at(&place.server.url(""), "alice");
    alice.writes("large", vec![7; 24 << 20]);
    let (mut hands, mut child) = on_a_terminal(&alice, &["put", "large"]);
    let shown = read_until(&mut hands, NEVER);
    assert!(child.wait().unwrap().success() && shown.contains("large  24.0 MiB in "), "{shown}");
    assert_eq!(alice.types(&["put", "large", "again"]).well().stderr, "");
    let (mut hands, mut child) = on_a_terminal(&alice, &["put", "--quiet", "large", "quiet"]);
    let shown = read_until(&mut hands, NEVER);
    assert!(child.wait().unwrap().success() && shown.is_empty(), "{shown}");
}

#[test]
fn without_a_terminal_a_password_must_be_given() {
    let _permit = among_others();
    let alice = Person::logged_out("http://127.0.0.1:9");
    let mut command = Command::new("setsid");
    command.arg("--wait").arg(binary::plimsoll()).args(["login", "alice"]);
    alice.settle(&mut command);
    let done = tool::run(command.env_remove("PLIMSOLL_PASSWORD"));
    assert_eq!(done.status.code(), Some(2), "{}", done.stderr);
    assert!(done.stderr.contains("--password-file") && done.stderr.contains("PLIMSOLL_PASSWORD"));
}
