//! The handshake of a session, over a stream that is not encrypted yet.
//!
//! It chooses no certificate. Invariants: a handshake has a limit of time and of bytes. A peer whose
//! handshake fails gets an alert that says why, and nothing else.

use std::io;
use std::rc::Rc;

use plimsoll_io::{Deadline, Elapsed, Io, Phase, Segment, Stream, Want};

use crate::limits::{ALERT_TIME_MAX, HANDSHAKE_BYTES_MAX, HANDSHAKE_TIME_MAX};
use crate::session::{Facts, Session};
use crate::transport::Tls;
use crate::turns::Turns;
use crate::verifier::Untrusted;

/// The reason why a handshake failed.
#[derive(Debug, thiserror::Error)]
pub enum HandshakeError {
    /// The connection broke.
    #[error("the connection broke during the TLS handshake: {0}")]
    Connection(#[from] io::Error),
    /// The peer took too long.
    #[error("the TLS handshake took too long")]
    Late,
    /// The client's network has too many handshakes at a time.
    #[error("the client's network has too many TLS handshakes at a time")]
    OverShare,
    /// The peer sent too many bytes.
    #[error("the TLS handshake is too long")]
    TooLong,
    /// The server's certificate is not trusted.
    #[error("{0}")]
    Untrusted(Box<Untrusted>),
    /// The peers do not agree, or the other one does not trust this one.
    #[error("the TLS handshake failed: {0}")]
    Refused(rustls::Error),
}

impl From<rustls::Error> for HandshakeError {
    fn from(error: rustls::Error) -> HandshakeError {
        match Untrusted::in_error(&error) {
            Some(untrusted) => HandshakeError::Untrusted(Box::new(untrusted)),
            None => HandshakeError::Refused(error),
        }
    }
}

/// Waits for the first bytes of a handshake, and leaves them to be received.
pub(crate) async fn first_bytes(io: &Io, stream: &mut Stream) -> Result<(), HandshakeError> {
    let deadline = io.deadline();
    deadline.after(HANDSHAKE_TIME_MAX);
    stream.slot().enter(Phase::Waiting, io.now());
    let received = deadline.within(stream.rx.recv(Want::Head)).await;
    let received = received.map_err(|Elapsed| HandshakeError::Late)??;
    stream.unreceive(received.ok_or(io::Error::from(io::ErrorKind::UnexpectedEof))?);
    Ok(())
}

/// Performs the handshake of a session, and puts its encryption on the stream.
pub(crate) async fn perform(
    io: &Io,
    stream: &mut Stream,
    session: Session,
) -> Result<Rc<Tls>, HandshakeError> {
    perform_observed(io, stream, session, |_| {}).await
}

/// As [`perform`], and calls `observe` after each receive.
pub(crate) async fn perform_observed(
    io: &Io,
    stream: &mut Stream,
    session: Session,
    observe: impl Fn(Facts),
) -> Result<Rc<Tls>, HandshakeError> {
    let deadline = io.deadline();
    deadline.after(HANDSHAKE_TIME_MAX);
    stream.slot().enter(Phase::Waiting, io.now());
    let mut session = session;
    let result = exchange(io, stream, &mut session, &deadline, observe).await;
    send(stream, &mut session);
    match result {
        Ok(()) => Ok(encrypt(stream, session)),
        Err(error) => {
            // The peer may still be sending: closing on it could lose the alert.
            deadline.after(ALERT_TIME_MAX);
            let _: Result<io::Result<()>, Elapsed> = deadline.within(stream.finish()).await;
            Err(error)
        }
    }
}

/// Puts the encryption of a session on a stream.
pub(crate) fn encrypt(stream: &mut Stream, session: Session) -> Rc<Tls> {
    stream.layer(|inner, received| Tls::new(inner, session, received))
}

async fn exchange(
    io: &Io,
    stream: &mut Stream,
    session: &mut Session,
    deadline: &Deadline,
    observe: impl Fn(Facts),
) -> Result<(), HandshakeError> {
    let (mut left, weight) = (HANDSHAKE_BYTES_MAX, session.signing_weight());
    let turns = (weight > 0).then(|| Turns::of(io));
    while session.is_handshaking() {
        send(stream, session);
        let received = deadline.within(stream.rx.recv(Want::Head)).await;
        let received = received.map_err(|Elapsed| HandshakeError::Late)??;
        let mut received = received.ok_or(io::Error::from(io::ErrorKind::UnexpectedEof))?;
        left = left.checked_sub(received.len()).ok_or(HandshakeError::TooLong)?;
        if let Some(turns) = &turns {
            deadline.within(turns.wait(io)).await.map_err(|Elapsed| HandshakeError::Late)?;
        }
        session.receive(&mut received)?;
        turns.iter().filter(|_| session.has_answered()).for_each(|turns| turns.charge(io, weight));
        observe(session.facts());
        stream.unreceive(received);
    }
    Ok(())
}

/// Sends what the session has to send.
fn send(stream: &mut Stream, session: &mut Session) {
    let mut sealed = Vec::new();
    session.flush(&mut sealed);
    if !sealed.is_empty() {
        stream.tx.push(Segment::Owned(sealed));
    }
}
