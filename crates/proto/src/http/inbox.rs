//! Buffers received bytes of a connection, and parses request heads.
//!
//! This module does not know bodies. Invariants: bytes are consumed once and in order. Bytes behind a head
//! stay here. A head without end stops growing at its limit.

use std::io;

use plimsoll_io::{Deadline, Instant, Lease, Rx, Want};
use plimsoll_wire::http::head::{Head, HeadLimits, find_head_end, parse_head};
use plimsoll_wire::http::refusal::Refusal;

/// The receiving side of a conversation.
pub struct Inbox {
    /// The receiving side of the stream.
    pub rx: Rx,
    /// Bytes behind the last request.
    pub buffered: Option<Lease>,
}

/// The reason why there is no head.
pub enum NoHead {
    /// The client closed its side between two requests, or the connection broke.
    Ended,
    /// No request arrived before the wait ended.
    Unwanted,
    /// No request has arrived, and other connections need the worker. The idle timeout ends at this instant.
    Idle(Instant),
    /// The head timed out.
    Late,
    /// The received bytes are not a valid request.
    Refused(Refusal),
}

impl From<io::Error> for NoHead {
    fn from(_: io::Error) -> NoHead {
        // An error between requests concerns no response, so its cause is not kept.
        NoHead::Ended
    }
}

impl Inbox {
    /// Creates an inbox without buffered bytes.
    pub fn new(rx: Rx) -> Inbox {
        Inbox { rx, buffered: None }
    }

    /// Whether no byte of a next request has arrived.
    pub fn is_empty(&self) -> bool {
        self.buffered.is_none()
    }

    /// Waits for the first bytes of a request. Dropping the future loses nothing.
    ///
    /// # Errors
    /// [`NoHead::Ended`]
    pub async fn first_bytes(&mut self) -> Result<(), NoHead> {
        match self.rx.recv(Want::Head).await? {
            Some(lease) => self.buffered = Some(lease),
            None => return Err(NoHead::Ended),
        }
        Ok(())
    }

    /// Receives a whole head. Returns the buffer, which may have further bytes behind the head, and the
    /// parsed head.
    ///
    /// # Errors
    /// There is no head: the client is late, has left, or sent something else.
    pub async fn head(&mut self, limits: &HeadLimits, deadline: &Deadline) -> Result<(Lease, Head), NoHead> {
        let mut block = self.buffered.take().ok_or(NoHead::Ended)?;
        if let Some(head) = parse_head(&block, limits).map_err(NoHead::Refused)? {
            return Ok((block, head));
        }
        let mut searched = 0;
        loop {
            let more = deadline.within(self.rx.recv(Want::Head)).await.map_err(|_| NoHead::Late)??;
            let more = more.ok_or(NoHead::Ended)?;
            block.append(&more);
            // Parsed again only when the head may be complete or is too long: a head that arrives byte by
            // byte is read in linear time.
            let end = find_head_end(&block, searched);
            if (end.is_some() || block.len() > limits.bytes_max)
                && let Some(head) = parse_head(&block, limits).map_err(NoHead::Refused)?
            {
                return Ok((block, head));
            }
            searched = block.len();
        }
    }
}
