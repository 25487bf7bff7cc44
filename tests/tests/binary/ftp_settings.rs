//! FTP as an operator enables it: addresses, ports, guests, logs and counts, and the effect of a reload.
//!
//! It does not test FTP's behaviour. A control connection must keep the settings that were active at its
//! start.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::path::Path;

use plimsoll_tests::binary::member::PASSWORD;
use plimsoll_tests::binary::{Done, EngineKind, Member, PATIENCE, Server, command, tool, until};
use plimsoll_tests::{Tree, on_each_engine};
use rustix::process::Signal;

/// A control connection, line by line.
struct Session(BufReader<TcpStream>);

impl Session {
    /// Connects and logs in as a guest.
    fn of_guest(server: &Server) -> Session {
        let stream = TcpStream::connect(server.ftp_at()).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut session = Session(BufReader::new(stream));
        assert!(session.reply().starts_with("220 plimsoll"));
        assert!(session.command("USER anonymous").starts_with("331 "));
        assert!(session.command("PASS me@here").starts_with("230 "));
        session
    }

    fn reply(&mut self) -> String {
        let mut line = String::new();
        self.0.read_line(&mut line).unwrap();
        line
    }

    fn command(&mut self, command: &str) -> String {
        write!(self.0.get_mut(), "{command}\r\n").unwrap();
        self.reply()
    }

    /// Returns the port that the server opens for data.
    fn data_port(&mut self) -> u16 {
        let answer = self.command("EPSV");
        answer.split('|').nth(3).and_then(|port| port.parse().ok()).expect(&answer)
    }
}

/// Starts a server with a separate data folder, a site, and more settings.
fn start(kind: EngineKind, folder: &Path, settings: &str) -> Server {
    Tree::new().file("site/small.txt", "small\n").plant(folder);
    write(folder, settings);
    let mut serve = command();
    serve.arg("serve").arg("--config").arg(folder.join("plimsoll.toml"));
    serve.args(["--engine", &kind.to_string(), "--http", "127.0.0.1:0", "--ftp", "127.0.0.1:0"]);
    serve.args(["--signup", "open"]);
    Server::spawn(serve)
}

/// Writes the configuration, where `HERE` is the folder.
fn write(folder: &Path, settings: &str) {
    let text = format!("access_log = \"off\"\ndata = \"HERE/data\"\nxferlog = \"HERE/xferlog\"\n{settings}");
    let text = text.replace("HERE", folder.to_str().unwrap());
    std::fs::write(folder.join("plimsoll.toml"), text).unwrap();
}

/// Rewrites the configuration, sends SIGHUP, and returns when the server has logged `outcome` once more.
fn reload(server: &Server, folder: &Path, settings: &str, outcome: &str) {
    write(folder, settings);
    let count = || server.stderr().matches(outcome).count();
    let before = count();
    server.signal(Signal::HUP);
    until(outcome, || count() > before);
}

const GUESTS: &str = "site = [\"/=HERE/site\"]\nftp_guests = true\n";
const RELOADED: &str = "the configuration was reloaded";

fn curl(args: &[&str]) -> Done {
    tool::run(tool("curl").args(["-q", "-sS", "--max-time", "30"]).args(args))
}

/// The greeting has a command for guests that works as typed.
fn the_greeting_tells_guests_what_to_type(kind: EngineKind) {
    let folder = tempfile::tempdir().unwrap();
    let server = start(kind, folder.path(), GUESTS);
    until("the greeting ends", || server.stdout().contains("To end:"));
    let greeting = server.stdout();
    assert!(greeting.contains(&format!("\n  ftp://{}\n", server.ftp_at())), "{greeting}");
    let typed = greeting.lines().find_map(|line| line.trim().strip_prefix("curl ftp:")).expect(&greeting);
    let url = format!("ftp:{}", typed.split_whitespace().next().unwrap());
    let listed = curl(&[&url]).well().text();
    assert!(listed.contains("small.txt"), "{listed}");
    let own = format!("  curl -u alice ftp://{}/hello.txt ", server.ftp_at());
    assert!(greeting.contains(&own), "{greeting}");
}

/// An upload over FTP is stored in the account's home, with a line in each log, and is counted.
fn a_transfer_over_ftp_is_logged_twice_and_counted(kind: EngineKind) {
    let folder = tempfile::tempdir().unwrap();
    let server = start(kind, folder.path(), "");
    let mut alice = Member::new(&server, "alice");
    let (credentials, sent) = (format!("alice:{PASSWORD}"), folder.path().join("site/small.txt"));
    let url = format!("ftp://{}/a b.txt", server.ftp_at()).replace(' ', "%20");
    curl(&["-u", &credentials, "-T", sent.to_str().unwrap(), &url]).well();
    assert_eq!(alice.get("/files/a%20b.txt").body, b"small\n");
    let lines = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap_or_default();
    until("xferlog has it", || lines("xferlog").contains(" 6 /a_b.txt b _ i r alice ftp 0 * c\n"));
    until("the transfer log has it", || {
        let log = lines("data/transfers.jsonl");
        log.lines()
            .any(|line| line.contains("\"ftp\"") && line.contains("\"upload\"") && line.contains("/a b.txt"))
    });
    let counted = server.visit().get("/metrics").unwrap();
    let counted = String::from_utf8(counted.body).unwrap();
    assert!(counted.contains("protocol=\"ftp\",operation=\"upload\""), "{counted}");
    // A line may be written shortly after its answer was sent.
    until("the download over HTTP has its line", || lines("xferlog").lines().count() == 2);
    std::fs::rename(folder.path().join("xferlog"), folder.path().join("xferlog.1")).unwrap();
    reload(&server, folder.path(), "", RELOADED);
    curl(&["-u", &credentials, "-o", "/dev/null", &url]).well();
    until("the next line is in a new file", || lines("xferlog").contains(" b _ o r alice ftp 0 * c\n"));
    assert_eq!(lines("xferlog.1").lines().count(), 2, "the upload, and the download over HTTP");
}

/// An open control connection keeps its ports and guests; a new one gets the new settings.
fn a_session_keeps_the_settings_that_it_began_with(kind: EngineKind) {
    let folder = tempfile::tempdir().unwrap();
    let server = start(kind, folder.path(), &format!("{GUESTS}ftp_ports = \"21000-21099\"\n"));
    let mut old = Session::of_guest(&server);
    assert!((21_000..=21_099).contains(&old.data_port()));
    reload(&server, folder.path(), &format!("{GUESTS}ftp_ports = \"21100-21199\"\n"), RELOADED);
    let mut new = Session::of_guest(&server);
    assert!((21_100..=21_199).contains(&new.data_port()));
    assert!((21_000..=21_099).contains(&old.data_port()));
    reload(&server, folder.path(), "site = [\"/=HERE/site\"]\n", RELOADED);
    let refused = curl(&[&format!("ftp://{}/", server.ftp_at())]);
    assert_eq!(refused.status.code(), Some(67), "the log-in is denied: {}", refused.stderr);
    assert!((21_000..=21_099).contains(&old.data_port()));
}

/// An invalid configuration is refused at a reload as at the start, and changes nothing.
fn guests_without_a_site_are_refused_by_a_reload(kind: EngineKind) {
    let folder = tempfile::tempdir().unwrap();
    let server = start(kind, folder.path(), GUESTS);
    reload(&server, folder.path(), "ftp_guests = true\n", "nothing was reloaded");
    assert!(server.stderr().contains("give --site /=DIR"), "{}", server.stderr());
    Session::of_guest(&server);
}

/// FTP with guests needs no accounts, and then creates no data of accounts.
fn guests_need_no_accounts(kind: EngineKind) {
    let folder = tempfile::tempdir().unwrap();
    let server = start(kind, folder.path(), &format!("{GUESTS}accounts = false\n"));
    let got = curl(&[&format!("ftp://{}/small.txt", server.ftp_at())]).well();
    assert_eq!(got.stdout, b"small\n");
    assert!(!folder.path().join("data").exists());
    let log = folder.path().join("xferlog");
    until("xferlog has it", || {
        let lines = std::fs::read_to_string(&log).unwrap_or_default();
        lines.ends_with(" 6 /small.txt b _ o a anonymous ftp 0 * c\n")
    });
}

/// An idle control connection ends after the configured time.
fn an_idle_session_ends(kind: EngineKind) {
    let folder = tempfile::tempdir().unwrap();
    let server = start(kind, folder.path(), &format!("{GUESTS}ftp_idle_time = \"100ms\"\n"));
    let mut session = Session::of_guest(&server);
    assert!(session.reply().starts_with("421 "));
    assert_eq!(session.reply(), "");
}

/// The laboratory's start barrier is reported, and holds transfers until enough of them wait.
fn held_transfers_begin_together(kind: EngineKind) {
    let folder = tempfile::tempdir().unwrap();
    let server = start(kind, folder.path(), &format!("{GUESTS}lab.hold_transfers = 2\n"));
    assert_eq!(server.status()["lab"], serde_json::json!(["lab.hold_transfers"]));
    until("the greeting tells it", || server.stdout().contains("lab.hold_transfers is on"));
    let url = format!("ftp://{}/small.txt", server.ftp_at());
    let alone = tool::run(tool("curl").args(["-q", "-sS", "--max-time", "1", &url]));
    assert_eq!(alone.status.code(), Some(28), "alone, it waits: {}", alone.stderr);
    std::thread::scope(|scope| {
        let other = scope.spawn(|| curl(&[&url]).well());
        assert_eq!(curl(&[&url]).well().stdout, b"small\n");
        assert_eq!(other.join().unwrap().stdout, b"small\n");
    });
}

on_each_engine!(forks:
    the_greeting_tells_guests_what_to_type,
    a_transfer_over_ftp_is_logged_twice_and_counted,
    a_session_keeps_the_settings_that_it_began_with,
    guests_without_a_site_are_refused_by_a_reload,
    guests_need_no_accounts,
    an_idle_session_ends,
    held_transfers_begin_together,
);
