//! HEAD reports the state of an upload. GET of all lists the caller's pending uploads, in JSON.
//!
//! Nothing is changed here. Invariants: the reported offset is the recorded one, which is synced; that
//! of a complete upload is its length.

use plimsoll_operations::{Caller, Error};
use plimsoll_proto::http::Answer;
use plimsoll_store::{Completed, Error as StoreError, Path, ResumableUpload, UploadId};
use plimsoll_wire::calendar::{format_rfc3339, since_1970};
use plimsoll_wire::http::status::Status;
use plimsoll_wire::http::tus::write_metadata;
use serde::Serialize;

use super::expiring;
use crate::refusal::Refusal;
use crate::{RoutedRequest, credentials, json};

/// The JSON of a pending upload.
#[derive(Serialize)]
struct UploadJson {
    id: String,
    path: String,
    length: Option<u64>,
    offset: u64,
    created: String,
    expires: String,
    url: String,
    /// Whether it is a partial upload, which has no path.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    partial: bool,
}

#[derive(Serialize)]
struct All {
    uploads: Vec<UploadJson>,
}

impl From<ResumableUpload> for UploadJson {
    fn from(kept: ResumableUpload) -> UploadJson {
        UploadJson {
            id: kept.id.to_string(),
            path: format!("/{}", kept.to),
            length: kept.bytes,
            offset: kept.offset,
            created: format_rfc3339(since_1970(kept.created)),
            expires: format_rfc3339(since_1970(kept.expires)),
            url: format!("/uploads/{}", kept.id),
            partial: kept.is_part(),
        }
    }
}

pub(super) async fn list(ask: RoutedRequest<'_, '_>) -> Result<Answer, Refusal> {
    let caller = credentials::caller(ask.web, ask.request).await?;
    let uploads = ask.web.operations.resumable_uploads(&caller).await?;
    Ok(json::answer(Status::OK, &All { uploads: uploads.into_iter().map(UploadJson::from).collect() }))
}

pub(super) async fn head(
    ask: RoutedRequest<'_, '_>,
    caller: &Caller,
    id: UploadId,
) -> Result<Answer, Refusal> {
    let kept = match ask.web.operations.resumable_upload(caller, id).await {
        Ok(kept) => kept,
        Err(Error::Store(StoreError::NotFound)) => {
            let completed = ask.web.operations.completed_upload(caller, id).await?;
            let Completed { to, bytes, metadata, .. } = completed;
            return Ok(described(&to, bytes, metadata).field_display("Upload-Length", bytes));
        }
        Err(error) => return Err(error.into()),
    };
    let is_part = kept.is_part();
    let answer = described(&kept.to, kept.offset, kept.metadata);
    let answer = if is_part { answer.field("Upload-Concat", "partial") } else { answer };
    let answer = match kept.bytes {
        Some(bytes) => answer.field_display("Upload-Length", bytes),
        None => answer.field("Upload-Defer-Length", "1"),
    };
    Ok(expiring(answer, kept.expires))
}

/// Returns the response for an upload: "If an upload contains additional metadata, responses to HEAD requests
/// MUST include the Upload-Metadata header and its value as specified by the Client". An upload by another
/// protocol has its path.
fn described(to: &Path, offset: u64, metadata: String) -> Answer {
    let mut metadata = metadata.into_bytes();
    if metadata.is_empty() && !to.is_root() {
        write_metadata("path", to.as_bytes(), &mut metadata);
    }
    let answer = Answer::new(Status::OK).field("Cache-Control", "no-store");
    let answer = answer.field_display("Upload-Offset", offset);
    if metadata.is_empty() { answer } else { answer.field("Upload-Metadata", metadata) }
}
