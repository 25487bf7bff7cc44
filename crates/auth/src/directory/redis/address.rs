//! The address of a Redis database, parsed from a URL.
//!
//! It does not connect. Invariant: each part of a URL is obeyed, or the URL is rejected.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use super::route::Route;
use crate::directory::database::endpoint::Endpoint;
use crate::directory::database::guest::IdleRuntimes;
use crate::directory::database::tls::{Encryption, Mode, TlsKeys};
use crate::directory::database::url::Url;
use crate::directory::open::BadUrl;
use plimsoll_rpc::Secret;

const PORT: u16 = 6379;
const SENTINEL_PORT: u16 = 26379;

/// Redis has no word for "if the server offers it": its ports are with TLS or without.
const TLS_KEYS: TlsKeys = TlsKeys {
    mode: &["sslmode"],
    authorities: &["sslrootcert"],
    certificate: &["sslcert"],
    key: &["sslkey"],
    default: Mode::VerifyName,
};

const KEYS: [&str; 6] = ["db", "sslcert", "sslkey", "sslmode", "sslrootcert", "wait"];

/// Address, user and database.
pub(super) struct DatabaseAddress {
    pub(super) route: Route,
    /// The master that was last found in a cluster.
    pub(super) known_master: Mutex<Option<Endpoint>>,
    pub(super) user: Option<String>,
    pub(super) password: Option<Secret>,
    pub(super) database: u32,
    /// The replicas that must have a change before it is confirmed.
    pub(super) replicas: u32,
    pub(super) encryption: Encryption,
    pub(super) runtimes: Arc<IdleRuntimes>,
}

impl DatabaseAddress {
    /// Parses `redis://USER:PASSWORD@HOST:PORT/NUMBER`, `redis+sentinel://HOST:PORT,HOST/MASTER?db=NUMBER`,
    /// `redis+cluster://HOST:PORT,HOST`, these with `rediss` for TLS, or
    /// `redis+unix://USER:PASSWORD@/PATH?db=NUMBER`.
    pub(super) fn parse(text: &str) -> Result<DatabaseAddress, BadUrl> {
        let url = Url::parse(text, &KEYS)?;
        let scheme = text.split("://").next().unwrap_or_default();
        let in_query = url.value("db").unwrap_or_default();
        let (route, database) = match scheme {
            "redis+unix" => {
                (Route::Server(Endpoint::Unix(PathBuf::from(format!("/{}", url.path)))), in_query)
            }
            "redis+sentinel" | "rediss+sentinel" => (sentinels(&url)?, in_query),
            "redis+cluster" | "rediss+cluster" => (cluster(&url)?, ""),
            _ => (Route::Server(url.place(PORT)?), url.value("db").unwrap_or(&url.path)),
        };
        let database = number(&url, database, "a database of Redis is a number")?;
        let replicas = number(&url, url.value("wait").unwrap_or_default(), "wait= is a number of replicas")?;
        let encryption = encryption(&url, scheme.starts_with("rediss"))?;
        let (user, password, runtimes) = (url.user.clone(), url.password, Arc::default());
        let known_master = Mutex::default();
        Ok(DatabaseAddress { route, known_master, user, password, database, replicas, encryption, runtimes })
    }
}

fn sentinels(url: &Url) -> Result<Route, BadUrl> {
    if url.path.is_empty() {
        return Err(url.bad("say which master: redis+sentinel://HOST,HOST/MASTER"));
    }
    Ok(Route::Sentinels { sentinels: url.places(SENTINEL_PORT), master: url.path.clone() })
}

fn cluster(url: &Url) -> Result<Route, BadUrl> {
    if !url.path.is_empty() || url.value("db").is_some_and(|number| number != "0") {
        return Err(url.bad("a cluster has database 0 only: redis+cluster://HOST,HOST"));
    }
    Ok(Route::Cluster(url.places(PORT)))
}

/// Parses a number, by default 0.
fn number(url: &Url, number: &str, problem: &str) -> Result<u32, BadUrl> {
    if number.is_empty() { Ok(0) } else { number.parse().map_err(|_| url.bad(problem)) }
}

/// The scheme says whether there is TLS; the keys say which.
fn encryption(url: &Url, is_encrypted: bool) -> Result<Encryption, BadUrl> {
    let default = if is_encrypted { TLS_KEYS.default } else { Mode::Disable };
    let encryption = Encryption::of(url, TlsKeys { default, ..TLS_KEYS }, false);
    match (is_encrypted, encryption?) {
        (true, encryption @ Encryption::Always(_)) => Ok(encryption),
        (true, _) => Err(url.bad("rediss:// is always TLS: with sslmode=require, verify-ca or verify-full")),
        (false, Encryption::Never) => Ok(Encryption::Never),
        (false, _) => Err(url.bad("for TLS, write rediss://, rediss+sentinel:// or rediss+cluster://")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_leads_to_a_port_or_to_a_unix_socket() {
        let address = DatabaseAddress::parse("redis://db/3?wait=1").unwrap();
        let server = Route::Server(Endpoint::Tcp("db".to_owned(), 6379));
        assert_eq!((address.route, address.database, address.replicas), (server, 3, 1));
        let address = DatabaseAddress::parse("redis+unix://:secret@/run/redis/redis.sock?db=2").unwrap();
        let server = Route::Server(Endpoint::Unix("/run/redis/redis.sock".into()));
        assert_eq!((address.route, address.database), (server, 2));
        assert_eq!((address.user, address.password.unwrap().bytes()), (None, b"secret".as_slice()));
    }

    #[test]
    fn a_url_with_sentinels_names_a_master() {
        let address =
            DatabaseAddress::parse("rediss+sentinel://me@a,b:7/files?db=2&sslmode=require").unwrap();
        let sentinels = [("a", 26379), ("b", 7)].map(|(host, port)| Endpoint::Tcp(host.to_owned(), port));
        let route = Route::Sentinels { sentinels: sentinels.to_vec(), master: "files".to_owned() };
        assert_eq!((address.route, address.database), (route, 2));
        assert!(matches!(address.encryption, Encryption::Always(_)));
        for bad in
            ["redis+sentinel://me:secret@a,b", "redis://me:secret@a,b/0", "redis://me:secret@a/0?wait=all"]
        {
            let message = DatabaseAddress::parse(bad).err().unwrap().to_string();
            assert!(!message.contains("secret"), "{message}");
        }
    }

    #[test]
    fn a_url_of_a_cluster_names_nodes_and_no_database() {
        for url in ["redis+cluster://me@a,b:7", "redis+cluster://me@a,b:7/?db=0&wait=1"] {
            let nodes = [("a", 6379), ("b", 7)].map(|(host, port)| Endpoint::Tcp(host.to_owned(), port));
            assert_eq!(DatabaseAddress::parse(url).unwrap().route, Route::Cluster(nodes.to_vec()));
        }
        let address = DatabaseAddress::parse("rediss+cluster://a?sslmode=require").unwrap();
        assert!(matches!(address.encryption, Encryption::Always(_)));
        for bad in ["redis+cluster://me:secret@a/1", "redis+cluster://me:secret@a?db=1"] {
            let message = DatabaseAddress::parse(bad).err().unwrap().to_string();
            assert!(message.contains("database 0 only") && !message.contains("secret"), "{message}");
        }
    }

    #[test]
    fn the_scheme_of_a_url_decides_whether_a_connection_is_encrypted() {
        let of = |url: &str| DatabaseAddress::parse(url).map(|address| address.encryption);
        for encrypted in ["rediss://db/0", "rediss://db?sslmode=require", "rediss://db?sslmode=verify-ca"] {
            assert!(matches!(of(encrypted).unwrap(), Encryption::Always(_)), "{encrypted}");
        }
        for plain in ["redis://db/0", "redis://db?sslmode=disable", "redis+unix:///run/redis.sock"] {
            assert!(matches!(of(plain).unwrap(), Encryption::Never), "{plain}");
        }
        for (bad, reason) in [
            ("rediss://me:secret@db?sslmode=disable", "always TLS"),
            ("rediss://me:secret@db?sslmode=prefer", "always TLS"),
            ("redis://me:secret@db?sslmode=require", "rediss://"),
            ("redis://me:secret@db?sslmode=prefer", "rediss://"),
            ("redis+unix://me:secret@/run/redis.sock?sslmode=require", "rediss://"),
        ] {
            let message = of(bad).unwrap_err().to_string();
            assert!(message.contains(reason) && !message.contains("secret"), "{message}");
        }
    }

    #[test]
    fn a_database_that_is_no_number_is_refused_without_the_password() {
        let message = DatabaseAddress::parse("redis://:secret@db/files").err().unwrap().to_string();
        assert!(message.contains("is a number") && !message.contains("secret"), "{message}");
    }
}
