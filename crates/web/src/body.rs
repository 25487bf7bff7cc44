//! Copies the body of a request into an upload.
//!
//! It buffers nothing. Invariant: an aborted body is left to the upload, which determines the bytes to keep.

use std::pin::pin;
use std::time::Duration;

use plimsoll_operations::{Arriving, Error};
use plimsoll_proto::http::{Answer, BodyError, Request};
use plimsoll_wire::http::head::Field;
use plimsoll_wire::http::mtime::parse_mtime;

use crate::refusal::Refusal;

/// Returns the modification time that the client sends with a file, since 1970.
///
/// # Errors
/// The field is not a time.
pub(crate) fn modified(request: &Request<'_>) -> Result<Option<Duration>, Refusal> {
    let bad = "X-OC-Mtime is no time. Send seconds since 1970, perhaps with a fraction: 1763900000.5.";
    let time = |value| parse_mtime(value).ok_or_else(|| Refusal::bad(bad));
    request.field(Field::OcMtime).map(time).transpose()
}

/// Confirms the modification time, if one was sent. Without this field in the response, clients set the time
/// by another request.
pub(crate) fn dated(answer: Answer, modified: Option<Duration>) -> Answer {
    match modified {
        Some(_) => answer.field("X-OC-Mtime", "accepted"),
        None => answer,
    }
}

/// The reason for which a body was not received.
pub(crate) enum Stopped {
    /// The upload failed.
    Failed(Error),
    /// The body failed.
    Body(BodyError),
}

impl From<Stopped> for Refusal {
    fn from(stopped: Stopped) -> Refusal {
        match stopped {
            Stopped::Failed(error) => error.into(),
            Stopped::Body(error) => error.into(),
        }
    }
}

/// Writes all of the body to the upload. The upload gathers small receives.
pub(crate) async fn receive(request: &mut Request<'_>, mut arriving: Arriving) -> Result<Arriving, Stopped> {
    loop {
        let next = pin!(request.body.recv());
        let written = match arriving.meanwhile(next).await {
            Ok(Ok(Some(lease))) => arriving.write(lease).await,
            Ok(Ok(None)) => return Ok(arriving),
            // Dropping the upload records that it was interrupted.
            Ok(Err(error)) => return Err(Stopped::Body(error)),
            Err(error) => Err(error),
        };
        if let Err(error) = written {
            return Err(Stopped::Failed(arriving.fail(error)));
        }
    }
}
