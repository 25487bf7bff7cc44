//! MOVE and COPY: rename an entry, or copy it (RFC 4918, sections 9.8 and 9.9).
//!
//! Invariants: an entry is replaced only if the request permits it; nothing leaves this server.

use plimsoll_io::Existing;
use plimsoll_operations::Error;
use plimsoll_proto::http::{Answer, Arrival, Request};
use plimsoll_store::{Depth, Error as StoreError};
use plimsoll_wire::http::dav::{self, Destination, parse_destination, parse_overwrite};
use plimsoll_wire::http::head::{Field, Method};
use plimsoll_wire::http::status::Status;
use plimsoll_wire::http::target::decode_path;

use super::read::gone;
use super::{FileTarget, if_field};
use crate::refusal::Refusal;
use crate::{RoutedRequest, conditions};

pub(super) async fn give_name(
    mut ask: RoutedRequest<'_, '_>,
    method: Method,
    target: FileTarget,
) -> Result<Answer, Refusal> {
    let caller = if_field::caller(&mut ask, &target).await?;
    let (to, existing) = (destination(ask.request)?, existing(ask.request)?);
    if conditions::has_any(ask.request) {
        return Err(Refusal::bad("MOVE and COPY take no conditions but Overwrite. Send them without."));
    }
    let operations = &ask.web.operations;
    let done = match (method, depth(ask.request)?) {
        (Method::Move, Depth::Zero) => return Err(bad_depth()),
        (Method::Move, Depth::Infinity) => {
            let moved = operations.rename(&caller, &target.place, &to.place, existing).await;
            moved.map(|moved| moved.created)
        }
        (_, depth) => {
            let copy = operations.copy(&caller, &target.place, &to.place, existing, depth);
            // If the client disconnects, its copy is aborted, unless it has been renamed into place
            // already.
            let copied = ask.request.body.while_connected_or_recently(Box::pin(copy)).await;
            copied.ok_or_else(gone)?.map(|copied| copied.created)
        }
    };
    match done {
        Ok(created) => Ok(to.stored(created)),
        Err(Error::Store(StoreError::AlreadyExists)) if existing == Existing::Kept => Err(Refusal::new(
            Status::PRECONDITION_FAILED,
            "The destination is taken, and Overwrite: F keeps it. Choose another, or send Overwrite: T.",
        )),
        // The lock may be in the home of either, and its URL is known only if both are the same.
        Err(error) if target.place.owner != to.place.owner => Err(Refusal::from(error).without_lock()),
        Err(error) => Err(error.into()),
    }
}

/// Parses the destination.
fn destination(request: &Request<'_>) -> Result<FileTarget, Refusal> {
    let Some(value) = request.field(Field::Destination) else {
        return Err(Refusal::bad(
            "Say where it goes: send Destination with a path below /files/ or /shared/.",
        ));
    };
    resolve(request, parse_destination(value).map_err(|bad| Refusal::bad(bad.detail()))?)
}

/// Resolves a destination, or the resource of a condition, to a file or folder of this server.
pub(super) fn resolve(request: &Request<'_>, destination: Destination<'_>) -> Result<FileTarget, Refusal> {
    if !is_here(request, destination) {
        return Err(Refusal::new(
            Status::BAD_GATEWAY,
            "The destination is on another server than Host names. Download the file and upload it there. \
             If this server is behind a proxy, its operator has to name the proxy: --trusted-proxy.",
        ));
    }
    let mut path = Vec::new();
    decode_path(destination.path, &mut path).map_err(|bad| Refusal::bad(bad.detail()))?;
    match FileTarget::of(path) {
        Err(refusal) if refusal.status == Status::NOT_FOUND => Err(Refusal::new(
            Status::FORBIDDEN,
            "There are no files at the destination. Choose one below /files/ or /shared/OWNER/.",
        )),
        target => target,
    }
}

/// Whether a destination is on this server: its authority must be that of Host, or one that a trusted
/// proxy reports. A trusted proxy that reports none has put its own name into Host, as nginx does by
/// default. Then there is no name to compare, and only the path counts. Such a proxy may drop the port from
/// either field.
///
/// This guards against mistakes, not against attacks: the path alone decides what is written.
fn is_here(request: &Request<'_>, destination: Destination<'_>) -> bool {
    let (host, mut reported) = (request.head.authority(request.block), request.forwarded_hosts());
    if request.arrival == Arrival::Direct || reported.is_empty() {
        return request.arrival == Arrival::Proxied || destination.is_on(host);
    }
    reported.extend(host);
    reported.into_iter().any(|host| destination.is_on_reported(host))
}

fn existing(request: &Request<'_>) -> Result<Existing, Refusal> {
    match request.field(Field::Overwrite).map(parse_overwrite) {
        None | Some(Some(true)) => Ok(Existing::Replaced),
        Some(Some(false)) => Ok(Existing::Kept),
        Some(None) => Err(Refusal::bad("Overwrite must be T or F.")),
    }
}

fn depth(request: &Request<'_>) -> Result<Depth, Refusal> {
    match request.field(Field::Depth).map(dav::Depth::parse) {
        None | Some(Some(dav::Depth::Infinity)) => Ok(Depth::Infinity),
        Some(Some(dav::Depth::Zero)) => Ok(Depth::Zero),
        Some(Some(dav::Depth::One) | None) => Err(bad_depth()),
    }
}

fn bad_depth() -> Refusal {
    Refusal::bad("Depth must be infinity, or 0 to copy a folder without what is in it.")
}
