//! Connections by shared memory between two requests: they hold no worker, and lose no request.

use std::io::{Read as _, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use plimsoll_channel::limits::DOORBELL_BYTES;
use plimsoll_channel::message::{hello, send};
use plimsoll_channel::{Bodies, Connector, Settings};
use plimsoll_engine::block_on;
use plimsoll_io::{Address, Io};
use plimsoll_tests::Client;
use plimsoll_tests::binary::{EngineKind, PATIENCE, Server, among_others, until};
use plimsoll_tests::tree::noise;
use rustix::event::{EventfdFlags, eventfd};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
use rustix::process::Signal;

use super::{LARGE_BYTES, start};

/// More than there are workers.
const CHANNELS: usize = 6;
const NEVER: [&str; 6] =
    ["--limits-idle-time", "1h", "--limits-linger-time", "1h", "--limits-head-time", "1h"];

struct Channelled {
    server: Server,
    socket: PathBuf,
    _folders: [tempfile::TempDir; 2],
}

fn channelled() -> Channelled {
    let (folder, sockets) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let socket = sockets.path().join("channel");
    let more = [&["--channel", socket.to_str().unwrap()], &NEVER[..]].concat();
    let server = start(folder.path(), 2, &more);
    Channelled { server, socket, _folders: [folder, sockets] }
}

async fn clients(io: &Io, socket: &Path) -> Vec<Client> {
    let connector = Connector::new(io, Bodies::Passed, Settings::default());
    let mut clients = Vec::new();
    for _ in 0..CHANNELS {
        let stream = connector.connect(&Address::Unix(socket.to_owned())).await.unwrap();
        clients.push(Client::new(io, stream));
    }
    clients
}

/// Returns a doorbell, as a client passes it: its page and its eventfd.
fn doorbell() -> [OwnedFd; 2] {
    let page = memfd_create("doorbell", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).unwrap();
    ftruncate(&page, DOORBELL_BYTES as u64).unwrap();
    fcntl_add_seals(&page, SealFlags::SEAL | SealFlags::SHRINK | SealFlags::GROW).unwrap();
    [page, eventfd(0, EventfdFlags::NONBLOCK).unwrap()]
}

fn count(server: &Server, name: &str) -> u64 {
    server.status()["channel"][name].as_u64().unwrap()
}

#[test]
fn more_channels_than_workers_lose_no_request() {
    let _permit = among_others();
    let Channelled { server, socket, _folders } = channelled();
    let server = std::rc::Rc::new(server);
    let shown = std::rc::Rc::clone(&server);
    block_on(EngineKind::Epoll, move |io| async move {
        let mut clients = clients(&io, &socket).await;
        for round in 0..5 {
            // One after another, so that each waits while the others have the workers.
            for client in &mut clients {
                assert_eq!(client.get("/small.txt").await.text(), "small\n");
            }
            // And all at once.
            for client in &mut clients {
                client.push("GET /small.txt HTTP/1.1\r\nHost: test\r\n\r\n");
            }
            for client in &mut clients {
                assert_eq!(client.answer().await.text(), "small\n", "{round}");
            }
        }
        assert!(clients[0].get("/large.bin").await.body == noise(3, LARGE_BYTES));
        assert_eq!((count(&shown, "opened"), count(&shown, "open")), (CHANNELS as u64, CHANNELS as u64));
        assert_eq!(count(&shown, "corrupt"), 0);
    })
    .unwrap();
    until("the server has noticed that the clients have gone", || count(&server, "open") == 0);
    assert_eq!(count(&server, "memory_bytes"), 0);
}

#[test]
fn the_order_to_stop_ends_channels_that_wait_without_a_worker() {
    let _permit = among_others();
    let Channelled { mut server, socket, _folders } = channelled();
    let pid = server.pid();
    block_on(EngineKind::Epoll, move |io| async move {
        let mut clients = clients(&io, &socket).await;
        for client in &mut clients {
            assert_eq!(client.get("/small.txt").await.text(), "small\n");
        }
        let pid = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
        rustix::process::kill_process(pid, Signal::TERM).unwrap();
        for client in &mut clients {
            client.expect_end().await;
        }
    })
    .unwrap();
    assert!(server.ends_within(PATIENCE).success());
}

#[test]
fn nonsense_on_the_socket_of_a_channel_without_a_worker_ends_it() {
    let _permit = among_others();
    let Channelled { server, socket, _folders } = channelled();
    let mut sockets: Vec<UnixStream> = (0..CHANNELS)
        .map(|_| {
            let mut stream = UnixStream::connect(&socket).unwrap();
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            let [page, wake] = doorbell();
            send(&stream, &hello(0), &[page.as_fd(), wake.as_fd()]).unwrap();
            // The descriptors of the offer are not taken.
            assert!(stream.read(&mut [0; 64]).unwrap() > 0);
            stream
        })
        .collect();
    for stream in &mut sockets {
        stream.write_all(b"nonsense").unwrap();
        assert_eq!(stream.read(&mut [0; 64]).unwrap_or(0), 0, "the server closes it");
    }
    until("all have gone", || count(&server, "open") == 0);
    assert_eq!(count(&server, "corrupt"), CHANNELS as u64);
}
