//! Sends a response: its head and its body, and waits until enough of it is sent.
//!
//! This module does not decide about the connection. Invariant: memory for a response stays bounded however
//! slowly the client receives.

use plimsoll_io::{Deadline, FileRange, Segment, Tx};
use plimsoll_store::Error as StoreError;
use plimsoll_wire::http::head::Version;
use plimsoll_wire::http::status::Status;

use super::answer::{Answer, Body};
use super::connection::Common;
use super::limits::COPIED_BODY_BYTES_MAX;
use crate::body_sender::{BodySender, SendError, while_permitted};
use crate::body_stream::StreamedBody;
use crate::limits::UNSENT_BYTES_MAX;

/// The result of sending a response.
pub(super) struct Sent {
    pub(super) status: Status,
    /// Bytes of the body that the kernel accepted.
    pub(super) body_bytes: u64,
    /// Whether the connection is unusable.
    pub(super) broken: bool,
}

/// Sends a complete head and, if `with_body`, the body. A body of unknown length ends with the connection
/// for a client of HTTP/1.0, and is chunked for others.
pub(super) async fn send(
    answer: Answer,
    with_body: bool,
    version: Version,
    tx: &mut Tx,
    deadline: &Deadline,
    common: &Common,
) -> Sent {
    let status = answer.status();
    let body = if with_body { answer.body } else { Body::Empty };
    let length = Some(body.len()).filter(|_| body.has_length());
    // An unsent file range holds a descriptor, however short it is, and a generated body stays in memory as a
    // whole until its last byte is sent. A connection has one of them at a time.
    let below = if body.has_file() || body.generated_bytes() > 0 { 0 } else { UNSENT_BYTES_MAX };
    let mut sender = BodySender::new(&common.io, tx, deadline, common.limits.send_time);
    let (head, sender_ref) = (answer.head, &mut sender);
    let sending = async move {
        match body {
            // Boxed: rarely taken, and inlining it would enlarge every response's future.
            Body::Stream(stream) => Box::pin(push_stream(head, stream, version, sender_ref, common)).await?,
            body => push(head, body, sender_ref).await?,
        }
        sender_ref.drain(below).await
    };
    let sent = match answer.permit.filter(|_| with_body) {
        None => sending.await,
        // Boxed: inlining it would enlarge the future of responses that are sent at once.
        Some(mut permit) => Box::pin(while_permitted(Some(&mut permit), sending)).await,
    };
    let body_bytes = match sent {
        Ok(()) => length.unwrap_or_else(|| sender.sent()),
        // The body was pushed last, so unsent bytes belong to the body first.
        Err(_) => sender.sent(),
    };
    Sent { status, body_bytes, broken: sent.is_err() }
}

/// Pushes a head, and a body as it is generated.
async fn push_stream(
    head: Vec<u8>,
    stream: StreamedBody,
    version: Version,
    sender: &mut BodySender<'_>,
    common: &Common,
) -> Result<(), SendError> {
    sender.push_head(head);
    let memory = common.records.counters.generated().reserve(0);
    let memory = memory.ok_or(SendError::Source(StoreError::Busy.into()))?;
    sender.push_stream(stream, version == Version::Http11, memory).await
}

/// Pushes head and body. A stream is pushed by [`push_stream`].
async fn push(head: Vec<u8>, body: Body, sender: &mut BodySender<'_>) -> Result<(), SendError> {
    match body {
        Body::Empty | Body::Stream(_) => sender.push_head(head),
        Body::Bytes(bytes) if bytes.len() <= COPIED_BODY_BYTES_MAX => sender.push_with_head(head, &bytes),
        Body::Shared(bytes) if bytes.len() <= COPIED_BODY_BYTES_MAX => sender.push_with_head(head, &bytes),
        Body::Shared(bytes) => {
            sender.push_head(head);
            sender.push_whole(Segment::Shared(bytes)).await?;
        }
        Body::Bytes(bytes) => {
            sender.push_head(head);
            sender.push_whole(Segment::Owned(bytes)).await?;
        }
        Body::File(range) => {
            sender.push_head(head);
            sender.push_file(range).await?;
        }
        Body::Parts(parts, file, close) => {
            sender.push_head(head);
            for (part_head, range) in parts {
                sender.push(part_head);
                sender.push_file(FileRange { file: file.clone(), range }).await?;
            }
            sender.push(close);
        }
        Body::Remote(file) => {
            sender.push_head(head);
            // Boxed: plain connections never take this branch, and inlining it would enlarge their futures.
            Box::pin(sender.push_remote(*file)).await?;
        }
    }
    Ok(())
}
