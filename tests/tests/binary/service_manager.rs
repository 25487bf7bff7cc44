//! The messages to a service manager (sd_notify(3)): ready, reloading, ready again, stopping.

use std::os::unix::net::UnixDatagram;

use plimsoll_tests::binary::{EngineKind, PATIENCE, Server, command};
use plimsoll_tests::on_each_engine;
use rustix::process::Signal;

fn received(socket: &UnixDatagram) -> String {
    let mut block = [0; 4096];
    let bytes = socket.recv(&mut block).expect("the server tells in time");
    String::from_utf8(block[..bytes].to_vec()).unwrap()
}

fn the_service_manager_is_notified_of_the_servers_state(kind: EngineKind) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notify");
    let socket = UnixDatagram::bind(&path).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut serve = command();
    serve.arg("serve").arg("--site").arg(format!("/={}", folder.path().display()));
    serve.args(["--http", "127.0.0.1:0", "--access-log", "off", "--engine", &kind.to_string()]);
    let server = Server::spawn({
        serve.env("NOTIFY_SOCKET", &path);
        serve
    });
    let ready = received(&socket);
    assert!(ready.starts_with("READY=1\n"), "{ready}");
    assert!(ready.contains(&format!("STATUS=serving at http://{}\n", server.at())), "{ready}");
    server.signal(Signal::HUP);
    let reloading = received(&socket);
    let (first, second) = reloading.split_once('\n').unwrap();
    assert_eq!(first, "RELOADING=1");
    let micros = second.trim().strip_prefix("MONOTONIC_USEC=").expect("the time of the notification");
    assert!(micros.parse::<u64>().unwrap() > 0);
    assert!(received(&socket).starts_with("READY=1\n"));
    server.signal(Signal::TERM);
    assert!(received(&socket).starts_with("STOPPING=1\n"));
}

on_each_engine!(the_service_manager_is_notified_of_the_servers_state);
