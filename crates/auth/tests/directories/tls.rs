//! TLS to a database server: what is verified, and what an attacker on the network gets.
//!
//! The relay is that attacker. It is at another address than the server, so its name is a wrong one.

use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use plimsoll_auth::directory::open;

use crate::database::{Database, Fresh, Transport};
use crate::relay::{Fault, Relay, Target};
use crate::{TLS_KINDS, add, new_account, with_server};

/// An authority that has signed no database's certificate.
const OTHER_AUTHORITY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/tls/ca.pem");

/// The folder of a certificate that it has signed.
const OTHER_CERTIFICATES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/tls");

/// Far longer than a connection may take, and shorter than a trickling server would need.
const PATIENCE: Duration = Duration::from_secs(15);

/// A URL, taken apart.
struct Parts<'a> {
    /// The scheme, the user and the password.
    before: &'a str,
    host: &'a str,
    database: &'a str,
}

fn parts(url: &str) -> Parts<'_> {
    let (before, rest) = url.split_once('@').unwrap();
    let (host, rest) = rest.split_once('/').unwrap();
    let database = rest.split_once('?').unwrap().0;
    Parts { before, host: host.split(':').next().unwrap(), database }
}

/// Starts a relay to the server of a URL.
fn relay_to(url: &str, port: u16) -> Relay {
    Relay::start(Target::Tcp(SocketAddr::new(parts(url).host.parse().unwrap(), port)))
}

/// Returns the URL of a database by way of a relay, with these keys.
fn through(relay: &Relay, url: &str, query: &str) -> String {
    let Parts { before, database, .. } = parts(url);
    format!("{before}@{}/{database}?{query}", relay.address())
}

/// Runs `test` on a database of each kind of server that all tests share, with the port for TLS and the
/// path of the server's authority.
fn each_kind(test: impl Fn(&Fresh, u16, &str) + Sync) {
    // Beside each other, because some of them mostly wait.
    thread::scope(|scope| {
        for (kind, port) in TLS_KINDS {
            let test = &test;
            scope.spawn(move || {
                let (at, authority) = with_server(kind, |server| {
                    (server.fresh_over(Transport::Tls), server.certificate("ca.pem").display().to_string())
                });
                test(&at, port, &authority);
            });
        }
    });
}

fn failure(url: &str) -> String {
    open(url).err().unwrap().to_string()
}

/// Asserts that a client sent neither its password nor its name.
fn assert_nothing_leaked(relay: &Relay) {
    let sent = relay.sent();
    for secret in [b"sesame".as_slice(), b"plimsoll"] {
        assert!(!sent.windows(secret.len()).any(|part| part == secret), "{sent:?}");
    }
}

#[test]
fn a_directory_is_used_over_tls_and_nothing_of_it_is_readable_on_the_way() {
    each_kind(|at, port, authority| {
        // The name is right, and verified.
        drop(open(&at.url).unwrap());
        let relay = relay_to(&at.url, port);
        for query in [format!("sslmode=verify-ca&sslrootcert={authority}"), "sslmode=require".to_owned()] {
            let mut directory = open(&through(&relay, &at.url, &query)).unwrap();
            directory.account("alice").unwrap();
            directory.check_writable(crate::NOW).unwrap();
        }
        assert_nothing_leaked(&relay);
    });
}

#[test]
fn a_server_that_is_not_the_named_one_gets_no_password() {
    each_kind(|at, port, authority| {
        let relay = relay_to(&at.url, port);
        for (query, reason) in [
            (format!("sslmode=verify-full&sslrootcert={authority}"), "not valid for this name"),
            (format!("sslmode=verify-full&sslrootcert={OTHER_AUTHORITY}"), "no authority that is trusted"),
            (format!("sslmode=verify-ca&sslrootcert={OTHER_AUTHORITY}"), "no authority that is trusted"),
            (format!("sslmode=require&sslrootcert={OTHER_AUTHORITY}"), "no authority that is trusted"),
            ("sslmode=verify-full&sslrootcert=system".to_owned(), "no authority that is trusted"),
        ] {
            let error = failure(&through(&relay, &at.url, &query));
            assert!(error.contains(reason) && !error.contains("sesame"), "{query}: {error}");
        }
        assert_nothing_leaked(&relay);
    });
}

#[test]
fn a_server_whose_certificate_has_expired_gets_no_password() {
    for (kind, port) in TLS_KINDS {
        let mut server = Database::start(kind);
        let at = server.fresh_over(Transport::Tls);
        let authority = server.certificate("ca.pem").display().to_string();
        server.present("expired");
        server.kill();
        server.start_again();
        let relay = relay_to(&at.url, port);
        for url in
            [at.url.clone(), through(&relay, &at.url, &format!("sslmode=verify-ca&sslrootcert={authority}"))]
        {
            let error = failure(&url);
            assert!(error.contains("not valid at this time"), "{error}");
        }
        assert_nothing_leaked(&relay);
        server.present("server");
        server.kill();
        server.start_again();
        drop(open(&at.url).unwrap());
    }
}

#[test]
fn a_server_that_offers_no_tls_gets_no_password_unless_tls_is_only_preferred() {
    for (kind, port, fault, reason) in [
        ("mysql", 3306, Fault::MysqlWithoutTls, "offers no TLS"),
        ("postgres", 5432, Fault::PostgresWithoutTls, "does not support TLS"),
    ] {
        let (at, authority) = with_server(kind, |server| {
            (server.fresh_over(Transport::Tls), server.certificate("ca.pem").display().to_string())
        });
        let relay = relay_to(&at.url, port);
        relay.set(fault);
        for query in [
            "sslmode=require".to_owned(),
            format!("sslmode=verify-ca&sslrootcert={authority}"),
            format!("sslmode=verify-full&sslrootcert={authority}"),
        ] {
            let error = failure(&through(&relay, &at.url, &query));
            assert!(error.contains(reason), "{error}");
        }
        assert_nothing_leaked(&relay);
        // A proof of the password, not itself.
        drop(open(&through(&relay, &at.url, "sslmode=prefer")).unwrap());
        let sent = relay.sent();
        assert!(!sent.windows(6).any(|part| part == b"sesame"), "{sent:?}");
    }
}

#[test]
fn a_user_with_a_certificate_logs_in_with_it_only() {
    for (kind, reason) in [("mysql", "Access denied"), ("postgres", "client certificate")] {
        let (at, files) = with_server(kind, |server| {
            let files = ["client.pem", "client.key"].map(|name| server.certificate(name));
            (server.fresh_over(Transport::Tls), files.map(|path| path.display().to_string()))
        });
        let url = at.url.replace("plimsoll:", "certified:");
        let error = failure(&url);
        assert!(error.contains(reason) && !error.contains("sesame"), "{error}");
        let [certificate, key] = files;
        let mut directory = open(&format!("{url}&sslcert={certificate}&sslkey={key}")).unwrap();
        add(&mut *directory, "alice");
    }
}

#[test]
fn redis_gets_the_certificate_of_the_client_and_rejects_one_of_another_authority() {
    let (at, files) = with_server("redis", |server| {
        let files = ["client.pem", "client.key"].map(|name| server.certificate(name));
        (server.fresh_over(Transport::Tls), files)
    });
    let with = |[certificate, key]: &[PathBuf; 2]| {
        format!("{}&sslcert={}&sslkey={}", at.url, certificate.display(), key.display())
    };
    add(&mut *open(&with(&files)).unwrap(), "alice");
    let folder = tempfile::tempdir().unwrap();
    let others = ["client.pem", "client.key"].map(|name| folder.path().join(name));
    for path in &others {
        fs::copy(Path::new(OTHER_CERTIFICATES).join(path.file_name().unwrap()), path).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
    }
    // Its reason may be lost with the connection.
    let error = failure(&with(&others));
    assert!(error.starts_with("Redis: ") && !error.contains("sesame"), "{error}");
}

#[test]
fn a_connection_that_is_cut_anywhere_is_an_error_and_never_a_yes() {
    each_kind(|at, port, authority| {
        let alice = add(&mut *open(&at.url).unwrap(), "alice");
        let relay = relay_to(&at.url, port);
        let url = through(&relay, &at.url, &format!("sslmode=verify-ca&sslrootcert={authority}"));
        // A prime, so that runs end at other parts of messages.
        for bytes in (0..).step_by(211) {
            relay.set(Fault::CutAfter(bytes));
            let Ok(mut directory) = open(&url) else { continue };
            match directory.account("alice") {
                Ok(found) => {
                    assert_eq!(found.unwrap().account, alice);
                    break;
                }
                Err(_) => continue,
            }
        }
        assert_nothing_leaked(&relay);
    });
}

#[test]
fn a_server_that_hangs_or_trickles_in_the_handshake_is_given_up_in_time() {
    each_kind(|at, port, authority| {
        let relay = relay_to(&at.url, port);
        let url = through(&relay, &at.url, &format!("sslmode=verify-ca&sslrootcert={authority}"));
        for fault in [Fault::Hold, Fault::Trickle] {
            relay.set(fault);
            let start = Instant::now();
            failure(&url);
            assert!(start.elapsed() < PATIENCE, "{fault:?}: {:?}", start.elapsed());
        }
    });
}

#[test]
fn a_restart_between_two_calls_over_tls_is_no_error() {
    for (kind, _) in TLS_KINDS {
        let mut server = Database::start(kind);
        let at = server.fresh_over(Transport::Tls);
        let mut directory = open(&at.url).unwrap();
        directory.add_account(&new_account("alice")).unwrap().unwrap();
        server.kill();
        server.start_again();
        assert!(directory.account("alice").unwrap().is_some());
    }
}
