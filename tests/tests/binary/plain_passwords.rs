//! Passwords over connections that others could read: refused from other machines, with a sentence that says
//! how to turn TLS on.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt as _;

use plimsoll_tests::binary::member::PASSWORD;
use plimsoll_tests::binary::visitor::base64;
use plimsoll_tests::binary::{EngineKind, Member, PATIENCE, Reply, Server, Visitor};
use plimsoll_tests::on_each_engine;

use super::web_servers::{WebServer, permit_all};

/// A client on another machine.
const REMOTE: &str = "203.0.113.5";
const REMOTE_HEADER: &str = "PROXY TCP4 203.0.113.5 192.0.2.1 40000 80\r\n";
/// A header of version 2 for the same client. Its TLS field says that the client's connection is encrypted.
const REMOTE_OVER_TLS: &[u8] =
    b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x14\xcb\0\x71\x05\xc0\0\x02\x01\x9c\x40\0\x50\
                                 \x20\0\x05\x01\0\0\0\0";

/// The field by which a trusted proxy reports that its client uses HTTPS.
const OVER_HTTPS: &str = "X-Forwarded-Proto: https\r\n";

fn assert_names_each_remedy(refused: &Reply) {
    let text = refused.text();
    for remedy in
        ["https://", "--certificate FILE", "--trusted-proxy", "X-Forwarded-Proto", "--plain-passwords allow"]
    {
        assert!(text.contains(remedy), "{remedy}: {text}");
    }
}

fn basic() -> String {
    format!("Authorization: Basic {}\r\n", base64(format!("alice:{PASSWORD}").as_bytes()))
}

fn log_in(visitor: &mut Visitor, fields: &str) -> Reply {
    let body = serde_json::json!({ "name": "alice", "password": PASSWORD }).to_string();
    let fields = format!("Content-Type: application/json\r\n{fields}");
    visitor.ask("POST", "/api/sessions", &fields, body.as_bytes()).unwrap()
}

/// The reports of trusted proxies about the client's connection decide. A token is accepted everywhere.
fn a_password_is_accepted_where_no_other_machine_can_read_it(kind: EngineKind) {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::on_data(kind, &folder.path().join("data"), &["--trusted-proxy", "127.0.0.1"]);
    let alice = Member::with_fields(&server, "alice", OVER_HTTPS);
    let named = format!("X-Forwarded-For: {REMOTE}\r\n");
    for (fields, is_accepted) in [
        (String::new(), false),
        (OVER_HTTPS.to_owned(), true),
        (named.clone(), false),
        // A client of another proxy on the proxy's machine, maybe.
        ("X-Forwarded-For: 127.0.0.9\r\n".to_owned(), false),
        (format!("{named}X-Forwarded-Proto: http\r\n"), false),
        (format!("{named}X-Forwarded-Proto: https\r\n"), true),
        (format!("{named}X-Forwarded-Proto: https, http\r\n"), false),
        (format!("Forwarded: for={REMOTE};proto=https\r\n"), true),
        (format!("Forwarded: for={REMOTE};proto=http\r\n"), false),
        (format!("Forwarded: for={REMOTE};proto=https\r\nX-Forwarded-Proto: http\r\n"), false),
    ] {
        let mut visitor = server.visit();
        let expected = if is_accepted { (200, 201) } else { (403, 403) };
        let shown = visitor.get_with("/files/", &format!("{fields}{}", basic())).unwrap();
        let begun = log_in(&mut visitor, &fields);
        assert_eq!((shown.status, begun.status), expected, "{fields}: {} {}", shown.text(), begun.text());
        for refused in [shown, begun].iter().filter(|_| !is_accepted) {
            assert_names_each_remedy(refused);
        }
        let by_token = visitor.get_with("/files/", &format!("{fields}{}", alice.field())).unwrap();
        assert_eq!(by_token.status, 200, "{fields}");
        // A browser answers a challenge with the password.
        let asked = visitor.get_with("/files/", &fields).unwrap();
        let challenges = asked.head.matches("WWW-Authenticate: Basic").count();
        assert_eq!((asked.status, challenges), (401, usize::from(is_accepted)), "{fields}");
    }
}

/// The same credentials on one connection of a proxy are not accepted again without encryption.
fn credentials_of_an_encrypted_request_do_not_admit_an_unencrypted_one(kind: EngineKind) {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::on_data(kind, &folder.path().join("data"), &["--trusted-proxy", "127.0.0.1"]);
    Member::with_fields(&server, "alice", OVER_HTTPS);
    let mut proxy = server.visit();
    let fields = |scheme| format!("X-Forwarded-For: {REMOTE}\r\nX-Forwarded-Proto: {scheme}\r\n{}", basic());
    for (scheme, status) in [("https", 200), ("http", 403), ("https", 200)] {
        assert_eq!(proxy.get_with("/files/", &fields(scheme)).unwrap().status, status, "{scheme}");
    }
}

/// Without `--trusted-proxy`, a proxy on this machine is the peer of clients on every machine. Its signs are
/// a field, HTTP/1.0, or the name by which the client knows the server.
fn a_password_that_has_passed_an_untrusted_proxy_on_this_machine_is_refused(kind: EngineKind) {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::on_data(kind, &folder.path().join("data"), &[]);
    let alice = Member::new(&server, "alice");
    for (settings, host) in [
        ("", "127.0.0.1"),
        ("proxy_http_version 1.1; proxy_set_header X-Forwarded-For $remote_addr;", "127.0.0.1"),
        ("proxy_http_version 1.1; proxy_set_header Via \"1.1 nginx\";", "127.0.0.1"),
        // A claim of a proxy that is not trusted.
        ("proxy_http_version 1.1; proxy_set_header X-Forwarded-Proto https;", "127.0.0.1"),
        ("proxy_http_version 1.1; proxy_set_header Host $http_host;", "files.example.org"),
    ] {
        let work = tempfile::tempdir().unwrap();
        let pass = format!("location / {{ proxy_pass http://{}; {settings} }}", server.at());
        let nginx = WebServer::nginx(work.path(), &pass);
        let mut visitor = Visitor::connect((Ipv4Addr::LOCALHOST, nginx.port).into()).unwrap();
        let mut ask = |method: &str, target: &str, fields: &str, body: &str| {
            let length = body.len();
            let head = format!("{method} {target} HTTP/1.1\r\nHost: {host}\r\n{fields}");
            visitor.send(&format!("{head}Content-Length: {length}\r\n\r\n{body}")).unwrap();
            visitor.reply().unwrap()
        };
        let account = serde_json::json!({ "name": "bob", "password": PASSWORD }).to_string();
        let session = serde_json::json!({ "name": "alice", "password": PASSWORD }).to_string();
        let change = serde_json::json!({ "old": PASSWORD, "new": "another horse" }).to_string();
        let json = "Content-Type: application/json\r\n";
        for (method, target, fields, body) in [
            ("GET", "/files/", basic(), ""),
            ("POST", "/api/accounts", json.to_owned(), &account),
            ("POST", "/api/sessions", json.to_owned(), &session),
            ("PUT", "/api/password", format!("{json}{}", alice.field()), &change),
        ] {
            let refused = ask(method, target, &fields, body);
            assert_eq!(refused.status, 403, "{settings} {method} {target}: {}", refused.text());
            assert_names_each_remedy(&refused);
        }
        let challenged = ask("GET", "/files/", "", "");
        assert!(challenged.status == 401 && !challenged.head.contains("Basic"), "{}", challenged.head);
        assert_eq!(ask("GET", "/files/", &alice.field(), "").status, 200, "{settings}: a token");
    }
    assert_eq!(server.visit().get_with("/files/", &basic()).unwrap().status, 200, "past the proxy");
}

/// The mode of the socket's file admits a proxy. Its report about the client's connection decides.
fn a_password_over_a_unix_socket_is_accepted_unless_a_proxy_reports_http(kind: EngineKind) {
    let folder = tempfile::tempdir().unwrap();
    let sockets = tempfile::tempdir().unwrap();
    permit_all(sockets.path());
    let socket = sockets.path().join("http");
    let both = ["--http".to_owned(), format!("127.0.0.1:0,unix:{}", socket.display())];
    for trusts in [&[][..], &["--trusted-proxy", "unix"]] {
        let flags = [&[both[0].as_str(), &both[1]], trusts].concat();
        let _server = Server::on_data(kind, &folder.path().join("data"), &flags);
        // The worker of nginx has a user of its own.
        std::fs::set_permissions(&socket, std::fs::Permissions::from_mode(0o666)).unwrap();
        for (settings, is_accepted) in [
            ("", true),
            ("proxy_set_header Host $http_host; proxy_set_header X-Forwarded-For $remote_addr;", true),
            ("proxy_http_version 1.1; proxy_set_header X-Forwarded-Proto https;", true),
            ("proxy_http_version 1.1; proxy_set_header X-Forwarded-Proto $scheme;", false),
            ("proxy_set_header Forwarded \"for=203.0.113.5;proto=http\";", false),
        ] {
            let work = tempfile::tempdir().unwrap();
            let pass = format!("location / {{ proxy_pass http://unix:{}; {settings} }}", socket.display());
            let nginx = WebServer::nginx(work.path(), &pass);
            let mut visitor = Visitor::connect((Ipv4Addr::LOCALHOST, nginx.port).into()).unwrap();
            let name = if trusts.is_empty() { "alice" } else { "bob" };
            let account = serde_json::json!({ "name": name, "password": PASSWORD }).to_string();
            let json = "Content-Type: application/json\r\n";
            let made = visitor.ask("POST", "/api/accounts", json, account.as_bytes()).unwrap();
            let expected: &[u16] = if is_accepted { &[201, 409] } else { &[403] };
            assert!(expected.contains(&made.status), "{trusts:?} {settings}: {}", made.text());
            let fields =
                format!("Authorization: Basic {}\r\n", base64(format!("{name}:{PASSWORD}").as_bytes()));
            let listed = visitor.get_with("/files/", &fields).unwrap();
            let expected = if is_accepted { 200 } else { 403 };
            assert_eq!(listed.status, expected, "{trusts:?} {settings}: {}", listed.text());
            assert!(is_accepted || listed.text().contains("Unix socket"), "{}", listed.text());
        }
    }
}

fn connect(at: SocketAddr, header: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(at).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(header).unwrap();
    stream
}

/// Sends lines over FTP, and returns the last reply.
fn ftp(at: SocketAddr, header: &[u8], lines: &[&str]) -> String {
    let mut control = BufReader::new(connect(at, header));
    let mut reply = String::new();
    control.read_line(&mut reply).unwrap();
    for line in lines {
        control.get_mut().write_all(format!("{line}\r\n").as_bytes()).unwrap();
        reply.clear();
        control.read_line(&mut reply).unwrap();
    }
    reply
}

fn classic(at: SocketAddr, header: &[u8]) -> String {
    let mut stream = connect(at, header);
    stream.write_all(format!("get:alice:{PASSWORD}\n").as_bytes()).unwrap();
    let mut reply = String::new();
    BufReader::new(&mut stream).read_line(&mut reply).unwrap();
    reply
}

/// Connections as clients on other machines would open them, over every protocol.
fn a_client_on_another_machine_is_refused_before_it_sends_a_password(kind: EngineKind) {
    for policy in ["loopback", "allow"] {
        let folder = tempfile::tempdir().unwrap();
        let protocols = ["--ftp", "127.0.0.1:0", "--classic", "127.0.0.1:0", "--proxy-protocol"];
        let flags = [&protocols[..], &["--plain-passwords", policy]].concat();
        let server = Server::on_data(kind, &folder.path().join("data"), &flags);
        // The proxy is on this machine, but its client may be anywhere.
        let unnamed: &[u8] = b"PROXY UNKNOWN\r\n";
        let status = |header: &[u8], target: &str| {
            let mut visitor = Visitor::new(connect(server.at(), header)).unwrap();
            let body = serde_json::json!({ "name": "alice", "password": PASSWORD }).to_string();
            let fields = "Content-Type: application/json\r\n";
            visitor.ask("POST", target, fields, body.as_bytes()).unwrap().status
        };
        assert_eq!(status(REMOTE_OVER_TLS, "/api/accounts"), 201);
        assert_eq!(status(REMOTE_OVER_TLS, "/api/sessions"), 201);
        let is_allowed = policy == "allow";
        let pass = format!("PASS {PASSWORD}");
        for header in [unnamed, REMOTE_HEADER.as_bytes()] {
            assert_eq!(status(header, "/api/sessions"), if is_allowed { 201 } else { 403 });
            let user = ftp(server.ftp_at(), header, &["USER alice"]);
            assert!(user.starts_with(if is_allowed { "331" } else { "530" }), "{user}");
            assert!(is_allowed || user.contains("AUTH TLS") && user.contains("--plain-passwords"), "{user}");
            let reply = ftp(server.ftp_at(), header, &["USER alice", &pass]);
            assert!(reply.starts_with(if is_allowed { "230" } else { "503" }), "{reply}");
            let refused = classic(server.classic_at(), header);
            assert!(
                if is_allowed { refused == "ok\n" } else { refused.contains("unencrypted") },
                "{refused}"
            );
        }
        let reply = ftp(server.ftp_at(), REMOTE_OVER_TLS, &["USER alice", &pass]);
        assert!(reply.starts_with("230"), "{reply}");
        assert_eq!(classic(server.classic_at(), REMOTE_OVER_TLS), "ok\n");
    }
}

on_each_engine!(forks:
    a_password_is_accepted_where_no_other_machine_can_read_it,
    a_password_that_has_passed_an_untrusted_proxy_on_this_machine_is_refused,
    a_password_over_a_unix_socket_is_accepted_unless_a_proxy_reports_http,
    credentials_of_an_encrypted_request_do_not_admit_an_unencrypted_one,
    a_client_on_another_machine_is_refused_before_it_sends_a_password,
);
