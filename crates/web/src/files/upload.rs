//! PUT: stores a file, whole or not at all.
//!
//! Writing is not done here (the store does it). Invariants: a request that its head suffices to reject
//! is rejected before the body is read; the ETag of the response equals that of a later GET.

use plimsoll_operations::Parents;
use plimsoll_proto::http::{Answer, Request};
use plimsoll_store::{Committed, Expected};
use plimsoll_wire::http::date::{DATE_BYTES, usable_modification, write_date};
use plimsoll_wire::http::head::{Field, Framing, Version};
use plimsoll_wire::http::problem_code::ProblemCode;
use plimsoll_wire::http::status::Status;

use super::resume::put_rest;
use super::{FileTarget, digests, if_field, of_content, of_representation};
use crate::refusal::Refusal;
use crate::{RoutedRequest, body};

pub(super) async fn put(mut ask: RoutedRequest<'_, '_>, target: FileTarget) -> Result<Answer, Refusal> {
    let checked = if_field::check(&mut ask, &target).await?;
    let caller = &checked.caller;
    refuse_coding(ask.request)?;
    if target.is_folder || target.place.path.is_root() {
        return Err(Refusal::new(
            Status::CONFLICT,
            "This is a folder's name. Put a file at a path without a slash at its end, or MKCOL a folder.",
        )
        .coded(ProblemCode::FolderName));
    }
    if ask.request.field(Field::ContentRange).is_some() {
        if checked.unchanged.is_some() {
            return Err(Refusal::bad("The rest of a file takes no entity tags. Send If with tokens alone."));
        }
        // Boxed, because it is rare.
        return Box::pin(put_rest(ask, &checked.caller, &target)).await;
    }
    let expected = expected(ask.request)?;
    let (condition, modified) = (checked.condition(ask.request, false)?, body::modified(ask.request)?);
    let place = (&target.place, parents(ask.called.query)?);
    let begun = ask.web.operations.upload(caller, place, condition, expected).await;
    let mut upload = begun.map_err(|error| checked.explain(ask.request, false, error))?;
    if let Some(modified) = modified {
        upload.set_modified(modified);
    }
    if digests::are_wanted(ask.request) {
        upload.start_running_digest();
    }
    let upload = body::receive(ask.request, upload).await?;
    let committed = upload.commit().await;
    let committed = committed.map_err(|error| checked.explain(ask.request, false, error))?;
    Ok(body::dated(tagged(ask.request, target.stored(committed.created), &committed), modified, &committed))
}

pub(crate) fn refuse_coding(request: &Request<'_>) -> Result<(), Refusal> {
    let coding = request.field(Field::ContentEncoding).unwrap_or(b"identity");
    if coding.eq_ignore_ascii_case(b"identity") {
        return Ok(());
    }
    Err(Refusal::new(
        Status::UNSUPPORTED_MEDIA_TYPE,
        "A file is stored as it is sent. Send it without Content-Encoding.",
    ))
}

/// Returns what `?parents=true` requests: that missing folders of the path are created.
fn parents(query: Option<&[u8]>) -> Result<Parents, Refusal> {
    let mut parameters = query.unwrap_or_default().split(|byte| *byte == b'&');
    match parameters.find_map(|parameter| parameter.strip_prefix(b"parents=")) {
        None | Some(b"false") => Ok(Parents::Needed),
        Some(b"true") => Ok(Parents::Made),
        Some(_) => Err(Refusal::bad("\"parents\" must be \"true\" or \"false\".")),
    }
}

/// Returns the length and digests that the head announces.
pub(crate) fn expected(request: &Request<'_>) -> Result<Expected, Refusal> {
    let bytes = match request.head.framing() {
        Framing::Length(bytes) => Some(bytes),
        Framing::Chunked => None,
        // "If this is a request message and none of the above are true, then the message body length is zero
        // (no message body is present)" (RFC 9112, section 6.3).
        Framing::None if request.head.version() == Version::Http11 => Some(0),
        // "A valid Content-Length is required on all HTTP/1.0 requests containing an entity body" (RFC 1945,
        // section 7.2.2): the body of a client that sends none may follow, up to the end of the connection.
        Framing::None => {
            return Err(Refusal::new(
                Status::LENGTH_REQUIRED,
                "Say how long the file is: send Content-Length, 0 for an empty one.",
            ));
        }
    };
    let digests = [of_representation(request)?, of_content(request)?].concat();
    Ok(Expected { bytes, digests })
}

/// Adds the validators of the stored file that a later GET has: ETag and Last-Modified.
pub(crate) fn tagged(request: &Request<'_>, answer: Answer, committed: &Committed) -> Answer {
    let answer = answer.field("ETag", plimsoll_content::etag(&committed.stat));
    let Some(date) = usable_modification(committed.stat.modified_at(), request.io.wall_exact()) else {
        return answer;
    };
    let mut modified = [b' '; DATE_BYTES];
    write_date(date, &mut modified);
    answer.field("Last-Modified", modified)
}
