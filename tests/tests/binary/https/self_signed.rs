//! The certificate that a server makes for itself.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use plimsoll_tests::binary::{EngineKind, Server, tool};
use plimsoll_tests::on_each_engine;

use super::curl;

fn start(kind: EngineKind, data: &Path) -> Server {
    Server::on_data(kind, data, &["--https", "127.0.0.1:0", "--self-signed"])
}

/// Returns the fingerprint that a server has printed.
fn fingerprint(server: &Server) -> String {
    server.https_at();
    let greeting = server.stdout();
    let line = greeting.lines().find_map(|line| line.trim().strip_prefix("its SHA-256 fingerprint"));
    line.unwrap_or_else(|| panic!("{greeting}")).trim().to_owned()
}

fn a_certificate_is_made_once_and_its_fingerprint_is_printed(kind: EngineKind) {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let server = start(kind, &data);
    let (certificate, key) = (data.join("tls/self-signed.pem"), data.join("tls/self-signed.key"));
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o7777;
    assert_eq!((mode(&data.join("tls")), mode(&certificate), mode(&key)), (0o700, 0o600, 0o600));
    let printed = fingerprint(&server);
    let url = format!("https://{}/healthz", server.https_at());
    let got = tool::run(curl().arg("--cacert").arg(&certificate).arg(&url)).well().text();
    assert_eq!(got, "ok\n");
    let mut openssl = tool("openssl");
    openssl.args(["x509", "-noout", "-fingerprint", "-sha256", "-in"]).arg(&certificate);
    let known = tool::run(&mut openssl).well().text();
    assert!(known.trim().ends_with(&format!("={printed}")), "{known}: {printed}");
    drop(server);
    assert_eq!(fingerprint(&start(kind, &data)), printed, "the next start has the same one");
    // A crash between the two writes leaves the key of another certificate.
    std::fs::write(&key, std::fs::read(super::data("other.key")).unwrap()).unwrap();
    assert_ne!(fingerprint(&start(kind, &data)), printed);
}

on_each_engine!(forks: a_certificate_is_made_once_and_its_fingerprint_is_printed);
