//! A listener, as protocols use it: it yields accepted streams.
//!
//! It is not the dispatcher that serves connections (an engine has one). A protocol listens for streams
//! that belong to a conversation it already has, as in FTP's passive mode. Invariant: dropping the
//! listener stops listening, and accepted streams stay open.

use std::future::poll_fn;
use std::io;
use std::task::{Context, Poll};

use crate::address::Address;
use crate::stream::Stream;

/// The listener that an engine implements, under [`Listener`].
pub trait Accept {
    /// Accepts the next stream.
    ///
    /// # Errors
    /// The operating system's error; the listener stays usable.
    fn poll_accept(&self, cx: &mut Context<'_>) -> Poll<io::Result<Stream>>;

    /// Returns the address that it listens on, with the port that the kernel chose.
    fn address(&self) -> &Address;
}

/// Accepts streams at one address.
pub struct Listener(Box<dyn Accept>);

impl Listener {
    /// Wraps an engine's listener.
    pub fn new(accept: Box<dyn Accept>) -> Listener {
        Listener(accept)
    }

    /// Accepts the next stream. Dropping the future loses no stream.
    ///
    /// # Errors
    /// The operating system's error; the listener stays usable.
    pub async fn accept(&mut self) -> io::Result<Stream> {
        poll_fn(|cx| self.0.poll_accept(cx)).await
    }

    /// Returns the address that it listens on, with the port that the kernel chose.
    pub fn address(&self) -> &Address {
        self.0.address()
    }
}
