//! The two requests of classic, each on its own connection.
//!
//! Invariant: the name of a file is sent only after the server has accepted the password.

use std::io;

use plimsoll_io::{Address, Deadline, Elapsed, Io, Lease, Segment, Stream, Want};
use plimsoll_wire::classic::{Answer, Credentials, LineBuffer, Request, Unwritable};

use super::error::{Error, When};
use super::limits::Times;

/// Creates an account.
///
/// # Errors
/// [`Error::Refused`] if the name is taken or not allowed, or if sign-up is disabled; the error that broke
/// the connection.
pub async fn sign_up(io: &Io, to: &Address, credentials: Credentials, times: Times) -> Result<(), Error> {
    let mut exchange = Exchange::begin(io, to, &Request::New(credentials), times).await?;
    exchange.done().await?;
    exchange.stream.tx.finish();
    Ok(())
}

/// Starts to download a file.
///
/// # Errors
/// [`Error::Refused`] if the password is wrong or there is no such file; the error that broke the
/// connection.
pub async fn get(
    io: &Io,
    to: &Address,
    credentials: Credentials,
    file: &[u8],
    times: Times,
) -> Result<Download, Error> {
    if file.contains(&b'\n') {
        return Err(Unwritable.into());
    }
    let mut exchange = Exchange::begin(io, to, &Request::Get(credentials), times).await?;
    exchange.done().await?;
    exchange.stream.tx.push(Segment::Owned([file, b"\n"].concat()));
    match exchange.answer().await? {
        Answer::File(bytes) => Ok(Download { left: bytes, bytes, exchange }),
        _ => Err(Error::Malformed),
    }
}

/// A file that is being downloaded, as far as it has not been received.
pub struct Download {
    exchange: Exchange,
    left: u64,
    bytes: u64,
}

impl Download {
    /// Returns the length of the whole file, in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the next bytes, or `None` when all have arrived. Dropping the future loses nothing.
    ///
    /// # Errors
    /// It did not come to its end, or more bytes arrived than announced.
    pub async fn recv(&mut self) -> Result<Option<Lease>, Error> {
        let lease = match self.exchange.buffered.take().filter(|buffered| !buffered.is_empty()) {
            Some(buffered) => Some(buffered),
            None => self.exchange.receive(Want::Body, When::Receiving).await?,
        };
        let received = lease.as_ref().map_or(0, |lease| lease.len() as u64);
        self.count(received)?;
        Ok(lease)
    }

    /// Discards the rest, without copying where the kernel can; returns the number of bytes received in all.
    ///
    /// # Errors
    /// As [`Download::recv`].
    pub async fn discard(&mut self) -> Result<u64, Error> {
        let buffered = self.exchange.buffered.take().map_or(0, |buffered| buffered.len() as u64);
        self.count_some(buffered)?;
        loop {
            let Exchange { stream, deadline, times, .. } = &mut self.exchange;
            deadline.after(times.between_bytes);
            let discarded = deadline.within(stream.rx.discard(u64::MAX)).await;
            let received = discarded.unwrap_or_else(late).map_err(|error| broken(When::Receiving, error))?;
            self.count(received)?;
            if received == 0 {
                return Ok(self.bytes);
            }
        }
    }

    /// Counts received bytes; zero is the end of the connection.
    fn count(&mut self, received: u64) -> Result<(), Error> {
        if received == 0 {
            self.exchange.stream.tx.finish();
            return if self.left == 0 { Ok(()) } else { Err(ended(When::Receiving)) };
        }
        self.count_some(received)
    }

    fn count_some(&mut self, received: u64) -> Result<(), Error> {
        self.left = self.left.checked_sub(received).ok_or(Error::Malformed)?;
        Ok(())
    }
}

/// A connection with a request in progress.
struct Exchange {
    stream: Stream,
    deadline: Deadline,
    times: Times,
    /// Received bytes that have not been parsed.
    buffered: Option<Lease>,
}

impl Exchange {
    async fn begin(io: &Io, to: &Address, request: &Request, times: Times) -> Result<Exchange, Error> {
        let mut line = Vec::new();
        request.write(&mut line)?;
        let deadline = io.deadline();
        deadline.after(times.connect);
        let connected = deadline.within(io.connect(to)).await.unwrap_or_else(late);
        let mut stream = connected.map_err(|source| Error::Connect { to: to.to_string(), source })?;
        stream.tx.push(Segment::Owned(line));
        Ok(Exchange { stream, deadline, times, buffered: None })
    }

    /// Waits for the confirmation.
    async fn done(&mut self) -> Result<(), Error> {
        match self.answer().await? {
            Answer::Done => Ok(()),
            _ => Err(Error::Malformed),
        }
    }

    /// Returns the next answer; a refusal is an error.
    async fn answer(&mut self) -> Result<Answer, Error> {
        let mut line = LineBuffer::default();
        loop {
            if let Some(buffered) = &mut self.buffered {
                let (taken, whole) = line.take(buffered).map_err(|_| Error::Malformed)?;
                buffered.consume(taken);
                if let Some(whole) = whole {
                    return match Answer::parse(&whole) {
                        Ok(Answer::Refused(reason)) => Err(Error::Refused(reason)),
                        Ok(answer) => Ok(answer),
                        Err(_) => Err(Error::Malformed),
                    };
                }
            }
            let received = self.receive(Want::Head, When::Waiting).await?;
            self.buffered = Some(received.ok_or_else(|| ended(When::Waiting))?);
        }
    }

    async fn receive(&mut self, want: Want, when: When) -> Result<Option<Lease>, Error> {
        let time = if when == When::Waiting { self.times.answer } else { self.times.between_bytes };
        self.deadline.after(time);
        let received = self.deadline.within(self.stream.rx.recv(want)).await;
        received.unwrap_or_else(late).map_err(|error| broken(when, error))
    }
}

fn late<T>(_: Elapsed) -> io::Result<T> {
    Err(io::ErrorKind::TimedOut.into())
}

fn ended(when: When) -> Error {
    Error::Broken { when, source: io::ErrorKind::UnexpectedEof.into() }
}

fn broken(when: When, source: io::Error) -> Error {
    match source.kind() {
        io::ErrorKind::TimedOut => Error::Late(when),
        _ => Error::Broken { when, source },
    }
}
