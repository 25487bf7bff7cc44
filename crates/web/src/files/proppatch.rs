//! PROPPATCH: changes properties (RFC 4918, section 9.2).
//!
//! The server keeps no properties of clients yet. It sets the time of modification, under the names by which
//! clients know it. Invariants: all changes are made, or none; a response never confirms a change that was
//! not made.

use std::time::Duration;

use plimsoll_io::FileKind;
use plimsoll_proto::http::{Answer, Body};
use plimsoll_wire::calendar::since_1970;
use plimsoll_wire::http::date::parse_date;
use plimsoll_wire::http::dav::multistatus::{ChangeOutcome, write_changes};
use plimsoll_wire::http::dav::property::{DAV, LiveProperty, MICROSOFT, PropertyName, is_protected};
use plimsoll_wire::http::dav::request::PropertyChange;
use plimsoll_wire::http::mtime::parse_mtime;
use plimsoll_wire::http::target::encode_path;

use super::propfind::{multistatus, path_of, stat, xml};
use super::{FileTarget, if_field};
use crate::RoutedRequest;
use crate::refusal::Refusal;

pub(super) async fn change(mut ask: RoutedRequest<'_, '_>, target: FileTarget) -> Result<Answer, Refusal> {
    let caller = if_field::caller(&mut ask, &target).await?;
    let body = xml(ask.request).await?;
    let changes = PropertyChange::parse(&body).map_err(|bad| Refusal::bad(bad.to_string()))?;
    let operations = &ask.web.operations;
    let access = operations.look(&caller, &target.place).await?;
    let stat = stat(caller.io(), &access, &target).await?;
    operations.refuse_locked(&caller, &target.place).await?;
    let outcomes: Vec<(PropertyName, Outcome)> =
        changes.into_iter().map(|change| (change.name.clone(), outcome(&change))).collect();
    let is_possible = outcomes.iter().all(|(_, outcome)| outcome.is_ok());
    let mut times = outcomes.iter().filter_map(|(_, outcome)| outcome.ok().flatten());
    if is_possible && let Some(modified) = times.next_back() {
        operations.set_modified(&caller, &target.place, modified).await?;
    }
    let reported = outcomes.into_iter().map(|(name, outcome)| match outcome {
        Err(reason) => (name, reason),
        Ok(_) if is_possible => (name, ChangeOutcome::Done),
        Ok(_) => (name, ChangeOutcome::Failed),
    });
    let reported: Vec<(PropertyName, ChangeOutcome)> = reported.collect();
    let mut href = Vec::new();
    encode_path(&path_of(&target, stat.kind == FileKind::Folder), &mut href);
    Ok(multistatus(Body::Bytes(write_changes(&href, &reported))))
}

/// The time of modification that a possible change sets, if it sets one, or the reason why it is impossible.
type Outcome = Result<Option<Duration>, ChangeOutcome>;

fn outcome(change: &PropertyChange) -> Outcome {
    let PropertyChange { name, value } = change;
    let Some(value) = value else {
        let is_own = LiveProperty::of(name).is_some() || is_protected(name);
        // "Specifying the removal of a property that does not exist is not an error" (section 14.23).
        return if is_own { Err(ChangeOutcome::Protected) } else { Ok(None) };
    };
    let value = value.trim();
    let modified = if name.is(DAV, "getlastmodified") || name.is(MICROSOFT, "Win32LastModifiedTime") {
        parse_date(value.as_bytes()).map(since_1970)
    } else if name.is(DAV, "lastmodified") {
        // Of rclone.
        parse_mtime(value.as_bytes())
    } else if is_protected(name) {
        return Err(ChangeOutcome::Protected);
    } else {
        return Err(ChangeOutcome::Refused);
    };
    modified.map(Some).ok_or(ChangeOutcome::Conflict)
}
