//! The way to the Redis of a URL: at an address, as the master that Sentinels name, or in a cluster.
//!
//! Invariants: by way of a Sentinel, no server is used that does not say that it is a master. A Sentinel that
//! is cut off from the others names the old one. A kept connection to a master that the Sentinels no longer
//! name is noticed within [`POLL_TRUST_TIME`](crate::limits::POLL_TRUST_TIME), if a Sentinel responds.

use super::address::DatabaseAddress;
use super::cluster;
use super::connection::{Connection, Reply, broken, strange};
use crate::directory::database::deadline::Deadline;
use crate::directory::database::endpoint::Endpoint;
use crate::directory::{DirectoryError, Fault};
use crate::limits::SENTINEL_CHECK_TIME;
use ::redis::Value;

/// The way to a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Route {
    /// The server itself.
    Server(Endpoint),
    /// Sentinels, and the name that they have for the master and its replicas.
    Sentinels { sentinels: Vec<Endpoint>, master: String },
    /// Nodes of a cluster.
    Cluster(Vec<Endpoint>),
}

/// Connects, authenticates, and selects the database.
pub(super) fn connect(address: &DatabaseAddress, by: Deadline) -> Result<Connection, DirectoryError> {
    match &address.route {
        Route::Server(server) => {
            let mut connection = Connection::connect(address, server, by)?;
            connection.log_in(address, address.database)?;
            Ok(connection)
        }
        Route::Sentinels { sentinels, master } => {
            by_way_of_any(sentinels, by, |sentinel, by| by_way_of(address, sentinel, master, by))
        }
        Route::Cluster(nodes) => cluster::connect(address, nodes, by),
    }
}

/// Fails if the server of a connection is the master no more, by its own word or a Sentinel's. A master that
/// is cut off from the others does not know it. A node of a cluster refuses each call by itself.
pub(super) fn check(connection: &mut Connection, address: &DatabaseAddress) -> Result<(), DirectoryError> {
    let Route::Sentinels { sentinels, master } = &address.route else { return Ok(()) };
    let moved = |error| DirectoryError::Unavailable(Fault::Moved, format!("Redis: {error}"));
    if !connection.is_master()? {
        return Err(moved(no_master(connection.server())));
    }
    let by = Deadline::after(SENTINEL_CHECK_TIME);
    // If no Sentinel responds, none has named another.
    match by_way_of_any(sentinels, by, |sentinel, by| named_by(address, sentinel, master, by)) {
        Ok(named) if named != *connection.server() => {
            Err(moved(format!("{}: the Sentinels name another master, {named}", connection.server())))
        }
        _ => Ok(()),
    }
}

fn no_master(server: &Endpoint) -> String {
    format!("{server}: it is no master; a failover may be in progress")
}

/// Tries one server after the other. The time until the deadline is divided among them.
pub(super) fn by_way_of_any<T>(
    servers: &[Endpoint],
    by: Deadline,
    find: impl Fn(&Endpoint, Deadline) -> Result<T, DirectoryError>,
) -> Result<T, DirectoryError> {
    let mut failed = strange();
    for (server, left) in servers.iter().zip((1..=servers.len()).rev()) {
        match find(server, by.share_of(u32::try_from(left).unwrap_or(u32::MAX))) {
            Err(error) => failed = error,
            found => return found,
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
    if connection.is_master()? { Ok(connection) } else { Err(broken(no_master(&server))) }
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
