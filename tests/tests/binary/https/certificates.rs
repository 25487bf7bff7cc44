//! Certificates of a running server: the choice among several, their replacement, and tickets across it.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use plimsoll_tests::binary::{EngineKind, among_others, reached_within, until};
use plimsoll_tests::on_each_engine;
use rustix::process::Signal;

use super::hostile::{EXTENSIONS_AT, client_hello};
use super::{LAST_REQUEST, Secure, plant};

/// Longer than the time between two polls of the files.
const POLLED: Duration = Duration::from_secs(13);

/// Returns the subject of the certificate that a client gets for `name`; without a name, for none.
fn subject(secure: &Secure, name: Option<&str>) -> String {
    let args = name.map_or_else(|| vec!["-noservername"], |name| vec!["-servername", name]);
    let done = secure.openssl(&args, "").text();
    let line = done.lines().find(|line| line.starts_with("subject=")).unwrap_or_else(|| panic!("{done}"));
    line.rsplit(['=', ' ']).next().unwrap().to_owned()
}

fn the_certificate_is_the_one_of_the_name_that_a_client_requests(kind: EngineKind) {
    let folder = tempfile::tempdir().unwrap();
    plant(folder.path(), "other", "other");
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let secure = Secure::start(kind, &["--certificate", &path("other.pem"), "--key", &path("other.key")]);
    for (name, expected) in [
        (None, "server"),
        (Some("localhost"), "server"),
        (Some("FILES.example.org"), "server"),
        (Some("other.example.org"), "other"),
        (Some("a.wild.example.org"), "other"),
        (Some("a.b.wild.example.org"), "server"),
        (Some("unknown.example.com"), "server"),
        (Some("other.example.org."), "other"),
        (Some("unknown_name.example.com"), "server"),
        (Some("other.example.org.example.com"), "server"),
        (Some("127.0.0.1"), "server"),
        (Some("::1"), "server"),
        (Some(&longest_name("example.com")), "server"),
        (Some(&longest_name("wild.example.org")), "server"),
    ] {
        assert_eq!(subject(&secure, name), expected, "{name:?}");
    }
}

/// Returns a name of 253 bytes, the longest one in DNS, below a domain.
fn longest_name(domain: &str) -> String {
    let labels = format!("{}.", "a".repeat(60)).repeat(4);
    format!("{}.{domain}", &labels[..253 - 1 - domain.len()])
}

/// A requested name, and its type, which is 0.
type Name<'a> = (u8, &'a [u8]);

/// Returns a ClientHello of TLS 1.2 with the extension of requested names.
fn hello_with_names(names: &[Name<'_>]) -> Vec<u8> {
    let sized = |bytes: Vec<u8>| [&u16::try_from(bytes.len()).unwrap().to_be_bytes()[..], &bytes].concat();
    let entries = names.iter().flat_map(|(kind, name)| [vec![*kind], sized(name.to_vec())].concat());
    let requested = [vec![0, 0], sized(sized(entries.collect()))].concat();
    let mut hello = client_hello();
    let extensions = [&hello[EXTENSIONS_AT + 2..], &requested].concat();
    hello.truncate(EXTENSIONS_AT);
    hello.extend(sized(extensions));
    let bytes = hello.len();
    hello[6..9].copy_from_slice(&u32::try_from(bytes - 9).unwrap().to_be_bytes()[1..]);
    hello[3..5].copy_from_slice(&u16::try_from(bytes - 5).unwrap().to_be_bytes());
    hello
}

/// Names that no certificate can have are refused by an alert, and so are two of them.
fn a_malformed_name_gets_an_alert_and_the_next_client_is_served(kind: EngineKind) {
    const HANDSHAKE: u8 = 0x16;
    const ALERT: u8 = 0x15;
    let secure = Secure::start(kind, &[]);
    let (long, longer) = ([b'a'; 255], [b'a'; 16_000]);
    let cases: [(&[Name<'_>], u8); 10] = [
        (&[(0, b"localhost")], HANDSHAKE),
        (&[(0, b"localhost"), (0, b"other.example.org")], ALERT),
        (&[(0, b"localhost"), (0, b"localhost")], ALERT),
        (&[], ALERT),
        (&[(0, b"")], ALERT),
        (&[(0, b".")], ALERT),
        (&[(0, b"local\0host")], ALERT),
        (&[(0, b"\xff\xfe")], ALERT),
        (&[(0, &long)], ALERT),
        (&[(0, &longer)], ALERT),
    ];
    for (names, record) in cases {
        let mut stream = TcpStream::connect(secure.at()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        stream.write_all(&hello_with_names(names)).unwrap();
        let mut first = [0];
        stream.read_exact(&mut first).expect("a record");
        assert_eq!(first[0], record, "{names:?}");
    }
    assert_eq!(subject(&secure, Some("localhost")), "server");
}

/// OpenSSL's clients list AES-256 first. AES-128 takes less of the server's time.
fn the_server_chooses_the_cipher_suite(kind: EngineKind) {
    let secure = Secure::start(kind, &[]);
    for (version, option, suites, chosen) in [
        (
            "-tls1_3",
            "-ciphersuites",
            "TLS_AES_256_GCM_SHA384:TLS_AES_128_GCM_SHA256",
            "TLS_AES_128_GCM_SHA256",
        ),
        ("-tls1_3", "-ciphersuites", "TLS_CHACHA20_POLY1305_SHA256", "TLS_CHACHA20_POLY1305_SHA256"),
        ("-tls1_2", "-cipher", "ECDHE+AESGCM", "ECDHE-ECDSA-AES128-GCM-SHA256"),
        ("-tls1_2", "-cipher", "ECDHE+CHACHA20:ECDHE+AES256+AESGCM", "ECDHE-ECDSA-AES256-GCM-SHA384"),
    ] {
        let done = secure.openssl(&[version, option, suites], "").text();
        assert!(done.contains(&format!("Cipher is {chosen}\n")), "{chosen}: {done}");
    }
}

fn a_client_that_offers_only_another_protocol_is_refused(kind: EngineKind) {
    let secure = Secure::start(kind, &[]);
    let chosen = secure.openssl(&["-alpn", "h2,http/1.1"], "").text();
    assert!(chosen.contains("ALPN protocol: http/1.1"), "{chosen}");
    for foreign in ["h2", "ftp", "smtp"] {
        let refused = secure.openssl(&["-alpn", foreign], "");
        assert!(!refused.status.success(), "{foreign}");
        assert!(refused.stderr.contains("no application protocol"), "{}", refused.stderr);
    }
}

/// A ticket from before the reload resumes after it: its keys are no part of the configuration. Under
/// `process`, each connection has a process of its own. Another server makes a full handshake.
fn a_signal_brings_the_new_certificate_and_tickets_stay(kind: EngineKind) {
    let secure = Secure::start(kind, &[]);
    let tickets = [("-tls1_2", "TLSv1.2"), ("-tls1_3", "TLSv1.3")]
        .map(|(flag, version)| (flag, version, secure.path(version).to_str().unwrap().to_owned()));
    for (flag, _, ticket) in &tickets {
        let first = secure.openssl(&[flag, "-quiet", "-ign_eof", "-sess_out", ticket], LAST_REQUEST).text();
        assert!(first.contains("200 OK"), "{first}");
    }
    assert_eq!(subject(&secure, None), "server");
    plant(secure.folder.path(), "other", "own");
    secure.server.signal(Signal::HUP);
    until("the new certificate is used", || subject(&secure, None) == "other");
    let other = Secure::start(kind, &[]);
    for (flag, version, ticket) in &tickets {
        for (server, session) in [(&secure, "Reused"), (&other, "New")] {
            let done = server.openssl(&[flag, "-ign_eof", "-sess_in", ticket], LAST_REQUEST).text();
            assert!(done.contains(&format!("{session}, {version}")), "{done}");
            assert!(done.contains("200 OK"), "{done}");
        }
    }
}

/// A program that renews certificates replaces both files, one after the other, and sends no signal. A
/// certificate with another's key is refused, and the log says so once.
fn changed_files_are_used_if_they_are_of_one_pair(kind: EngineKind) {
    const REFUSED: &str = "the changed certificates cannot be used";
    let secure = Secure::start(kind, &[]);
    let refusals = || secure.server.stderr().matches(REFUSED).count();
    std::fs::copy(super::data("other.pem"), secure.path("own.pem")).unwrap();
    until("the wrong pair is refused", || refusals() == 1);
    assert!(secure.server.stderr().contains("not that of the certificate"), "{}", secure.server.stderr());
    assert_eq!(subject(&secure, None), "server");
    assert!(!reached_within(POLLED, || refusals() > 1), "{}", secure.server.stderr());
    plant(secure.folder.path(), "other", "own");
    until("the new pair is used", || subject(&secure, None) == "other");
    assert_eq!(refusals(), 1);
}

fn a_reload_with_an_unusable_certificate_keeps_the_configuration(kind: EngineKind) {
    let secure = Secure::start(kind, &[]);
    std::fs::write(secure.path("own.pem"), "none").unwrap();
    secure.server.signal(Signal::HUP);
    until("the reload is refused", || secure.server.stderr().contains("nothing was reloaded"));
    assert_eq!(subject(&secure, None), "server");
}

on_each_engine!(forks:
    the_certificate_is_the_one_of_the_name_that_a_client_requests,
    a_client_that_offers_only_another_protocol_is_refused,
    a_malformed_name_gets_an_alert_and_the_next_client_is_served,
    the_server_chooses_the_cipher_suite,
    a_signal_brings_the_new_certificate_and_tickets_stay,
    a_reload_with_an_unusable_certificate_keeps_the_configuration,
);

#[test]
fn changed_files_are_used_under_epoll_and_process() {
    let _permit = among_others();
    changed_files_are_used_if_they_are_of_one_pair(EngineKind::Epoll);
    changed_files_are_used_if_they_are_of_one_pair(EngineKind::Process);
}
