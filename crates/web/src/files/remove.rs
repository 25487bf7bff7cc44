//! DELETE of a file, or of a folder with its contents.
//!
//! Invariant: a file whose path was sent with a trailing slash is not deleted.

use plimsoll_proto::http::Answer;
use plimsoll_wire::http::dav::Depth;
use plimsoll_wire::http::head::Field;
use plimsoll_wire::http::status::Status;

use super::FileTarget;
use crate::refusal::Refusal;
use crate::{RoutedRequest, conditions, credentials};

pub(super) async fn delete(ask: RoutedRequest<'_, '_>, target: FileTarget) -> Result<Answer, Refusal> {
    let caller = credentials::caller(ask.web, ask.request).await?;
    // "A client MUST NOT submit a Depth header with a DELETE on a collection with any value but infinity"
    // (RFC 4918, section 9.6.1).
    let depth = ask.request.field(Field::Depth);
    if depth.is_some_and(|value| Depth::parse(value) != Some(Depth::Infinity)) {
        return Err(Refusal::bad("A folder goes with all that is in it. Send Depth: infinity, or no Depth."));
    }
    let condition = conditions::of(ask.request, target.is_folder);
    let removed = ask.web.operations.remove(&caller, &target.place, condition).await;
    removed.map_err(|error| conditions::explain(ask.request, target.is_folder, error))?;
    Ok(Answer::new(Status::NO_CONTENT))
}
