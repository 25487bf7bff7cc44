//! Sends a response: its head and its body, and waits until enough of it is sent.
//!
//! This module does not decide about the connection. Invariant: memory for a response stays bounded however
//! slowly the client receives.

use std::io;

use plimsoll_io::{Deadline, FileRange, Segment, Tx};
use plimsoll_wire::http::status::Status;

use super::answer::{Answer, Body};
use super::limits::COPIED_BODY_BYTES_MAX;
use super::service::Shared;
use crate::outgoing::{Outgoing, UNSENT_BYTES_MAX};

/// The result of sending a response.
pub(super) struct Sent {
    pub(super) status: Status,
    /// Bytes of the body that the kernel accepted.
    pub(super) body_bytes: u64,
    /// Whether the connection is unusable.
    pub(super) broken: bool,
}

/// Sends a complete head and, if `with_body`, the body.
pub(super) async fn send<S>(
    answer: Answer,
    with_body: bool,
    tx: &mut Tx,
    deadline: &Deadline,
    shared: &Shared<S>,
) -> Sent {
    let status = answer.status();
    let body = if with_body { answer.body } else { Body::Empty };
    let length = body.len();
    // An unsent file range holds a descriptor, however short it is, and a generated body stays in memory as a
    // whole until its last byte is sent. A connection has one of them at a time.
    let below = if body.has_file() || body.made_bytes() > 0 { 0 } else { UNSENT_BYTES_MAX };
    let send_time = shared.limits().send_time;
    let mut outgoing = Outgoing { io: &shared.io, tx, deadline, send_time, pushed: 0, is_unread: false };
    let (head, outgoing_too) = (answer.head, &mut outgoing);
    let sending = async move {
        push(head, body, outgoing_too).await?;
        outgoing_too.drain(below).await
    };
    let sent = match answer.permit.filter(|_| with_body) {
        None => sending.await,
        // Boxed: inlining it would enlarge the future of responses that are sent at once.
        Some(mut permit) => match Box::pin(permit.during(sending)).await {
            Ok(sent) => sent,
            Err(_) => Err(io::ErrorKind::PermissionDenied.into()),
        },
    };
    let body_bytes = match sent {
        Ok(()) => length,
        // The body was pushed last, so unsent bytes belong to the body first.
        Err(_) => outgoing.taken(),
    };
    Sent { status, body_bytes, broken: sent.is_err() }
}

/// Pushes head and body.
async fn push(head: Vec<u8>, body: Body, outgoing: &mut Outgoing<'_>) -> io::Result<()> {
    match body {
        Body::Empty => outgoing.tx.push(Segment::Owned(head)),
        Body::Bytes(bytes) if bytes.len() <= COPIED_BODY_BYTES_MAX => {
            push_copied(head, &bytes, outgoing);
        }
        Body::Shared(bytes) if bytes.len() <= COPIED_BODY_BYTES_MAX => {
            push_copied(head, &bytes, outgoing);
        }
        Body::Shared(bytes) => {
            outgoing.tx.push(Segment::Owned(head));
            outgoing.pushed += bytes.len() as u64;
            outgoing.tx.push(Segment::Shared(bytes));
        }
        Body::Bytes(bytes) => {
            outgoing.tx.push(Segment::Owned(head));
            outgoing.push(bytes);
        }
        Body::File(part) => {
            outgoing.tx.push(Segment::Owned(head));
            outgoing.push_file(part).await?;
        }
        Body::Parts(parts, file, close) => {
            outgoing.tx.push(Segment::Owned(head));
            for (part_head, range) in parts {
                outgoing.push(part_head);
                outgoing.push_file(FileRange { file: file.clone(), range }).await?;
            }
            outgoing.push(close);
        }
        Body::Contents(contents) => {
            outgoing.tx.push(Segment::Owned(head));
            // Apart, as what plain connections need no room for.
            Box::pin(outgoing.push_contents(*contents)).await?;
        }
    }
    Ok(())
}

/// A small body goes in one send with its head.
fn push_copied(mut head: Vec<u8>, body: &[u8], outgoing: &mut Outgoing<'_>) {
    head.extend_from_slice(body);
    outgoing.pushed += body.len() as u64;
    outgoing.tx.push(Segment::Owned(head));
}
