//! The channel of the real server: files handed over, and either side killed at any moment.

use std::io;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use plimsoll_channel::{Bodies, Connector, Settings};
use plimsoll_engine::block_on;
use plimsoll_io::{Address, Io, Segment, Stream};
use plimsoll_tests::binary::{EngineKind, Server, process, reached_within, until};
use plimsoll_tests::tree::noise;
use plimsoll_tests::{Client, Tree, on_each_engine};
use rustix::process::Signal;

use super::reverse_proxy::over_a_channel;

const LARGE_BYTES: usize = 5 << 20;
/// Clients that are killed, one after another.
const KILLED: u64 = 40;
/// Connections of each of them.
const CONNECTIONS_OF_EACH: usize = 4;
/// The environment variable with the socket, in a process that is to be killed.
const SOCKET: &str = "PLIMSOLL_TEST_CHANNEL";

fn served() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let tree = Tree::new().file("small.txt", "small\n").file("large.bin", noise(7, LARGE_BYTES));
    tree.plant(folder.path());
    folder
}

fn start(kind: EngineKind, folder: &Path, socket: &Path) -> Server {
    Server::start(kind, folder, &["--channel", socket.to_str().unwrap(), "--channel-ring", "16KiB"])
}

async fn connect(io: &Io, socket: &Path) -> io::Result<Stream> {
    let connector = Connector::new(io, Bodies::Passed, Settings::default());
    connector.connect(&Address::Unix(socket.to_owned())).await
}

/// Returns the names in the folder of POSIX shared memory, where a channel has none.
pub(super) fn shared_memory_names() -> Vec<String> {
    let entries = std::fs::read_dir("/dev/shm").into_iter().flatten();
    let names = entries.filter_map(|entry| Some(entry.ok()?.file_name().to_string_lossy().into_owned()));
    names.filter(|name| name.contains("plimsoll")).collect()
}

/// Returns the number of the channels that `pid` has mapped.
pub(super) fn mapped(pid: u32) -> usize {
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap();
    maps.lines().filter(|line| line.contains("plimsoll-channel")).count()
}

fn a_large_file_is_handed_over_by_the_real_server(kind: EngineKind) {
    let (folder, sockets) = (served(), tempfile::tempdir().unwrap());
    let socket = sockets.path().join("channel");
    let server = start(kind, folder.path(), &socket);
    block_on(EngineKind::Epoll, move |io| async move {
        let mut client = Client::new(&io, connect(&io, &socket).await.unwrap());
        assert_eq!(client.get("/small.txt").await.text(), "small\n");
        for _ in 0..3 {
            assert!(client.get("/large.bin").await.body == noise(7, LARGE_BYTES));
        }
    })
    .unwrap();
    let status = server.status();
    assert_eq!(status["channel"]["files_passed"], 3, "{status}");
    assert_eq!(status["channel"]["bytes_passed"], 3 * LARGE_BYTES, "{status}");
    assert!(status["channel"]["bytes_copied"].as_u64() < Some(8192), "{status}");
    let metrics = server.visit().get("/metrics").unwrap().body;
    assert!(String::from_utf8(metrics).unwrap().contains("\nplimsoll_channel_files_passed_total 3\n"));
}

/// A test that does nothing, unless it is started as a process by the next one.
#[test]
fn a_client_that_is_killed() {
    let Some(socket) = std::env::var_os(SOCKET) else { return };
    block_on(EngineKind::Epoll, move |io| async move {
        let mut streams = Vec::new();
        for _ in 0..CONNECTIONS_OF_EACH {
            streams.push(connect(&io, Path::new(&socket)).await.unwrap());
        }
        loop {
            for (number, stream) in streams.iter_mut().enumerate() {
                let name = if number % 2 == 0 { "large.bin" } else { "small.txt" };
                let request = format!("GET /{name} HTTP/1.1\r\nHost: test\r\n\r\n");
                stream.tx.push(Segment::Owned(request.into_bytes()));
                // The responses of some are never received.
                if number < CONNECTIONS_OF_EACH / 2 {
                    let _ = stream.rx.recv(plimsoll_io::Want::Body).await;
                }
            }
            io.sleep(Duration::from_millis(1)).await;
        }
    })
    .unwrap();
}

fn client_to_kill(socket: &Path) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "channel::a_client_that_is_killed", "--nocapture"]).env(SOCKET, socket);
    command.stdout(Stdio::null()).spawn().unwrap()
}

fn clients_killed_at_any_moment_leave_nothing_behind(kind: EngineKind) {
    let (folder, sockets) = (served(), tempfile::tempdir().unwrap());
    let socket = sockets.path().join("channel");
    let server = start(kind, folder.path(), &socket);
    let pid = server.pid();
    let is_quiet = || server.status()["channel"]["open"] == 0;
    let kill_one = |after: Duration| {
        let opened = server.status()["channel"]["opened"].as_u64().unwrap();
        let mut client = client_to_kill(&socket);
        let has_connected = || server.status()["channel"]["opened"].as_u64().unwrap() > opened;
        assert!(reached_within(Duration::from_secs(30), has_connected), "the client connects");
        std::thread::sleep(after);
        client.kill().unwrap();
        client.wait().unwrap();
    };
    kill_one(Duration::from_millis(20));
    until("the first client's channels have gone", is_quiet);
    let before = process::descriptors(pid);
    for number in 0..KILLED {
        kill_one(Duration::from_micros(number * 777 % 20_000));
    }
    until("all channels have gone", is_quiet);
    until("the descriptors are as many as before", || process::descriptors(pid) <= before);
    until("nothing is mapped any more", || mapped(pid) == 0);
    assert_eq!(shared_memory_names(), [""; 0]);
    let status = server.status();
    assert_eq!(status["channel"]["corrupt"], 0, "{status}");
    assert_eq!(status["load"]["connections_panicked"], 0, "{status}");
}

fn a_client_survives_a_killed_server_and_reconnects(kind: EngineKind) {
    let (folder, sockets) = (served(), tempfile::tempdir().unwrap());
    let socket = sockets.path().join("channel");
    let own = std::process::id();
    for round in 0..5 {
        let server = start(kind, folder.path(), &socket);
        let socket = socket.clone();
        block_on(EngineKind::Epoll, move |io| async move {
            let mut client = Client::new(&io, connect(&io, &socket).await.unwrap());
            let mut idle = Client::new(&io, connect(&io, &socket).await.unwrap());
            assert_eq!(client.get("/small.txt").await.text(), "small\n");
            client.push("GET /large.bin HTTP/1.1\r\nHost: test\r\n\r\n".repeat(round * 10));
            server.signal(Signal::KILL);
            // Passed files are still received; then comes an error, and never a clean end.
            while let Ok(answer) = client.try_answer(true).await {
                assert!(answer.body == noise(7, LARGE_BYTES));
            }
            assert!(idle.try_answer(true).await.is_err());
            assert!(connect(&io, &socket).await.is_err());
        })
        .unwrap();
    }
    assert_eq!(mapped(own), 0);
    assert_eq!(shared_memory_names(), [""; 0]);
}

fn channels_are_closed_with_the_clients_that_they_served(kind: EngineKind) {
    const CLIENTS: u64 = 40;
    let (folder, sockets) = (served(), tempfile::tempdir().unwrap());
    let (origin, proxy) = over_a_channel(kind, folder.path(), &sockets.path().join("channel"), "shm");
    for _ in 0..CLIENTS {
        assert_eq!(proxy.visit().get("/small.txt").unwrap().body, b"small\n");
    }
    // Each thread of the proxy may keep idle ones.
    let open = || origin.status()["channel"]["open"].as_u64().unwrap();
    until("most channels are closed", || open() < CLIENTS / 2);
    until("most channels are unmapped", || (mapped(proxy.pid()) as u64) < CLIENTS / 2);
}

on_each_engine!(forks: a_large_file_is_handed_over_by_the_real_server);
on_each_engine!(alone:
    channels_are_closed_with_the_clients_that_they_served,
    clients_killed_at_any_moment_leave_nothing_behind,
    a_client_survives_a_killed_server_and_reconnects,
);
