//! Receives bytes of an upload into its pipe, from which the kernel moves them into the file.
//!
//! Both HTTP and FTP receive this way. Invariant: no more bytes are taken from the connection than the
//! caller permits, so bytes behind a body stay in the connection.

use std::future::poll_fn;
use std::io;
use std::task::{Context, Poll};

use plimsoll_io::limits::PIPE_BYTES;
use plimsoll_io::{Filled, Rx};
use plimsoll_store::{ReceivePipe, ReceivedBytes};

/// The result of a receive into a pipe.
pub(crate) enum PipedReceive {
    /// The next bytes.
    Bytes(ReceivedBytes),
    /// The peer's end.
    End,
    /// The bytes must be received into memory.
    Refused,
}

/// Receives at most `bytes_max` bytes into a pipe. Dropping the future loses nothing.
///
/// # Errors
/// As [`Rx::recv`].
pub(crate) async fn receive_piped(rx: &Rx, pipe: &ReceivePipe, bytes_max: u64) -> io::Result<PipedReceive> {
    poll_fn(|cx| poll_piped(cx, rx, pipe, bytes_max.min(PIPE_BYTES as u64))).await
}

fn poll_piped(
    cx: &mut Context<'_>,
    rx: &Rx,
    pipe: &ReceivePipe,
    bytes_max: u64,
) -> Poll<io::Result<PipedReceive>> {
    let polled = pipe.poll(|| rx.pipe(), |pipe| rx.poll_recv_into(cx, pipe, bytes_max));
    let Some((pipe, filled)) = polled else { return Poll::Ready(Ok(PipedReceive::Refused)) };
    filled.map_ok(|filled| match filled {
        Filled::Bytes(bytes) => PipedReceive::Bytes(ReceivedBytes::Piped(pipe, bytes)),
        Filled::Full => PipedReceive::Bytes(ReceivedBytes::Piped(pipe, 0)),
        Filled::Refused => PipedReceive::Refused,
        Filled::End => PipedReceive::End,
    })
}
