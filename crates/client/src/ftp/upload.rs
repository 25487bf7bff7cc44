//! Sends a file over a data connection.
//!
//! It does not read the file ([`Source`] does). Invariants: an upload succeeds only if the server confirmed
//! the whole file (226). If the source fails, the data connection is reset, so that the file never looks
//! complete.

use std::io;

use plimsoll_io::{Deadline, Either, Elapsed, Segment, Tx, pacing, select};
use plimsoll_wire::ftp::command::Verb;

use super::error::{Error, When};
use super::limits::{SEND_AHEAD_BYTES_MAX, Times};
use super::session::Session;
use crate::source::Source;

impl Session {
    /// Uploads a file; returns the number of bytes sent.
    ///
    /// # Errors
    /// [`Error::Refused`] if the server does not take it, or not all of it; [`Error::Source`]; the error
    /// that broke the session. In some of these cases a server keeps a part, or the result is unknown.
    pub async fn store(&mut self, path: &[u8], source: &mut dyn Source) -> Result<u64, Error> {
        let (mut data, is_done) = self.begin(Verb::Stor, path, 0).await?;
        let Session { control, deadline, times, .. } = self;
        if is_done {
            return Err(control.unexpected());
        }
        // A server that refuses midway may go on reading for long: its refusal ends the sending.
        let error =
            match select(send(&mut data.tx, source, deadline, times), control.transfer_refusal(None)).await {
                Either::Left(Ok(bytes)) => {
                    return control.receive_completion(deadline, times.answer).await.map(|_| bytes);
                }
                Either::Left(Err(error)) => error,
                Either::Right(refusal) => return Err(refusal),
            };
        // Dropping resets the connection: a clean end would claim that the file is complete.
        drop(data);
        match error {
            Error::Broken { .. } => Err(control.late_refusal(deadline, error).await),
            // Receives the server's answer to the abort, so that the session stays usable.
            error => {
                let _ = control.late_refusal(deadline, Error::OutOfStep).await;
                Err(error)
            }
        }
    }
}

/// Sends all pieces of a source, and the end.
async fn send(
    tx: &mut Tx,
    source: &mut dyn Source,
    deadline: &Deadline,
    times: &Times,
) -> Result<u64, Error> {
    let mut sent = 0;
    while let Some(segment) = source.next().await.map_err(Error::Source)? {
        if matches!(segment, Segment::File(_)) && !tx.takes_files() {
            return Err(Error::Source(io::ErrorKind::Unsupported.into()));
        }
        sent += segment.len();
        tx.push(segment);
        drain(tx, SEND_AHEAD_BYTES_MAX, deadline, times).await?;
    }
    tx.finish();
    drain(tx, 0, deadline, times).await?;
    Ok(sent)
}

async fn drain(tx: &mut Tx, below: u64, deadline: &Deadline, times: &Times) -> Result<(), Error> {
    match pacing::drain(tx, below, deadline, times.between_bytes, |_, _| {}).await {
        Ok(drained) => drained.map_err(|source| Error::Broken { when: When::Sending, source }),
        Err(Elapsed) => Err(Error::Late(When::Sending)),
    }
}
