//! Opens a directory by its URL.
//!
//! It knows only the names of the stores. Invariant: a store that this program was built without gives
//! another error than an unknown one.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use zeroize::Zeroizing;

use super::{Directory, DirectoryError, DirectoryRows, SqliteDirectory};

/// The problem with a URL, and the correct form: a text for the operator.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadUrl(pub String);

/// Returns a URL without its password, to be displayed.
pub fn without_password(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else {
        // Of a URL that lacks its slashes, any part may be the password.
        let is_file = !url.contains('@') || url.starts_with("sqlite:");
        let scheme = url.split_once(':').map_or("", |(scheme, _)| scheme);
        return if is_file { url.to_owned() } else { format!("{scheme}:…") };
    };
    match rest.rsplit_once('@') {
        Some((user, place)) if user.contains(':') || !user.contains('?') => {
            let name = user.split_once(':').map_or(user, |(name, _)| name);
            format!("{scheme}://{name}@{}", without_query_password(place))
        }
        _ => format!("{scheme}://{}", without_query_password(rest)),
    }
}

/// Returns the end of a URL without the value of a key `password`, which no directory has.
fn without_query_password(rest: &str) -> String {
    let Some((path, query)) = rest.split_once('?') else { return rest.to_owned() };
    let pairs = query.split('&').map(|pair| match pair.split_once('=') {
        Some((key, _)) if key.eq_ignore_ascii_case("password") => format!("{key}=…"),
        _ => pair.to_owned(),
    });
    format!("{path}?{}", pairs.collect::<Vec<_>>().join("&"))
}

/// Adds a password to the URL of a database.
///
/// # Errors
/// The URL has one, or names no database server.
pub fn with_password(url: &str, password: &str) -> Result<Zeroizing<String>, BadUrl> {
    let bad = |problem: &str| Err(BadUrl(format!("{:?}: {problem}", without_password(url))));
    let Some((scheme, rest)) = url.split_once("://") else {
        return bad("a directory in a file has no password; leave it out");
    };
    // A path or a query may contain the sign, too.
    let authority = rest.split(['/', '?']).next().unwrap_or_default();
    let (user, place) = match authority.rfind('@') {
        Some(end) => (&rest[..end], &rest[end + 1..]),
        None => ("", rest),
    };
    if user.contains(':') {
        return bad("the URL has a password, and another one is given beside it; leave one out");
    }
    let mut url = Zeroizing::new(format!("{scheme}://{user}:"));
    for byte in password.bytes() {
        // Writing to memory cannot fail.
        let _ = match byte {
            b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' => write!(url, "{}", char::from(byte)),
            _ => write!(url, "%{byte:02X}"),
        };
    }
    let _ = write!(url, "@{place}");
    Ok(url)
}

/// Why a directory was not opened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotOpened {
    /// The URL is invalid.
    #[error(transparent)]
    Url(#[from] BadUrl),
    /// The store cannot be used.
    #[error(transparent)]
    Store(#[from] DirectoryError),
}

/// Returns the path of the file that `url` names, if it names a directory in a file.
pub fn file_of(url: &str) -> Option<PathBuf> {
    let path = url.strip_prefix("sqlite:").filter(|path| !path.is_empty())?;
    Some(path.into())
}

/// The purpose for which a directory is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opening {
    /// For a server: its tables are created or upgraded, and a closed directory is refused.
    Serve,
    /// To read or replace all rows: its tables are created or upgraded.
    Transfer,
    /// To inspect it: nothing is created or upgraded.
    Inspect,
}

/// Returns the store of a URL with a database server, by the name of its feature.
fn store_of(url: &str) -> Option<&'static str> {
    match url.split_once("://")?.0 {
        "postgres" | "postgresql" => Some("postgres"),
        "mysql" | "mariadb" => Some("mysql"),
        "redis" | "rediss" | "redis+unix" => Some("redis"),
        "redis+sentinel" | "rediss+sentinel" | "redis+cluster" | "rediss+cluster" => Some("redis"),
        _ => None,
    }
}

/// Opens the rows of the directory that `url` names. This blocks.
///
/// # Errors
/// [`NotOpened::Url`] if the URL is invalid, [`NotOpened::Store`] with the error of the store.
pub fn open_rows(url: &str, opening: Opening) -> Result<Box<dyn DirectoryRows>, NotOpened> {
    if let Some(path) = file_of(url) {
        return Ok(Box::new(SqliteDirectory::open_for(&path, opening)?));
    }
    match store_of(url) {
        #[cfg(feature = "postgres")]
        Some("postgres") => Ok(Box::new(super::PostgresDirectory::open_for(url, opening)?)),
        #[cfg(feature = "mysql")]
        Some("mysql") => Ok(Box::new(super::MysqlDirectory::open_for(url, opening)?)),
        #[cfg(feature = "redis")]
        Some("redis") => Ok(Box::new(super::RedisDirectory::open_for(url, opening)?)),
        _ => Err(invalid(url)),
    }
}

/// Opens the directory that `url` names, and creates its tables if there are none. This blocks.
///
/// # Errors
/// [`NotOpened::Url`] if the URL is invalid, [`NotOpened::Store`] with the error of the store.
pub fn open(url: &str) -> Result<Box<dyn Directory>, NotOpened> {
    if let Some(path) = file_of(url) {
        return Ok(Box::new(SqliteDirectory::open(Path::new(&path))?));
    }
    match store_of(url) {
        #[cfg(feature = "postgres")]
        Some("postgres") => Ok(Box::new(super::PostgresDirectory::open(url)?)),
        #[cfg(feature = "mysql")]
        Some("mysql") => Ok(Box::new(super::MysqlDirectory::open(url)?)),
        #[cfg(feature = "redis")]
        Some("redis") => Ok(Box::new(super::RedisDirectory::open(url)?)),
        _ => Err(invalid(url)),
    }
}

/// Returns the error of a URL that names no directory of this program.
fn invalid(url: &str) -> NotOpened {
    match store_of(url) {
        #[cfg(not(feature = "postgres"))]
        Some("postgres") => left_out("PostgreSQL", "postgres"),
        #[cfg(not(feature = "mysql"))]
        Some("mysql") => left_out("MariaDB and MySQL", "mysql"),
        #[cfg(not(feature = "redis"))]
        Some("redis") => left_out("Redis", "redis"),
        _ => unknown(url),
    }
}

/// The configuration of a database server that stores a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ServerInfo {
    /// Of PostgreSQL.
    #[cfg(feature = "postgres")]
    Postgres(super::PostgresInfo),
    /// Of MySQL or MariaDB.
    #[cfg(feature = "mysql")]
    Mysql(super::MysqlInfo),
    /// Of Redis.
    #[cfg(feature = "redis")]
    Redis(super::RedisInfo),
}

/// Reads the configuration of the server that `url` names; `None` if the directory is not on a server.
/// Creates nothing. This blocks.
///
/// # Errors
/// [`NotOpened::Url`] if the URL is invalid, [`NotOpened::Store`] with the error of the server.
pub fn server_info(url: &str) -> Result<Option<ServerInfo>, NotOpened> {
    match store_of(url) {
        #[cfg(feature = "postgres")]
        Some("postgres") => super::PostgresInfo::of(url).map(ServerInfo::Postgres).map(Some),
        #[cfg(feature = "mysql")]
        Some("mysql") => super::MysqlInfo::of(url).map(ServerInfo::Mysql).map(Some),
        #[cfg(feature = "redis")]
        Some("redis") => super::RedisInfo::of(url).map(ServerInfo::Redis).map(Some),
        _ if file_of(url).is_some() => Ok(None),
        _ => Err(invalid(url)),
    }
}

#[cfg(not(all(feature = "mysql", feature = "postgres", feature = "redis")))]
fn left_out(store: &str, feature: &str) -> NotOpened {
    let message = format!("this program was built without {store}; build it with --features {feature}");
    NotOpened::Url(BadUrl(message))
}

/// Quotes the URL without its password.
fn unknown(url: &str) -> NotOpened {
    let shown = without_password(url);
    let message = format!(
        "{shown:?} is no directory of accounts; write sqlite:PATH, postgres://USER@HOST/DATABASE, \
         mysql://USER@HOST/DATABASE or redis://HOST/NUMBER"
    );
    NotOpened::Url(BadUrl(message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_in_a_url_is_not_shown() {
        assert_eq!(without_password("postgres://me:secret@db/files"), "postgres://me@db/files");
        assert_eq!(without_password("mysql://me:p@ss@db/files"), "mysql://me@db/files");
        assert_eq!(without_password("redis://:secret@db/0"), "redis://@db/0");
        assert_eq!(without_password("sqlite:./a@b.sqlite"), "sqlite:./a@b.sqlite");
        assert_eq!(without_password("postgres:me:secret@db"), "postgres:…");
        for url in ["postgres://db/f?user=me&password=secret", "postgres://db/f?user=me&password=se@cret"] {
            assert_eq!(without_password(url), "postgres://db/f?user=me&password=…");
        }
        assert_eq!(without_password("mysql://me:p?s@db/f?Password=x&a=b"), "mysql://me@db/f?Password=…&a=b");
    }

    #[test]
    fn a_password_is_added_to_a_url_that_has_none() {
        for (url, expected) in [
            ("postgres://me@db/files", "postgres://me:p%40s%2F1@db/files"),
            ("redis://db/0", "redis://:p%40s%2F1@db/0"),
            ("mysql://me@/files?socket=/a@b", "mysql://me:p%40s%2F1@/files?socket=/a@b"),
            ("redis+unix:///run/a@b?db=1", "redis+unix://:p%40s%2F1@/run/a@b?db=1"),
        ] {
            assert_eq!(*with_password(url, "p@s/1").unwrap(), expected);
        }
        for url in ["postgres://me:first@db/files", "sqlite:/a/b"] {
            let error = with_password(url, "secret").unwrap_err().to_string();
            assert!(
                error.contains("leave") && !error.contains("first") && !error.contains("secret"),
                "{error}"
            );
        }
    }

    #[test]
    fn an_error_about_an_unknown_directory_does_not_contain_its_password() {
        for bad in ["oracle://me:secret@db/files", "sqlite:", "postgres:files"] {
            let message = open(bad).err().unwrap().to_string();
            assert!(message.contains("write sqlite:PATH") && !message.contains("secret"), "{message}");
        }
    }
}
