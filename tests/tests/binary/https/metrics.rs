//! The listener of operators over TLS (`--metrics-tls`), of a server and of a proxy.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use plimsoll_tests::binary::{
    EngineKind, Server, among_others, command, free_address, free_port, tool, until,
};
use plimsoll_tests::on_each_engine;

use super::{curl, data, plant};

/// Returns the status and the body of a response to curl, which verifies the server.
fn fetch(ca: &str, url: &str) -> (String, String) {
    let mut curl = curl();
    curl.arg("--cacert").arg(data(ca)).args(["-w", "\n%{http_code}", url]);
    let text = tool::run(&mut curl).text();
    let (body, status) = text.rsplit_once('\n').unwrap();
    (status.to_owned(), body.to_owned())
}

fn operators_read_metrics_over_tls_alone(kind: EngineKind) {
    let folder = tempfile::tempdir().unwrap();
    plant(folder.path(), "server", "own");
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let port = free_port();
    let (certificate, key, at) = (path("own.pem"), path("own.key"), format!("127.0.0.1:{port}"));
    let args = ["--metrics-tls", &at, "--certificate", &certificate, "--key", &key];
    let server = Server::on_data(kind, &folder.path().join("data"), &args);
    let url = |path: &str| format!("https://localhost:{port}{path}");
    let (status, metrics) = fetch("ca.pem", &url("/metrics"));
    assert_eq!(status, "200", "{metrics}");
    assert!(metrics.contains("plimsoll_certificate_not_after_seconds{name=\"localhost\"}"), "{metrics}");
    assert!(metrics.contains("plimsoll_tls_handshakes_total{result=\"complete\"} 1\n"), "{metrics}");
    assert_eq!(fetch("ca.pem", &url("/readyz")).0, "200");
    assert_eq!(fetch("ca.pem", &url("/files/")).0, "404", "it serves operators alone");
    assert_eq!(fetch("other.pem", &url("/metrics")).0, "000", "another certificate");
    let mut plain = TcpStream::connect(&at).unwrap();
    plain.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    plain.read_to_end(&mut answer).unwrap();
    assert_eq!((answer.first(), answer.len()), (Some(&0x15), 7), "an alert, and no response in clear");
    assert!(server.stdout().contains(&format!("https://{at}/metrics")), "{}", server.stdout());
    // A replaced certificate is used at this listener, too.
    plant(folder.path(), "other", "own");
    server.signal(rustix::process::Signal::HUP);
    until("the new certificate, of another name, is in use", || fetch("ca.pem", &url("/metrics")).0 == "000");
}

on_each_engine!(forks: operators_read_metrics_over_tls_alone);

#[test]
fn a_proxy_has_metrics_over_tls() {
    let _permit = among_others();
    let folder = tempfile::tempdir().unwrap();
    plant(folder.path(), "server", "own");
    let at = free_address();
    let mut proxy = command();
    proxy.args(["proxy", "--listen", "127.0.0.1:0", "--origin", "http://127.0.0.1:1", "--metrics-tls", &at]);
    proxy.arg("--certificate").arg(folder.path().join("own.pem"));
    let _proxy = Server::spawn({
        proxy.arg("--key").arg(folder.path().join("own.key"));
        proxy
    });
    let (status, metrics) = fetch("ca.pem", &format!("https://{at}/metrics"));
    assert!(status == "200" && metrics.contains("plimsoll_proxy_origin_up"), "{status} {metrics}");
}

#[test]
fn metrics_over_tls_need_a_certificate() {
    let _permit = among_others();
    let mut serve = command();
    let folder = tempfile::tempdir().unwrap();
    serve
        .args(["serve", "--http", "127.0.0.1:0", "--metrics-tls", "127.0.0.1:0", "--data"])
        .arg(folder.path());
    let done = tool::run(&mut serve);
    assert_eq!(done.status.code(), Some(2), "{}", done.stderr);
    assert!(done.stderr.contains("--metrics-tls needs a certificate"), "{}", done.stderr);
}
