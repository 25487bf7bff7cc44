//! The address of a Redis database, parsed from a URL.
//!
//! It does not connect. Invariant: each part of a URL is obeyed, or the URL is rejected.

use std::path::PathBuf;
use std::sync::Arc;

use crate::directory::database::endpoint::Endpoint;
use crate::directory::database::guest::IdleRuntimes;
use crate::directory::database::tls::{Encryption, Mode, TlsKeys};
use crate::directory::database::url::Url;
use crate::directory::open::BadUrl;
use plimsoll_rpc::Secret;

const PORT: u16 = 6379;

/// Redis has no word for "if the server offers it": its ports are with TLS or without.
const TLS_KEYS: TlsKeys = TlsKeys {
    mode: &["sslmode"],
    authorities: &["sslrootcert"],
    certificate: &["sslcert"],
    key: &["sslkey"],
    default: Mode::VerifyName,
};

const KEYS: [&str; 5] = ["db", "sslcert", "sslkey", "sslmode", "sslrootcert"];

/// Address, user and database.
pub(super) struct DatabaseAddress {
    pub(super) place: Endpoint,
    pub(super) user: Option<String>,
    pub(super) password: Option<Secret>,
    pub(super) database: u32,
    pub(super) encryption: Encryption,
    pub(super) runtimes: Arc<IdleRuntimes>,
}

impl DatabaseAddress {
    /// Parses `redis://USER:PASSWORD@HOST:PORT/NUMBER`, the same with `rediss` for TLS, or
    /// `redis+unix://USER:PASSWORD@/PATH?db=NUMBER`.
    pub(super) fn parse(text: &str) -> Result<DatabaseAddress, BadUrl> {
        let url = Url::parse(text, &KEYS)?;
        let is_unix = text.starts_with("redis+unix://");
        let (place, number) = if is_unix {
            let path = PathBuf::from(format!("/{}", url.path));
            (Endpoint::Unix(path), url.value("db").unwrap_or_default())
        } else {
            (url.place(PORT), url.value("db").unwrap_or(&url.path))
        };
        let database = if number.is_empty() { Ok(0) } else { number.parse() };
        let database = database.map_err(|_| url.bad("a database of Redis is a number"))?;
        let encryption = encryption(&url, text.starts_with("rediss://"))?;
        let (user, password, runtimes) = (url.user.clone(), url.password, Arc::default());
        Ok(DatabaseAddress { place, user, password, database, encryption, runtimes })
    }
}

/// The scheme says whether there is TLS; the keys say which.
fn encryption(url: &Url, is_encrypted: bool) -> Result<Encryption, BadUrl> {
    let default = if is_encrypted { TLS_KEYS.default } else { Mode::Disable };
    let encryption = Encryption::of(url, TlsKeys { default, ..TLS_KEYS }, false);
    match (is_encrypted, encryption?) {
        (true, encryption @ Encryption::Always(_)) => Ok(encryption),
        (true, _) => Err(url.bad("rediss:// is always TLS: with sslmode=require, verify-ca or verify-full")),
        (false, Encryption::Never) => Ok(Encryption::Never),
        (false, _) => Err(url.bad("for TLS, write rediss://")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_leads_to_a_port_or_to_a_unix_socket() {
        let address = DatabaseAddress::parse("redis://db/3").unwrap();
        assert_eq!((address.place, address.database), (Endpoint::Tcp("db".to_owned(), 6379), 3));
        let address = DatabaseAddress::parse("redis+unix://:secret@/run/redis/redis.sock?db=2").unwrap();
        assert_eq!((address.place, address.database), (Endpoint::Unix("/run/redis/redis.sock".into()), 2));
        assert_eq!((address.user, address.password.unwrap().bytes()), (None, b"secret".as_slice()));
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
