//! POST creates an upload (tus, extension creation), with its first bytes if the request has a body
//! (creation-with-upload), or concatenates partial uploads to a file (concatenation).
//!
//! Invariants: the path is known before anything is stored, and the length too unless the client defers it;
//! an empty upload is complete at once, because no PATCH follows; a partial upload has no path.

use plimsoll_operations::{Caller, Error};
use plimsoll_proto::http::{Answer, Request};
use plimsoll_store::{Path, ResumableUpload, UploadId};
use plimsoll_wire::http::head::{Field, Framing};
use plimsoll_wire::http::status::Status;
use plimsoll_wire::http::target::encode_path;
use plimsoll_wire::http::tus::{BadTus, Concat, Metadata, parse_concat, parse_length, parse_metadata};

use super::append::{Part, append, check_type};
use super::{expiring, spoken};
use crate::body::{dated, modified};
use crate::files::{of_representation, tagged};
use crate::limits::UPLOAD_BYTES_MAX;
use crate::refusal::Refusal;
use crate::{RoutedRequest, conditions, credentials};

impl From<BadTus> for Refusal {
    fn from(bad: BadTus) -> Refusal {
        Refusal::new(bad.status(), bad.detail())
    }
}

pub(super) async fn post(ask: RoutedRequest<'_, '_>) -> Result<Answer, Refusal> {
    spoken(ask.request)?;
    let caller = credentials::caller(ask.web, ask.request).await?;
    let path = match ask.request.field(Field::UploadConcat).map(parse_concat).transpose()? {
        None => path(ask.request)?,
        Some(Concat::Partial) => Path::root(),
        Some(Concat::Final(parts)) => return join(ask, &caller, &parts).await,
    };
    let length = length(ask.request)?;
    let has_bytes = !matches!(ask.request.head.framing(), Framing::None | Framing::Length(0));
    if has_bytes {
        check_type(ask.request)?;
    }
    let metadata = String::from_utf8_lossy(metadata(ask.request)?.as_sent()).into_owned();
    let condition = conditions::of(ask.request, false);
    let kept = ask.web.operations.create_resumable(&caller, path, condition, (length, metadata)).await;
    let kept = kept.map_err(|error| conditions::explain(ask.request, false, error))?;
    if length != Some(0) && !has_bytes {
        return Ok(expiring(located(&kept), kept.expires));
    }
    append(ask, &caller, Part { id: kept.id, offset: 0, answer: located(&kept) }).await
}

/// Concatenates partial uploads to a file.
async fn join(ask: RoutedRequest<'_, '_>, caller: &Caller, ids: &[&[u8]]) -> Result<Answer, Refusal> {
    let (path, operations) = (path(ask.request)?, &ask.web.operations);
    let ids: Option<Vec<UploadId>> = ids.iter().map(|id| UploadId::parse(id)).collect();
    let ids = ids.ok_or(Error::NOT_FOUND)?;
    if ids.iter().enumerate().any(|(at, id)| ids[..at].contains(id)) {
        return Err(Refusal::bad("Upload-Concat names an upload twice. Name each part once."));
    }
    let mut parts = Vec::with_capacity(ids.len());
    for id in ids {
        let part = operations.resumable_upload(caller, id).await?;
        if !part.is_part() || !part.is_complete() {
            return Err(Refusal::new(
                Status::CONFLICT,
                "A file is made of partial uploads that are complete. HEAD each, and send what is missing.",
            ));
        }
        parts.push(part);
    }
    check_length(parts.iter().filter_map(|part| part.bytes).sum())?;
    let condition = conditions::of(ask.request, false);
    let (whole, modified) = (of_representation(ask.request)?, modified(ask.request)?);
    let committed = operations.join_parts(caller, path.clone(), condition, parts, (whole, modified)).await;
    let committed = committed.map_err(|error| conditions::explain(ask.request, false, error))?;
    let mut location = b"/files/".to_vec();
    encode_path(path.as_bytes(), &mut location);
    let answer = Answer::new(Status::CREATED).field("Location", location);
    Ok(dated(tagged(ask.request, answer, &committed), modified, &committed))
}

fn located(kept: &ResumableUpload) -> Answer {
    Answer::new(Status::CREATED).field_display("Location", format_args!("/uploads/{}", kept.id))
}

/// Returns the length that the client announces; `None` if it defers that: "The Upload-Defer-Length request
/// and response header indicates that the size of the upload is not known currently and will be transferred
/// later. Its value MUST be 1."
fn length(request: &Request<'_>) -> Result<Option<u64>, Refusal> {
    let is_deferred = request.field(Field::UploadDeferLength).map(|value| value == b"1");
    match (announced_length(request)?, is_deferred) {
        (Some(length), None) => Ok(Some(length)),
        (None, Some(true)) => Ok(None),
        _ => Err(Refusal::bad(
            "Say how long the file is: Upload-Length, or Upload-Defer-Length: 1 to do so with a later PATCH.",
        )),
    }
}

/// Returns the length of the whole file, if the request has it.
pub(super) fn announced_length(request: &Request<'_>) -> Result<Option<u64>, Refusal> {
    let length = request.field(Field::UploadLength).map(parse_length).transpose()?;
    length.map_or(Ok(()), check_length)?;
    Ok(length)
}

/// Rejects a file that is longer than the server accepts.
fn check_length(bytes: u64) -> Result<(), Refusal> {
    if bytes <= UPLOAD_BYTES_MAX {
        return Ok(());
    }
    let detail = "The file is longer than this server takes. Send less.";
    Err(Refusal::new(Status::CONTENT_TOO_LARGE, detail))
}

fn metadata<'a>(request: &Request<'a>) -> Result<Metadata<'a>, Refusal> {
    Ok(parse_metadata(request.field(Field::UploadMetadata).unwrap_or_default())?)
}

/// Returns the destination path of the upload: `path`, or the `filename` that most clients send.
fn path(request: &Request<'_>) -> Result<Path, Refusal> {
    let metadata = metadata(request)?;
    let Some(name) = metadata.get("path").or_else(|| metadata.get("filename")) else {
        return Err(Refusal::bad("Say where the file goes: Upload-Metadata: path, a space, and its base64."));
    };
    if name.is_empty() || name.ends_with(b"/") {
        return Err(Refusal::bad("The path of an upload must be a file's: not empty, no slash at its end."));
    }
    Ok(Path::parse(&name)?)
}
