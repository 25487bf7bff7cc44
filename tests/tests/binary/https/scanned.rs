//! A scan by testssl.sh, of HTTPS and of FTP with AUTH TLS, with an ECDSA and an RSA certificate. It takes
//! minutes.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use plimsoll_tests::binary::{EngineKind, Server, among_others, tool};
use serde_json::Value;

/// Longer than a scan takes beside others.
const SCAN_TIME: Duration = Duration::from_secs(1200);
/// Protocols, cipher suites, forward secrecy, preferences, defaults and vulnerabilities.
const CHECKS: [&str; 6] = ["-p", "-s", "-f", "-P", "-S", "-U"];
const FAILURES: [&str; 4] = ["MEDIUM", "HIGH", "CRITICAL", "FATAL"];

/// Makes a key of this kind, and a self-signed certificate with the extensions of one that an authority
/// issues: a scan finds fault with its chain of trust alone.
fn certificate(folder: &Path, key: &[&str]) -> (String, String) {
    let path = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    let (certificate, private) = (path("own.pem"), path("own.key"));
    let mut openssl = tool("openssl");
    openssl.args(["req", "-x509", "-nodes", "-days", "90", "-subj", "/CN=localhost"]).args(key);
    openssl.args(["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]);
    openssl.args(["-addext", "crlDistributionPoints=URI:http://127.0.0.1/list"]);
    tool::run(openssl.args(["-keyout", &private, "-out", &certificate])).well();
    std::fs::set_permissions(&private, std::fs::Permissions::from_mode(0o600)).unwrap();
    (certificate, private)
}

fn testssl(report: &Path) -> Command {
    let mut testssl = tool(&tool::first_installed(&["testssl", "testssl.sh"]));
    testssl.args(["--quiet", "--color", "0", "--warnings", "batch", "--nodns", "none", "--jsonfile"]);
    testssl.arg(report).args(CHECKS);
    testssl
}

/// Runs a scan, and asserts that its report has no finding of medium severity or above, but for the chain of
/// trust.
fn assert_no_findings(mut scan: Command, report: &Path, label: &str) {
    let done = tool::run_within(SCAN_TIME, &mut scan);
    let report = std::fs::read(report).unwrap_or_else(|error| panic!("{error}: {}", done.text()));
    let findings: Vec<Value> = serde_json::from_slice(&report).expect("a whole report");
    let failures: Vec<&Value> = findings
        .iter()
        .filter(|found| FAILURES.iter().any(|severity| found["severity"] == *severity))
        .filter(|found| found["id"] != "cert_chain_of_trust" && found["id"] != "cert_trust")
        .collect();
    assert!(failures.is_empty(), "{label}: {failures:#?}");
    // The scan has reached the server, and its end.
    for (id, part) in [("TLS1_3", "offered"), ("cipher_order", "server"), ("heartbleed", "not vulnerable")] {
        let found = findings.iter().find(|found| found["id"] == id);
        let finding = found.and_then(|found| found["finding"].as_str()).unwrap_or_default();
        assert!(finding.contains(part), "{label}: {id}: {finding:?}");
    }
}

#[test]
fn testssl_finds_nothing_of_medium_severity_but_the_chain_of_trust() {
    let _permit = among_others();
    let keys = [
        ("P-256", &["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"][..]),
        ("RSA", &["-newkey", "rsa:2048"]),
    ];
    std::thread::scope(|scope| {
        for (name, key) in keys {
            scope.spawn(move || {
                let folder = tempfile::tempdir().unwrap();
                let (certificate, private) = certificate(folder.path(), key);
                let tls = ["--certificate", &certificate, "--key", &private, "--hsts", "180d"];
                let at = ["--https", "127.0.0.1:0", "--ftp", "127.0.0.1:0"];
                let data = folder.path().join("data");
                let server = Server::on_data(EngineKind::Epoll, &data, &[&tls[..], &at].concat());
                let report = folder.path().join("https.json");
                let mut scan = testssl(&report);
                scan.args(["-h", &format!("https://localhost:{}", server.https_at().port())]);
                assert_no_findings(scan, &report, &format!("HTTPS, {name}"));
                let report = folder.path().join("ftp.json");
                let mut scan = testssl(&report);
                scan.args(["--starttls", "ftp", &format!("localhost:{}", server.ftp_at().port())]);
                assert_no_findings(scan, &report, &format!("FTP, {name}"));
            });
        }
    });
}
