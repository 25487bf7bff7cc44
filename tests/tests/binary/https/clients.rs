//! Clients that other projects wrote, each of which verifies the server: wget, gnutls-cli, and programs of
//! Python, Java, Go and a browser.

use std::path::Path;
use std::process::Command;

use plimsoll_tests::binary::member::PASSWORD;
use plimsoll_tests::binary::tool::{self, Done};
use plimsoll_tests::binary::{EngineKind, Member, Server, among_others};
use plimsoll_tests::on_each_engine;
use plimsoll_tests::tree::noise;

use super::{LAST_REQUEST, Secure, data};
use crate::browser::{browse, open_until_ended};
use crate::reverse_proxy::{LARGE_BYTES, site};
use crate::wget::{assert_resumed, wget};

/// Returns the value of `--site` for a folder at the root.
fn at_root(folder: &Path) -> String {
    format!("/={}", folder.display())
}

fn wget_verifies_the_server_and_resumes_a_download(kind: EngineKind) {
    let (site, out) = (site(), tempfile::tempdir().unwrap());
    let secure = Secure::start(kind, &["--site", &at_root(site.path())]);
    let url = secure.url("/large.bin");
    let trusting = |ca: &str| {
        let mut wget = wget();
        wget.arg("--ca-certificate").arg(data(ca));
        wget
    };
    assert_resumed(|| trusting("ca.pem"), &url, out.path(), &noise(3, LARGE_BYTES));
    // 5: "SSL verification failure" (wget's manual).
    for mut stranger in [wget(), trusting("other.pem")] {
        let refused = tool::run(stranger.args(["-O", "/dev/null", &url]));
        assert_eq!(refused.status.code(), Some(5), "{}", refused.stderr);
    }
}

/// Sends a request with gnutls-cli, for these versions of TLS.
fn gnutls(secure: &Secure, ca: &str, versions: &str, args: &[&str]) -> Done {
    let mut command = tool::tool("gnutls-cli");
    command.args(["--port", &secure.at().port().to_string(), "--priority", &format!("NORMAL:{versions}")]);
    command.arg("--x509cafile").arg(data(ca)).args(args).arg("127.0.0.1");
    tool::run(command.stdin(tool::typed(LAST_REQUEST)))
}

fn gnutls_cli_verifies_the_server_and_resumes_its_session(kind: EngineKind) {
    const NAMED: [&str; 2] = ["--sni-hostname=localhost", "--verify-hostname=localhost"];
    let secure = Secure::start(kind, &[]);
    for version in ["1.2", "1.3"] {
        let only = format!("-VERS-ALL:+VERS-TLS{version}");
        let done = gnutls(&secure, "ca.pem", &only, &[&NAMED[..], &["--resume"]].concat()).well().text();
        let description = format!("(TLS{version}-X.509)");
        for part in [&*description, "The certificate is trusted", "This is a resumed session", "200 OK"] {
            assert!(done.contains(part), "{part}: {done}");
        }
    }
    for (ca, versions, name, reason) in [
        ("other.pem", "+VERS-TLS1.3", "localhost", "issuer is unknown"),
        ("ca.pem", "+VERS-TLS1.3", "elsewhere.example", "name in the certificate does not match"),
        ("ca.pem", "-VERS-ALL:+VERS-TLS1.1:+VERS-TLS1.0:%COMPAT", "localhost", "A TLS fatal alert"),
    ] {
        let refused = gnutls(&secure, ca, versions, &[&format!("--verify-hostname={name}")]);
        let printed = refused.text() + &refused.stderr;
        assert!(!refused.status.success() && printed.contains(reason), "{reason}: {printed}");
        assert!(!printed.contains("200 OK"), "{printed}");
    }
}

/// Runs a program of these tests, which goes through uploads, downloads, and certificates to be refused.
fn go_through(secure: &Secure, program: &mut Command) {
    Member::new(&secure.server, "alice");
    let port = secure.at().port().to_string();
    let done = tool::run(program.args([port.as_str(), "alice", PASSWORD]).arg(data("ca.pem"))).well();
    assert_eq!(done.text(), "done\n", "{}", done.stderr);
}

fn source(name: &str) -> String {
    format!("{}/tests/binary/https/{name}", env!("CARGO_MANIFEST_DIR"))
}

fn the_standard_library_of_python_goes_through_it(kind: EngineKind) {
    go_through(&Secure::start(kind, &[]), tool::tool("python3").arg(source("client.py")));
}

on_each_engine!(forks:
    wget_verifies_the_server_and_resumes_a_download,
    gnutls_cli_verifies_the_server_and_resumes_its_session,
    the_standard_library_of_python_goes_through_it,
);

#[test]
fn the_http_client_of_java_goes_through_it() {
    let _permit = among_others();
    let mut java = tool::tool("java");
    java.args(["-XX:TieredStopAtLevel=1", "-Xshare:auto"]).arg(source("Client.java"));
    go_through(&Secure::start(EngineKind::Epoll, &[]), &mut java);
}

/// Building the program takes half a minute on a machine that has built none before.
#[cfg(feature = "every-engine")]
#[test]
fn the_http_client_of_go_goes_through_it() {
    let _permit = among_others();
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("client");
    let go = tool::first_installed(&["go", "/usr/local/go/bin/go"]);
    let mut build = tool::tool(&go);
    build.env("GOTOOLCHAIN", "local").env("GOPROXY", "off").env("GO111MODULE", "off").env("CGO_ENABLED", "0");
    build.args(["build", "-o"]).arg(&program).arg(source("client.go"));
    tool::run_within(std::time::Duration::from_secs(600), &mut build).well();
    for kind in [EngineKind::Epoll, EngineKind::Pool, EngineKind::Process] {
        go_through(&Secure::start(kind, &[]), &mut tool::tool(program.to_str().unwrap()));
    }
}

/// Returns the hash of a certificate's public key, as a browser's flag has it.
fn key_hash(certificate: &Path) -> String {
    let script = "openssl x509 -in \"$0\" -noout -pubkey | openssl pkey -pubin -outform der | \
                  openssl dgst -sha256 -binary | base64";
    tool::run(tool::tool("sh").args(["-c", script]).arg(certificate)).well().text().trim().to_owned()
}

/// A page whose script reports what the browser says of its connection.
const PAGE: &str = "<!doctype html><p id=p>the script has not ended</p><script>\
    fetch('small.txt').then((answer) => answer.text()).then((text) => {\
    const [page] = performance.getEntriesByType('navigation');\
    p.textContent = ['loaded', isSecureContext, page.nextHopProtocol, text.trim()].join(' '); });</script>";

/// Browsers know no Ed25519, but the P-256 of a certificate that the server makes for itself.
#[test]
fn a_browser_loads_a_page_with_a_certificate_that_it_trusts() {
    let _permit = among_others();
    let (site, folder) = (site(), tempfile::tempdir().unwrap());
    std::fs::write(site.path().join("index.html"), PAGE).unwrap();
    let (at, data) = (at_root(site.path()), folder.path().join("data"));
    let args = ["--https", "127.0.0.1:0", "--self-signed", "--site", &at];
    let server = Server::on_data(EngineKind::Epoll, &data, &args);
    let url = format!("https://127.0.0.1:{}/", server.https_at().port());
    let trusted = key_hash(&data.join("tls/self-signed.pem"));
    let flag = format!("--ignore-certificate-errors-spki-list={trusted}");
    let loaded = open_until_ended(&[&flag], &url);
    assert!(loaded.contains("loaded true http/1.1 small"), "{loaded}");
    let refused = browse(&[], &url);
    assert!(refused.stderr.contains("ERR_CERT_AUTHORITY_INVALID"), "{}", refused.stderr);
    assert_eq!(refused.text(), "");
}
