//! Resumable uploads: tus 1.0 (<https://tus.io/protocols/resumable-upload>) at `/uploads`.
//!
//! The store keeps them, and remembers completed ones for a while. Invariants: only its owner can access
//! an upload; the reported offset is synced; a client of another tus version gets the supported version.

mod append;
mod create;
mod status;

use plimsoll_operations::Error;
use plimsoll_proto::http::{Answer, Request};
use plimsoll_store::UploadId;
use plimsoll_wire::http::date::{DATE_BYTES, write_date};
use plimsoll_wire::http::head::{Field, Method};
use plimsoll_wire::http::status::Status;
use plimsoll_wire::http::tus::{CHECKSUM_ALGORITHMS, VERSION, check_version};

use crate::limits::UPLOAD_BYTES_MAX;
use crate::refusal::Refusal;
use crate::resource::Resource;
use crate::{RoutedRequest, credentials};

/// Whether a path is below `/uploads`.
pub(crate) fn is_below(path: &[u8]) -> bool {
    path.strip_prefix(b"/uploads").is_some_and(|rest| matches!(rest, [] | [b'/', ..]))
}

/// Returns the effective method: "The Server MUST interpret this as the request's method" of
/// X-HTTP-Method-Override, for clients that cannot send PATCH or DELETE.
pub(crate) fn method(resource: &Resource, request: &Request<'_>) -> Method {
    let is_upload = matches!(resource, Resource::Uploads | Resource::Upload(_));
    match request.field(Field::MethodOverride) {
        Some(token) if is_upload && request.method() == Method::Post => Method::from_token(token),
        _ => request.method(),
    }
}

/// Adds the version: "The Tus-Resumable header MUST be included in every request and response except for
/// OPTIONS requests". It does no harm there.
pub(crate) fn versioned(answer: Answer) -> Answer {
    answer.field("Tus-Resumable", VERSION)
}

/// Adds the server's tus extensions to a response to OPTIONS for an upload.
pub(crate) fn described(resource: &Resource, answer: Answer) -> Answer {
    match resource {
        Resource::Uploads | Resource::Upload(_) => answer
            .field("Tus-Version", VERSION)
            .field(
                "Tus-Extension",
                "creation,creation-with-upload,creation-defer-length,concatenation,checksum,expiration,\
                 termination",
            )
            .field("Tus-Checksum-Algorithm", CHECKSUM_ALGORITHMS)
            .field_display("Tus-Max-Size", UPLOAD_BYTES_MAX),
        _ => answer,
    }
}

/// Returns the response of all uploads, or of the one named `id`.
pub(crate) async fn answer(
    ask: RoutedRequest<'_, '_>,
    method: Method,
    id: Option<Vec<u8>>,
) -> Result<Answer, Refusal> {
    let Some(id) = id else {
        // Boxed, as the next one: inlining them would enlarge the stack of every request.
        return match method {
            Method::Post => Box::pin(create::post(ask)).await,
            _ => status::list(ask).await,
        };
    };
    spoken(ask.request)?;
    let caller = credentials::caller(ask.web, ask.request).await?;
    let id = UploadId::parse(&id).ok_or(Error::NOT_FOUND)?;
    match method {
        Method::Patch => Box::pin(append::patch(ask, &caller, id)).await,
        Method::Delete => {
            ask.web.operations.discard_upload(&caller, id).await?;
            Ok(Answer::new(Status::NO_CONTENT))
        }
        _ => status::head(ask, &caller, id).await,
    }
}

/// Checks that the client uses the supported tus version.
fn spoken(request: &Request<'_>) -> Result<(), Refusal> {
    check_version(request.field(Field::TusResumable))
        .map_err(|bad| Refusal::new(bad.status(), bad.detail()).with("Tus-Version", VERSION))
}

/// Adds the time at which an upload expires.
fn expiring(answer: Answer, expires: std::time::SystemTime) -> Answer {
    let mut date = [b' '; DATE_BYTES];
    write_date(expires, &mut date);
    answer.field("Upload-Expires", date)
}
