//! The address of a Redis database, parsed from a URL.
//!
//! It does not connect. Invariant: each part of a URL is obeyed, or the URL is rejected.

use std::path::PathBuf;

use crate::directory::database::endpoint::Endpoint;
use crate::directory::database::url::Url;
use crate::directory::open::BadUrl;
use plimsoll_rpc::Secret;

const PORT: u16 = 6379;

/// Address, user and database.
pub(super) struct DatabaseAddress {
    pub(super) place: Endpoint,
    pub(super) user: Option<String>,
    pub(super) password: Option<Secret>,
    pub(super) database: u32,
}

impl DatabaseAddress {
    /// Parses `redis://USER:PASSWORD@HOST:PORT/NUMBER` or `redis+unix://USER:PASSWORD@/PATH?db=NUMBER`.
    pub(super) fn parse(text: &str) -> Result<DatabaseAddress, BadUrl> {
        let url = Url::parse(text, &["db"])?;
        let is_unix = text.starts_with("redis+unix://");
        let (place, number) = if is_unix {
            let path = PathBuf::from(format!("/{}", url.path));
            (Endpoint::Unix(path), url.value("db").unwrap_or_default())
        } else {
            (url.place(PORT), url.value("db").unwrap_or(&url.path))
        };
        let database = if number.is_empty() { Ok(0) } else { number.parse() };
        let database = database.map_err(|_| url.bad("a database of Redis is a number"))?;
        Ok(DatabaseAddress { place, user: url.user.clone(), password: url.password, database })
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
    fn a_database_that_is_no_number_is_refused_without_the_password() {
        let message = DatabaseAddress::parse("redis://:secret@db/files").err().unwrap().to_string();
        assert!(message.contains("is a number") && !message.contains("secret"), "{message}");
    }
}
