//! A channel between two requests, without a thread: the engine waits for its socket, and any thread resumes
//! it.
//!
//! It holds no conversation. Invariants: a channel is parked only with nothing to send and nothing to
//! receive. The peer wakes it by a message on the socket, because the engine does not watch the eventfd.

use std::any::Any;
use std::io;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::sync::Arc;

use plimsoll_io::Io;

use crate::frame::Front;
use crate::link::SystemLink;
use crate::transport::{Channel, Ends, Pools, Terms};

/// A parked channel, without its socket.
pub(crate) struct ParkedChannel {
    link: Box<dyn Any + Send>,
    terms: Terms,
    ends: Ends,
}

impl ParkedChannel {
    /// Resumes the channel of this socket.
    ///
    /// # Errors
    /// The peer has sent another message than a wake-up; the operating system's error.
    pub(crate) fn resume(self, io: &Io, socket: Arc<OwnedFd>, pools: &Rc<Pools>) -> io::Result<Rc<Channel>> {
        let link = SystemLink::resumed(io, socket, self.link)?;
        Channel::start(io, Box::new(link), pools, self.terms, self.ends)
    }
}

impl Channel {
    /// Parks the channel, after which its socket is its [endpoint](plimsoll_io::Transport::into_endpoint).
    /// Returns `None` if there is something to send or to receive, or if the link cannot be parked.
    pub(crate) fn park(&self) -> Option<ParkedChannel> {
        let mut state = self.state.borrow_mut();
        let is_over = state.is_finishing || state.has_hung_up || state.has_failed_to_send;
        let is_busy = state.outbox.unsent() > 0 || state.file.is_some() || state.broken.is_some();
        if is_over || is_busy || state.incoming.front(self.region()) != Ok(Front::Empty) {
            return None;
        }
        // A message may come all the same, if something is published at this moment. It is taken later.
        if state.incoming.ring().about_to_park(self.region()) != Ok(0) {
            return None;
        }
        let (socket, link) = self.link.park()?;
        // A parked channel is not called at the end of the turn.
        self.wake_peer(&mut state);
        state.parked = Some(socket);
        let (side, slots, local) = (self.side, self.slots, self.local.clone());
        let terms = Terms { side, slots, local, counted: Arc::clone(&self.counted) };
        let (outgoing, incoming) = (state.outgoing.clone(), state.incoming.clone());
        Some(ParkedChannel { link, terms, ends: Ends { outgoing, incoming, untaken: state.untaken.clone() } })
    }
}
