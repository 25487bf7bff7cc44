//! The address of a PostgreSQL database, parsed from a URL.
//!
//! It does not connect. Invariant: the URL means the same as to PostgreSQL's own programs, or is
//! rejected.

use std::sync::Arc;

use tokio_postgres::config::ChannelBinding;

use crate::directory::database::endpoint::Endpoint;
use crate::directory::database::guest::IdleRuntimes;
use crate::directory::database::tls::{Encryption, Mode, TlsKeys};
use crate::directory::database::url::Url;
use crate::directory::open::BadUrl;
use plimsoll_rpc::Secret;

const PORT: u16 = 5432;

/// As PostgreSQL's own client, TLS is used without a mode if the server offers it.
const TLS_KEYS: TlsKeys = TlsKeys {
    mode: &["sslmode"],
    authorities: &["sslrootcert"],
    certificate: &["sslcert"],
    key: &["sslkey"],
    default: Mode::Prefer,
};

const KEYS: [&str; 6] = ["channel_binding", "host", "sslcert", "sslkey", "sslmode", "sslrootcert"];

/// Address, user and database.
pub(super) struct DatabaseAddress {
    pub(super) place: Endpoint,
    pub(super) user: String,
    pub(super) password: Option<Secret>,
    pub(super) database: String,
    pub(super) encryption: Encryption,
    /// Whether a log-in is bound to the TLS below it.
    pub(super) channel_binding: ChannelBinding,
    pub(super) runtimes: Arc<IdleRuntimes>,
}

impl DatabaseAddress {
    pub(super) fn parse(url: &str) -> Result<DatabaseAddress, BadUrl> {
        let url = Url::parse(url, &KEYS)?;
        let channel_binding = match url.value("channel_binding") {
            None | Some("prefer") => ChannelBinding::Prefer,
            Some("disable") => ChannelBinding::Disable,
            Some("require") => ChannelBinding::Require,
            Some(_) => return Err(url.bad("channel_binding is disable, prefer or require")),
        };
        let user = url.user.clone().or_else(|| std::env::var("USER").ok().filter(|user| !user.is_empty()));
        let user = user.ok_or_else(|| url.bad("say as whom: postgres://USER@HOST/DATABASE"))?;
        let database = if url.path.is_empty() { user.clone() } else { url.path.clone() };
        let place = match (url.socket(PORT, |port| format!(".s.PGSQL.{port}")), url.value("host")) {
            (Some(place), _) => place,
            (None, Some(_)) => return Err(url.bad("host= is for the folder of a Unix socket")),
            (None, None) => url.place(PORT)?,
        };
        let encryption = Encryption::of(&url, TLS_KEYS, matches!(place, Endpoint::Unix(_)))?;
        if channel_binding == ChannelBinding::Require && matches!(encryption, Encryption::Never) {
            return Err(url.bad("channel_binding=require needs TLS"));
        }
        let (password, runtimes) = (url.password, Arc::default());
        Ok(DatabaseAddress { place, user, password, database, encryption, channel_binding, runtimes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_leads_to_a_port_or_to_a_unix_socket() {
        let address = DatabaseAddress::parse("postgres://me:secret@db/files").unwrap();
        assert_eq!(address.place, Endpoint::Tcp("db".to_owned(), 5432));
        assert_eq!((address.user.as_str(), address.database.as_str()), ("me", "files"));
        let address = DatabaseAddress::parse("postgres://me@/?host=/run/postgresql").unwrap();
        assert_eq!(address.place, Endpoint::Unix("/run/postgresql/.s.PGSQL.5432".into()));
        assert_eq!(address.database, "me");
    }

    #[test]
    fn tls_is_used_if_it_is_offered_unless_the_url_says_otherwise() {
        let of = |rest: &str| {
            let address = DatabaseAddress::parse(&format!("postgres://me@{rest}")).unwrap();
            (address.encryption, address.channel_binding)
        };
        assert!(matches!(of("db/files"), (Encryption::IfOffered(_), ChannelBinding::Prefer)));
        assert!(matches!(of("db/files?sslmode=disable"), (Encryption::Never, _)));
        let strict = "db/files?sslmode=require&channel_binding=require";
        assert!(matches!(of(strict), (Encryption::Always(_), ChannelBinding::Require)));
        assert!(matches!(of("/files?host=/run"), (Encryption::Never, _)));
        assert!(matches!(of("/files?host=/run&sslmode=prefer"), (Encryption::Never, _)));
    }

    #[test]
    fn options_that_the_client_does_not_support_are_refused() {
        for bad in [
            "postgres://me:secret@db/files?sslmode=allow",
            "postgres://me:secret@/files?host=db",
            "postgres://me:secret@/files?host=/run&sslmode=require",
            "postgres://me:secret@/files?host=/run&channel_binding=require",
            "postgres://me:secret@db/files?sslmode=disable&channel_binding=require",
            "postgres://me:secret@db/files?channel_binding=always",
        ] {
            let message = DatabaseAddress::parse(bad).err().unwrap().to_string();
            assert!(!message.contains("secret"), "{message}");
        }
    }
}
