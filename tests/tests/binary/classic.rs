//! Classic as an operator enables it, and the load generator's classic client.
//!
//! It does not test classic's behaviour (`behaviours/classic.rs`). Lines typed by hand must work.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;

use plimsoll_tests::binary::member::PASSWORD;
use plimsoll_tests::binary::{Done, EngineKind, Member, PATIENCE, Server, command, tool, until};
use plimsoll_tests::on_each_engine;
use rustix::process::Signal;
use serde_json::Value;

/// Sends some bytes, and returns the server's output to its end.
fn response_to(at: SocketAddr, bytes: &str) -> String {
    let mut stream = TcpStream::connect(at).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(bytes.as_bytes()).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

fn load(args: &[&str]) -> Done {
    tool::run(command().arg("load").args(args).env("PLIMSOLL_PASSWORD", PASSWORD))
}

fn figures(args: &[&str]) -> Value {
    serde_json::from_slice(&load(args).well().stdout).unwrap()
}

fn one_connection_makes_an_account_and_another_gets_a_file(kind: EngineKind) {
    let (data, site) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    std::fs::write(site.path().join("common.txt"), "for all\n").unwrap();
    let socket = site.path().join("classic.sock");
    let both = format!("127.0.0.1:0,unix:{}", socket.display());
    let site = format!("/={}", site.path().display());
    let server = Server::on_data(kind, data.path(), &["--classic", &both, "--site", &site]);
    let at = server.classic_at();
    assert_eq!(response_to(at, &format!("new:bob:{PASSWORD}\n")), "ok\n");
    let mut alice = Member::new(&server, "alice");
    alice.put("/files/hello.txt", b"Hello, sea.\n");
    assert_eq!(response_to(at, &format!("get:alice:{PASSWORD}\nhello.txt\n")), "ok\nok 12\nHello, sea.\n");
    assert_eq!(response_to(at, &format!("get:bob:{PASSWORD}\nhello.txt\n")), "ok\nerror: not found\n");
    assert_eq!(response_to(at, &format!("get:bob:{PASSWORD}\ncommon.txt\n")), "ok\nok 8\nfor all\n");
    let mut local = UnixStream::connect(&socket).unwrap();
    write!(local, "get:alice:{PASSWORD}\nhello.txt\n").unwrap();
    let mut text = String::new();
    local.read_to_string(&mut text).unwrap();
    assert_eq!(text, "ok\nok 12\nHello, sea.\n");
    until("it is counted", || {
        let metrics = String::from_utf8(server.visit().get("/metrics").unwrap().body).unwrap();
        metrics.contains(COUNTED)
    });
}

/// Four files were requested, one of them missing.
const COUNTED: &str =
    "plimsoll_operation_duration_seconds_count{protocol=\"classic\",operation=\"download\"} 4\n";

fn a_reloaded_setting_applies_to_the_next_connection(kind: EngineKind) {
    let folder = tempfile::tempdir().unwrap();
    let write = |text: &str| {
        let text = format!("access_log = \"off\"\n{text}").replace("HERE", folder.path().to_str().unwrap());
        std::fs::write(folder.path().join("plimsoll.toml"), text).unwrap();
    };
    std::fs::create_dir(folder.path().join("site")).unwrap();
    std::fs::write(folder.path().join("site/common.txt"), "for all\n").unwrap();
    write("data = \"HERE/data\"\nclassic = [\"127.0.0.1:0\"]\n");
    let mut serve = command();
    serve.arg("serve").arg("--config").arg(folder.path().join("plimsoll.toml"));
    serve.args(["--engine", &kind.to_string(), "--http", "127.0.0.1:0", "--signup", "open"]);
    let server = Server::spawn(serve);
    Member::new(&server, "alice");
    let wanted = format!("get:alice:{PASSWORD}\ncommon.txt\n");
    assert_eq!(response_to(server.classic_at(), &wanted), "ok\nerror: not found\n");
    write("data = \"HERE/data\"\nclassic = [\"127.0.0.1:0\"]\nsite = [\"/=HERE/site\"]\n");
    server.signal(Signal::HUP);
    until("it is reloaded", || server.stderr().contains("the configuration was reloaded"));
    assert_eq!(response_to(server.classic_at(), &wanted), "ok\nok 8\nfor all\n");
}

fn the_load_generator_speaks_it(kind: EngineKind) {
    let data = tempfile::tempdir().unwrap();
    let server = Server::on_data(kind, data.path(), &["--classic", "127.0.0.1:0"]);
    let mut alice = Member::new(&server, "alice");
    for number in 0..10 {
        alice.put(&format!("/files/{number}.bin"), &[b'x'; 1000]);
    }
    let url = format!("classic://{}", server.classic_at());
    let files = format!("{url}/{{}}.bin");
    let args =
        ["-u", "4", "-n", "200", "--files", "0..10", "--verify", "all", "--account", "alice", "--json"];
    let report = figures(&[&[files.as_str()], &args[..]].concat());
    assert_eq!(
        (&report["requests"], &report["bytes"], &report["verified"]),
        (&200.into(), &200_000.into(), &200.into())
    );
    assert_eq!(report["connections"], "new", "{report}");
    let report = figures(&["-X", "NEW", &url, "-u", "4", "-n", "20", "--json"]);
    assert_eq!((&report["requests"], &report["errors"]), (&20.into(), &serde_json::json!({})), "{report}");
    let wrong =
        load(&[&format!("{url}/none"), "-n", "1", "--account", "alice", "--verify", "none", "--json"]);
    assert_eq!(wrong.status.code(), Some(1));
    let report: Value = serde_json::from_slice(&wrong.stdout).unwrap();
    assert_eq!(report["errors"], serde_json::json!({"refused": 1}), "{report}");
}

on_each_engine!(
    one_connection_makes_an_account_and_another_gets_a_file,
    a_reloaded_setting_applies_to_the_next_connection,
    the_load_generator_speaks_it,
);

#[test]
fn the_doctor_knows_who_listens() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::on_data(EngineKind::Epoll, data.path(), &["--classic", "127.0.0.1:0"]);
    let at = server.classic_at().to_string();
    let doctor = tool::run(
        command().args(["doctor", "--http", "127.0.0.1:0", "--classic", &at, "--data"]).arg(data.path()),
    );
    assert!(doctor.text().contains(&format!("{at} is served by plimsoll")), "{}", doctor.text());
}

#[test]
fn contradictory_arguments_are_refused_with_the_valid_form() {
    for (args, expected) in [
        (&["classic://127.0.0.1/a", "-n", "1"][..], "--account"),
        (&["classic://127.0.0.1/a", "-n", "1", "-X", "PUT"][..], "no uploads"),
        (&["http://127.0.0.1/", "-n", "1", "-X", "NEW"][..], "classic://HOST:PORT"),
        (&["classic://127.0.0.1", "-n", "1", "-X", "NEW", "--account", "alice"][..], "names of their own"),
    ] {
        let done = load(args);
        assert!(done.status.code() == Some(2) && done.stderr.contains(expected), "{args:?}: {}", done.stderr);
    }
}
