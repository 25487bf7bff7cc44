//! A remote authentication server: the real programs, killed and restarted.

use std::io::{BufRead as _, BufReader};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use plimsoll_tests::binary::{EngineKind, Server, command, tool, until};
use plimsoll_tests::on_each_engine;

const SECRET: &str = "of the tiers, and of nobody else\n";
pub(crate) const ALICE: &str = "alice:correct horse";

/// A folder for the tiers: data, a socket, and the secret.
pub(crate) struct Workspace(tempfile::TempDir);

impl Workspace {
    pub(crate) fn new() -> Workspace {
        let place = Workspace(tempfile::tempdir().unwrap());
        // A secret contains no spaces.
        std::fs::write(place.path("secret"), SECRET.replace([' ', ','], "-")).unwrap();
        place
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Starts the authentication server, always on the same socket.
    pub(crate) fn auth(&self) -> Server {
        self.auth_under(EngineKind::Epoll)
    }

    fn auth_under(&self, kind: EngineKind) -> Server {
        self.auth_listening(kind, &self.auth_at())
    }

    /// Starts an authentication server of the same accounts, on a separate port.
    pub(crate) fn auth_at_port(&self, kind: EngineKind) -> Server {
        self.auth_listening(kind, "127.0.0.1:0")
    }

    fn auth_listening(&self, kind: EngineKind, at: &str) -> Server {
        let mut auth = command();
        auth.args(["auth", "--listen", at, "--secret-file"]).arg(self.path("secret"));
        auth.args(["--engine", &kind.to_string(), "--data"]).arg(self.path("accounts"));
        Server::spawn(auth)
    }

    pub(crate) fn auth_at(&self) -> String {
        format!("unix:{}", self.path("auth.sock").display())
    }

    fn front(&self, kind: EngineKind, name: &str) -> Server {
        self.front_with(kind, name, &self.path("secret"))
    }

    fn front_with(&self, kind: EngineKind, name: &str, secret: &Path) -> Server {
        self.front_asking(&self.auth_at(), kind, name, secret)
    }

    /// Starts a front of that authentication server.
    pub(crate) fn front_of(&self, auth: &Server, name: &str) -> Server {
        self.front_asking(&format!("http://{}", auth.at()), EngineKind::Epoll, name, &self.path("secret"))
    }

    fn front_asking(&self, auth: &str, kind: EngineKind, name: &str, secret: &Path) -> Server {
        let mut serve = command();
        serve.args(["serve", "--signup", "open", "--auth", auth, "--secret-file"]).arg(secret);
        serve.args(["--engine", &kind.to_string(), "--http", "127.0.0.1:0", "--data"]).arg(self.path(name));
        Server::spawn(serve)
    }
}

/// Sends a request by curl, and returns status and body.
pub(crate) fn curl(front: &Server, target: &str, args: &[&str]) -> (u16, String) {
    let mut curl = std::process::Command::new("curl");
    curl.args(["--silent", "--show-error", "--max-time", "60", "--write-out", "\n%{http_code}"]);
    let output = curl.args(args).arg(front.url(target)).stdin(Stdio::null()).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let (body, status) = text.rsplit_once('\n').unwrap();
    (status.parse().unwrap(), body.to_owned())
}

pub(crate) fn sign_up(front: &Server) {
    let account = r#"{"name":"alice","password":"correct horse"}"#;
    let (status, output) = curl(front, "/api/accounts", &["--data", account]);
    assert_eq!(status, 201, "{output}");
}

/// Logs alice in, and returns the `Authorization` field of the session.
fn log_in(front: &Server) -> String {
    let account = r#"{"name":"alice","password":"correct horse"}"#;
    let (status, output) = curl(front, "/api/sessions", &["--data", account]);
    assert_eq!(status, 201, "{output}");
    let session: serde_json::Value = serde_json::from_str(&output).unwrap();
    format!("Authorization: Bearer {}", session["token"].as_str().unwrap())
}

fn who_am_i(front: &Server, session: &str) -> u16 {
    curl(front, "/api/whoami", &["--header", session]).0
}

/// Accounts and sessions are those of the authentication server at every front.
fn fronts_of_one_authentication_server_are_as_one(kind: EngineKind) {
    let place = Workspace::new();
    let _auth = place.auth_under(kind);
    let fronts = [
        place.front(kind, "one"),
        place.front(EngineKind::Epoll, "two"),
        place.front(EngineKind::Thread, "three"),
    ];
    sign_up(&fronts[0]);
    let session = log_in(&fronts[1]);
    for front in &fronts {
        assert_eq!(who_am_i(front, &session), 200);
        assert_eq!(curl(front, "/api/whoami", &["--user", ALICE]).0, 200);
        assert_eq!(curl(front, "/api/whoami", &["--user", "alice:a guess"]).0, 401);
    }
    let ended = curl(&fronts[2], "/api/sessions/current", &["--request", "DELETE", "--header", &session]);
    assert_eq!(ended.0, 204, "{}", ended.1);
    for front in &fronts {
        assert_eq!(who_am_i(front, &session), 401, "it has ended everywhere");
    }
    assert!(!place.path("one/directory.sqlite").exists(), "a front keeps no accounts");
}

/// Without the server, credentials are refused; they work again without an operator once the server is
/// back.
fn while_the_authentication_server_is_away_nothing_is_said_yes_to_for_long(kind: EngineKind) {
    let place = Workspace::new();
    let auth = place.auth_under(kind);
    let front = place.front(kind, "one");
    sign_up(&front);
    let session = log_in(&front);
    assert_eq!(who_am_i(&front, &session), 200);
    until("it can be given work", || curl(&front, "/readyz", &[]).0 == 200);
    // A killed server sends no more notifications.
    auth.signal(rustix::process::Signal::KILL);
    until("what was remembered is not trusted any more", || who_am_i(&front, &session) == 503);
    let (status, output) = curl(&front, "/api/whoami", &["--include", "--user", ALICE]);
    assert!(status == 503 && output.to_lowercase().contains("retry-after:"), "{status} {output}");
    until("it is to be given no work", || curl(&front, "/readyz", &[]).0 == 503);
    drop(auth);
    let _auth = place.auth_under(kind);
    until("the front asks the server that is back", || who_am_i(&front, &session) == 200);
    until("it can be given work again", || curl(&front, "/readyz", &[]).0 == 200);
    let lines = front.stderr().matches("the auth server does not answer").count();
    assert!((1..10).contains(&lines), "{lines} lines say so");
}

/// The client gets 503, and the front's log has the reason.
fn a_front_with_another_secret_learns_nothing_and_its_log_says_why(kind: EngineKind) {
    let place = Workspace::new();
    let _auth = place.auth_under(kind);
    std::fs::write(place.path("another"), "not-the-secret-of-the-tiers\n").unwrap();
    let front = place.front_with(kind, "one", &place.path("another"));
    assert_eq!(curl(&front, "/api/whoami", &["--user", ALICE]).0, 503);
    until("the log says why", || front.stderr().contains("it does not take the secret"));
}

fn remove(place: &Workspace, name: &str) {
    let mut rm = command();
    rm.args(["account", "rm", name, "--yes", "--data"]).arg(place.path("accounts"));
    let output = tool::run(&mut rm).well().text();
    assert!(output.contains("had no files in") && output.contains("DATA/accounts/alice"), "{output}");
}

/// A front is not notified that an account was removed, but its home's record names the old account.
fn a_later_account_of_the_name_gets_none_of_the_files_that_a_front_has(kind: EngineKind) {
    let place = Workspace::new();
    let _auth = place.auth_under(kind);
    let front = place.front(kind, "one");
    let as_alice = ["--user", ALICE];
    let put = [&as_alice[..], &["--request", "PUT", "--data-binary", "hers"]].concat();
    sign_up(&front);
    assert_eq!(curl(&front, "/files/secret.txt", &put).0, 201);
    remove(&place, "alice");
    until("she has gone", || curl(&front, "/api/whoami", &as_alice).0 == 401);
    sign_up(&front);
    assert_eq!(curl(&front, "/files/secret.txt", &as_alice).0, 403);
    assert_eq!(curl(&front, "/files/another", &put).0, 403);
    until("the log says what to do", || front.stderr().contains("it is quarantined; `plimsoll doctor`"));
    std::fs::rename(place.path("one/accounts/alice"), place.path("one/removed-alice")).unwrap();
    assert_eq!(curl(&front, "/files/another", &put).0, 201);
    assert_eq!(curl(&front, "/files/secret.txt", &as_alice).0, 404);
    assert_eq!(std::fs::read(place.path("one/removed-alice/files/secret.txt")).unwrap(), b"hers");
}

/// Starts the example authentication hook of the documents, and returns its URL.
fn hook(place: &Workspace) -> (Running, String) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/examples/auth_hook.py");
    let mut hook = std::process::Command::new("python3");
    // The kernel chooses the port: another test could take one that is chosen and released here.
    hook.arg(script).arg("0").arg(place.path("secret"));
    let mut hook = Running(hook.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap());
    let mut url = String::new();
    BufReader::new(hook.0.stdout.take().unwrap()).read_line(&mut url).unwrap();
    (hook, url.trim().to_owned())
}

/// A process that is killed on drop.
struct Running(std::process::Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The protocol of docs/tiers.md.
fn a_third_partys_program_can_authenticate_accounts(kind: EngineKind) {
    let place = Workspace::new();
    let (_hook, url) = hook(&place);
    let mut serve = command();
    serve.args(["serve", "--signup", "open", "--auth", &url, "--secret-file"]).arg(place.path("secret"));
    serve.args(["--engine", &kind.to_string(), "--http", "127.0.0.1:0", "--ftp", "127.0.0.1:0", "--data"]);
    serve.arg(place.path("one"));
    let front = Server::spawn(serve);
    let put = ["--user", ALICE, "--request", "PUT", "--data-binary", "Hello, sea."];
    assert_eq!(curl(&front, "/files/hello.txt", &put).0, 201);
    assert_eq!(curl(&front, "/files/hello.txt", &["--user", ALICE]), (200, "Hello, sea.".to_owned()));
    assert_eq!(curl(&front, "/files/hello.txt", &["--user", "alice:a guess"]).0, 401);
    assert_eq!(curl(&front, "/files/hello.txt", &["--user", "bob:battery staple"]).0, 404);
    let delete = ["--user", ALICE, "--request", "DELETE"];
    assert_eq!(curl(&front, "/files/hello.txt", &delete).0, 204);
    let shared = curl(&front, "/api/shares", &["--user", ALICE]);
    assert_eq!(shared.0, 200, "{}", shared.1);
    // Without sessions, the log-in page leaves the password to the browser's own dialog.
    let browser = ["--include", "--header", "Upgrade-Insecure-Requests: 1"];
    assert!(!curl(&front, "/files/", &browser).1.contains("WWW-Authenticate: Basic"));
    let page = format!("Origin: {}", front.url(""));
    let form = ["--include", "--header", &page, "--data", "name=alice&password=correct+horse"];
    let (status, answer) = curl(&front, "/app/login", &form);
    assert!(status == 303 && answer.contains("Set-Cookie: plimsoll-dialog=yes"), "{answer}");
    let dialog = [&browser[..], &["--cookie", "plimsoll-dialog=yes"]].concat();
    assert!(curl(&front, "/files/", &dialog).1.contains("WWW-Authenticate: Basic"));
}

/// Returns whether the doctor's check of the authentication server passed, and its line.
fn doctor(place: &Workspace) -> (bool, String) {
    let mut doctor = command();
    doctor.args(["doctor", "--http", "127.0.0.1:0", "--auth", &place.auth_at(), "--secret-file"]);
    doctor.arg(place.path("secret")).arg("--data").arg(place.path("one"));
    let output = String::from_utf8(doctor.output().unwrap().stdout).unwrap();
    let line = output.lines().find(|line| line.contains("auth server")).unwrap_or(&output).to_owned();
    (line.starts_with("ok "), line)
}

#[test]
fn the_doctor_of_a_front_asks_its_authentication_server() {
    let place = Workspace::new();
    let auth = place.auth();
    let (is_well, output) = doctor(&place);
    assert!(is_well && output.contains("takes the secret"), "{output}");
    drop(auth);
    let (is_well, output) = doctor(&place);
    assert!(!is_well && output.contains("does not answer us"), "{output}");
}

/// The mode of early versions, kept for a laboratory.
fn each_question_can_have_a_connection_of_its_own(kind: EngineKind) {
    let place = Workspace::new();
    let _auth = place.auth_under(kind);
    let between = place.path("between.sock");
    let accepted = count_connections(&between, place.path("auth.sock"));
    for (each, least, most) in [("false", 0, 15), ("true", 20, usize::MAX)] {
        let mut serve = command();
        let between = format!("unix:{}", between.display());
        serve.args(["serve", "--signup", "open", "--auth", &between, "--secret-file"]);
        serve.arg(place.path("secret")).args([
            "--engine",
            &kind.to_string(),
            "--http",
            "127.0.0.1:0",
            "--data",
        ]);
        serve.arg(place.path(each)).env("PLIMSOLL_LAB_CONNECT_EACH", each);
        let front = Server::spawn(serve);
        if each == "false" {
            sign_up(&front);
        }
        let session = log_in(&front);
        let before = accepted.load(Ordering::SeqCst);
        for _ in 0..20 {
            assert_eq!(who_am_i(&front, &session), 200);
        }
        let more = accepted.load(Ordering::SeqCst) - before;
        assert!((least..=most).contains(&more), "{each}: {more} connections for 20 questions");
    }
}

/// Forwards connections, and counts them.
fn count_connections(at: &Path, to: PathBuf) -> Arc<AtomicUsize> {
    let (listener, count) = (UnixListener::bind(at).unwrap(), Arc::<AtomicUsize>::default());
    let counted = Arc::clone(&count);
    std::thread::spawn(move || {
        for near in listener.incoming() {
            let (near, far) = (near.unwrap(), UnixStream::connect(&to).unwrap());
            counted.fetch_add(1, Ordering::SeqCst);
            for (mut from, mut to) in [(near.try_clone().unwrap(), far.try_clone().unwrap()), (far, near)] {
                std::thread::spawn(move || {
                    let _ = std::io::copy(&mut from, &mut to);
                    let _ = to.shutdown(std::net::Shutdown::Write);
                });
            }
        }
    });
    count
}

on_each_engine!(forks:
    each_question_can_have_a_connection_of_its_own,
    fronts_of_one_authentication_server_are_as_one,
    while_the_authentication_server_is_away_nothing_is_said_yes_to_for_long,
    a_front_with_another_secret_learns_nothing_and_its_log_says_why,
    a_later_account_of_the_name_gets_none_of_the_files_that_a_front_has,
    a_third_partys_program_can_authenticate_accounts,
);

#[test]
fn an_authentication_server_does_not_start_without_a_secret() {
    for (args, why) in
        [(&["auth"][..], "--secret-file"), (&["serve", "--auth", "unix:/nowhere"], "--secret-file")]
    {
        let folder = tempfile::tempdir().unwrap();
        let output = command().args(args).current_dir(&folder).output().unwrap();
        let message = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{message}");
        assert!(message.contains(why), "{message}");
    }
}

#[test]
fn a_secret_that_can_be_guessed_is_none() {
    let place = Workspace::new();
    std::fs::write(place.path("secret"), "short\n").unwrap();
    let output =
        command().args(["auth", "--check", "--secret-file"]).arg(place.path("secret")).output().unwrap();
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success() && message.contains("at least 16"), "{message}");
}
