//! Nothing is left behind after thousands of control connections with all kinds of ends. The server has as
//! many descriptors and threads as before, and hardly more memory.
//!
//! It is not about files. Each kind of end must be one that a client can cause. Half of them leave a
//! listening port, or a transfer in progress.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use plimsoll_tests::binary::member::PASSWORD;
use plimsoll_tests::binary::{EngineKind, Server, process, until};
use plimsoll_tests::on_each_engine;
use plimsoll_tests::tree::noise;
use rustix::net::sockopt;

use super::Served;

const SESSIONS: usize = 4_000;
/// Clients that connect at the same time.
const CLIENTS: usize = 4;
/// Control connections before the first measurement: they fill pools and the allocator's arenas, which
/// stay.
const FIRST_SESSIONS: usize = 800;
/// More than the kernel buffers, so that a client that leaves in the middle leaves a transfer in progress.
const LARGE_BYTES: usize = 16 << 20;
/// The bound of resident memory left by all control connections. A leak of two kilobytes each would be 8
/// MiB.
const GROWTH_KIB_MAX: u64 = 6 * 1024;

/// A control connection, driven by hand.
struct Session {
    control: BufReader<TcpStream>,
    /// A file name to which no other client writes at the same time.
    name: String,
}

impl Session {
    fn greeted(server: &Server, client: usize) -> Session {
        let stream = TcpStream::connect(server.ftp_at()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        let mut session = Session { control: BufReader::new(stream), name: format!("file-{client}") };
        session.reply(220);
        session
    }

    fn of_alice(server: &Server, client: usize) -> Session {
        let mut session = Session::greeted(server, client);
        session.command("USER alice", 331);
        session.command(&format!("PASS {PASSWORD}"), 230);
        session.command("TYPE I", 200);
        session
    }

    fn reply(&mut self, code: u16) -> String {
        let mut line = String::new();
        self.control.read_line(&mut line).unwrap();
        assert!(line.starts_with(&format!("{code} ")), "{line:?} is not {code}");
        line
    }

    fn push(&mut self, line: &str) {
        self.control.get_mut().write_all(format!("{line}\r\n").as_bytes()).unwrap();
    }

    fn command(&mut self, line: &str, code: u16) -> String {
        self.push(line);
        self.reply(code)
    }

    /// Returns the port of EPSV's answer.
    fn epsv(&mut self) -> u16 {
        let reply = self.command("EPSV", 229);
        reply.split('|').nth(3).and_then(|port| port.parse().ok()).unwrap()
    }

    fn data(&mut self) -> TcpStream {
        let port = self.epsv();
        TcpStream::connect(("127.0.0.1", port)).unwrap()
    }

    /// Starts the upload of a file.
    fn sending(&mut self) -> TcpStream {
        let mut data = self.data();
        self.command(&format!("STOR {}", self.name), 150);
        data.write_all(&[b'x'; 5_000]).unwrap();
        data
    }

    /// Starts the download of a large file, and reads none of it.
    fn taking(&mut self) -> TcpStream {
        let data = self.data();
        self.command("RETR large.bin", 150);
        data
    }
}

fn reset_on_drop(stream: &TcpStream) {
    sockopt::set_socket_linger(stream, Some(Duration::ZERO)).unwrap();
}

/// The ways in which a control connection ends.
const ENDS: [fn(&Server, usize); 10] = [
    never_logged_in,
    no_client_connects_to_the_port,
    a_port_for_each_command,
    a_whole_upload,
    an_upload_that_breaks,
    an_upload_whose_client_is_killed,
    a_download_that_is_aborted,
    a_download_that_breaks,
    a_download_whose_session_is_reset,
    a_wait_for_data_that_ends,
];

fn never_logged_in(server: &Server, client: usize) {
    Session::greeted(server, client).command("USER alice", 331);
}

fn no_client_connects_to_the_port(server: &Server, client: usize) {
    Session::of_alice(server, client).epsv();
}

fn a_port_for_each_command(server: &Server, client: usize) {
    let mut session = Session::of_alice(server, client);
    for _ in 0..5 {
        session.epsv();
    }
    session.command("QUIT", 221);
}

fn a_whole_upload(server: &Server, client: usize) {
    let mut session = Session::of_alice(server, client);
    drop(session.sending());
    session.reply(226);
    session.command("QUIT", 221);
}

fn an_upload_that_breaks(server: &Server, client: usize) {
    let mut session = Session::of_alice(server, client);
    reset_on_drop(&session.sending());
    session.reply(426);
}

fn an_upload_whose_client_is_killed(server: &Server, client: usize) {
    let mut session = Session::of_alice(server, client);
    let data = session.sending();
    drop(session);
    drop(data);
}

fn a_download_that_is_aborted(server: &Server, client: usize) {
    let mut session = Session::of_alice(server, client);
    let _data = session.taking();
    session.command("ABOR", 426);
    session.reply(226);
}

fn a_download_that_breaks(server: &Server, client: usize) {
    let mut session = Session::of_alice(server, client);
    reset_on_drop(&session.taking());
    session.reply(426);
}

fn a_download_whose_session_is_reset(server: &Server, client: usize) {
    let mut session = Session::of_alice(server, client);
    let _data = session.taking();
    reset_on_drop(session.control.get_ref());
}

fn a_wait_for_data_that_ends(server: &Server, client: usize) {
    let mut session = Session::of_alice(server, client);
    session.epsv();
    session.command("LIST", 150);
}

/// Opens `count` control connections from [`CLIENTS`] threads, and ends them in every way.
fn hold_and_end(server: &Server, count: usize) {
    std::thread::scope(|scope| {
        for client in 0..CLIENTS {
            scope.spawn(move || {
                for number in (client..count).step_by(CLIENTS) {
                    ENDS[number / CLIENTS % ENDS.len()](server, client);
                }
            });
        }
    });
    until("all sessions have gone", || server.status()["load"]["connections_open"].as_u64() <= Some(2));
}

/// Returns the server's descriptors and threads once they have been stable for a while: cached open files
/// come and go.
fn settled(pid: u32) -> (usize, usize) {
    let counts = || (process::descriptors(pid), process::threads(pid));
    let (mut last, mut same) = (counts(), 0);
    until("the counts stay the same", || {
        let now = counts();
        same = if now == last { same + 1 } else { 0 };
        last = now;
        same == 50
    });
    last
}

fn nothing_is_left_after_thousands_of_sessions(kind: EngineKind) {
    let mut served = Served::new(kind);
    served.alice.put("/files/large.bin", &noise(31, LARGE_BYTES));
    let (server, pid) = (&served.server, served.server.pid());
    hold_and_end(server, FIRST_SESSIONS);
    let (before, resident) = (settled(pid), process::resident_kib(pid));
    hold_and_end(server, SESSIONS);
    until("descriptors and threads are as many as before", || {
        let now = settled(pid);
        now.0 <= before.0 && now.1 <= before.1
    });
    let grown = process::resident_kib(pid).saturating_sub(resident);
    println!("{kind}: {before:?} descriptors and threads, {resident} KiB, then {grown} more");
    assert!(grown <= GROWTH_KIB_MAX, "{grown} KiB more than before");
    assert_eq!(server.status()["load"]["connections_panicked"], 0, "{}", server.status());
    let kept = std::fs::read_dir(served.folder.path().join("data/accounts/alice/pending")).unwrap().count();
    assert!(kept <= 2 * CLIENTS, "{kept} files of uploads that were broken off, where each replaces one");
}

on_each_engine!(alone: nothing_is_left_after_thousands_of_sessions);
