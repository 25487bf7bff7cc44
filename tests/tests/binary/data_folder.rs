//! The data folder: the account of a home, the lock of the running server, and access by other users.

use std::fs::Permissions;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown, lchown, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use plimsoll_tests::binary::{
    Done, EngineKind, NOBODY, Server, among_others, as_nobody, command, plimsoll, tool, until,
};
use plimsoll_tests::on_each_engine;
use plimsoll_tests::skips::{Need, skip};
use rustix::process::Signal;
use serde_json::Value;

use crate::tiers::curl;

const PASSWORD: &str = "correct horse";
const ALICE: &[&str] = &["--user", "alice:correct horse"];
const SECRET: &str = "the first alice's secret";

/// A folder in which tests have data folders.
struct Workspace(tempfile::TempDir);

impl Workspace {
    fn new() -> Workspace {
        Workspace(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn serve(&self, kind: EngineKind, data: &str) -> Server {
        Server::on_data(kind, &self.path(data), &["--signup", "open"])
    }

    /// Runs an operator's command on the data folder `data`.
    fn plimsoll(&self, args: &[&str], data: &str) -> Done {
        tool::run(with_password(command()).args(args).arg("--data").arg(self.path(data)))
    }

    /// Returns the doctor's finding of `check` in the data folder `data`.
    fn doctor(&self, check: &str, data: &str) -> Value {
        let done = self.plimsoll(&["doctor", "--http", ":0", "--json"], data);
        let found: Vec<Value> = serde_json::from_slice(&done.stdout).expect("JSON");
        found.into_iter().find(|found| found["check"] == check).expect("the check")
    }
}

fn with_password(mut command: Command) -> Command {
    command.env("PLIMSOLL_PASSWORD", PASSWORD).env("PLIMSOLL_LAB_FAST_PASSWORDS", "true");
    command
}

fn sign_up(server: &Server, name: &str) {
    let account = format!("{{\"name\":\"{name}\",\"password\":\"{PASSWORD}\"}}");
    let (status, output) = curl(server, "/api/accounts", &["--data", &account]);
    assert_eq!(status, 201, "{output}");
}

fn get(server: &Server) -> (u16, String) {
    curl(server, "/files/secret", ALICE)
}

fn put(server: &Server) -> u16 {
    curl(server, "/files/secret", &[ALICE, &["--request", "PUT", "--data-binary", SECRET]].concat()).0
}

/// Kills a server, as a crash does: nothing moves from SQLite's WAL into its file.
fn kill(mut server: Server) {
    server.signal(Signal::KILL);
    server.ends_within(std::time::Duration::from_secs(20));
}

fn remove(data: &Path, ends: &[&str]) {
    for end in ends {
        std::fs::remove_file(data.join(format!("directory.sqlite{end}"))).unwrap();
    }
}

/// After the loss of a directory or its WAL, a new account of an old name does not get the old home.
fn a_new_account_gets_no_home_of_an_account_whose_directory_was_lost(kind: EngineKind) {
    for lost in [&["", "-wal", "-shm"][..], &["-wal", "-shm"]] {
        let place = Workspace::new();
        let server = place.serve(kind, "data");
        sign_up(&server, "alice");
        assert_eq!(put(&server), 201);
        assert_eq!(get(&server), (200, SECRET.to_owned()));
        kill(server);
        remove(&place.path("data"), lost);
        let server = place.serve(kind, "data");
        let is_whole = lost.contains(&"");
        let reports = || server.stderr().contains("there is no directory of accounts");
        if is_whole {
            until("the server reports the lost directory", reports);
        }
        sign_up(&server, "alice");
        let (status, output) = get(&server);
        assert!(status == 403 && !output.contains(SECRET), "{lost:?}: {status} {output}");
        assert_eq!(put(&server), 403, "{lost:?}");
        assert_eq!(curl(&server, "/files/", ALICE).0, 403, "{lost:?}");
        assert!(server.stderr().contains("it is quarantined"), "{}", server.stderr());
        assert_eq!(reports(), is_whole, "{lost:?}");
        let found = place.doctor("homes", "data");
        assert!(found["verdict"] == "warn" && found["seen"].as_str().unwrap().contains("alice"), "{found}");
        assert!(found["now"].as_str().unwrap().contains("plimsoll account adopt NAME"), "{found}");
        let refused = place.plimsoll(&["account", "adopt", "alice"], "data");
        assert!(!refused.status.success() && refused.stderr.contains("End the server"), "{}", refused.stderr);
        kill(server);
        place.plimsoll(&["account", "adopt", "alice"], "data").well();
        assert_eq!(place.doctor("homes", "data")["verdict"], "ok");
        let server = place.serve(kind, "data");
        assert_eq!(get(&server), (200, SECRET.to_owned()), "the operator has given it back");
    }
}

/// Homes of older versions have no record of their account.
fn a_home_of_an_older_version_is_its_accounts_and_no_later_ones(kind: EngineKind) {
    let place = Workspace::new();
    let server = place.serve(kind, "data");
    sign_up(&server, "alice");
    assert_eq!(put(&server), 201);
    kill(server);
    let accounts = place.path("data").join("accounts");
    std::fs::remove_file(accounts.join("alice/account")).unwrap();
    std::fs::remove_file(place.path("data/homes.settled")).unwrap();
    std::fs::create_dir_all(accounts.join("bob/files")).unwrap();
    std::fs::write(accounts.join("bob/files/secret"), SECRET).unwrap();
    let bob = ["--user", "bob:correct horse"];
    // At each start: a home that was not bob's at the first start is not his at a later one.
    for starts in 0..2 {
        let server = place.serve(kind, "data");
        assert_eq!(get(&server), (200, SECRET.to_owned()));
        if starts == 0 {
            assert!(server.stderr().contains("homes have no account"), "{}", server.stderr());
            sign_up(&server, "bob");
        }
        assert_eq!(curl(&server, "/files/secret", &bob).0, 403, "start {starts}");
        kill(server);
    }
}

#[test]
fn a_copy_by_rsync_and_sqlite_is_served_again() {
    let _permit = among_others();
    let place = Workspace::new();
    let server = place.serve(EngineKind::Epoll, "data");
    sign_up(&server, "alice");
    assert_eq!(put(&server), 201);
    let (data, backup) = (place.path("data"), place.path("backup"));
    let script = "umask 077 && mkdir -p $1 && rsync -a --exclude='/*/pending/' $0/accounts/ $1/accounts/ && \
                  sqlite3 $0/directory.sqlite \".backup $1/directory.sqlite\"";
    tool::run(tool("sh").args(["-c", script]).arg(&data).arg(&backup)).well();
    kill(server);
    let script = "umask 077 && mkdir -p $1 && cp -a $0/. $1/";
    tool::run(tool("sh").args(["-c", script]).arg(&backup).arg(place.path("restored"))).well();
    let server = place.serve(EngineKind::Epoll, "restored");
    assert_eq!(get(&server), (200, SECRET.to_owned()));
    assert_eq!(put(&server), 204);
}

#[test]
fn accounts_that_move_to_another_directory_keep_their_homes() {
    let _permit = among_others();
    let place = Workspace::new();
    let server = place.serve(EngineKind::Epoll, "data");
    sign_up(&server, "alice");
    assert_eq!(put(&server), 201);
    kill(server);
    let lines = place.path("accounts.jsonl");
    let lines = lines.to_str().unwrap();
    place.plimsoll(&["account", "export", lines], "data").well();
    let url = format!("sqlite:{}", place.path("other.sqlite").display());
    place.plimsoll(&["account", "import", lines, "--directory", &url], "data").well();
    let server = Server::on_data(EngineKind::Epoll, &place.path("data"), &["--directory", &url]);
    assert_eq!(get(&server), (200, SECRET.to_owned()));
}

/// Returns whether this test can act as two users: root, and one that can run the binary. If not, skips it.
fn has_two_users() -> bool {
    let mut tried = as_nobody(plimsoll());
    tried.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
    let has = rustix::process::geteuid().is_root() && tried.status().is_ok_and(|tried| tried.success());
    if !has {
        skip(Need::SecondUser, "it needs the superuser, and a binary that others can run");
    }
    has
}

/// Creates a folder that the unprivileged user owns.
fn place_of_nobody() -> Workspace {
    let (place, nobody) = (Workspace::new(), NOBODY.parse().unwrap());
    chown(place.0.path(), Some(nobody), Some(nobody)).unwrap();
    place
}

fn serve_as_nobody(data: &Path) -> Server {
    let mut serve = as_nobody(plimsoll());
    serve.args(["serve", "--http", "127.0.0.1:0", "--access-log", "off", "--lab-fast-passwords", "true"]);
    Server::spawn({
        serve.arg("--data").arg(data);
        serve
    })
}

#[test]
fn files_created_by_root_belong_to_the_owner_of_the_data() {
    let _permit = among_others();
    if !has_two_users() {
        return;
    }
    let place = place_of_nobody();
    place.plimsoll(&["account", "add", "alice"], "data").well();
    for name in ["data", "data/directory.sqlite"] {
        assert_eq!(place.path(name).metadata().unwrap().uid().to_string(), NOBODY, "{name}");
    }
    let server = serve_as_nobody(&place.path("data"));
    assert_eq!(put(&server), 201);
    place.plimsoll(&["account", "add", "bob"], "data").well();
    place.plimsoll(&["account", "list"], "data").well();
    kill(server);
    place.plimsoll(&["account", "add", "carol"], "data").well();
    let removed = place.plimsoll(&["account", "rm", "alice", "--yes"], "data").well();
    assert!(removed.text().contains("removed/alice."), "{}", removed.text());
    // The export file, which root names, is written as root.
    let exported = Workspace::new();
    let lines = exported.path("accounts.jsonl");
    place.plimsoll(&["account", "export", lines.to_str().unwrap()], "data").well();
    assert_eq!(lines.metadata().unwrap().uid(), 0);
    for entry in std::fs::read_dir(place.path("data")).unwrap() {
        let entry = entry.unwrap();
        assert_eq!(entry.metadata().unwrap().uid().to_string(), NOBODY, "{:?}", entry.file_name());
    }
    drop(serve_as_nobody(&place.path("data")));
}

#[test]
fn no_link_in_the_data_leads_root_to_a_file_of_another_user() {
    let _permit = among_others();
    if !has_two_users() {
        return;
    }
    let (place, roots) = (place_of_nobody(), Workspace::new());
    std::fs::create_dir(place.path("data")).unwrap();
    let nobody = NOBODY.parse().unwrap();
    chown(place.path("data"), Some(nobody), Some(nobody)).unwrap();
    for name in ["directory.sqlite", "directory.sqlite-wal"] {
        let (target, link) = (roots.path(name), place.path("data").join(name));
        std::fs::write(&target, "").unwrap();
        std::fs::set_permissions(&target, Permissions::from_mode(0o600)).unwrap();
        symlink(&target, &link).unwrap();
        let refused = place.plimsoll(&["account", "add", "alice"], "data");
        assert!(!refused.status.success() && refused.stderr.contains("cannot be"), "{}", refused.stderr);
        assert_eq!(std::fs::read(&target).unwrap(), b"", "{name}");
        std::fs::remove_file(&link).unwrap();
    }
    symlink(roots.0.path(), place.path("linked")).unwrap();
    lchown(place.path("linked"), Some(nobody), Some(nobody)).unwrap();
    assert!(!place.plimsoll(&["account", "add", "alice"], "linked").status.success());
    assert!(!roots.path("directory.sqlite-shm").exists());
}

#[test]
fn data_that_cannot_be_read_is_not_called_missing() {
    let _permit = among_others();
    if !has_two_users() {
        return;
    }
    let place = Workspace::new();
    place.plimsoll(&["account", "add", "alice"], "data").well();
    std::fs::set_permissions(place.0.path(), Permissions::from_mode(0o755)).unwrap();
    let data = place.path("data");
    let refused = |args: &[&str]| {
        let done = tool::run(with_password(as_nobody(plimsoll())).args(args).arg("--data").arg(&data));
        let output = format!("{}{}", done.text(), done.stderr);
        assert!(!done.status.success() && !output.contains("There is no directory"), "{args:?}: {output}");
        for word in [&format!("as user {NOBODY}"), "user root (0)", "chown -R USER:"] {
            assert!(output.contains(word), "{args:?}: {word:?} is not in: {output}");
        }
    };
    let serve = ["serve", "--http", "127.0.0.1:0"];
    // First the folder, then a file in a folder that may be entered.
    for mode in [0o700, 0o777] {
        std::fs::set_permissions(&data, Permissions::from_mode(mode)).unwrap();
        refused(&["account", "list"]);
        refused(&serve);
    }
    std::fs::set_permissions(&data, Permissions::from_mode(0o700)).unwrap();
    refused(&["doctor", "--http", ":0"]);
}

/// Starts a server that must be refused, and returns its standard error.
fn refused(args: &[&str], data: &Path) -> String {
    let done = tool::run(command().args(args).arg("--data").arg(data));
    assert_eq!(done.status.code(), Some(1), "{}", done.stderr);
    done.stderr
}

/// The lock is on the folder itself: no file can be removed to release it.
fn a_data_folder_has_one_server_whatever_is_removed_in_it(kind: EngineKind) {
    let place = Workspace::new();
    let data = place.path("data");
    std::fs::write(place.path("secret"), "0123456789abcdef0123456789abcdef\n").unwrap();
    std::fs::set_permissions(place.path("secret"), Permissions::from_mode(0o600)).unwrap();
    let server = place.serve(kind, "data");
    for name in ["lock", "homes.settled"] {
        // A lock file is only made where a folder cannot be locked.
        let _ = std::fs::remove_file(data.join(name));
    }
    let engine = kind.to_string();
    let secret = place.path("secret");
    let secret = secret.to_str().unwrap();
    let serve = ["serve", "--http", "127.0.0.1:0", "--engine", &engine];
    let auth = ["auth", "--listen", "127.0.0.1:0", "--engine", &engine, "--secret-file", secret];
    let store = ["store", "--listen", "127.0.0.1:0", "--secret-file", secret];
    for args in [&serve[..], &auth, &store] {
        let output = refused(args, &data);
        assert!(output.contains("another plimsoll has the data folder"), "{args:?}: {output}");
    }
    kill(server);
    let mut command = command();
    let auth = Server::spawn({
        command.args(auth).arg("--data").arg(&data);
        command
    });
    assert!(refused(&serve, &data).contains("another plimsoll has the data folder"));
    drop(auth);
}

#[test]
fn data_that_other_users_can_access_is_a_warning_at_the_start_and_by_the_doctor() {
    let _permit = among_others();
    let place = Workspace::new();
    let (data, secret) = (place.path("data"), place.path("data/secret"));
    std::fs::create_dir(&data).unwrap();
    std::fs::write(&secret, "0123456789abcdef0123456789abcdef\n").unwrap();
    let set = |path: &Path, mode| std::fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    set(&data, 0o777);
    set(&secret, 0o644);
    let server = place.serve(EngineKind::Epoll, "data");
    let warnings = [
        format!("chmod 700 {}", data.display()),
        format!("chmod 600 {}", secret.display()),
        "can be changed by other users (mode 777)".to_owned(),
    ];
    for words in &warnings {
        until("it is warned of in the log", || server.stderr().contains(words));
    }
    let is_root = rustix::process::geteuid().is_root();
    assert_eq!(server.stderr().contains("plimsoll runs as root"), is_root);
    drop(server);
    let found = place.plimsoll(&["doctor", "--http", ":0"], "data").text();
    for words in &warnings {
        assert!(found.contains(words), "{words:?} is not in: {found}");
    }
    assert_eq!(found.contains("plimsoll runs as root"), is_root, "{found}");
    set(&data, 0o700);
    set(&secret, 0o600);
    let server = place.serve(EngineKind::Epoll, "data");
    assert!(!server.stderr().contains("chmod"), "{}", server.stderr());
}

#[test]
fn a_password_on_the_command_line_is_warned_of_and_not_shown() {
    let _permit = among_others();
    let url = "postgres://files:sesame@127.0.0.1:1/files";
    for args in
        [&["account", "list", "--directory", url][..], &["doctor", "--http", ":0", "--directory", url]]
    {
        let done = tool::run(command().args(args));
        let output = format!("{}{}", done.text(), done.stderr);
        assert!(
            output.contains("ps shows to every user") && output.contains("PLIMSOLL_DIRECTORY"),
            "{output}"
        );
        assert!(!output.contains("sesame"), "{output}");
        let done = tool::run(command().args(&args[..args.len() - 2]).env("PLIMSOLL_DIRECTORY", url));
        let output = format!("{}{}", done.text(), done.stderr);
        assert!(!output.contains("ps shows") && !output.contains("sesame"), "{output}");
    }
}

on_each_engine!(
    forks: a_new_account_gets_no_home_of_an_account_whose_directory_was_lost,
    a_home_of_an_older_version_is_its_accounts_and_no_later_ones,
    a_data_folder_has_one_server_whatever_is_removed_in_it,
);
