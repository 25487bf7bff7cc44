//! Where streams come from: a listener, as protocols hold it.
//!
//! It is not the dispatcher that serves connections (an engine has one); a protocol listens for streams
//! that belong to one it already has, as FTP's passive mode does. What must hold: dropping it stops
//! listening, and streams that were accepted live on.

use std::future::poll_fn;
use std::io;
use std::task::{Context, Poll};

use crate::address::Address;
use crate::stream::Stream;

/// What an engine implements for [`Listener`].
pub trait Accept {
    /// The next stream.
    ///
    /// # Errors
    /// What the system says; the listener stays good.
    fn poll_accept(&self, cx: &mut Context<'_>) -> Poll<io::Result<Stream>>;

    /// Where it listens, with the port that the system chose.
    fn address(&self) -> &Address;
}

/// Accepts streams at one address.
pub struct Listener(Box<dyn Accept>);

impl Listener {
    /// Wraps what an engine made.
    pub fn new(accept: Box<dyn Accept>) -> Listener {
        Listener(accept)
    }

    /// The next stream. Dropping the future loses none.
    ///
    /// # Errors
    /// What the system says; the listener stays good.
    pub async fn accept(&mut self) -> io::Result<Stream> {
        poll_fn(|cx| self.0.poll_accept(cx)).await
    }

    /// Where it listens, with the port that the system chose.
    pub fn address(&self) -> &Address {
        self.0.address()
    }
}
