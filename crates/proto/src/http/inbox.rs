//! What was received on a connection and belongs to a request that is still to be read.
//!
//! It knows heads and no bodies. What must hold: bytes are taken once and in order; what follows a head
//! stays here; a head that never ends stops growing at its limit.

use std::io;

use plimsoll_io::{Deadline, Instant, Lease, Rx, Want};
use plimsoll_wire::http::head::{Head, HeadLimits, find_head_end, parse_head};
use plimsoll_wire::http::refusal::Refusal;

/// The receiving side of a conversation.
pub(super) struct Inbox {
    pub(super) rx: Rx,
    /// Bytes after the last request's end.
    pub(super) held: Option<Lease>,
}

/// Why there is no head.
pub(super) enum NoHead {
    /// The peer ended between two requests, or broke off.
    Ended,
    /// No request came while we were willing to wait for one.
    Unwanted,
    /// None has come yet, and others need the worker. The idle time ends at this instant.
    Idle(Instant),
    /// It took too long.
    Late,
    /// It was sent something that is no request.
    Refused(Refusal),
}

impl From<io::Error> for NoHead {
    fn from(_: io::Error) -> NoHead {
        // What happened to a connection between requests is nobody's news.
        NoHead::Ended
    }
}

impl Inbox {
    pub(super) fn new(rx: Rx) -> Inbox {
        Inbox { rx, held: None }
    }

    /// Whether nothing of a next request has come yet.
    pub(super) fn is_empty(&self) -> bool {
        self.held.is_none()
    }

    /// Waits for the first bytes of a request. Dropping the future loses none.
    pub(super) async fn first_bytes(&mut self) -> Result<(), NoHead> {
        match self.rx.recv(Want::Head).await? {
            Some(lease) => self.held = Some(lease),
            None => return Err(NoHead::Ended),
        }
        Ok(())
    }

    /// Reads a whole head: the bytes it lies in, with whatever follows it, and its parts.
    pub(super) async fn head(
        &mut self,
        limits: &HeadLimits,
        deadline: &Deadline,
    ) -> Result<(Lease, Head), NoHead> {
        let mut block = self.held.take().ok_or(NoHead::Ended)?;
        if let Some(head) = parse_head(&block, limits).map_err(NoHead::Refused)? {
            return Ok((block, head));
        }
        let mut searched = 0;
        loop {
            let more = deadline.within(self.rx.recv(Want::Head)).await.map_err(|_| NoHead::Late)??;
            let more = more.ok_or(NoHead::Ended)?;
            block.append(&more);
            // Parsed again only when it may be whole or is too long: a head that comes byte by byte is
            // read in linear time.
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
