//! A channel's side as a byte stream: the operations that protocols call, and its end.
//!
//! It moves nothing itself. Invariant: a side that is dropped before its end is sent announces an abort,
//! unless it was parked.

use std::io;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use plimsoll_io::{Address, Endpoint, FileRange, Lease, Peer, Segment, Transport, Want};

use super::{Channel, State};
use crate::frame::Front;

impl Transport for Channel {
    fn poll_recv(&self, cx: &mut Context<'_>, want: Want) -> Poll<io::Result<Option<Lease>>> {
        let mut state = self.state.borrow_mut();
        self.poll_front(cx, &mut state)?.map(|front| match front {
            Front::Bytes(_) => self.receive_bytes(&mut state, want).map(Some),
            Front::File { .. } => self.receive_from_file(&mut state, want).map(Some),
            _ => Ok(None),
        })
    }

    fn push(&self, segment: Segment) {
        let mut state = self.state.borrow_mut();
        debug_assert!(!state.is_finishing, "pushed after finish");
        if state.has_hung_up || state.has_failed_to_send {
            state.has_failed_to_send = true;
            state.outbox.lose(&segment);
            return;
        }
        state.outbox.push(segment);
        self.call_at_turn_end(&mut state);
    }

    fn poll_drain(&self, cx: &mut Context<'_>, below: u64) -> Poll<io::Result<()>> {
        let mut state = self.state.borrow_mut();
        if state.outbox.unsent() > below {
            // A task that waits for this pushes nothing more: there is no gain in waiting for the turn's end.
            self.send(&mut state);
            // The peer is woken at the end of the turn.
            self.call_at_turn_end(&mut state);
        }
        if state.has_failed_to_send {
            let (kind, why) = state
                .broken
                .unwrap_or((io::ErrorKind::BrokenPipe, "the peer's process has closed the connection"));
            return Poll::Ready(Err(io::Error::new(kind, why)));
        }
        if state.outbox.unsent() <= below {
            return Poll::Ready(Ok(()));
        }
        state.drainer = Some((below, cx.waker().clone()));
        Poll::Pending
    }

    fn unsent(&self) -> u64 {
        self.state.borrow().outbox.unsent()
    }

    fn lost(&self) -> u64 {
        self.state.borrow().outbox.lost()
    }

    fn takes_files(&self) -> bool {
        true
    }

    fn passes_files(&self, bytes: u64) -> bool {
        self.passes(bytes)
    }

    fn poll_recv_file(&self, cx: &mut Context<'_>, bytes_max: u64) -> Poll<Option<FileRange>> {
        let mut state = self.state.borrow_mut();
        if !ready!(self.poll_is_file(cx, &mut state)) {
            return Poll::Ready(None);
        }
        let Some(FileRange { file, range }) = &mut state.file else { return Poll::Ready(None) };
        let end = range.end.min(range.start.saturating_add(bytes_max));
        let part = FileRange { file: file.clone(), range: range.start..end };
        range.start = end;
        if range.is_empty() {
            state.file = None;
        }
        self.count_received(&mut state, 0);
        Poll::Ready(Some(part))
    }

    fn poll_passed_file(&self, cx: &mut Context<'_>) -> Poll<Option<FileRange>> {
        let mut state = self.state.borrow_mut();
        let is_file = ready!(self.poll_is_file(cx, &mut state));
        Poll::Ready(state.file.clone().filter(|_| is_file))
    }

    fn into_endpoint(self: Rc<Self>) -> Option<Endpoint> {
        let socket = self.state.borrow().parked.clone()?;
        // The caller has the only reference to the socket after that.
        drop(self);
        Some(Endpoint::Descriptor(socket))
    }

    fn finish(&self) {
        let mut state = self.state.borrow_mut();
        state.is_finishing = true;
        self.call_at_turn_end(&mut state);
    }

    fn peer(&self) -> &Peer {
        &self.peer
    }

    fn local(&self) -> io::Result<Address> {
        Ok(self.local.clone())
    }
}

impl Channel {
    /// Returns whether the part that is received next is a passed file.
    fn poll_is_file(&self, cx: &mut Context<'_>, state: &mut State) -> Poll<bool> {
        self.poll_front(cx, state).map(|front| matches!(front, Ok(Front::File { .. })))
    }
}

impl Drop for Channel {
    fn drop(&mut self) {
        let mut state = self.state.borrow_mut();
        if state.is_finishing {
            self.send(&mut state);
        }
        self.end_wait(&mut state);
        if state.parked.is_some() {
            return;
        }
        if !state.has_sent_end && state.broken.is_none() && !state.has_hung_up {
            let region = self.region();
            if state.outgoing.ring().room(region).is_ok_and(|room| room > 0) {
                state.outgoing.send_abort(region);
            }
        }
        // Closing the link wakes the peer.
    }
}
