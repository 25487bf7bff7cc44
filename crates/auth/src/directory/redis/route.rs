//! The way to the Redis of a URL: at an address, or as the master that Sentinels name.
//!
//! Invariant: by way of a Sentinel, no server is used that does not say that it is a master. A Sentinel that
//! is cut off from the others names the old one.

use super::address::DatabaseAddress;
use super::connection::{Connection, Reply, broken, strange};
use crate::directory::DirectoryError;
use crate::directory::database::deadline::Deadline;
use crate::directory::database::endpoint::Endpoint;
use ::redis::Value;

/// The way to a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Route {
    /// The server itself.
    Server(Endpoint),
    /// Sentinels, and the name that they have for the master and its replicas.
    Sentinels { sentinels: Vec<Endpoint>, master: String },
}

/// Connects, authenticates, and selects the database.
pub(super) fn connect(address: &DatabaseAddress, by: Deadline) -> Result<Connection, DirectoryError> {
    match &address.route {
        Route::Server(server) => {
            let mut connection = Connection::connect(address, server, by)?;
            connection.log_in(address, address.database)?;
            Ok(connection)
        }
        Route::Sentinels { sentinels, master } => by_way_of_any(address, sentinels, master, by),
    }
}

/// Tries one Sentinel after the other. The time until the deadline is divided among them.
fn by_way_of_any(
    address: &DatabaseAddress,
    sentinels: &[Endpoint],
    master: &str,
    by: Deadline,
) -> Result<Connection, DirectoryError> {
    let mut failed = strange();
    for (sentinel, left) in sentinels.iter().zip((1..=sentinels.len()).rev()) {
        let share = by.share_of(u32::try_from(left).unwrap_or(u32::MAX));
        match by_way_of(address, sentinel, master, share) {
            Ok(connection) => return Ok(connection),
            Err(error) => failed = error,
        }
    }
    Err(failed)
}

fn by_way_of(
    address: &DatabaseAddress,
    sentinel: &Endpoint,
    master: &str,
    by: Deadline,
) -> Result<Connection, DirectoryError> {
    let server = named_by(address, sentinel, master, by)?;
    let mut connection = Connection::connect(address, &server, by)?;
    connection.log_in(address, address.database)?;
    if connection.command(&[b"ROLE"])?.at(0)?.bytes()? != b"master" {
        return Err(broken(format!("{server}: it is no master; a failover may be in progress")));
    }
    Ok(connection)
}

/// Returns the address of the master.
fn named_by(
    address: &DatabaseAddress,
    sentinel: &Endpoint,
    master: &str,
    by: Deadline,
) -> Result<Endpoint, DirectoryError> {
    let mut connection = Connection::connect(address, sentinel, by)?;
    let question = [b"SENTINEL".as_slice(), b"GET-MASTER-ADDR-BY-NAME", master.as_bytes()];
    let reply = match connection.send(&question)? {
        // It has a password: that of the servers.
        Value::ServerError(error) if error.code() == "NOAUTH" => {
            connection.log_in(address, 0)?;
            connection.command(&question)?
        }
        value => value.try_into()?,
    };
    if reply == Reply::Nothing {
        return Err(broken(format!("{sentinel}: this Sentinel knows no master {master:?}")));
    }
    let port = u16::try_from(reply.at(1)?.int()?).map_err(|_| strange())?;
    Ok(Endpoint::Tcp(reply.at(0)?.text()?.to_owned(), port))
}
