//! The address of a MySQL or MariaDB database, parsed from a URL.
//!
//! It does not connect. Invariant: each part of a URL is obeyed, or the URL is rejected.

use std::path::PathBuf;

use crate::directory::database::endpoint::Endpoint;
use crate::directory::database::tls::{Encryption, Mode, TlsKeys};
use crate::directory::database::url::Url;
use crate::directory::open::BadUrl;
use plimsoll_rpc::Secret;

const PORT: u16 = 3306;
/// The names are PostgreSQL's and MySQL's.
const TLS_KEYS: TlsKeys = TlsKeys {
    mode: &["sslmode", "ssl-mode"],
    authorities: &["sslrootcert", "ssl-ca"],
    certificate: &["sslcert", "ssl-cert"],
    key: &["sslkey", "ssl-key"],
    default: Mode::Disable,
};

/// Address, user and database.
pub(super) struct DatabaseAddress {
    pub(super) place: Endpoint,
    pub(super) user: String,
    pub(super) password: Option<Secret>,
    pub(super) database: String,
    pub(super) encryption: Encryption,
}

impl DatabaseAddress {
    /// Parses `mysql://USER:PASSWORD@HOST:PORT/DATABASE` or `mysql://USER@/DATABASE?socket=/PATH`.
    pub(super) fn parse(url: &str) -> Result<DatabaseAddress, BadUrl> {
        let TlsKeys { mode, authorities, certificate, key, .. } = TLS_KEYS;
        let url = Url::parse(url, &[&["socket"][..], mode, authorities, certificate, key].concat())?;
        let user = url.user.clone().ok_or_else(|| url.bad("say as whom: mysql://USER@HOST/DATABASE"))?;
        if url.path.is_empty() {
            return Err(url.bad("say in which database: mysql://USER@HOST/DATABASE"));
        }
        let place = match url.value("socket") {
            Some(path) => Endpoint::Unix(PathBuf::from(path)),
            None => url.place(PORT)?,
        };
        let encryption = Encryption::of(&url, TLS_KEYS, matches!(place, Endpoint::Unix(_)))?;
        let (database, password) = (url.path.clone(), url.password);
        Ok(DatabaseAddress { place, user, database, password, encryption })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_leads_to_a_port_or_to_a_unix_socket() {
        let address = DatabaseAddress::parse("mysql://me:secret@db/files").unwrap();
        assert_eq!(address.place, Endpoint::Tcp("db".to_owned(), 3306));
        assert_eq!((address.user.as_str(), address.database.as_str()), ("me", "files"));
        let address = DatabaseAddress::parse("mysql://me@/files?socket=/run/mysqld/mysqld.sock").unwrap();
        assert_eq!(address.place, Endpoint::Unix("/run/mysqld/mysqld.sock".into()));
    }

    #[test]
    fn a_url_has_the_names_of_each_database_for_tls() {
        for url in ["mysql://me@db/files?sslmode=require", "mysql://me@db/files?ssl-mode=REQUIRED"] {
            assert!(
                matches!(DatabaseAddress::parse(url).unwrap().encryption, Encryption::Always(_)),
                "{url}"
            );
        }
        let socket = "mysql://me@/files?socket=/run/mysqld/mysqld.sock&sslmode=require";
        assert!(DatabaseAddress::parse(socket).err().unwrap().to_string().contains("Unix socket"));
    }

    #[test]
    fn a_mysql_url_without_user_or_database_is_refused() {
        for bad in ["mysql://:secret@db/files", "mysql://me:secret@db"] {
            let message = DatabaseAddress::parse(bad).err().unwrap().to_string();
            assert!(
                message.contains("mysql://USER@HOST/DATABASE") && !message.contains("secret"),
                "{message}"
            );
        }
    }
}
