//! Copies the body of a request into an upload.
//!
//! It buffers nothing. Invariant: an aborted body is left to the upload, which determines the bytes to keep.

use std::time::Duration;

use plimsoll_operations::{IncomingUpload, ReceiveError};
use plimsoll_proto::http::{Answer, BodyError, Request};
use plimsoll_store::Committed;
use plimsoll_wire::http::head::Field;
use plimsoll_wire::http::mtime::{SentMtime, parse_sent_mtime};

use crate::limits::MTIME_ROUNDING_MAX;
use crate::refusal::Refusal;

/// Returns the modification time that the client sends with a file, since 1970. A time that no file gets is
/// ignored: the file's bytes matter more.
///
/// # Errors
/// The field is not a time.
pub(crate) fn modified(request: &Request<'_>) -> Result<Option<Duration>, Refusal> {
    let Some(value) = request.field(Field::OcMtime) else { return Ok(None) };
    match parse_sent_mtime(value) {
        Some(SentMtime::Since1970(time)) => Ok(Some(time)),
        Some(SentMtime::Unusable) => Ok(None),
        None => Err(Refusal::bad(
            "X-OC-Mtime is no time. Send seconds since 1970, perhaps with a fraction: 1763900000.5.",
        )),
    }
}

/// Confirms the modification time, if one was sent and the file has it. Without this field in the response,
/// clients set the time by another request. File systems store other times in a range of their own only, and
/// some round them.
pub(crate) fn dated(answer: Answer, modified: Option<Duration>, committed: &Committed) -> Answer {
    match modified {
        Some(sent) if sent.abs_diff(committed.stat.modified) < MTIME_ROUNDING_MAX => {
            answer.field("X-OC-Mtime", "accepted")
        }
        _ => answer,
    }
}

impl From<ReceiveError<BodyError>> for Refusal {
    fn from(error: ReceiveError<BodyError>) -> Refusal {
        match error {
            ReceiveError::Upload(error) => error.into(),
            ReceiveError::Connection(error) => error.into(),
        }
    }
}

/// Writes all of the body to the upload.
pub(crate) async fn receive(
    request: &mut Request<'_>,
    mut upload: IncomingUpload,
) -> Result<IncomingUpload, ReceiveError<BodyError>> {
    // Boxed: it is large, and inlining it would enlarge the future, and the stack, of every request.
    let received = Box::pin(upload.receive(async |pipe| request.body.recv_upload(pipe).await)).await;
    match received {
        Ok(()) => Ok(upload),
        Err(ReceiveError::Upload(error)) => Err(ReceiveError::Upload(upload.fail(error))),
        // Dropping the upload records that it was interrupted.
        Err(error) => Err(error),
    }
}
