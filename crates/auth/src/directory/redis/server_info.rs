//! The configuration of a Redis server, as far as it matters for a directory.
//!
//! It judges nothing, and creates nothing. Invariant: a value that cannot be read is an error, or
//! reported as unknown.

use super::address::DatabaseAddress;
use super::connection::{Connection, broken};
use crate::directory::DirectoryError;
use crate::directory::database::deadline::Deadline;
use crate::directory::open::NotOpened;
use crate::limits::DATABASE_CONNECT_TIME;

/// The configuration of a Redis server. A text is empty if the server does not reveal it: some hosted
/// services forbid `CONFIG`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RedisInfo {
    /// For example 7.0.15.
    pub version: String,
    /// `appendonly`: `yes` if each change is written to a file.
    pub appendonly: String,
    /// `appendfsync`: when that file is synced: `always`, `everysec` or `no`.
    pub appendfsync: String,
    /// `maxmemory-policy`: which keys are evicted when memory is full.
    pub eviction: String,
    /// `maxclients`: connections that may be open at once.
    pub connections_max: u64,
    /// Connections that others have open.
    pub connections_taken: u64,
}

impl RedisInfo {
    /// Reads the configuration of the server that `url` names. This blocks.
    ///
    /// # Errors
    /// [`NotOpened::Url`] if the URL is invalid, [`NotOpened::Store`] with the error of the server.
    pub fn of(url: &str) -> Result<RedisInfo, NotOpened> {
        Ok(server_info(&DatabaseAddress::parse(url)?)?)
    }
}

fn server_info(address: &DatabaseAddress) -> Result<RedisInfo, DirectoryError> {
    let mut connection = Connection::open(address, Deadline::after(DATABASE_CONNECT_TIME))?;
    let info = connection.command(&[b"INFO"])?;
    let info = info.text()?;
    let field = |name: &str| {
        let line = info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        line.unwrap_or_default().to_owned()
    };
    let number = |name: &str| field(name).parse().map_err(|_| broken(format!("it does not say {name}")));
    let connected: u64 = number("connected_clients")?;
    let mut facts = RedisInfo {
        version: field("redis_version"),
        appendonly: if field("aof_enabled") == "1" { "yes" } else { "no" }.to_owned(),
        appendfsync: String::new(),
        eviction: field("maxmemory_policy"),
        connections_max: number("maxclients")?,
        connections_taken: connected.saturating_sub(1),
    };
    // It may be forbidden. The connection, which is not used after an error, ends here anyway.
    if let Ok(reply) = connection.command(&[b"CONFIG", b"GET", b"appendfsync"])
        && let Ok(value) = reply.at(1)
    {
        value.text()?.clone_into(&mut facts.appendfsync);
    }
    Ok(facts)
}
