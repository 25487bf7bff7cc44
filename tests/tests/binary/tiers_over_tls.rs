//! Tiers over TLS: a front with an authentication server and a store that both verify it, and with wrong
//! certificates on either side.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Stdio;

use plimsoll_tests::binary::{EngineKind, Server, among_others, command, free_address, tool, until};
use plimsoll_tests::on_each_engine;

use super::tiers::{ALICE, Workspace, curl, sign_up};
use super::web_servers::certificate_file;

/// Copies a certificate of the tests and its key, which other users must not read.
fn plant(folder: &Path, name: &str) {
    for (end, mode) in [("pem", 0o644), ("key", 0o600)] {
        let to = folder.join(format!("{name}.{end}"));
        std::fs::copy(certificate_file(&format!("{name}.{end}")), &to).unwrap();
        std::fs::set_permissions(&to, std::fs::Permissions::from_mode(mode)).unwrap();
    }
}

/// The folder of the tiers, with certificates.
fn place() -> Workspace {
    let place = Workspace::new();
    for name in ["server", "other", "client", "expired"] {
        plant(&place.path(""), name);
    }
    place
}

/// Makes a client's certificate that is of no authority.
fn make_stranger(place: &Workspace) {
    let mut openssl = tool("openssl");
    openssl.args(["req", "-x509", "-newkey", "ed25519", "-nodes", "-days", "30", "-subj", "/CN=front"]);
    openssl.args(["-addext", "basicConstraints=critical,CA:FALSE", "-addext", "extendedKeyUsage=clientAuth"]);
    openssl.arg("-keyout").arg(place.path("stranger.key")).arg("-out").arg(place.path("stranger.pem"));
    tool::run(&mut openssl).well();
    std::fs::set_permissions(place.path("stranger.key"), std::fs::Permissions::from_mode(0o600)).unwrap();
}

/// Starts `plimsoll auth` or `plimsoll store` with a certificate, for clients with one of the tests'
/// authority.
fn tier(place: &Workspace, name: &str, kind: EngineKind, more: &[&str]) -> Server {
    let mut tier = command();
    tier.args([name, "--listen", "127.0.0.1:0", "--engine", &kind.to_string(), "--secret-file"]);
    tier.arg(place.path("secret")).arg("--data").arg(place.path(name));
    tier.arg("--certificate").arg(place.path("server.pem")).arg("--key").arg(place.path("server.key"));
    tier.arg("--client-ca").arg(certificate_file("ca.pem")).args(more);
    Server::spawn(tier)
}

/// Starts a front of an authentication server, and perhaps of a store.
fn front(place: &Workspace, auth: &Server, store: Option<&Server>, more: &[&str]) -> Server {
    let mut serve = command();
    serve
        .args(["serve", "--signup", "open", "--http", "127.0.0.1:0", "--secret-file"])
        .arg(place.path("secret"));
    serve.arg("--auth").arg(format!("https://{}", auth.https_at())).arg("--data").arg(place.path("front"));
    if let Some(store) = store {
        serve.arg("--store").arg(format!("https://{}", store.https_at()));
    }
    serve.args(more);
    Server::spawn(serve)
}

/// Returns the flags of a front with a certificate of its own.
fn own(place: &Workspace, name: &str) -> Vec<String> {
    let path = |end: &str| place.path(&format!("{name}.{end}")).to_str().unwrap().to_owned();
    vec!["--tier-certificate".to_owned(), path("pem"), "--tier-key".to_owned(), path("key")]
}

fn flags(place: &Workspace, ca: &str, name: Option<&str>) -> Vec<String> {
    let own = name.map(|name| own(place, name)).unwrap_or_default();
    [vec!["--tier-ca".to_owned(), certificate_file(ca)], own].concat()
}

fn words(flags: &[String]) -> Vec<&str> {
    flags.iter().map(String::as_str).collect()
}

fn a_front_uses_tiers_that_verify_it_and_that_it_verifies(kind: EngineKind) {
    let place = place();
    let auth = tier(&place, "auth", kind, &[]);
    let store = tier(&place, "store", EngineKind::Epoll, &[]);
    for ca in ["ca.pem", "server.pem"] {
        let front = front(&place, &auth, Some(&store), &words(&flags(&place, ca, Some("client"))));
        if ca == "ca.pem" {
            sign_up(&front);
        }
        let file = ["--user", ALICE, "--upload-file", &certificate_file("ca.pem")];
        let (status, output) = curl(&front, "/files/a.txt", &file);
        assert!(status == 201 || status == 204, "{status} {output}");
        let (status, body) = curl(&front, "/files/a.txt", &["--user", ALICE]);
        assert_eq!(status, 200);
        assert_eq!(body, std::fs::read_to_string(certificate_file("ca.pem")).unwrap());
    }
}

on_each_engine!(forks: a_front_uses_tiers_that_verify_it_and_that_it_verifies);

#[test]
fn a_tier_of_tls_13_alone_refuses_tls_12_and_serves_fronts() {
    let _permit = among_others();
    let place = place();
    let auth = tier(&place, "auth", EngineKind::Epoll, &["--tls-min-version", "1.3"]);
    let more = [flags(&place, "ca.pem", Some("client")), vec!["--tls-min-version=1.3".to_owned()]].concat();
    let front = front(&place, &auth, None, &words(&more));
    sign_up(&front);
    let mut openssl = tool("openssl");
    openssl.args(["s_client", "-tls1_2", "-connect", &auth.https_at().to_string()]);
    let refused = tool::run(openssl.stdin(Stdio::null()));
    assert!(refused.stderr.contains("alert protocol version"), "{} {}", refused.text(), refused.stderr);
}

#[test]
fn a_front_of_tls_13_alone_connects_to_no_tier_of_tls_12() {
    let _permit = among_others();
    let place = place();
    let (at, pair) = (free_address(), ["server.pem", "server.key"].map(|name| place.path(name)));
    let mut older = tool("openssl");
    older
        .args(["s_server", "-www", "-tls1_2", "-accept", &at, "-cert"])
        .arg(&pair[0])
        .arg("-key")
        .arg(&pair[1]);
    let mut older = older.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    until("the tier listens", || std::net::TcpStream::connect(&at).is_ok());
    let mut serve = command();
    serve.args(["serve", "--http", "127.0.0.1:0", "--auth", &format!("https://{at}"), "--secret-file"]);
    serve.arg(place.path("secret")).arg("--data").arg(place.path("front"));
    serve.args(["--tls-min-version", "1.3", "--tier-ca", &certificate_file("ca.pem")]);
    let front = Server::spawn(serve);
    assert_eq!(curl(&front, "/api/whoami", &["--user", ALICE]).0, 503);
    until("the log says why", || front.stderr().to_lowercase().contains("protocol"));
    tool::kill(&mut older);
}

#[test]
fn the_log_of_a_front_names_what_is_wrong_and_the_flag() {
    let _permit = among_others();
    let place = place();
    make_stranger(&place);
    let auth = tier(&place, "auth", EngineKind::Epoll, &[]);
    for (ca, name, words_of_log) in [
        ("other.pem", Some("client"), &["no authority that is trusted", "--tier-ca"][..]),
        ("ca.pem", None, &["--tier-certificate", "--client-ca"]),
        // The authority has signed it, but for servers.
        ("ca.pem", Some("other"), &["--tier-certificate", "--client-ca"]),
        ("ca.pem", Some("stranger"), &["--tier-certificate", "--client-ca"]),
        ("ca.pem", Some("expired"), &["--tier-certificate", "--client-ca"]),
    ] {
        let front = front(&place, &auth, None, &words(&flags(&place, ca, name)));
        assert_eq!(curl(&front, "/api/whoami", &["--user", ALICE]).0, 503, "{ca} {name:?}");
        until("the log says why", || {
            let log = front.stderr();
            words_of_log.iter().all(|word| log.contains(word))
        });
    }
}

#[test]
fn a_server_with_another_name_is_not_trusted() {
    let _permit = among_others();
    let place = place();
    std::fs::copy(place.path("other.pem"), place.path("server.pem")).unwrap();
    std::fs::copy(place.path("other.key"), place.path("server.key")).unwrap();
    let auth = tier(&place, "auth", EngineKind::Epoll, &[]);
    let front = front(&place, &auth, None, &words(&flags(&place, "ca.pem", Some("client"))));
    assert_eq!(curl(&front, "/api/whoami", &["--user", ALICE]).0, 503);
    until("the log says why", || front.stderr().contains("not valid for this name"));
}

#[test]
fn half_a_set_of_flags_is_refused() {
    let _permit = among_others();
    let place = place();
    let pem = place.path("server.pem").to_str().unwrap().to_owned();
    let refused = |args: &[&str], word: &str| {
        let mut typed = command();
        typed.args(args).arg("--secret-file").arg(place.path("secret")).arg("--data").arg(place.path("new"));
        let done = tool::run(&mut typed);
        assert_eq!(done.status.code(), Some(2), "{args:?}: {}", done.stderr);
        assert!(done.stderr.contains(word), "{args:?}: {}", done.stderr);
    };
    refused(&["auth", "--certificate", &pem], "--key");
    refused(&["store", "--client-ca", &pem], "--certificate");
    refused(&["serve", "--client-ca", &pem], "plimsoll auth");
    refused(&["serve", "--http", "127.0.0.1:0", "--tier-ca", &pem], "https://");
    let auth =
        ["serve", "--http", "127.0.0.1:0", "--auth", "https://127.0.0.1:1", "--tier-certificate", &pem];
    refused(&auth, "--tier-key");
}
