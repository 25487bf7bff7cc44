//! The address of a PostgreSQL database, parsed from a URL.
//!
//! It does not connect. Invariant: the URL means the same as to PostgreSQL's own programs, or is
//! rejected.

use std::sync::Arc;

use crate::directory::database::endpoint::Endpoint;
use crate::directory::database::guest::IdleRuntimes;
use crate::directory::database::url::Url;
use crate::directory::open::BadUrl;
use plimsoll_rpc::Secret;

const PORT: u16 = 5432;

/// Address, user and database.
pub(super) struct DatabaseAddress {
    pub(super) place: Endpoint,
    pub(super) user: String,
    pub(super) password: Option<Secret>,
    pub(super) database: String,
    pub(super) runtimes: Arc<IdleRuntimes>,
}

impl DatabaseAddress {
    pub(super) fn parse(url: &str) -> Result<DatabaseAddress, BadUrl> {
        let url = Url::parse(url, &["host", "sslmode"])?;
        match url.value("sslmode") {
            None | Some("disable" | "allow" | "prefer") => {}
            Some(_) => {
                return Err(url.bad("we speak no TLS to a database; use a Unix socket or a tunnel"));
            }
        }
        let user = url.user.clone().or_else(|| std::env::var("USER").ok().filter(|user| !user.is_empty()));
        let user = user.ok_or_else(|| url.bad("say as whom: postgres://USER@HOST/DATABASE"))?;
        let database = if url.path.is_empty() { user.clone() } else { url.path.clone() };
        let place = match (url.socket(PORT, |port| format!(".s.PGSQL.{port}")), url.value("host")) {
            (Some(place), _) => place,
            (None, Some(_)) => return Err(url.bad("host= is for the folder of a Unix socket")),
            (None, None) => url.place(PORT),
        };
        Ok(DatabaseAddress { place, user, password: url.password, database, runtimes: Arc::default() })
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
    fn options_that_the_client_does_not_support_are_refused() {
        for bad in ["postgres://me:secret@db/files?sslmode=require", "postgres://me:secret@/files?host=db"] {
            let message = DatabaseAddress::parse(bad).err().unwrap().to_string();
            assert!(!message.contains("secret"), "{message}");
        }
    }
}
