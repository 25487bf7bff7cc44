//! Clients that are killed in the middle of an upload: the old file stays, also on a busy machine.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use plimsoll_tests::accounts::PASSWORD;
use plimsoll_tests::binary::{EngineKind, is_long, until};
use plimsoll_tests::on_each_engine;
use plimsoll_tests::tree::noise;

use super::lftp::lftp;
use super::{Served, pending};

const OLD: &[u8] = b"the old one\n";

/// Longer than the server waits for a client that announces nothing, and syncs the received bytes.
const SETTLED: Duration = Duration::from_millis(400);

fn served(kind: EngineKind) -> Served {
    let mut served = Served::new(kind);
    served.alice.put("/files/a", OLD);
    served
}

#[track_caller]
fn assert_old(served: &Served) {
    let found = std::fs::read(served.home().join("a")).unwrap();
    assert!(found == OLD, "{} bytes of {} have replaced it", found.len(), OLD.len());
}

/// Programs that keep all cores busy. Dropping them ends them, also if the test fails.
struct Busy(Vec<Child>);

impl Busy {
    fn start() -> Busy {
        Busy(
            (0..8).map(|_| Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap()).collect(),
        )
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        for program in &mut self.0 {
            let _ = program.kill();
            let _ = program.wait();
        }
    }
}

fn pending_bytes(served: &Served) -> u64 {
    let Ok(entries) = std::fs::read_dir(pending(served.folder.path())) else { return 0 };
    entries.filter_map(|entry| entry.ok()?.metadata().ok()).map(|stat| stat.len()).sum()
}

fn a_client_that_is_killed_replaces_nothing(kind: EngineKind) {
    let rounds = if is_long() { 20 } else { 3 };
    let served = served(kind);
    std::fs::write(served.folder("up").join("a"), noise(7, 30_000_000)).unwrap();
    let _busy = Busy::start();
    for round in 0..2 * rounds {
        let before = pending_bytes(&served);
        let mut client = if round % 2 == 0 {
            let mut curl = served.client("curl");
            let user = format!("alice:{PASSWORD}");
            curl.args(["-s", "--limit-rate", "4M", "-u", &user, "-T", "up/a", &served.url("/a")]);
            curl
        } else {
            lftp(&served, &served.port(), "set net:limit-rate 0:4000000; put up/a -o a")
        };
        let mut client = client.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        until("a part of it has come", || {
            let now = pending_bytes(&served);
            now > 200_000 && now != before
        });
        client.kill().unwrap();
        client.wait().unwrap();
        thread::sleep(SETTLED);
        assert_old(&served);
    }
}

/// A session by hand.
struct Session {
    control: BufReader<TcpStream>,
}

impl Session {
    fn new(served: &Served) -> Session {
        let mut session =
            Session { control: BufReader::new(TcpStream::connect(served.server.ftp_at()).unwrap()) };
        session.reply(220);
        session.command("USER alice", 331);
        session.command(&format!("PASS {PASSWORD}"), 230);
        session.command("TYPE I", 200);
        session
    }

    fn command(&mut self, line: &str, code: u16) -> String {
        self.control.get_mut().write_all(format!("{line}\r\n").as_bytes()).unwrap();
        self.reply(code)
    }

    fn reply(&mut self, code: u16) -> String {
        let mut line = String::new();
        self.control.read_line(&mut line).unwrap();
        assert!(line.starts_with(&code.to_string()), "{line}");
        line
    }

    /// Sends half a file, and ends the data connection; the control connection stays.
    fn send_half(&mut self, served: &Served) -> TcpStream {
        let reply = self.command("EPSV", 229);
        let port = reply.split('|').nth(3).unwrap().parse().unwrap();
        let mut data = TcpStream::connect((served.server.ftp_at().ip(), port)).unwrap();
        self.command("STOR a", 150);
        data.write_all(&noise(7, 100_000)).unwrap();
        data.shutdown(Shutdown::Write).unwrap();
        data
    }
}

fn an_end_of_the_control_connection_20_ms_after_that_of_the_data_aborts(kind: EngineKind) {
    let served = served(kind);
    for round in 0..15 {
        let mut session = Session::new(&served);
        let data = session.send_half(&served);
        thread::sleep(Duration::from_millis(20));
        session.control.get_ref().shutdown(Shutdown::Write).unwrap();
        let mut line = String::new();
        session.control.read_to_string(&mut line).unwrap();
        assert!(line.starts_with("426"), "round {round}: {line}");
        drop(data);
        assert_old(&served);
    }
    // And a client that stays is confirmed.
    let mut session = Session::new(&served);
    let data = session.send_half(&served);
    session.reply(226);
    drop(data);
    assert!(std::fs::read(served.home().join("a")).unwrap() == noise(7, 100_000));
}

on_each_engine!(alone:
    a_client_that_is_killed_replaces_nothing,
    an_end_of_the_control_connection_20_ms_after_that_of_the_data_aborts,
);
