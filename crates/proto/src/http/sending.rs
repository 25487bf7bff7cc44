//! Sending an answer: its head, its body, and waiting until enough of it is sent.
//!
//! It does not decide about the connection. What must hold: memory for an answer stays bounded however
//! slowly it is taken; a peer is stuck when it takes nothing for the whole send time, not when it is slow.

use std::io;
use std::time::Duration;

use plimsoll_io::{Deadline, FileRange, Segment, Tx};
use plimsoll_store::apart::Contents;
use plimsoll_wire::http::status::Status;

use super::answer::{Answer, Body};
use super::limits::{COPIED_BODY_BYTES_MAX, FILE_CHUNK_BYTES, UNSENT_BYTES_MAX};
use super::service::Shared;
use crate::file_parts::{AHEAD_BYTES, Parts};

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
    let mut pushed = 0;
    let sent = match push(answer.head, body, &mut pushed, tx, deadline, shared).await {
        Ok(()) => drain(tx, below, deadline, shared.limits().send_time).await,
        Err(error) => Err(error),
    };
    let body_bytes = match sent {
        Ok(()) => length,
        // The body was pushed last: what did not go out is of it first.
        Err(_) => pushed.saturating_sub(tx.unsent() + tx.lost()),
    };
    Sent { status, body_bytes, broken: sent.is_err() }
}

/// Pushes head and body; `pushed` counts the body's bytes.
async fn push<S>(
    mut head: Vec<u8>,
    body: Body,
    pushed: &mut u64,
    tx: &mut Tx,
    deadline: &Deadline,
    shared: &Shared<S>,
) -> io::Result<()> {
    match body {
        Body::Empty => tx.push(Segment::Owned(head)),
        Body::Bytes(bytes) if bytes.len() <= COPIED_BODY_BYTES_MAX => {
            head.extend_from_slice(&bytes);
            *pushed += bytes.len() as u64;
            tx.push(Segment::Owned(head));
        }
        Body::Shared(bytes) if bytes.len() <= COPIED_BODY_BYTES_MAX => {
            head.extend_from_slice(&bytes);
            *pushed += bytes.len() as u64;
            tx.push(Segment::Owned(head));
        }
        Body::Shared(bytes) => {
            tx.push(Segment::Owned(head));
            *pushed += bytes.len() as u64;
            tx.push(Segment::Shared(bytes));
        }
        Body::Bytes(bytes) => {
            tx.push(Segment::Owned(head));
            push_made(bytes, pushed, tx);
        }
        Body::File(part) => {
            tx.push(Segment::Owned(head));
            push_file(part, pushed, tx, deadline, shared).await?;
        }
        Body::Parts(parts, file, close) => {
            tx.push(Segment::Owned(head));
            for (part_head, range) in parts {
                push_made(part_head, pushed, tx);
                push_file(FileRange { file: file.clone(), range }, pushed, tx, deadline, shared).await?;
            }
            push_made(close, pushed, tx);
        }
        Body::Contents(contents) => {
            tx.push(Segment::Owned(head));
            // Apart, as what plain connections need no room for.
            Box::pin(push_contents(*contents, pushed, tx, deadline, shared)).await?;
        }
    }
    Ok(())
}

/// Pushes bytes as they come from elsewhere, no faster than they are taken.
async fn push_contents<S>(
    mut contents: Contents,
    pushed: &mut u64,
    tx: &mut Tx,
    deadline: &Deadline,
    shared: &Shared<S>,
) -> io::Result<()> {
    while let Some(lease) = contents.next().await? {
        *pushed += lease.len() as u64;
        tx.push(Segment::Lease(lease));
        drain(tx, UNSENT_BYTES_MAX, deadline, shared.limits().send_time).await?;
    }
    Ok(())
}

fn push_made(bytes: Vec<u8>, pushed: &mut u64, tx: &mut Tx) {
    *pushed += bytes.len() as u64;
    tx.push(Segment::Owned(bytes));
}

async fn push_file<S>(
    part: FileRange,
    pushed: &mut u64,
    tx: &mut Tx,
    deadline: &Deadline,
    shared: &Shared<S>,
) -> io::Result<()> {
    if tx.takes_files() {
        return push_parts_of(part, pushed, tx, deadline, shared).await;
    }
    // Apart, because plain connections never come here and need no room for it.
    Box::pin(push_bytes_of(part, pushed, tx, deadline, shared)).await
}

/// Pushes a range of a file as it comes to be in memory, no faster than it is taken.
async fn push_parts_of<S>(
    whole: FileRange,
    pushed: &mut u64,
    tx: &mut Tx,
    deadline: &Deadline,
    shared: &Shared<S>,
) -> io::Result<()> {
    let mut parts = Parts::new(whole);
    while let Some(part) = parts.next(&shared.io).await? {
        *pushed += part.range.end - part.range.start;
        tx.push(Segment::File(part));
        if parts.has_more() {
            drain(tx, AHEAD_BYTES, deadline, shared.limits().send_time).await?;
        }
    }
    Ok(())
}

/// Reads a range of a file and pushes its bytes as fast as they are taken.
async fn push_bytes_of<S>(
    mut part: FileRange,
    pushed: &mut u64,
    tx: &mut Tx,
    deadline: &Deadline,
    shared: &Shared<S>,
) -> io::Result<()> {
    while part.range.start < part.range.end {
        let (file, offset) = (part.file.clone(), part.range.start);
        let left = usize::try_from(part.range.end - offset).unwrap_or(usize::MAX);
        let chunk = shared.io.files(move |fs| {
            let mut chunk = vec![0; left.min(FILE_CHUNK_BYTES)];
            let read = fs.read_at(&file, &mut chunk, offset)?;
            chunk.truncate(read);
            Ok(chunk)
        });
        let chunk = chunk.await?;
        if chunk.is_empty() {
            // It is shorter than it was when its length was told.
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        part.range.start += chunk.len() as u64;
        push_made(chunk, pushed, tx);
        drain(tx, UNSENT_BYTES_MAX, deadline, shared.limits().send_time).await?;
    }
    Ok(())
}

/// Waits until at most `below` bytes are unsent, as long as the peer takes some within every `time`.
pub(super) async fn drain(tx: &mut Tx, below: u64, deadline: &Deadline, time: Duration) -> io::Result<()> {
    loop {
        let before = tx.unsent();
        deadline.after(time);
        match deadline.within(tx.drain(below)).await {
            Ok(drained) => return drained,
            Err(_) if tx.unsent() < before => {}
            Err(_) => return Err(io::ErrorKind::TimedOut.into()),
        }
    }
}
