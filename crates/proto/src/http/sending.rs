//! Sending an answer: its head, its body, and waiting until enough of it is sent.
//!
//! It does not decide about the connection. What must hold: memory for an answer stays bounded however
//! slowly it is taken.

use std::io;

use plimsoll_io::{Deadline, FileRange, Segment, Tx};
use plimsoll_wire::http::status::Status;

use super::answer::{Answer, Body};
use super::limits::COPIED_BODY_BYTES_MAX;
use super::service::Shared;
use crate::outgoing::{Outgoing, UNSENT_BYTES_MAX};

/// What was sent.
pub(super) struct Sent {
    pub(super) status: Status,
    /// Bytes of the body that the network took.
    pub(super) body_bytes: u64,
    /// Whether the connection is of no more use.
    pub(super) broken: bool,
}

/// Sends a complete head and, `with_body`, its body.
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
    // A file that waits to be sent is a descriptor, however short its range is, and a made body is whole in
    // memory until its last byte has gone: a connection has one of them.
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
        // Boxed: an answer that leaves at once needs no room for it.
        Some(mut permit) => match Box::pin(permit.during(sending)).await {
            Ok(sent) => sent,
            Err(_) => Err(io::ErrorKind::PermissionDenied.into()),
        },
    };
    let body_bytes = match sent {
        Ok(()) => length,
        // The body was pushed last: what did not go out is of it first.
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
