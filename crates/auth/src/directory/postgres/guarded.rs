//! A stream that does not send the password itself to a server that may be an impostor.
//!
//! A server can request the password in clear (`AuthenticationCleartextPassword`), and no setting of the
//! driver forbids that. Invariant: the message with the password is sent through a Unix socket, or through
//! TLS that the URL demands. Proofs of the password (MD5, SCRAM) are sent through any stream.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use zeroize::Zeroizing;

use super::address::DatabaseAddress;
use crate::directory::database::endpoint::Endpoint;
use crate::directory::database::tls::Encryption;

/// A stream of the driver, encrypted or not.
pub(super) struct Guarded<S> {
    stream: S,
    /// The message that is not sent, which the driver writes on its own.
    forbidden: Option<Arc<Zeroizing<Vec<u8>>>>,
}

impl<S> Guarded<S> {
    /// Wraps the stream of a connection to this address.
    pub(super) fn new(stream: S, address: &DatabaseAddress) -> Guarded<S> {
        let is_safe = matches!(
            (&address.place, &address.encryption),
            (Endpoint::Unix(_), _) | (_, Encryption::Always(_))
        );
        let password = address.password.as_ref().filter(|_| !is_safe);
        let forbidden = password.map(|password| Arc::new(password_message(password.bytes())));
        Guarded { stream, forbidden }
    }

    /// Returns the stream, and the means to wrap the one that replaces it.
    pub(super) fn open<T>(self) -> (S, impl FnOnce(T) -> Guarded<T>) {
        let forbidden = self.forbidden;
        (self.stream, |stream| Guarded { stream, forbidden })
    }

    pub(super) fn stream(&self) -> &S {
        &self.stream
    }
}

/// Returns `PasswordMessage`.
fn password_message(password: &[u8]) -> Zeroizing<Vec<u8>> {
    // The length is that of all but the first byte.
    let length = u32::try_from(password.len() + 5).unwrap_or(u32::MAX).to_be_bytes();
    Zeroizing::new([b"p", &length[..], password, b"\0"].concat())
}

impl<S: AsyncRead + Unpin> AsyncRead for Guarded<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, into)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Guarded<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        if self.forbidden.as_ref().is_some_and(|forbidden| bytes.starts_with(forbidden)) {
            return Poll::Ready(Err(io::Error::new(
                io::ErrorKind::PermissionDenied,
                "it asks for the password itself, which is sent through a Unix socket or TLS only; add \
                 sslmode=verify-full to the URL, or have the server use scram-sha-256",
            )));
        }
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
