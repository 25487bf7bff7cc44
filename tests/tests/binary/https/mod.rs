//! HTTPS: clients with TLS 1.2 and 1.3, certificates and their replacement, and what attackers and mistaken
//! clients send.

mod certificates;
mod clients;
mod cut;
mod hostile;
mod metrics;
mod mistakes;
mod redirect;
#[cfg(feature = "every-engine")]
mod scanned;
mod self_signed;
mod versions;

use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use plimsoll_tests::binary::member::PASSWORD;
use plimsoll_tests::binary::tool::{self, Done};
use plimsoll_tests::binary::{EngineKind, Member, Server, among_others};
use plimsoll_tests::on_each_engine;
use plimsoll_tests::tree::noise;

/// Several records, and more than a socket's buffer.
const LARGE_BYTES: usize = 6_000_000;

/// A request after which the server closes the connection.
const LAST_REQUEST: &str = "GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";

/// A server with HTTPS, and the folder of its data and certificates.
struct Secure {
    folder: tempfile::TempDir,
    server: Server,
}

/// Returns a file of the tests' certificates.
fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("data/tls").join(name)
}

/// Puts the certificate `from` at `folder/name.pem`, and its key beside it, each by a rename.
fn plant(folder: &Path, from: &str, name: &str) {
    for (end, mode) in [("key", 0o600), ("pem", 0o644)] {
        let staged = folder.join("staged");
        std::fs::copy(data(&format!("{from}.{end}")), &staged).unwrap();
        std::fs::set_permissions(&staged, std::fs::Permissions::from_mode(mode)).unwrap();
        std::fs::rename(&staged, folder.join(format!("{name}.{end}"))).unwrap();
    }
}

impl Secure {
    /// Starts a server with the certificate of `localhost`.
    fn start(kind: EngineKind, more: &[&str]) -> Secure {
        Secure::start_with(kind, "127.0.0.1:0", more, None)
    }

    /// As [`Secure::start`], at this address.
    fn start_at(kind: EngineKind, at: &str, more: &[&str]) -> Secure {
        Secure::start_with(kind, at, more, None)
    }

    /// As [`Secure::start_at`], with a limit of open files.
    fn start_with(kind: EngineKind, at: &str, more: &[&str], open_files: Option<u32>) -> Secure {
        let folder = tempfile::tempdir().unwrap();
        plant(folder.path(), "server", "own");
        let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
        let (certificate, key, data) = (path("own.pem"), path("own.key"), folder.path().join("data"));
        let tls = ["--https", at, "--certificate", &certificate, "--key", &key];
        let args = [&tls[..], more].concat();
        let server = match open_files {
            Some(limit) => Server::on_data_with_few_open_files(kind, &data, &args, limit),
            None => Server::on_data(kind, &data, &args),
        };
        Secure { folder, server }
    }

    fn at(&self) -> SocketAddr {
        self.server.https_at()
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn url(&self, path: &str) -> String {
        format!("https://{}{path}", self.at())
    }

    /// Runs curl, which verifies the server.
    fn curl(&self, args: &[&str]) -> Done {
        tool::run(curl().arg("--cacert").arg(data("ca.pem")).args(args))
    }

    /// Runs `openssl s_client` with this standard input.
    fn openssl(&self, args: &[&str], input: &str) -> Done {
        openssl(self.at(), args, input)
    }
}

fn curl() -> Command {
    let mut curl = tool::tool("curl");
    curl.args(["-q", "--silent", "--show-error", "--max-time", "30"]);
    curl
}

/// Runs `openssl s_client` with this standard input. It verifies nothing unless `args` order it to.
fn openssl(at: SocketAddr, args: &[&str], input: &str) -> Done {
    let mut command = tool::tool("openssl");
    command.args(["s_client", "-connect", &at.to_string()]).args(args);
    tool::run(command.stdin(tool::typed(input)))
}

fn files_go_up_and_down_by_curl(kind: EngineKind) {
    let secure = Secure::start(kind, &[]);
    Member::new(&secure.server, "alice");
    let (file, back) = (secure.path("file"), secure.path("back"));
    std::fs::write(&file, noise(3, LARGE_BYTES)).unwrap();
    let login = format!("alice:{PASSWORD}");
    for (version, most, spoken) in [("--tlsv1.2", "1.2", "1.2"), ("--tlsv1.3", "1.3", "1.3")] {
        let url = secure.url(&format!("/files/{most}.bin"));
        let tls = [version, "--tls-max", most, "-u", &login];
        let put = [&tls[..], &["-T", file.to_str().unwrap(), "-w", "%{http_code}", &url]].concat();
        assert_eq!(secure.curl(&put).well().text().lines().last(), Some("201"), "TLS {spoken}");
        let get = [&tls[..], &["-v", "-o", back.to_str().unwrap(), &url]].concat();
        let got = secure.curl(&get).well();
        assert!(std::fs::read(&back).unwrap() == noise(3, LARGE_BYTES), "TLS {spoken}");
        assert!(got.stderr.contains(&format!("SSL connection using TLSv{spoken}")), "{}", got.stderr);
        // Two requests on one connection, the second of which is parked in between under the pool.
        let twice = [&tls[..], &["-r", "0-9", &url, "-r", "0-9", &url, "-w", "%{num_connects}"]].concat();
        let twice = secure.curl(&twice).well();
        assert!(twice.stdout.ends_with(b"0") || twice.stdout.ends_with(b"1"), "{}", twice.stderr);
    }
}

/// The certificate's first name is in the status, and its end in the metrics.
fn operators_see_how_long_a_certificate_is_valid(kind: EngineKind) {
    let secure = Secure::start(kind, &[]);
    secure.curl(&[&secure.url("/healthz")]).well();
    let status = secure.server.status();
    let days = status["certificates"][0]["days_left"].as_i64().unwrap();
    assert!(days > 30_000 && status["certificates"][0]["names"][0] == "localhost", "{status}");
    let metrics = secure.server.visit().get("/metrics").unwrap().text();
    let line = "plimsoll_certificate_not_after_seconds{name=\"localhost\"} 4733510400";
    assert!(metrics.lines().any(|own| own == line), "{metrics}");
    let completed = metrics.lines().find(|own| own.contains("handshakes_total{result=\"complete\"}"));
    assert!(completed.is_some_and(|line| line.ends_with(" 1")), "{metrics}");
    let greeting = secure.server.stdout();
    assert!(greeting.contains("files.example.org"), "{greeting}");
}

on_each_engine!(forks: files_go_up_and_down_by_curl, operators_see_how_long_a_certificate_is_valid);

#[test]
fn files_go_up_and_down_by_curl_under_the_pool() {
    let _permit = among_others();
    files_go_up_and_down_by_curl(EngineKind::Pool);
}
