//! PUT with Content-Range (RFC 9110, section 14.5), as `curl -C OFFSET -T FILE` sends it: the rest of the
//! caller's own interrupted upload to that path, or a whole file that can be resumed so.
//!
//! It changes no part of an existing file. Invariants: an upload is resumed only at its exact offset, and if
//! it is the only one that the client can mean; the request has all bytes that are missing.

use plimsoll_operations::{Caller, IncomingUpload};
use plimsoll_proto::http::{Answer, Request};
use plimsoll_store::{Begin, UploadId};
use plimsoll_wire::http::head::{Field, Framing};
use plimsoll_wire::http::range::{ContentRange, parse_content_range};

use super::{FileTarget, of_content, of_representation, tagged};
use crate::refusal::Refusal;
use crate::{RoutedRequest, body, conditions};

/// The bytes that a request has: all of the file from an offset on.
struct Rest {
    offset: u64,
    length: u64,
}

impl Rest {
    /// Returns what Content-Range declares, if that is the end of a file, and all of the request's body.
    fn of(request: &Request<'_>) -> Option<Rest> {
        let value =
            request.field(Field::ContentRange).filter(|_| !request.head.repeated(Field::ContentRange));
        let ContentRange::Part { range, length } = parse_content_range(value?)? else { return None };
        let is_body = request.head.framing() == Framing::Length(range.end - range.start);
        (range.end == length && is_body).then_some(Rest { offset: range.start, length })
    }
}

/// Receives the rest of an upload.
pub(super) async fn put_rest(
    ask: RoutedRequest<'_, '_>,
    caller: &Caller,
    target: &FileTarget,
) -> Result<Answer, Refusal> {
    let rest = Rest::of(ask.request).ok_or_else(refused)?;
    if conditions::has_any(ask.request) || !of_content(ask.request)?.is_empty() {
        return Err(Refusal::bad(
            "The rest of an upload takes no conditions and no Content-Digest. Send it without, or upload in \
             parts at /uploads.",
        ));
    }
    let (whole, modified) = (of_representation(ask.request)?, body::modified(ask.request)?);
    let mut upload = begin(&ask, caller, target, &rest).await?;
    modified.into_iter().for_each(|modified| upload.set_modified(modified));
    let upload = body::receive(ask.request, upload).await?;
    let committed = upload.commit_whole(whole).await;
    let committed = committed.map_err(|error| conditions::explain(ask.request, false, error))?;
    Ok(body::dated(tagged(ask.request, target.stored(committed.created), &committed), modified, &committed))
}

/// Begins or resumes the upload that these bytes complete.
async fn begin(
    ask: &RoutedRequest<'_, '_>,
    caller: &Caller,
    target: &FileTarget,
    rest: &Rest,
) -> Result<IncomingUpload, Refusal> {
    let (operations, place) = (&ask.web.operations, &target.place);
    if !place.is_own(&caller.identity.account.name) {
        return Err(refused());
    }
    if rest.offset == 0 {
        return Ok(operations.upload_from(caller, place, Begin::Start).await?);
    }
    if operations.pending_size(caller, place).await? == Some(rest.offset) {
        return Ok(operations.upload_from(caller, place, Begin::Offset(rest.offset)).await?);
    }
    let id = announced(ask, caller, target, rest).await?.ok_or_else(refused)?;
    Ok(operations.resume_upload(caller, id, rest.offset, Vec::new(), conditions::parse_stored).await?)
}

/// Returns the only upload of this length that is announced for the path (tus), if it is at the offset.
async fn announced(
    ask: &RoutedRequest<'_, '_>,
    caller: &Caller,
    target: &FileTarget,
    rest: &Rest,
) -> Result<Option<UploadId>, Refusal> {
    let kept = ask.web.operations.resumable_uploads(caller).await?;
    let mut same = kept.iter().filter(|kept| kept.to == target.place.path && kept.bytes == Some(rest.length));
    Ok(match (same.next(), same.next()) {
        (Some(kept), None) if kept.offset == rest.offset => Some(kept.id),
        _ => None,
    })
}

/// "An origin server SHOULD respond with a 400 (Bad Request) status code if it receives Content-Range on a
/// PUT for a target resource that does not support partial PUT requests".
fn refused() -> Refusal {
    Refusal::bad(
        "A part of a file is only taken as the rest of an interrupted upload of yours, from its exact offset \
         to the end (GET /uploads). Send all of the file, or upload in parts at /uploads.",
    )
}
