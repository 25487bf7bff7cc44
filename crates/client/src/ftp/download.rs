//! Receives a file or a listing over a data connection, one lease at a time.
//!
//! It does not request the transfer. Invariant: a download is complete only if the data connection ended
//! cleanly and the server confirmed it (226). Anything else is an error, and stays one.

use std::io;

use plimsoll_io::{Either, Elapsed, Lease, Rx, Stream, Want, select};

use super::error::{Error, When};
use super::session::Session;

/// A file or a listing, as far as it has not been received.
///
/// Dropping it before its end makes the session unusable.
pub struct Download<'a> {
    session: &'a mut Session,
    /// `None` once it has ended or failed.
    data: Option<Stream>,
    /// Whether the server has confirmed it, which may be before the last bytes arrive.
    is_done: bool,
    is_broken: bool,
    bytes: u64,
}

impl<'a> Download<'a> {
    pub(super) fn new(session: &'a mut Session, data: Stream, is_done: bool) -> Download<'a> {
        Download { session, data: Some(data), is_done, is_broken: false, bytes: 0 }
    }

    /// Returns the next bytes, or `None` when all have arrived and the server has confirmed it. Dropping the
    /// future loses nothing.
    ///
    /// # Errors
    /// It did not come to its end, and never will.
    pub async fn recv(&mut self) -> Result<Option<Lease>, Error> {
        self.take(async |rx| rx.recv(Want::Body).await, |lease| lease.len() as u64).await
    }

    /// Discards the rest, without copying where the kernel can; returns the number of bytes received in all.
    ///
    /// # Errors
    /// As [`Download::recv`].
    pub async fn discard(&mut self) -> Result<u64, Error> {
        let some = async |rx: &mut Rx| Ok(Some(rx.discard(u64::MAX).await?).filter(|bytes| *bytes > 0));
        while self.take(some, |bytes| *bytes).await?.is_some() {}
        Ok(self.bytes)
    }

    /// Returns the number of bytes received so far.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Receives the next bytes by `receive`, and counts them by `length`.
    async fn take<T>(
        &mut self,
        receive: impl AsyncFnOnce(&mut Rx) -> io::Result<Option<T>>,
        length: fn(&T) -> u64,
    ) -> Result<Option<T>, Error> {
        if self.is_broken {
            // The cause was reported once; a second call must not look like an end.
            return Err(broken(io::ErrorKind::InvalidData.into()));
        }
        let taken = self.next(receive).await;
        match &taken {
            Ok(taken) => self.bytes += taken.as_ref().map_or(0, length),
            Err(_) => (self.data, self.is_broken) = (None, true),
        }
        taken
    }

    async fn next<T>(
        &mut self,
        receive: impl AsyncFnOnce(&mut Rx) -> io::Result<Option<T>>,
    ) -> Result<Option<T>, Error> {
        let Session { control, deadline, times, .. } = &mut *self.session;
        if let Some(data) = &mut self.data {
            deadline.after(times.between_bytes);
            let receiving = select(receive(&mut data.rx), control.transfer_refusal(Some(&mut self.is_done)));
            match deadline.within(receiving).await {
                Ok(Either::Left(Ok(Some(taken)))) => return Ok(Some(taken)),
                // Servers wait for the client's end before they confirm.
                Ok(Either::Left(Ok(None))) => {
                    data.tx.finish();
                    // The end of TLS; the server may have closed the connection before it.
                    let _: Result<io::Result<()>, Elapsed> = deadline.within(data.tx.drain(0)).await;
                }
                Ok(Either::Left(Err(error))) => {
                    return Err(control.late_refusal(deadline, broken(error)).await);
                }
                Ok(Either::Right(refusal)) => return Err(refusal),
                Err(Elapsed) => return Err(Error::Late(When::Receiving)),
            }
        }
        self.data = None;
        if !self.is_done {
            control.receive_completion(deadline, times.answer).await?;
            self.is_done = true;
        }
        Ok(None)
    }
}

fn broken(source: io::Error) -> Error {
    Error::Broken { when: When::Receiving, source }
}
