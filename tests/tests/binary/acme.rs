//! A certificate that the server orders by ACME from `pebble`, a real ACME server.

#[allow(dead_code, reason = "the tests of the crate acme have this file, too")]
#[path = "../../../crates/acme/tests/pebble/server.rs"]
mod pebble;

use std::net::TcpListener;

use pebble::{Behaviour, Pebble};
use plimsoll_tests::binary::tool::{run, tool};
use plimsoll_tests::binary::{EngineKind, Server, command, until};

const CA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/data/tls/ca.pem");
const NAME: &str = "files.example.org";

/// Returns whether a client that trusts `root` gets a page of the server by its name over HTTPS.
fn is_trusted(server: &Server, root: &str) -> bool {
    let port = server.https_at().port();
    let mut curl = tool("curl");
    curl.args(["--silent", "--fail", "--cacert", root, "--resolve", &format!("{NAME}:{port}:127.0.0.1")]);
    curl.arg(format!("https://{NAME}:{port}/healthz"));
    run(&mut curl).status.success()
}

/// A server with a domain, its ACME server, and the file of the root certificate that this signs with.
struct Ordered {
    folder: tempfile::TempDir,
    pebble: Pebble,
    http: u16,
    root: String,
}

impl Ordered {
    fn new() -> Ordered {
        let folder = tempfile::tempdir().unwrap();
        let http = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let pebble = Pebble::start(&Behaviour { valid_seconds: 3600, ..Behaviour::default() }, http);
        let root = folder.path().join("root.pem").display().to_string();
        run(tool("curl").args(["--silent", "--fail", "--cacert", CA, "--output", &root, &pebble.root()]))
            .well();
        Ordered { folder, pebble, http, root }
    }

    fn start(&self, kind: EngineKind) -> Server {
        let mut serve = command();
        serve.args(["serve", "--http", &format!("127.0.0.1:{}", self.http), "--https", "127.0.0.1:0"]);
        serve.args(["--acme", NAME, "--acme-directory", &self.pebble.directory(), "--acme-ca", CA, "--data"]);
        serve.arg(self.folder.path().join("data")).args(["--engine", &kind.to_string()]);
        Server::spawn(serve)
    }
}

/// Orders under one engine with threads, and under the one with processes.
#[test]
fn a_server_with_a_domain_orders_its_certificate_and_has_it_after_a_restart() {
    for kind in [EngineKind::Epoll, EngineKind::Process] {
        let ordered = Ordered::new();
        let server = ordered.start(kind);
        until("the certificate is in use", || is_trusted(&server, &ordered.root));
        drop(server);
        assert!(is_trusted(&ordered.start(kind), &ordered.root), "{kind}");
    }
}
