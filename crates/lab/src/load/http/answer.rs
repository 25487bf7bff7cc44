//! Receives one response: its head, and its body, which is discarded or collected.
//!
//! It judges neither status nor bytes. Invariant: a truncated body is an error, and so are bytes after the
//! response, since no further request was sent.

use std::io;

use plimsoll_io::{Lease, Rx, Want};
use plimsoll_wire::http::chunked::{ChunkedDecoder, unchunk};
use plimsoll_wire::http::head::Method;
use plimsoll_wire::http::response::{BadResponse, Framing, ResponseHead, parse_response};

use crate::load::checking::Taking;
use crate::load::failure::Failure;
use crate::load::limits::{HEAD, INTERIM_ANSWERS_MAX};

/// A completely received response.
pub(super) struct Answer {
    pub(super) status: u16,
    /// Length of the body.
    pub(super) bytes: u64,
    pub(super) keeps_alive: bool,
}

/// Receives a whole response. `want` is the size hint for the first receive.
pub(super) async fn receive_answer(
    rx: &mut Rx,
    method: Method,
    want: Want,
    taking: &mut Option<Taking>,
) -> Result<Answer, Failure> {
    let (head, held) = receive_head(rx, method, want).await?;
    let bytes = match head.framing() {
        // Bytes behind a response without a body are of no response if the connection ends with it.
        Framing::None if held.is_empty() || !head.keeps_alive() => 0,
        Framing::None => return Err(MORE),
        Framing::Length(length) => receive_length(rx, held, length, taking).await?,
        Framing::Chunked => receive_chunks(rx, held, taking).await?,
        Framing::UntilClose => receive_until_close(rx, held, taking).await?,
    };
    Ok(Answer { status: head.status().code(), bytes, keeps_alive: head.keeps_alive() })
}

const MORE: Failure = Failure::Malformed("more came than was asked for");

async fn receive_head(rx: &mut Rx, method: Method, want: Want) -> Result<(ResponseHead, Lease), Failure> {
    let mut held = next(rx, want).await.map_err(Failure::Broken)?;
    let mut interim = 0;
    loop {
        match parse_response(&held, method, &HEAD)? {
            Some(head) => {
                held.consume(head.len());
                if !head.is_interim() {
                    return Ok((head, held));
                }
                interim += 1;
                if interim > INTERIM_ANSWERS_MAX {
                    return Err(Failure::Malformed("it has too many interim answers"));
                }
            }
            None => held.append(&next(rx, Want::Head).await.map_err(Failure::Broken)?),
        }
    }
}

async fn next(rx: &mut Rx, want: Want) -> io::Result<Lease> {
    rx.recv(want).await?.ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
}

async fn receive_length(
    rx: &mut Rx,
    held: Lease,
    length: u64,
    taking: &mut Option<Taking>,
) -> Result<u64, Failure> {
    let mut left = take(&held, length, taking)?;
    // Frees the lease's memory for the next receive.
    drop(held);
    while left > 0 {
        if taking.is_some() {
            let lease = next(rx, Want::Body).await.map_err(Failure::Short)?;
            left = take(&lease, left, taking)?;
        } else {
            match rx.discard(left).await.map_err(Failure::Short)? {
                0 => return Err(Failure::Short(io::ErrorKind::UnexpectedEof.into())),
                discarded => left -= discarded,
            }
        }
    }
    Ok(length)
}

/// Takes bytes of a body. `left` is its remaining length before; returns the one after.
fn take(bytes: &[u8], left: u64, taking: &mut Option<Taking>) -> Result<u64, Failure> {
    if let Some(taking) = taking {
        taking.take(bytes);
    }
    left.checked_sub(bytes.len() as u64).ok_or(MORE)
}

async fn receive_chunks(rx: &mut Rx, mut held: Lease, taking: &mut Option<Taking>) -> Result<u64, Failure> {
    let (mut decoder, mut bytes) = (ChunkedDecoder::new(), 0);
    loop {
        let found = unchunk(&mut decoder, &mut held).map_err(BadResponse::Chunk)?;
        let data = held.get(..found.len).unwrap_or_default();
        bytes += data.len() as u64;
        if let Some(taking) = taking {
            taking.take(data);
        }
        held.consume(found.consumed);
        match (decoder.is_ended(), held.is_empty()) {
            (true, true) => return Ok(bytes),
            (true, false) => return Err(MORE),
            (false, _) => {
                let more = next(rx, Want::Body).await.map_err(Failure::Short)?;
                if held.is_empty() { held = more } else { held.append(&more) }
            }
        }
    }
}

async fn receive_until_close(rx: &mut Rx, held: Lease, taking: &mut Option<Taking>) -> Result<u64, Failure> {
    let (mut held, mut bytes) = (Some(held), 0);
    while let Some(lease) = held {
        bytes += lease.len() as u64;
        if let Some(taking) = taking {
            taking.take(&lease);
        }
        drop(lease);
        held = rx.recv(Want::Body).await.map_err(Failure::Short)?;
    }
    Ok(bytes)
}
