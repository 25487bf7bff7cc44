//! Receives one response: its head, and its body, which is discarded or collected.
//!
//! It judges neither status nor bytes. Invariant: a truncated body is an error, and so are bytes after the
//! response, since no further request was sent.

use std::io;

use plimsoll_io::{Lease, Rx, Want};
use plimsoll_wire::http::body::BodyDecoder;
use plimsoll_wire::http::head::Method;
use plimsoll_wire::http::response::{BadResponse, Framing, ResponseHead, parse_response};

use crate::checking::Taking;
use crate::failure::Failure;
use crate::limits::{HEAD, INTERIM_ANSWERS_MAX};

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
        framing => receive_body(rx, framing, held, taking).await?,
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

/// Receives a body, of which `held` came behind the head. Returns its length.
async fn receive_body(
    rx: &mut Rx,
    framing: Framing,
    mut held: Lease,
    taking: &mut Option<Taking>,
) -> Result<u64, Failure> {
    let (mut decoder, mut bytes) = (BodyDecoder::new(framing), 0);
    loop {
        let decoded = decoder.decode(&mut held).map_err(BadResponse::Chunk)?;
        bytes += decoded.len as u64;
        if let Some(taking) = taking {
            taking.take(held.get(..decoded.len).unwrap_or_default());
        }
        held.consume(decoded.consumed);
        if decoder.has_ended() {
            return if held.is_empty() { Ok(bytes) } else { Err(MORE) };
        }
        // Frees the lease's memory for the next receive.
        drop(held);
        if taking.is_none()
            && let Some(left) = decoder.left()
        {
            bytes += left;
            discard(rx, left).await?;
            return Ok(bytes);
        }
        held = match rx.recv(Want::Body).await.map_err(Failure::Short)? {
            Some(lease) => lease,
            None if decoder.close() => return Ok(bytes),
            None => return Err(Failure::Short(io::ErrorKind::UnexpectedEof.into())),
        };
    }
}

/// Receives and drops so many bytes.
async fn discard(rx: &mut Rx, mut left: u64) -> Result<(), Failure> {
    while left > 0 {
        match rx.discard(left).await.map_err(Failure::Short)? {
            0 => return Err(Failure::Short(io::ErrorKind::UnexpectedEof.into())),
            discarded => left -= discarded,
        }
    }
    Ok(())
}
