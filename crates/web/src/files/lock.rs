//! LOCK and UNLOCK (RFC 4918, sections 9.10 and 9.11).
//!
//! The account service decides which locks exclude each other. Invariants: a lock is confirmed once every
//! server refuses what it excludes; its token is useless to other accounts.

use std::time::Duration;

use plimsoll_auth::limits::LOCK_TIME_MAX;
use plimsoll_auth::{Error as AuthError, Lock};
use plimsoll_content::EntryLock;
use plimsoll_io::Io;
use plimsoll_operations::{Caller, Error, HomePath, LockRequest};
use plimsoll_proto::http::{Answer, Body, Request};
use plimsoll_wire::http::dav::Depth;
use plimsoll_wire::http::dav::if_field::{parse_lock_token, parse_timeout};
use plimsoll_wire::http::dav::lock::{LockInfo, write_lock};
use plimsoll_wire::http::head::Field;
use plimsoll_wire::http::status::Status;
use plimsoll_wire::http::target::encode_path;

use super::FileTarget;
use super::if_field::{self, id_of, token_of};
use super::propfind::{stat, xml, xml_answer};
use crate::RoutedRequest;
use crate::refusal::Refusal;

/// Takes a lock, or extends one if there is no body.
pub(super) async fn lock(mut ask: RoutedRequest<'_, '_>, target: FileTarget) -> Result<Answer, Refusal> {
    let caller = if_field::caller(&mut ask, &target).await?;
    let (body, time) = (xml(ask.request).await?, time(ask.request));
    if body.is_empty() {
        return refresh(ask, &caller, &target, time).await;
    }
    let is_deep = match ask.request.field(Field::Depth).map(Depth::parse) {
        None | Some(Some(Depth::Infinity)) => true,
        Some(Some(Depth::Zero)) => false,
        Some(Some(Depth::One) | None) => return Err(Refusal::bad("Depth must be 0 or infinity.")),
    };
    let LockInfo { is_shared, about } =
        LockInfo::parse(&body).map_err(|bad| Refusal::bad(bad.to_string()))?;
    if target.is_folder {
        // Of a folder's name, no empty file is made.
        let access = ask.web.operations.look(&caller, &target.place).await?;
        stat(caller.io(), &access, &target).await?;
    }
    let request = LockRequest { is_shared, is_deep, about, time };
    let (lock, is_created) = ask.web.operations.lock(&caller, &target.place, request).await?;
    let status = if is_created { Status::CREATED } else { Status::OK };
    let answer = answer(status, &caller, &target.place, &lock);
    Ok(answer.field("Lock-Token", format!("<{}>", token_of(&lock.id))))
}

/// "This request MUST NOT have a body and MUST specify which lock to refresh by using the "If" header with a
/// single lock token" (section 9.10.2).
async fn refresh(
    ask: RoutedRequest<'_, '_>,
    caller: &Caller,
    target: &FileTarget,
    time: Duration,
) -> Result<Answer, Refusal> {
    let [id] = caller.submitted_locks() else {
        return Err(Refusal::bad(
            "Send the lock that is wanted as a body, or the token of the one to refresh in If.",
        ));
    };
    let refreshed = ask.web.operations.refresh_lock(caller, &target.place, id, time).await;
    let lock = refreshed.map_err(|error| match error {
        Error::Auth(AuthError::NotFound) => {
            Refusal::new(Status::PRECONDITION_FAILED, "The account holds no lock of this token here.")
        }
        error => error.into(),
    })?;
    Ok(answer(Status::OK, caller, &target.place, &lock))
}

/// Ends a lock.
pub(super) async fn unlock(mut ask: RoutedRequest<'_, '_>, target: FileTarget) -> Result<Answer, Refusal> {
    let caller = if_field::caller(&mut ask, &target).await?;
    let token = ask.request.head.named(ask.request.block, "Lock-Token").and_then(parse_lock_token);
    let Some(token) = token else {
        return Err(Refusal::bad("Say which lock ends: send Lock-Token: <TOKEN>."));
    };
    let missing = || {
        let detail = "There is no lock of this token on this resource. It may have ended already.";
        Refusal::new(Status::CONFLICT, detail)
    };
    let id = id_of(token).ok_or_else(missing)?;
    ask.web.operations.unlock(&caller, &target.place, &id).await.map_err(|error| match error {
        Error::Auth(AuthError::NotFound) => missing(),
        error => error.into(),
    })?;
    Ok(Answer::new(Status::NO_CONTENT))
}

/// Returns how long the client wants the lock to hold.
fn time(request: &Request<'_>) -> Duration {
    let wanted = request.head.named(request.block, "Timeout").and_then(parse_timeout);
    wanted.map_or(LOCK_TIME_MAX, Duration::from_secs)
}

fn answer(status: Status, caller: &Caller, place: &HomePath, lock: &Lock) -> Answer {
    let entry = entry(caller.io(), place, lock);
    xml_answer(status).body(Body::Bytes(write_lock(entry.described())))
}

/// Returns the path in URLs of a path in the home of a place.
pub(super) fn root(place: &HomePath, path: &[u8]) -> Vec<u8> {
    let prefix =
        place.owner.as_ref().map_or_else(|| "/files/".to_owned(), |owner| format!("/shared/{owner}/"));
    let mut root = Vec::new();
    encode_path(&[prefix.as_bytes(), path].concat(), &mut root);
    root
}

/// Describes a lock in the home of a place.
pub(super) fn entry(io: &Io, place: &HomePath, lock: &Lock) -> EntryLock {
    let left = lock.expires.duration_since(io.wall()).unwrap_or_default();
    EntryLock {
        path: lock.path.clone(),
        root: root(place, &lock.path),
        token: token_of(&lock.id),
        is_shared: lock.is_shared,
        is_deep: lock.is_deep,
        about: lock.about.clone(),
        // Rounded up: a lock that was just taken has the time that was wanted.
        seconds: left.as_secs() + u64::from(left.subsec_nanos() > 0),
    }
}
