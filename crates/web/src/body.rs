//! Copies the body of a request into an upload.
//!
//! Invariants: at most `GATHERED_BYTES` are buffered, copied out of the blocks that they came in. An
//! aborted body must be left to the upload, which determines the bytes to keep.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;

use plimsoll_io::Lease;
use plimsoll_operations::{Arriving, Error};
use plimsoll_proto::http::{Answer, BodyError, Request};
use plimsoll_wire::http::head::Field;
use plimsoll_wire::http::mtime::parse_mtime;

use crate::limits::GATHERED_BYTES;
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

/// Writes all of the body to the upload.
pub(crate) async fn receive(request: &mut Request<'_>, mut arriving: Arriving) -> Result<Arriving, Stopped> {
    let mut small = Vec::new();
    loop {
        let mut next = pin!(request.body.recv());
        let received = match now(next.as_mut()).await {
            Some(received) => received,
            None => {
                // Buffered bytes are not recorded yet, so they must not wait for a slow sender.
                if !small.is_empty() {
                    arriving = write(arriving, Lease::owned(std::mem::take(&mut small))).await?;
                }
                match arriving.meanwhile(next).await {
                    Ok(received) => received,
                    Err(error) => return Err(Stopped::Failed(arriving.fail(error))),
                }
            }
        };
        let more = match received {
            Ok(Some(lease)) if small.len() + lease.len() < GATHERED_BYTES => {
                small.extend_from_slice(&lease);
                continue;
            }
            Ok(more) => Ok(more),
            Err(error) => Err(error),
        };
        if !small.is_empty() {
            let gathered = Lease::owned(std::mem::take(&mut small));
            arriving = write(arriving, gathered).await?;
        }
        match more {
            Ok(Some(lease)) => arriving = write(arriving, lease).await?,
            Ok(None) => return Ok(arriving),
            // Dropping the upload records that it was interrupted.
            Err(error) => return Err(Stopped::Body(error)),
        }
    }
}

/// Returns the output of `future`, if it is ready at once.
async fn now<F: Future>(mut future: Pin<&mut F>) -> Option<F::Output> {
    poll_fn(|cx| match future.as_mut().poll(cx) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending => Poll::Ready(None),
    })
    .await
}

async fn write(mut arriving: Arriving, lease: Lease) -> Result<Arriving, Stopped> {
    match arriving.write(lease.detach()).await {
        Ok(()) => Ok(arriving),
        Err(error) => Err(Stopped::Failed(arriving.fail(error))),
    }
}
