//! Sending a file over a data connection.
//!
//! Not here: where its bytes come from ([`Source`]). What must hold: a file is sent only if the server said
//! that it has all of it (226); what a source could not give to its end is broken off, and never looks whole.

use std::io;

use plimsoll_io::{Deadline, Either, Elapsed, Segment, Tx, select};
use plimsoll_wire::ftp::command::Verb;

use super::error::{Error, When};
use super::limits::{SEND_AHEAD_BYTES_MAX, Times};
use super::session::Session;
use crate::sending;
use crate::source::Source;

impl Session {
    /// Uploads a file: how many bytes it had.
    ///
    /// # Errors
    /// [`Error::Refused`] if the server does not take it, or not all of it; [`Error::Source`]; what broke the
    /// session. In some of these cases a server keeps a part, or nobody knows what it has.
    pub async fn store(&mut self, path: &[u8], source: &mut dyn Source) -> Result<u64, Error> {
        let (mut data, is_done) = self.begin(Verb::Stor, path, 0).await?;
        let Session { control, deadline, times, .. } = self;
        if is_done {
            return Err(control.unasked());
        }
        // Who says no in the middle may read on for long: what they said ends the sending.
        let error = match select(send(&mut data.tx, source, deadline, times), control.objection(None)).await {
            Either::Left(Ok(bytes)) => return control.hear_done(deadline, times.answer).await.map(|_| bytes),
            Either::Left(Err(error)) => error,
            Either::Right(objection) => return Err(objection),
        };
        // To drop it breaks it off: to end it would say that the file is whole.
        drop(data);
        match error {
            Error::Broken { .. } => Err(control.last_words(deadline, error).await),
            // The server's answer is to our breaking off; with it, the session can go on.
            error => {
                let _ = control.last_words(deadline, Error::OutOfStep).await;
                Err(error)
            }
        }
    }
}

/// Sends what a source gives, and the end.
async fn send(
    tx: &mut Tx,
    source: &mut dyn Source,
    deadline: &Deadline,
    times: &Times,
) -> Result<u64, Error> {
    let mut sent = 0;
    while let Some(piece) = source.next().await.map_err(Error::Source)? {
        if matches!(piece, Segment::File(_)) && !tx.takes_files() {
            return Err(Error::Source(io::ErrorKind::Unsupported.into()));
        }
        sent += piece.len();
        tx.push(piece);
        drain(tx, SEND_AHEAD_BYTES_MAX, deadline, times).await?;
    }
    tx.finish();
    drain(tx, 0, deadline, times).await?;
    Ok(sent)
}

async fn drain(tx: &mut Tx, below: u64, deadline: &Deadline, times: &Times) -> Result<(), Error> {
    match sending::drain(tx, below, deadline, times.between_bytes).await {
        Ok(drained) => drained.map_err(|source| Error::Broken { when: When::Sending, source }),
        Err(Elapsed) => Err(Error::Late(When::Sending)),
    }
}
