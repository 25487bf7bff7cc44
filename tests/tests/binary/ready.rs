//! `/readyz`: ready while the data folder is writable and the server does not drain.

use std::net::TcpListener;
use std::time::{Duration, Instant};

use plimsoll_tests::binary::{Done, EngineKind, Server, among_others, command, tool, until};
use plimsoll_tests::{Tree, on_each_engine};
use rustix::process::Signal;

/// The file that a check creates and removes.
const PROBE: &str = ".plimsoll-ready";

fn status(server: &Server) -> u16 {
    server.visit().get("/readyz").unwrap().status
}

fn an_unwritable_data_folder_is_reported_until_it_is_fixed(kind: EngineKind) {
    let folder = tempfile::tempdir().unwrap();
    let (data, moved) = (folder.path().join("data"), folder.path().join("away"));
    Tree::new().file("site/small.txt", "small\n").file("data/kept", "").plant(folder.path());
    let server = Server::start(kind, &folder.path().join("site"), &["--data", data.to_str().unwrap()]);
    let ready = server.visit().get("/readyz").unwrap();
    assert_eq!((ready.status, ready.body.as_slice()), (200, b"ready\n".as_slice()));
    std::fs::rename(&data, &moved).unwrap();
    until("it is not ready", || status(&server) == 503);
    let refused = server.visit().get("/readyz").unwrap();
    let body = String::from_utf8(refused.body).unwrap();
    assert!(body.contains("data folder") && refused.head.contains("Retry-After: "), "{}{body}", refused.head);
    assert!(!body.contains(data.to_str().unwrap()), "a stranger learns no path: {body}");
    until("the log says where", || server.stderr().contains(data.to_str().unwrap()));
    assert_eq!(server.visit().get("/healthz").unwrap().status, 200, "it lives all the same");
    std::fs::rename(&moved, &data).unwrap();
    until("it is ready again", || status(&server) == 200);
    assert!(!data.join(PROBE).exists(), "a check leaves nothing behind");
}

/// A request begun before the order to stop is answered, with 503, so that a load balancer uses other
/// servers.
fn a_server_that_drains_is_not_ready(kind: EngineKind) {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(kind, folder.path(), &["--grace", "600s"]);
    let mut visitor = server.visit();
    assert_eq!(visitor.get("/readyz").unwrap().status, 200);
    visitor.send("GET /readyz HTTP/1.1\r\nHost:").unwrap();
    // The server has received it once it has answered a later connection.
    assert_eq!(server.visit().get("/healthz").unwrap().status, 200);
    std::thread::sleep(Duration::from_millis(50));
    server.signal(Signal::TERM);
    server.wait_until_refused();
    visitor.send(" test\r\n\r\n").unwrap();
    let refused = visitor.reply().unwrap();
    assert!(refused.status == 503 && refused.closes, "{}", refused.head);
    assert!(String::from_utf8(refused.body).unwrap().contains("about to end"));
}

/// Runs the check of a supervisor.
fn health(server: &Server, flags: &[&str]) -> Done {
    let url = server.url("");
    tool::run(command().arg("health").args(flags).args(["--server", &url]))
}

#[test]
fn a_supervisor_can_check_whether_a_server_answers() {
    let _permit = among_others();
    let folder = tempfile::tempdir().unwrap();
    let (data, moved) = (folder.path().join("data"), folder.path().join("away"));
    Tree::new().file("site/small.txt", "small\n").file("data/kept", "").plant(folder.path());
    let site = folder.path().join("site");
    let server = Server::start(EngineKind::Epoll, &site, &["--data", data.to_str().unwrap()]);
    assert_eq!(health(&server, &[]).well().text(), "ok\n");
    assert_eq!(health(&server, &["--ready", "--json"]).well().text(), "{\"healthy\":true}\n");
    std::fs::rename(&data, &moved).unwrap();
    until("it is not ready", || status(&server) == 503);
    assert_eq!(health(&server, &[]).well().text(), "ok\n", "it lives all the same");
    let refused = health(&server, &["--ready"]);
    assert_eq!((refused.status.code(), refused.text().as_str()), (Some(1), ""));
    assert!(refused.stderr.contains("data folder"), "{}", refused.stderr);
    server.signal(Signal::STOP);
    let late = health(&server, &[]);
    server.signal(Signal::CONT);
    assert_eq!(late.status.code(), Some(1));
    assert!(late.stderr.contains("did not answer within 5s"), "{}", late.stderr);
}

/// The server accepts connections and sends nothing, not even a handshake.
#[test]
fn a_check_over_tls_has_the_same_time_as_without() {
    let _permit = among_others();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap();
    for scheme in ["http", "https"] {
        let (begun, url) = (Instant::now(), format!("{scheme}://{at}"));
        let late = tool::run(command().args(["health", "--server", &url]));
        let time = begun.elapsed();
        assert_eq!(late.status.code(), Some(1));
        assert!(late.stderr.contains("did not answer within 5s"), "{}", late.stderr);
        assert!((Duration::from_secs(5)..Duration::from_secs(9)).contains(&time), "{scheme}: {time:?}");
    }
}

on_each_engine!(forks:
    an_unwritable_data_folder_is_reported_until_it_is_fixed,
    a_server_that_drains_is_not_ready,
);
