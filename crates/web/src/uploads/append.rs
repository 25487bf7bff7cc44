//! PATCH: appends bytes to an upload; the last ones complete it.
//!
//! Invariants: bytes received before a connection broke are kept, unless they came with a checksum that
//! could not be verified. A client that repeats the end of a complete upload gets a success response,
//! never an error.

use plimsoll_operations::{Caller, Error, PartOutcome, ReceiveError};
use plimsoll_proto::http::{Answer, Request};
use plimsoll_store::{Algorithm, Error as StoreError, UploadId};
use plimsoll_wire::http::head::{Field, Framing};
use plimsoll_wire::http::media_type::is_media_type;
use plimsoll_wire::http::status::Status;
use plimsoll_wire::http::tus::{BadTus, Checksum, parse_checksum, parse_offset};

use super::create::announced_length;
use super::expiring;
use crate::body::{dated, modified, receive};
use crate::files::{digests, of_content, of_representation, tagged};
use crate::refusal::Refusal;
use crate::{RoutedRequest, conditions};

/// A part of an upload's bytes.
pub(super) struct Part {
    pub(super) id: UploadId,
    pub(super) offset: u64,
    /// The response, without what depends on the bytes.
    pub(super) answer: Answer,
}

pub(super) async fn patch(
    ask: RoutedRequest<'_, '_>,
    caller: &Caller,
    id: UploadId,
) -> Result<Answer, Refusal> {
    check_type(ask.request)?;
    let offset = parse_offset(ask.request.field(Field::UploadOffset).ok_or(BadTus::Offset)?)?;
    if let Some(length) = announced_length(ask.request)? {
        set_length(&ask, caller, id, length).await?;
    }
    append(ask, caller, Part { id, offset, answer: Answer::new(Status::NO_CONTENT) }).await
}

/// Sets the length of an upload that was created without one: "If the length is not known yet ... once it is
/// known the Client MUST set the Upload-Length header in the next PATCH request. Once set the length MUST NOT
/// be changed."
async fn set_length(
    ask: &RoutedRequest<'_, '_>,
    caller: &Caller,
    id: UploadId,
    length: u64,
) -> Result<(), Refusal> {
    match ask.web.operations.set_upload_length(caller, id, length).await {
        // The upload may be complete: the client repeats its last request.
        Ok(()) | Err(Error::Store(StoreError::NotFound)) => Ok(()),
        Err(Error::Store(StoreError::Length)) => Err(Refusal::new(
            Status::CONFLICT,
            "The upload has another length, or more bytes already. HEAD it to see where it stands.",
        )),
        Err(error) => Err(error.into()),
    }
}

/// Refuses a body that is not declared as bytes of an upload.
pub(super) fn check_type(request: &Request<'_>) -> Result<(), Refusal> {
    let content_type = request.field(Field::ContentType).unwrap_or_default();
    if is_media_type(content_type, "application/offset+octet-stream") {
        return Ok(());
    }
    Err(Refusal::new(
        Status::UNSUPPORTED_MEDIA_TYPE,
        "Send the bytes with Content-Type: application/offset+octet-stream.",
    ))
}

/// Receives the request's body at the part's offset; the last bytes complete the upload.
pub(super) async fn append(ask: RoutedRequest<'_, '_>, caller: &Caller, to: Part) -> Result<Answer, Refusal> {
    let Part { id, offset, answer } = to;
    let (part, whole) = (digests_of_part(ask.request)?, of_representation(ask.request)?);
    let modified = modified(ask.request)?;
    let failed = if ask.request.field(Field::UploadChecksum).is_some() {
        Status::CHECKSUM_MISMATCH
    } else {
        Status::UNPROCESSABLE_CONTENT
    };
    let operations = &ask.web.operations;
    let mut upload = match operations.resume_upload(caller, id, offset, part, conditions::parse_stored).await
    {
        Ok(upload) => upload,
        Err(Error::Store(StoreError::NotFound)) => {
            return ended(&ask, caller, id, offset, &whole).await;
        }
        Err(error) => return Err(error.into()),
    };
    if upload.is_part() && !whole.is_empty() {
        return Err(Refusal::bad("A part has no digest of the whole. Send it with Upload-Concat: final."));
    }
    if let Some(modified) = modified {
        upload.set_modified(modified);
    }
    // A client that wants the digest of the whole is about to have it checked with the last part.
    if digests::are_wanted(ask.request) || whole.iter().any(|(by, _)| *by == Algorithm::Sha256) {
        upload.start_running_digest();
    }
    let upload = match receive(ask.request, upload).await {
        Ok(upload) => upload,
        Err(ReceiveError::Upload(Error::Store(StoreError::Length))) => {
            let detail = "There are more bytes than the upload's length. HEAD it to see where it stands.";
            return Err(Refusal::new(Status::CONTENT_TOO_LARGE, detail));
        }
        Err(error) => return Err(error.into()),
    };
    let answer = answer.field_display("Upload-Offset", upload.bytes());
    match upload.end_part(whole).await {
        Ok(PartOutcome::Complete(committed)) => {
            Ok(dated(tagged(ask.request, answer, &committed), modified, &committed))
        }
        Ok(PartOutcome::Paused(_)) => {
            Ok(expiring(answer, operations.resumable_upload(caller, id).await?.expires))
        }
        Err(Error::Store(StoreError::Digest)) => Err(Refusal::new(
            failed,
            "The bytes are not those of the checksum, and do not count. HEAD the upload and send them again.",
        )),
        // The conditions of the upload's creation failed. Without the delete permission, it is the one
        // against replacing.
        Err(error) if caller.identity.account.permissions.delete => Err(error.into()),
        Err(error) => Err(conditions::explain(ask.request, false, error)),
    }
}

/// Answers a client that repeats the end of a complete upload because it did not receive the response.
/// Any other request for a complete upload gets a 404.
async fn ended(
    ask: &RoutedRequest<'_, '_>,
    caller: &Caller,
    id: UploadId,
    offset: u64,
    whole: &[(Algorithm, Vec<u8>)],
) -> Result<Answer, Refusal> {
    let complete = ask.web.operations.completed_upload(caller, id).await?;
    let is_empty = matches!(ask.request.head.framing(), Framing::None | Framing::Length(0));
    let is_same = whole.iter().all(|digest| complete.whole.contains(digest));
    if offset != complete.bytes || !is_empty || !is_same {
        return Err(Error::NOT_FOUND.into());
    }
    Ok(Answer::new(Status::NO_CONTENT).field_display("Upload-Offset", complete.bytes))
}

/// Returns the digests of this part's bytes: of tus, and of HTTP.
fn digests_of_part(request: &Request<'_>) -> Result<Vec<(Algorithm, Vec<u8>)>, Refusal> {
    let mut digests = of_content(request)?;
    if let Some(value) = request.field(Field::UploadChecksum) {
        digests.push(match parse_checksum(value)? {
            Checksum::Sha1(digest) => (Algorithm::Sha1, digest.to_vec()),
            Checksum::Md5(digest) => (Algorithm::Md5, digest.to_vec()),
            Checksum::Sha256(digest) => (Algorithm::Sha256, digest.to_vec()),
        });
    }
    Ok(digests)
}
