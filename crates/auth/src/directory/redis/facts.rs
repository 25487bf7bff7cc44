//! What a Redis server is set to, as far as it matters to what we keep there.
//!
//! It judges nothing, and makes nothing. What must hold: what cannot be found out is an error, or said to be
//! unknown.

use super::connection::{Connection, broken};
use super::way::Way;
use crate::directory::Trouble;
use crate::directory::open::NotOpened;
use crate::directory::reach::socket::Deadline;
use crate::limits::DATABASE_CONNECT_TIME;

/// What Redis is set to. A setting is empty where we may not ask for it, as at some who offer Redis for rent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RedisFacts {
    /// Such as 7.0.15.
    pub version: String,
    /// `appendonly`: `yes` if each change is written to a file.
    pub appendonly: String,
    /// `appendfsync`: when that file is synced: `always`, `everysec` or `no`.
    pub appendfsync: String,
    /// `maxmemory-policy`: what goes when memory is full.
    pub eviction: String,
    /// `maxclients`: connections that may be open at once.
    pub connections_max: u64,
    /// Of these, how many others have open.
    pub connections_taken: u64,
}

impl RedisFacts {
    /// Asks the server that `url` names. This blocks.
    ///
    /// # Errors
    /// What is wrong with the URL, and what Redis says.
    pub fn of(url: &str) -> Result<RedisFacts, NotOpened> {
        Ok(facts(&Way::parse(url)?)?)
    }
}

fn facts(way: &Way) -> Result<RedisFacts, Trouble> {
    let mut connection = Connection::open(way, Deadline::after(DATABASE_CONNECT_TIME))?;
    let info = connection.command(&[b"INFO"])?;
    let info = info.text()?;
    let told = |name: &str| {
        let line = info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        line.unwrap_or_default().to_owned()
    };
    let number = |name: &str| told(name).parse().map_err(|_| broken(format!("it does not say {name}")));
    let connected: u64 = number("connected_clients")?;
    let mut facts = RedisFacts {
        version: told("redis_version"),
        appendonly: if told("aof_enabled") == "1" { "yes" } else { "no" }.to_owned(),
        appendfsync: String::new(),
        eviction: told("maxmemory_policy"),
        connections_max: number("maxclients")?,
        connections_taken: connected.saturating_sub(1),
    };
    // It may be forbidden: the connection has said so, and is over.
    if let Ok(reply) = connection.command(&[b"CONFIG", b"GET", b"appendfsync"])
        && let Ok(value) = reply.at(1)
    {
        value.text()?.clone_into(&mut facts.appendfsync);
    }
    Ok(facts)
}
