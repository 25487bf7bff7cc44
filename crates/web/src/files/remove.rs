//! DELETE of a file, or of a folder with its contents.
//!
//! A deleted entry goes to the trash, unless the query says `trash=no`. Invariant: a file whose path was sent
//! with a trailing slash is not deleted.

use plimsoll_proto::http::Answer;
use plimsoll_store::Disposal;
use plimsoll_wire::http::dav::Depth;
use plimsoll_wire::http::form_urlencoded::value_of;
use plimsoll_wire::http::head::Field;
use plimsoll_wire::http::status::Status;

use super::{FileTarget, if_field};
use crate::RoutedRequest;
use crate::refusal::Refusal;

pub(super) async fn delete(mut ask: RoutedRequest<'_, '_>, target: FileTarget) -> Result<Answer, Refusal> {
    let checked = if_field::check(&mut ask, &target).await?;
    let caller = &checked.caller;
    // "A client MUST NOT submit a Depth header with a DELETE on a collection with any value but infinity"
    // (RFC 4918, section 9.6.1).
    let depth = ask.request.field(Field::Depth);
    if depth.is_some_and(|value| Depth::parse(value) != Some(Depth::Infinity)) {
        return Err(Refusal::bad("A folder goes with all that is in it. Send Depth: infinity, or no Depth."));
    }
    let condition = checked.condition(ask.request, target.is_folder)?;
    let disposal = disposal_of(ask.called.query)?;
    let removed = ask.web.operations.remove(caller, &target.place, condition, disposal).await;
    let removed = removed.map_err(|error| checked.explain(ask.request, target.is_folder, error))?;
    let answer = Answer::new(Status::NO_CONTENT);
    // In a share, it is in the owner's trash, which the caller does not reach.
    Ok(match removed.trashed.filter(|_| target.place.is_own(&caller.identity.account.name)) {
        Some(id) => answer.field("Plimsoll-Trash", id.to_string()),
        None => answer,
    })
}

/// Returns where the query wants the entry to go.
fn disposal_of(query: Option<&[u8]>) -> Result<Disposal, Refusal> {
    match query.and_then(|query| value_of(query, "trash")).as_deref() {
        None | Some(b"yes") => Ok(Disposal::Trash),
        Some(b"no") => Ok(Disposal::Deleted),
        Some(_) => Err(Refusal::bad("\"trash\" is yes or no: no deletes for good.")),
    }
}
