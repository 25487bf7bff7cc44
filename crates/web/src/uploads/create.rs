//! POST creates an upload (tus, extension creation), with its first bytes if the request has a body
//! (creation-with-upload), or concatenates partial uploads to a file (concatenation).
//!
//! Invariants: the length and the path are known before anything is stored; an empty upload is complete
//! at once, because no PATCH follows; a partial upload has no path.

use plimsoll_operations::{Caller, Error};
use plimsoll_proto::http::{Answer, Request};
use plimsoll_store::{KeptUpload, Path, UploadId};
use plimsoll_wire::http::head::{Field, Framing};
use plimsoll_wire::http::status::Status;
use plimsoll_wire::http::target::encode_path;
use plimsoll_wire::http::tus::{BadTus, Concat, parse_concat, parse_length, parse_metadata};

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
    let (operations, condition) = (&ask.web.operations, conditions::kept(ask.request));
    let kept = operations.keep_upload(&caller, path, condition, Some(length)).await;
    let kept = kept.map_err(|error| conditions::explain(ask.request, false, error))?;
    if length > 0 && !has_bytes {
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
        let part = operations.kept_upload(caller, id).await?;
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
    Ok(dated(tagged(Answer::new(Status::CREATED).field("Location", location), &committed), modified))
}

fn located(kept: &KeptUpload) -> Answer {
    Answer::new(Status::CREATED).field_display("Location", format_args!("/uploads/{}", kept.id))
}

fn length(request: &Request<'_>) -> Result<u64, Refusal> {
    let Some(value) = request.field(Field::UploadLength) else {
        return Err(Refusal::bad("Say how long the file is: Upload-Length. It cannot be sent later."));
    };
    let length = parse_length(value)?;
    check_length(length)?;
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

/// Returns the destination path of the upload: `path`, or the `filename` that most clients send.
fn path(request: &Request<'_>) -> Result<Path, Refusal> {
    let metadata = parse_metadata(request.field(Field::UploadMetadata).unwrap_or_default())?;
    let Some(name) = metadata.get("path").or_else(|| metadata.get("filename")) else {
        return Err(Refusal::bad("Say where the file goes: Upload-Metadata: path, a space, and its base64."));
    };
    if name.is_empty() || name.ends_with(b"/") {
        return Err(Refusal::bad("The path of an upload must be a file's: not empty, no slash at its end."));
    }
    Ok(Path::parse(&name)?)
}
