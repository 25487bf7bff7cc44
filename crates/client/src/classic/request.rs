//! The two requests of classic, each on its own connection.
//!
//! Invariant: the name of a file is sent only after the server has accepted the password.

use std::io;

use plimsoll_io::{Address, Deadline, Elapsed, Io, Lease, Segment, Stream, Want};
use plimsoll_wire::classic::{Answer, Credentials, Line, Request, Unwritable};

use super::error::{Error, When};
use super::limits::Times;

/// Creates an account.
///
/// # Errors
/// [`Error::Refused`] if the name is taken or not allowed, or if sign-up is disabled; the error that broke
/// the connection.
pub async fn sign_up(io: &Io, to: &Address, who: Credentials, times: Times) -> Result<(), Error> {
    let mut asking = Asking::begin(io, to, &Request::New(who), times).await?;
    asking.done().await?;
    asking.stream.tx.finish();
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
    who: Credentials,
    file: &[u8],
    times: Times,
) -> Result<Download, Error> {
    if file.contains(&b'\n') {
        return Err(Unwritable.into());
    }
    let mut asking = Asking::begin(io, to, &Request::Get(who), times).await?;
    asking.done().await?;
    asking.stream.tx.push(Segment::Owned([file, b"\n"].concat()));
    match asking.answer().await? {
        Answer::File(bytes) => Ok(Download { left: bytes, bytes, asking }),
        _ => Err(Error::Malformed),
    }
}

/// A file that is being downloaded, as far as it has not been received.
pub struct Download {
    asking: Asking,
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
        let lease = match self.asking.held.take().filter(|held| !held.is_empty()) {
            Some(held) => Some(held),
            None => self.asking.receive(Want::Body, When::Receiving).await?,
        };
        let come = lease.as_ref().map_or(0, |lease| lease.len() as u64);
        self.count(come)?;
        Ok(lease)
    }

    /// Discards the rest, without copying where the kernel can; returns the number of bytes received in all.
    ///
    /// # Errors
    /// As [`Download::recv`].
    pub async fn discard(&mut self) -> Result<u64, Error> {
        let held = self.asking.held.take().map_or(0, |held| held.len() as u64);
        self.count_some(held)?;
        loop {
            let Asking { stream, deadline, times, .. } = &mut self.asking;
            deadline.after(times.between_bytes);
            let discarded = deadline.within(stream.rx.discard(u64::MAX)).await;
            let come = discarded.unwrap_or_else(late).map_err(|error| broken(When::Receiving, error))?;
            self.count(come)?;
            if come == 0 {
                return Ok(self.bytes);
            }
        }
    }

    /// Counts received bytes; zero is the end of the connection.
    fn count(&mut self, come: u64) -> Result<(), Error> {
        if come == 0 {
            self.asking.stream.tx.finish();
            return if self.left == 0 { Ok(()) } else { Err(ended(When::Receiving)) };
        }
        self.count_some(come)
    }

    fn count_some(&mut self, come: u64) -> Result<(), Error> {
        self.left = self.left.checked_sub(come).ok_or(Error::Malformed)?;
        Ok(())
    }
}

/// A connection with a request in progress.
struct Asking {
    stream: Stream,
    deadline: Deadline,
    times: Times,
    /// Received bytes that have not been parsed.
    held: Option<Lease>,
}

impl Asking {
    async fn begin(io: &Io, to: &Address, request: &Request, times: Times) -> Result<Asking, Error> {
        let mut line = Vec::new();
        request.write(&mut line)?;
        let deadline = io.deadline();
        deadline.after(times.connect);
        let connected = deadline.within(io.connect(to)).await.unwrap_or_else(late);
        let mut stream = connected.map_err(|source| Error::Connect { to: to.to_string(), source })?;
        stream.tx.push(Segment::Owned(line));
        Ok(Asking { stream, deadline, times, held: None })
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
        let mut line = Line::default();
        loop {
            if let Some(held) = &mut self.held {
                let (taken, whole) = line.take(held).map_err(|_| Error::Malformed)?;
                held.consume(taken);
                if let Some(whole) = whole {
                    return match Answer::parse(&whole) {
                        Ok(Answer::Refused(reason)) => Err(Error::Refused(reason)),
                        Ok(answer) => Ok(answer),
                        Err(_) => Err(Error::Malformed),
                    };
                }
            }
            let received = self.receive(Want::Head, When::Waiting).await?;
            self.held = Some(received.ok_or_else(|| ended(When::Waiting))?);
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
