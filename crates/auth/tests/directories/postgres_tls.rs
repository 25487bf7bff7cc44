//! TLS to PostgreSQL: its own modes, and the binding of a log-in to TLS.

use std::net::SocketAddr;

use plimsoll_auth::directory::open;

use crate::database::{Database, Transport};
use crate::relay::{Fault, Relay, Target};
use crate::{NOW, impersonator, with_server};

/// A database that is reached over TLS.
struct TlsDatabase {
    server: SocketAddr,
    database: String,
    /// The folder of the certificates.
    folder: String,
}

impl TlsDatabase {
    fn new(server: &mut Database) -> TlsDatabase {
        let url = server.fresh_over(Transport::Tls).url;
        let (_, rest) = url.split_once('@').unwrap();
        let (host, rest) = rest.split_once('/').unwrap();
        let folder = server.certificate("").display().to_string();
        TlsDatabase {
            server: SocketAddr::new(host.parse().unwrap(), 5432),
            database: rest.split('?').next().unwrap().to_owned(),
            folder,
        }
    }

    fn url(&self, at: SocketAddr, query: &str) -> String {
        let query = query.replace("FOLDER/", &self.folder);
        format!("postgres://plimsoll:sesame@{at}/{}?{query}", self.database)
    }

    fn relay(&self) -> Relay {
        Relay::start(Target::Tcp(self.server))
    }
}

fn tls_database() -> TlsDatabase {
    with_server("postgres", TlsDatabase::new)
}

fn failure(url: &str) -> String {
    let error = open(url).err().unwrap().to_string();
    assert!(!error.contains("sesame"), "{error}");
    error
}

fn has_sent(relay: &Relay, text: &str) -> bool {
    relay.sent().windows(text.len()).any(|part| part == text.as_bytes())
}

#[test]
fn tls_is_used_without_a_mode_and_not_with_the_mode_disable() {
    let database = tls_database();
    let relay = database.relay();
    for query in ["sslmode=prefer", "channel_binding=require", "sslmode=require&channel_binding=require", ""]
    {
        let mut directory = open(&database.url(relay.address(), query)).unwrap();
        directory.check_writable(NOW).unwrap();
        assert!(!has_sent(&relay, "plimsoll") && !has_sent(&relay, "sesame"), "{query}");
    }
    drop(open(&database.url(relay.address(), "sslmode=disable")).unwrap());
    assert!(has_sent(&relay, "plimsoll"), "the relay reads a plain connection");
}

#[test]
fn a_log_in_that_must_be_bound_is_refused_without_tls() {
    let database = tls_database();
    let relay = database.relay();
    relay.set(Fault::PostgresWithoutTls);
    let error = failure(&database.url(relay.address(), "channel_binding=require"));
    assert!(error.contains("channel binding"), "{error}");
    drop(open(&database.url(relay.address(), "sslmode=prefer")).unwrap());
    assert!(!has_sent(&relay, "sesame"), "a proof of the password is sent, not itself");
}

#[test]
fn a_log_in_that_is_bound_to_tls_is_refused_by_way_of_another_server() {
    let database = tls_database();
    let key_of = |name: &str| format!("{}{name}", database.folder);
    // Its certificate has an ECDSA key, so the binding has a value, and another one than the server's.
    let at =
        impersonator::start(database.server, key_of("client.pem").as_ref(), key_of("client.key").as_ref());
    for query in ["sslmode=require&channel_binding=require", "sslmode=require"] {
        let error = failure(&database.url(at, query));
        assert!(error.contains("channel binding"), "{query}: {error}");
    }
    drop(open(&database.url(at, "sslmode=require&channel_binding=disable")).unwrap());
}

#[test]
fn postgres_gets_the_password_itself_through_tls_that_the_url_demands_only() {
    let database = tls_database();
    with_server("postgres", |server| {
        let role = "CREATE ROLE asked SUPERUSER LOGIN PASSWORD 'sesame'";
        let at = server.fresh();
        server.run(&at, role);
    });
    for (query, is_sent) in [
        ("sslmode=require", true),
        ("sslmode=verify-full&sslrootcert=FOLDER/ca.pem", true),
        ("sslmode=prefer", false),
        ("sslmode=disable", false),
    ] {
        let url = database.url(database.server, query).replace("plimsoll:", "asked:");
        let error = open(&url).err().map(|error| error.to_string()).unwrap_or_default();
        assert_eq!(error.is_empty(), is_sent, "{query}: {error}");
        assert!(is_sent || error.contains("asks for the password itself"), "{query}: {error}");
    }
}
