//! The way to the master of the directory's hash slot in a Redis Cluster.
//!
//! All keys are in one slot, so one node has them all. A node that has not refuses a command, and names the
//! one that has (`MOVED`). While the slot is moved to another node key by key, the script refuses each call.
//! Invariant: no node is used that does not say that the slot is its own.

use std::sync::PoisonError;

use ::redis::{ServerError, ServerErrorKind, Value};

use super::address::DatabaseAddress;
use super::connection::{Connection, Reply, broken, strange};
use super::route::by_way_of_any;
use crate::directory::DirectoryError;
use crate::directory::database::deadline::Deadline;
use crate::directory::database::endpoint::Endpoint;
use crate::limits::REDIS_REDIRECTIONS_MAX;

/// Connects to the master that was found last, or by way of a node that the URL names.
pub(super) fn connect(
    address: &DatabaseAddress,
    nodes: &[Endpoint],
    by: Deadline,
) -> Result<Connection, DirectoryError> {
    let known = || address.known_master.lock().unwrap_or_else(PoisonError::into_inner);
    let nodes: Vec<Endpoint> = known().iter().chain(nodes).cloned().collect();
    let connection = by_way_of_any(&nodes, by, |node, by| follow(address, node, by))?;
    *known() = Some(connection.server().clone());
    Ok(connection)
}

/// Follows the nodes' replies to the master.
fn follow(address: &DatabaseAddress, node: &Endpoint, by: Deadline) -> Result<Connection, DirectoryError> {
    let mut node = node.clone();
    for _ in 0..=REDIS_REDIRECTIONS_MAX {
        let mut connection = Connection::connect(address, &node, by)?;
        connection.log_in(address, 0)?;
        match connection.send(&[b"EXISTS", b"plimsoll:state"])? {
            Value::ServerError(error) if error.kind() == Some(ServerErrorKind::Moved) => {
                node = named_by(&error, &node)?;
            }
            value => return Reply::try_from(value).map(|_| connection),
        }
    }
    Err(broken(format!("{node}: the nodes of the cluster do not agree; a failover may be in progress")))
}

/// Parses `SLOT HOST:PORT`. Without a host, it is that of the node itself.
fn named_by(error: &ServerError, node: &Endpoint) -> Result<Endpoint, DirectoryError> {
    let place = error.details().and_then(|details| details.split(' ').nth(1)).ok_or_else(strange)?;
    let (host, port) = place.rsplit_once(':').ok_or_else(strange)?;
    let host = match (host, node) {
        ("", Endpoint::Tcp(host, _)) => host,
        (host, _) => host,
    };
    Ok(Endpoint::Tcp(host.to_owned(), port.parse().map_err(|_| strange())?))
}
