//! Accounts on a database server: after a restart of either side, during an operator's commands, and moved
//! between stores.

use std::path::Path;
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use plimsoll_tests::binary::{Done, EngineKind, Member, Server, among_others, command, tool, until};
use plimsoll_tests::database::{Database, Transport};
use plimsoll_tests::on_each_engine;
use serde_json::Value;

const KINDS: [&str; 3] = ["mysql", "postgres", "redis"];

/// One server of each kind, on which each test has a separate database.
static SHARED: [Mutex<Option<Database>>; KINDS.len()] = [const { Mutex::new(None) }; KINDS.len()];

/// Runs `work` with the shared server of a kind.
pub(crate) fn with_server<T>(kind: &str, work: impl FnOnce(&mut Database) -> T) -> T {
    let at = KINDS.iter().position(|known| *known == kind).unwrap();
    let mut shared = SHARED[at].lock().unwrap_or_else(PoisonError::into_inner);
    work(shared.get_or_insert_with(|| Database::start(kind)))
}

fn fresh(kind: &str) -> String {
    with_server(kind, Database::fresh).url
}

fn serve(kind: EngineKind, data: &Path, url: &str) -> Server {
    Server::on_data(kind, data, &["--directory", url])
}

fn account(url: &str, args: &[&str]) -> Command {
    let mut account = command();
    account.arg("account").args(args).args(["--directory", url]);
    account.env("PLIMSOLL_PASSWORD", "correct horse").env("PLIMSOLL_LAB_FAST_PASSWORDS", "true");
    account
}

fn well(url: &str, args: &[&str]) -> Done {
    tool::run(&mut account(url, args)).well()
}

fn who_is(person: &mut Member) -> u16 {
    person.ask("GET", "/api/whoami", "", b"").status
}

/// Reads a count of the directory from `/metrics`.
fn metric(server: &Server, name: &str) -> u64 {
    let text = server.visit().get("/metrics").unwrap().text();
    let start = format!("plimsoll_directory_{name} ");
    let value = text.lines().find_map(|line| line.strip_prefix(&start));
    value.unwrap_or_else(|| panic!("{start} is in {text}")).parse().unwrap()
}

fn an_account_and_its_session_outlive_the_server(engine: EngineKind) {
    for kind in KINDS {
        let (data, url) = (tempfile::tempdir().unwrap(), fresh(kind));
        let server = serve(engine, data.path(), &url);
        let alice = Member::new(&server, "alice");
        drop(server);
        let server = serve(engine, data.path(), &url);
        assert_eq!(who_is(&mut alice.again(&server)), 200);
        assert!(!data.path().join("directory.sqlite").exists());
    }
}

fn an_operators_change_takes_effect_at_a_running_server(engine: EngineKind) {
    for kind in KINDS {
        let (data, url) = (tempfile::tempdir().unwrap(), fresh(kind));
        let server = serve(engine, data.path(), &url);
        let mut alice = Member::new(&server, "alice");
        assert_eq!(who_is(&mut alice), 200);
        well(&url, &["disable", "alice"]);
        until("the server knows that the account is disabled", || who_is(&mut alice) == 401);
    }
}

fn a_restarted_database_is_found_again_and_without_it_every_caller_is_refused(engine: EngineKind) {
    for kind in KINDS {
        let mut database = Database::start(kind);
        let (data, url) = (tempfile::tempdir().unwrap(), database.fresh().url);
        let server = serve(engine, data.path(), &url);
        let mut alice = Member::new(&server, "alice");
        database.kill();
        until("the database is missed", || who_is(&mut alice) == 503);
        let errors = ["closed", "unreachable"].map(|kind| format!("errors_total{{kind=\"{kind}\"}}"));
        assert!(errors.iter().any(|errors| metric(&server, errors) > 0), "{engine:?}");
        database.start_again();
        until("the database is found", || who_is(&mut alice) == 200);
        assert!(metric(&server, "connections_total") > 0, "{engine:?}");
        assert!(
            metric(&server, "request_seconds_count") >= metric(&server, errors[0].as_str()),
            "{engine:?}"
        );
    }
}

/// The homes stay on the server's disk when the database of their accounts is lost and an empty one takes
/// its place.
fn a_new_account_gets_no_home_of_an_account_whose_database_was_lost(engine: EngineKind) {
    const SECRET: &[u8] = b"the first alice's";
    for kind in KINDS {
        let (data, lost, empty) = (tempfile::tempdir().unwrap(), fresh(kind), fresh(kind));
        let server = serve(engine, data.path(), &lost);
        let mut first = Member::new(&server, "alice");
        assert_eq!(first.put("/files/secret", SECRET).status, 201, "{kind}");
        drop(server);
        let server = serve(engine, data.path(), &empty);
        let mut later = Member::new(&server, "alice");
        for path in ["/files/secret", "/files/"] {
            let reply = later.get(path);
            assert!(reply.status == 403 && !reply.text().contains("secret"), "{kind}: {}", reply.text());
        }
        assert_eq!(later.put("/files/secret", b"the later alice's").status, 403, "{kind}");
        drop(server);
        let server = serve(engine, data.path(), &lost);
        assert_eq!(first.again(&server).get("/files/secret").body, SECRET, "{kind}: the database is back");
        drop(server);
        well(&empty, &["adopt", "alice", "--data", data.path().to_str().unwrap()]);
        let server = serve(engine, data.path(), &empty);
        assert_eq!(later.again(&server).get("/files/secret").body, SECRET, "{kind}: an operator adopted it");
    }
}

/// The server has no data folder, and needs none.
fn an_authentication_server_on_a_database_is_ready_as_long_as_that_answers(engine: EngineKind) {
    for kind in KINDS {
        let mut database = Database::start(kind);
        let (folder, url) = (tempfile::tempdir().unwrap(), database.fresh().url);
        std::fs::write(folder.path().join("secret"), "of-the-tiers-and-nobody-else\n").unwrap();
        let mut auth = command();
        auth.args(["auth", "--listen", "127.0.0.1:0", "--engine", &engine.to_string(), "--directory", &url]);
        auth.arg("--secret-file").arg(folder.path().join("secret")).current_dir(folder.path());
        let server = Server::spawn(auth);
        let is_ready = || server.visit().get("/readyz").unwrap().status == 200;
        until("it is ready", is_ready);
        database.kill();
        until("the database is missed", || !is_ready());
        database.start_again();
        until("it is ready again", is_ready);
    }
}

on_each_engine!(
    an_account_and_its_session_outlive_the_server,
    an_operators_change_takes_effect_at_a_running_server,
    a_restarted_database_is_found_again_and_without_it_every_caller_is_refused,
    a_new_account_gets_no_home_of_an_account_whose_database_was_lost,
    an_authentication_server_on_a_database_is_ready_as_long_as_that_answers,
);

#[test]
fn the_password_of_a_database_comes_from_a_file_or_from_the_environment() {
    const VARIABLE: &str = "PLIMSOLL_DIRECTORY_PASSWORD";
    let _turn = among_others();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("password");
    std::fs::write(&file, "sesame\n").unwrap();
    for kind in KINDS {
        let url = fresh(kind).replace(":sesame", "");
        let with_file = |args: &[&str]| {
            let mut account = account(&url, args);
            account.arg("--directory-password-file").arg(&file);
            account
        };
        tool::run(&mut with_file(&["add", "alice"])).well();
        tool::run(account(&url, &["show", "alice"]).env(VARIABLE, "sesame")).well();
        let of_variable = [("PLIMSOLL_DIRECTORY", url.as_str()), (VARIABLE, "sesame")];
        tool::run(command().args(["account", "show", "alice"]).envs(of_variable)).well();
        let wrong = tool::run(account(&url, &["show", "alice"]).env(VARIABLE, "nonsense"));
        assert!(!wrong.status.success() && !wrong.stderr.contains("nonsense"), "{kind}: {}", wrong.stderr);
        let both = tool::run(with_file(&["show", "alice"]).env(VARIABLE, "sesame"));
        assert_eq!(both.status.code(), Some(2), "{kind}: {}", both.stderr);
        let twice = tool::run(account(&fresh(kind), &["show", "alice"]).env(VARIABLE, "other"));
        assert!(
            twice.status.code() == Some(2) && !twice.stderr.contains("sesame"),
            "{kind}: {}",
            twice.stderr
        );
    }
}

#[test]
fn accounts_move_between_any_two_stores_and_nothing_is_lost() {
    let _permit = among_others();
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| format!("sqlite:{}", folder.path().join(name).display());
    let first = file("first.sqlite");
    well(&first, &["add", "alice", "--quota-bytes", "7GiB"]);
    well(&first, &["add", "bob"]);
    well(&first, &["permit", "bob", "read"]);
    well(&first, &["disable", "bob"]);
    let exported = well(&first, &["export"]).text();
    let mut stores: Vec<String> = KINDS.iter().map(|kind| fresh(kind)).collect();
    stores.push(file("last.sqlite"));
    let mut from = first;
    for to in stores {
        let moved = folder.path().join("moved");
        std::fs::write(&moved, well(&from, &["export"]).stdout).unwrap();
        well(&to, &["import", moved.to_str().unwrap()]);
        assert_eq!(well(&to, &["export"]).text(), exported, "{to}");
        from = to;
    }
}

#[test]
fn a_password_in_a_url_is_shown_by_nothing() {
    let _permit = among_others();
    let data = tempfile::tempdir().unwrap();
    for kind in KINDS {
        let url = fresh(kind);
        let server = serve(EngineKind::Epoll, data.path(), &url);
        let folder = data.path().to_str().unwrap();
        let args = ["serve", "--check", "--http", ":0", "--data", folder, "--directory", &url];
        let check = tool::run(command().args(args)).well();
        let doctor = tool::run(command().args(["doctor", "--data", folder, "--directory", &url]));
        let help = tool::run(command().args(["serve", "--help"]).env("PLIMSOLL_DIRECTORY", &url)).well();
        let wrong = url.replace("sesame", "sesamely").replace("plimsoll:", "nobody:");
        let refused = tool::run(&mut account(&wrong, &["list"]));
        assert_eq!(refused.status.code(), Some(1), "{}", refused.stderr);
        let output =
            [server.stdout(), server.stderr(), check.text(), doctor.text(), help.text(), refused.stderr];
        for text in output {
            assert!(!text.contains("sesame"), "{text}");
        }
    }
}

#[test]
fn a_url_of_no_store_is_wrong_usage() {
    let _permit = among_others();
    for bad in ["oracle://me:sesame@db/files", "postgres://me:sesame@db:port/files", "files.sqlite"] {
        let refused = tool::run(&mut account(bad, &["list"]));
        assert_eq!(refused.status.code(), Some(2), "{}", refused.stderr);
        assert!(refused.stderr.contains("is no directory of accounts"), "{}", refused.stderr);
        assert!(!refused.stderr.contains("sesame"), "{}", refused.stderr);
    }
}

#[test]
fn the_doctor_tells_a_database_that_can_lose_accounts_from_one_that_does_not_answer() {
    let _permit = among_others();
    let findings = |url: &str| {
        let done = tool::run(command().args(["doctor", "--json", "--directory", url]));
        let findings: Vec<Value> = serde_json::from_slice(&done.stdout).expect("JSON");
        let seen = findings.iter().filter(|finding| finding["check"] == "directory");
        let seen = seen.map(|finding| format!("{} {}", finding["verdict"], finding["seen"]));
        seen.collect::<Vec<_>>().join("\n")
    };
    let seen = findings(&fresh("postgres"));
    assert!(seen.contains("\"fail\" \"PostgreSQL") && seen.contains("fsync is off"), "{seen}");
    assert!(seen.contains("\"ok\" \"it takes 47 connections"), "{seen}");
    let seen = findings(&fresh("mysql"));
    assert!(seen.contains("\"warn\" \"MariaDB") && seen.contains("the last second"), "{seen}");
    assert!(seen.contains("\"ok\" \"it takes 50 connections"), "{seen}");
    let seen = findings(&fresh("redis"));
    assert!(seen.contains("\"warn\" \"Redis") && seen.contains("half minute"), "{seen}");
    assert!(seen.contains("(noeviction)") && seen.contains("\"ok\" \"it takes 10000 connections"), "{seen}");
    for kind in KINDS {
        let url = with_server(kind, |server| server.fresh_over(Transport::Tls).url);
        let seen = findings(&url);
        assert!(seen.contains("\"ok\" \"the connection to it is encrypted (TLS 1.3)"), "{seen}");
        assert!(seen.contains("days left, verified"), "{seen}");
        let (before, _) = url.split_once("sslmode=").unwrap();
        let seen = findings(&format!("{before}sslmode=require"));
        assert!(seen.contains("\"warn\"") && seen.contains("not verified"), "{seen}");
    }
    let seen = findings("postgres://nobody@/none?host=/nowhere");
    assert!(seen.contains("\"fail\"") && seen.contains("does not answer"), "{seen}");
    assert_eq!(findings("sqlite:accounts.sqlite"), "");
}
