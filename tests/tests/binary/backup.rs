//! `plimsoll backup` and `plimsoll restore`: of a server under load, interrupted, and as another user.

use std::collections::BTreeMap;
use std::fs::Permissions;
use std::os::unix::fs::{FileExt as _, MetadataExt as _, PermissionsExt as _, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use plimsoll_tests::binary::member::Member;
use plimsoll_tests::binary::{
    Done, EngineKind, NOBODY, Server, alone, among_others, as_nobody, command, plimsoll, tool,
};
use plimsoll_tests::skips::{Need, skip};
use plimsoll_tests::tree::noise;
use rustix::process::Signal;
use serde_json::Value;

/// A folder in which tests have data folders and backups.
struct Workspace(tempfile::TempDir);

impl Workspace {
    fn new() -> Workspace {
        Workspace(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn serve(&self, data: &str) -> Server {
        Server::on_data(EngineKind::Epoll, &self.path(data), &["--signup", "open"])
    }

    fn backup(&self, to: &str, data: &str) -> Command {
        let mut backup = command();
        backup.arg("backup").arg(self.path(to)).arg("--data").arg(self.path(data));
        backup
    }

    fn restore(&self, from: &str, data: &str) -> Command {
        let mut restore = command();
        restore.arg("restore").arg(self.path(from)).arg("--data").arg(self.path(data));
        restore
    }

    fn files(&self, data: &str, account: &str) -> PathBuf {
        self.path(data).join("accounts").join(account).join("files")
    }
}

fn run(mut command: Command) -> Done {
    tool::run(&mut command)
}

/// Runs a command that must fail, and returns its standard error.
fn refused(command: Command) -> String {
    let done = run(command);
    assert_eq!(done.status.code(), Some(1), "{}{}", done.text(), done.stderr);
    done.stderr
}

fn kill(mut server: Server) {
    server.signal(Signal::KILL);
    server.ends_within(Duration::from_secs(20));
}

/// Returns the bytes of the file `number`. They begin with their generation.
fn body(number: u64, generation: u64) -> Vec<u8> {
    let len = 1 + usize::try_from(number * 7919 % 60_000).unwrap();
    [generation.to_le_bytes().to_vec(), noise(number * 1000 + generation, len)].concat()
}

mod under_load;

#[test]
fn a_quiet_server_and_its_accounts_are_of_one_moment_and_restored_as_they_were() {
    let _permit = among_others();
    let place = Workspace::new();
    let server = place.serve("data");
    let mut alice = Member::new(&server, "alice");
    alice.mkcol("/files/empty");
    alice.put("/files/caf%E9", b"not UTF-8");
    alice.put("/files/a", b"bytes");
    let files = place.files("data", "alice");
    symlink("a", files.join("link")).unwrap();
    std::fs::hard_link(files.join("a"), files.join("second name")).unwrap();
    let modified = files.join("a").metadata().unwrap().modified().unwrap();
    std::fs::write(place.path("data/secret"), "0123456789abcdef0123456789abcdef\n").unwrap();
    std::fs::create_dir_all(place.path("data/removed/bob.20260101T000000Z/files")).unwrap();
    let mut backup = place.backup("backup", "data");
    backup.arg("--json");
    let taken: Value = serde_json::from_slice(&run(backup).well().stdout).unwrap();
    assert_eq!((&taken["one_moment"], &taken["homes"]), (&true.into(), &1.into()), "{taken}");
    assert_eq!(taken["accounts"]["log_ins"], 1, "{taken}");
    for private in ["backup", "backup/data", "backup/directory.sqlite", "backup/manifest"] {
        assert_eq!(place.path(private).metadata().unwrap().mode() & 0o077, 0, "{private}");
    }
    let copy = place.files("backup/data", "alice").join("a").metadata().unwrap();
    assert_eq!((copy.nlink(), copy.modified().unwrap()), (1, modified), "it is a copy, not a link");
    kill(server);
    let output = run(place.restore("backup", "restored")).well().text();
    assert!(output.contains("every file has the digest of the backup"), "{output}");
    let restored = place.files("restored", "alice");
    assert_eq!(std::fs::read_link(restored.join("link")).unwrap(), Path::new("a"));
    assert!(restored.join("empty").is_dir());
    assert_eq!(restored.join("a").metadata().unwrap().modified().unwrap(), modified);
    let secret = place.path("restored/secret").metadata().unwrap();
    assert_eq!(secret.mode() & 0o777, place.path("data/secret").metadata().unwrap().mode() & 0o777);
    assert!(place.path("restored/removed/bob.20260101T000000Z/files").is_dir());
    let server = place.serve("restored");
    let mut alice = alice.again(&server);
    assert_eq!(alice.get("/files/caf%E9").body, b"not UTF-8");
    assert_eq!(alice.put("/files/a", b"anew").status, 204);
}

/// A log-out on a full disk is recorded in a file beside the database. Its row stays in the database.
#[test]
fn a_token_that_was_logged_out_on_a_full_disk_stays_dead_in_a_restored_server() {
    let _permit = among_others();
    let place = Workspace::new();
    let server = place.serve("data");
    let (ended, alive) = (Member::new(&server, "alice"), Member::new(&server, "bob"));
    kill(server);
    let drawn = ended.token.strip_prefix("pls_").unwrap();
    let drawn: Vec<u8> =
        (0..16).map(|at| u8::from_str_radix(&drawn[2 * at..2 * at + 2], 16).unwrap()).collect();
    let number = *blake3::hash(&drawn).as_bytes();
    let slot = [number, *blake3::hash(&number).as_bytes()].concat();
    let revoked = place.path("data/directory.sqlite-revoked");
    std::fs::OpenOptions::new().write(true).open(revoked).unwrap().write_all_at(&slot, 0).unwrap();
    let output = run(place.backup("backup", "data")).well().text();
    assert!(output.contains("1 more had ended"), "{output}");
    run(place.restore("backup", "restored")).well();
    let server = place.serve("restored");
    assert_eq!(ended.again(&server).get("/api/whoami").status, 401);
    assert_eq!(alive.again(&server).get("/api/whoami").status, 200);
    kill(server);
    let mut ends_all = place.restore("backup", "second");
    ends_all.arg("--end-sessions");
    assert!(run(ends_all).well().text().contains("log-ins   1 were ended"));
    assert_eq!(alive.again(&place.serve("second")).get("/api/whoami").status, 401);
}

#[test]
fn a_restore_keeps_public_links_or_ends_them_all() {
    let _permit = among_others();
    let place = Workspace::new();
    let server = place.serve("data");
    let mut alice = Member::new(&server, "alice");
    alice.put("/files/a", b"bytes");
    let new = br#"{"path":"/a","permission":"read"}"#;
    let made = alice.ask("POST", "/api/links", "Content-Type: application/json\r\n", new);
    let made: Value = serde_json::from_slice(&made.body).unwrap();
    let url = made["url"].as_str().unwrap();
    let link = &url[url.find("/s/").unwrap()..];
    run(place.backup("backup", "data")).well();
    for (data, argument, status) in [("kept", None, 200), ("ended", Some("--end-links"), 404)] {
        let mut restore = place.restore("backup", data);
        restore.args(argument);
        let output = run(restore).well().text();
        assert_eq!(output.contains("links     1 were ended"), argument.is_some(), "{output}");
        let server = place.serve(data);
        let reply = server.visit().ask("GET", link, "", b"").unwrap();
        assert_eq!(reply.status, status, "{data}");
        assert_eq!(alice.again(&server).get("/files/a").body, b"bytes");
    }
}

/// Makes a data folder with accounts, and files that take a while to copy.
fn large_data(place: &Workspace) -> BTreeMap<PathBuf, Vec<u8>> {
    let server = place.serve("data");
    Member::new(&server, "alice").put("/files/first", b"bytes");
    kill(server);
    let mut files = BTreeMap::new();
    for number in 0..200 {
        let (path, bytes) = (place.files("data", "alice").join(number.to_string()), noise(number, 200_000));
        std::fs::write(&path, &bytes).unwrap();
        files.insert(path, bytes);
    }
    files
}

#[test]
fn a_backup_that_was_killed_is_refused_by_every_restore() {
    let _permit = among_others();
    let place = Workspace::new();
    large_data(&place);
    let (mut interrupted, mut complete) = (0, 0);
    for turn in 0..40_u32 {
        let name = format!("backup{turn}");
        let mut backup = place.backup(&name, "data");
        let mut running = backup.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(20) * turn);
        running.kill().unwrap();
        running.wait().unwrap();
        if !place.path(&name).exists() {
            continue;
        }
        let done = run(place.restore(&name, &format!("restored{turn}")));
        if place.path(&name).join("manifest").exists() {
            complete += 1;
            done.well();
        } else {
            interrupted += 1;
            assert_eq!(done.status.code(), Some(1), "{}", done.stderr);
            assert!(
                done.stderr.contains("interrupted") || done.stderr.contains("has no backup"),
                "{}",
                done.stderr
            );
            assert!(!place.path(&format!("restored{turn}")).exists());
            let again = place.backup(&name, "data");
            match std::fs::read_dir(place.path(&name)).unwrap().next() {
                // It was killed as soon as it had made the folder, and an empty one is as good as a new one.
                None => drop(run(again).well()),
                Some(_) => {
                    let again = refused(again);
                    assert!(again.contains("rm -r") || again.contains("is not empty"), "{again}");
                }
            }
        }
        for left in [name, format!("restored{turn}")] {
            let _ = std::fs::remove_dir_all(place.path(&left));
        }
    }
    println!("{interrupted} interrupted, {complete} complete");
    assert!(interrupted > 3, "{interrupted} interrupted, {complete} complete");
}

#[test]
fn no_server_starts_on_a_restore_that_was_killed() {
    let _permit = among_others();
    let place = Workspace::new();
    large_data(&place);
    run(place.backup("backup", "data")).well();
    let mut interrupted = 0;
    for turn in 0..30_u32 {
        let name = format!("restored{turn}");
        let mut restore = place.restore("backup", &name);
        let mut running = restore.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(10) * turn);
        running.kill().unwrap();
        running.wait().unwrap();
        if place.path(&name).join("restore.unfinished").exists() {
            interrupted += 1;
            let mut serve = command();
            serve.args(["serve", "--http", "127.0.0.1:0", "--data"]).arg(place.path(&name));
            for command in [serve, place.restore("backup", &name)] {
                let output = refused(command);
                assert!(output.contains("was interrupted"), "{output}");
            }
        }
        let _ = std::fs::remove_dir_all(place.path(&name));
    }
    assert!(interrupted > 2, "{interrupted}");
}

#[test]
fn a_backup_goes_into_a_folder_that_other_users_cannot_reach() {
    let _permit = among_others();
    let place = Workspace::new();
    kill(place.serve("data"));
    let mode = |name: &str| std::fs::metadata(place.path(name)).unwrap().mode() & 0o777;
    std::fs::create_dir(place.path("open")).unwrap();
    std::fs::set_permissions(place.path("open"), Permissions::from_mode(0o755)).unwrap();
    std::fs::write(place.path("open/file"), "").unwrap();
    assert!(refused(place.backup("open", "data")).contains("is not empty"));
    assert_eq!(mode("open"), 0o755, "a refused folder stays as it is");
    std::fs::remove_file(place.path("open/file")).unwrap();
    run(place.backup("open", "data")).well();
    assert_eq!(mode("open"), 0o700);
    if rustix::process::geteuid().is_root() {
        std::fs::create_dir(place.path("foreign")).unwrap();
        chown(place.path("foreign"), Some(1), Some(1)).unwrap();
        assert!(refused(place.backup("foreign", "data")).contains("belongs to another user"));
    }
}

#[test]
fn a_restore_writes_over_nothing_and_a_damaged_backup_is_refused() {
    let _permit = among_others();
    let place = Workspace::new();
    let server = place.serve("data");
    Member::new(&server, "alice").put("/files/a", b"bytes");
    assert!(refused(place.backup("data/backup", "data")).contains("outside of the data folder"));
    assert!(refused(place.backup("backup", "missing")).contains("There is no data folder"));
    run(place.backup("backup", "data")).well();
    assert!(refused(place.backup("backup", "data")).contains("is not empty"));
    assert!(refused(place.restore("backup", "data")).contains("a plimsoll runs on"));
    assert!(refused(place.restore("backup", "backup/data/new")).contains("in one another"));
    assert!(refused(place.restore("data", "new")).contains("has no backup"));
    kill(server);
    assert!(refused(place.restore("backup", "data")).contains("is not empty"));
    std::fs::create_dir(place.path("foreign")).unwrap();
    std::fs::write(place.path("foreign/file"), "").unwrap();
    assert!(refused(place.restore("backup", "foreign")).contains("is not empty"));
    let database = place.path("other.sqlite");
    std::fs::write(&database, "").unwrap();
    let mut other = place.restore("backup", "new");
    other.arg("--directory").arg(format!("sqlite:{}", database.display()));
    assert!(refused(other).contains("there is a directory of accounts at"));
    assert_eq!(database.metadata().unwrap().len(), 0);
    let file = place.files("backup/data", "alice").join("a");
    std::fs::write(&file, b"bytez").unwrap();
    let output = refused(place.restore("backup", "new"));
    assert!(output.contains("accounts/alice/files/a") && output.contains("not what it was"), "{output}");
    std::fs::write(&file, b"bytes").unwrap();
    std::fs::remove_dir_all(place.path("new")).unwrap();
    std::fs::remove_file(place.path("backup/manifest")).unwrap();
    assert!(refused(place.restore("backup", "new")).contains("has no backup"));
}

fn as_two_users() -> bool {
    let mut tried = as_nobody(plimsoll());
    tried.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
    let has = rustix::process::geteuid().is_root() && tried.status().is_ok_and(|tried| tried.success());
    if !has {
        skip(Need::SecondUser, "it needs the superuser, and a binary that others can run");
    }
    has
}

fn serve_as_nobody(data: &Path) -> Server {
    let mut serve = as_nobody(plimsoll());
    serve.args(["serve", "--http", "127.0.0.1:0", "--access-log", "off", "--lab-fast-passwords", "true"]);
    Server::spawn({
        serve.args(["--signup", "open"]).arg("--data").arg(data);
        serve
    })
}

#[test]
fn a_restore_by_root_belongs_to_the_user_of_the_server() {
    let _permit = among_others();
    if !as_two_users() {
        return;
    }
    let (place, roots) = (Workspace::new(), Workspace::new());
    let nobody: u32 = NOBODY.parse().unwrap();
    chown(place.0.path(), Some(nobody), Some(nobody)).unwrap();
    let server = serve_as_nobody(&place.path("data"));
    let mut alice = Member::new(&server, "alice");
    alice.put("/files/a", b"bytes");
    // The superuser's backup is in a folder that the server cannot enter.
    let backup = roots.path("backup");
    let mut taking = command();
    taking.arg("backup").arg(&backup).arg("--data").arg(place.path("data"));
    run(taking).well();
    assert_eq!((backup.metadata().unwrap().uid(), backup.metadata().unwrap().mode() & 0o777), (0, 0o700));
    kill(server);
    let restore = |data: &Path| {
        let mut restore = command();
        restore.arg("restore").arg(&backup).arg("--data").arg(data);
        restore
    };
    // Into the folder of that user, and into one that is made for it.
    let shared = tempfile::tempdir().unwrap();
    std::fs::set_permissions(shared.path(), Permissions::from_mode(0o755)).unwrap();
    let made = shared.path().join("made");
    let output = refused(restore(&made));
    assert!(output.contains("install -d -o USER -m 700") && !made.exists(), "{output}");
    std::fs::create_dir(&made).unwrap();
    chown(&made, Some(nobody), Some(nobody)).unwrap();
    for data in [place.path("restored"), made] {
        let output = run(restore(&data)).well().text();
        assert!(output.contains(&format!("owner     user {NOBODY}")), "{output}");
        let find = ["!", "-uid", NOBODY];
        let others = tool::run(tool("find").arg(&data).args(find)).well().text();
        assert_eq!(others, "");
        let server = serve_as_nobody(&data);
        let mut alice = alice.again(&server);
        assert_eq!(alice.get("/files/a").body, b"bytes");
        assert_eq!(alice.put("/files/a", b"anew").status, 204);
    }
}

#[test]
fn the_folders_of_an_authentication_server_and_of_a_storage_server_are_backed_up_each() {
    let _permit = among_others();
    let place = Workspace::new();
    let secret = place.path("secret");
    std::fs::write(&secret, "0123456789abcdef0123456789abcdef\n").unwrap();
    std::fs::set_permissions(&secret, Permissions::from_mode(0o600)).unwrap();
    let tier = |name: &str, data: &str| {
        let mut command = command();
        command.args([name, "--listen", "127.0.0.1:0", "--secret-file"]).arg(&secret);
        command.env("PLIMSOLL_LAB_FAST_PASSWORDS", "true").arg("--data").arg(place.path(data));
        Server::spawn(command)
    };
    let front = |auth: &Server, store: &Server, data: &str| {
        let (auth, store) = (auth.url(""), store.url(""));
        let tiers = ["--auth", &auth, "--store", &store, "--signup", "open", "--secret-file"];
        let tiers = [&tiers[..], &[secret.to_str().unwrap()]].concat();
        Server::on_data(EngineKind::Epoll, &place.path(data), &tiers)
    };
    let (auth, store) = (tier("auth", "accounts"), tier("store", "files"));
    let server = front(&auth, &store, "front");
    let mut alice = Member::new(&server, "alice");
    assert_eq!(alice.put("/files/a", b"bytes").status, 201);
    let output = run(place.backup("b-files", "files")).well().text();
    assert!(output.contains("as at a storage server"), "{output}");
    let output = run(place.backup("b-accounts", "accounts")).well().text();
    assert!(output.contains("accounts  1, with log-ins: 1"), "{output}");
    drop((server, auth, store));
    run(place.restore("b-files", "r-files")).well();
    run(place.restore("b-accounts", "r-accounts")).well();
    let (auth, store) = (tier("auth", "r-accounts"), tier("store", "r-files"));
    let server = front(&auth, &store, "r-front");
    assert_eq!(alice.again(&server).get("/files/a").body, b"bytes");
}

#[test]
fn the_output_of_a_command_is_in_the_backup_and_a_database_out_of_reach_is_an_error() {
    let _permit = among_others();
    let place = Workspace::new();
    let server = place.serve("data");
    Member::new(&server, "alice").put("/files/a", b"bytes");
    kill(server);
    let url = "postgres://plimsoll:sesame@db.example/plimsoll";
    let backup = |to: &str, dump: &[&str]| {
        let mut backup = place.backup(to, "data");
        backup.args(dump).env("PLIMSOLL_DIRECTORY", url);
        run(backup)
    };
    let without = backup("without", &[]);
    let output = &without.stderr;
    assert_eq!(without.status.code(), Some(1), "the database cannot be reached: {output}");
    assert!(output.contains("cannot dump the accounts at postgres://plimsoll@db.example/"), "{output}");
    assert!(!output.contains("sesame"), "{output}");
    let output = backup("with", &["--dump", "echo the dump"]).well().text();
    assert!(output.contains("in directory.dump"), "{output}");
    assert_eq!(std::fs::read(place.path("with/directory.dump")).unwrap(), b"the dump\n");
    for (at, dump) in ["true", "echo half; exit 3"].iter().enumerate() {
        let name = format!("failed{at}");
        let failed = backup(&name, &["--dump", dump]);
        assert!(
            failed.status.code() == Some(1) && failed.stderr.contains("--dump failed"),
            "{}",
            failed.stderr
        );
        assert!(refused(place.restore(&name, "new")).contains("was interrupted"));
    }
    let mut restore = place.restore("with", "restored");
    restore.env("PLIMSOLL_DIRECTORY", url);
    let output = run(restore).well().text();
    assert!(output.contains("load the dump") && output.contains("with/directory.dump"), "{output}");
    let mut wrong = place.backup("of-a-file", "data");
    wrong.args(["--dump", "echo the dump"]);
    assert_eq!(run(wrong).status.code(), Some(2));
}

/// The commands of docs/backup.md, with the folders of a test.
#[test]
fn the_commands_of_the_document_back_up_and_restore() {
    let _permit = among_others();
    let place = Workspace::new();
    let server = place.serve("data");
    let mut alice = Member::new(&server, "alice");
    alice.put("/files/a", b"bytes");
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/backup.md");
    let page = std::fs::read_to_string(page).unwrap();
    let typed: Vec<&str> = page.lines().filter_map(|line| line.strip_prefix("$ plimsoll ")).collect();
    assert!(typed.len() >= 2, "{typed:?}");
    let (backup, restored) = (place.path("backup"), place.path("restored"));
    for line in &typed[..2] {
        let line = line
            .replace("/backup/2026-11-27", backup.to_str().unwrap())
            .replace("/srv/plimsoll.new", restored.to_str().unwrap())
            .replace("/srv/plimsoll", place.path("data").to_str().unwrap());
        run({
            let mut command = command();
            command.args(line.split_whitespace());
            command
        })
        .well();
    }
    kill(server);
    assert_eq!(alice.again(&place.serve("restored")).get("/files/a").body, b"bytes");
}
