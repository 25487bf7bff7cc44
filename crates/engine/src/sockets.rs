//! The sockets of one thread, driven by readiness or by a ring: the calls that a driver needs.
//!
//! It does not add a third kind: each call goes to the reactor or to the ring. Invariant: a driver and a
//! dispatcher behave the same over both.

use std::io;
use std::os::fd::OwnedFd;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use plimsoll_io::{
    Address, Endpoint, Event, Listener, Parked, ParkingSpot, Peer, Slot, Stream, Watch, Watcher,
};

use crate::limits::RING_ACCEPTS;
use crate::notifier::Notifier;
use crate::ready::{self, Bound, Hangup, IdlePoller, PollMethod, Reactor, ReadyListener, Reports, Watched};
use crate::ring::{self, Ring, RingListener};

/// How a thread waits for its sockets.
#[derive(Clone, Copy)]
pub(crate) enum Wait {
    /// By readiness: until a system call is worth trying.
    Ready(PollMethod),
    /// By completion: until the kernel has finished the operations it was given.
    Ring,
}

/// The sockets of one thread.
pub(crate) enum Sockets {
    Ready(Rc<Reactor>),
    Ring(Rc<Ring>),
}

impl Sockets {
    pub(crate) fn new(wait: Wait, notifier: &Arc<Notifier>) -> io::Result<Sockets> {
        Ok(match wait {
            Wait::Ready(method) => Sockets::Ready(Reactor::new(method, notifier)?),
            Wait::Ring => Sockets::Ring(Ring::new(notifier)?),
        })
    }

    pub(crate) fn new_turn(&self) {
        match self {
            Sockets::Ready(reactor) => reactor.to_flush.new_turn(),
            Sockets::Ring(ring) => ring.to_flush.new_turn(),
        }
    }

    /// Sends what was pushed since the last flush.
    pub(crate) fn flush(&self) {
        match self {
            Sockets::Ready(reactor) => reactor.flush(),
            Sockets::Ring(ring) => ring.flush(),
        }
    }

    /// Whether a socket has more to send than its share of this turn.
    pub(crate) fn has_more(&self) -> bool {
        match self {
            Sockets::Ready(reactor) => !reactor.to_flush.is_empty(),
            Sockets::Ring(ring) => !ring.to_flush.is_empty(),
        }
    }

    /// Waits until a socket is ready, a notification comes or `timeout` elapses, and wakes the tasks
    /// concerned.
    pub(crate) fn wait_for_events(&self, timeout: Option<Duration>) {
        match self {
            Sockets::Ready(reactor) => reactor.wait_for_events(timeout),
            Sockets::Ring(ring) => ring.wait_for_events(timeout),
        }
    }

    pub(crate) fn connect(&self, to: &Address) -> io::Result<Stream> {
        match self {
            Sockets::Ready(reactor) => ready::connect(reactor, to),
            Sockets::Ring(ring) => ring::connect(ring, to),
        }
    }

    pub(crate) fn listen(&self, at: &Address) -> io::Result<Listener> {
        match self {
            Sockets::Ready(reactor) => ready::listen(reactor, at),
            Sockets::Ring(ring) => ring::listen(ring, at),
        }
    }

    /// Calls `watcher` at each `event` of `fd`, until the watch is dropped.
    pub(crate) fn watch(
        &self,
        fd: &Arc<OwnedFd>,
        event: Event,
        watcher: &Weak<dyn Watcher>,
    ) -> io::Result<Box<dyn Watch>> {
        match self {
            Sockets::Ready(reactor) => Watched::start(reactor, fd, event, watcher),
            Sockets::Ring(ring) => Ok(ring::watch(ring, fd, event, watcher)),
        }
    }

    /// Creates a dispatcher's listener on a socket that other threads may accept from, too.
    pub(crate) fn acceptor(&self, bound: Bound) -> Acceptor {
        match self {
            Sockets::Ready(reactor) => Acceptor::Ready(ReadyListener::new(reactor, bound)),
            Sockets::Ring(ring) => Acceptor::Ring(RingListener::new(ring, bound, RING_ACCEPTS, false)),
        }
    }

    /// Creates a stream from an accepted socket. Its conversation reports to `slot`.
    pub(crate) fn accepted(&self, fd: OwnedFd, peer: Peer, slot: Rc<dyn Slot>) -> Stream {
        if peer == Peer::Unix {
            ready::widen(&fd);
        }
        match self {
            Sockets::Ready(reactor) => Stream::in_slot(ready::Socket::accepted(reactor, fd, peer), slot),
            Sockets::Ring(ring) => Stream::in_slot(ring::Socket::accepted(ring, fd, peer), slot),
        }
    }

    /// Creates a stream from an accepted socket, new or resumed, whose conversation may be parked. Returns
    /// `None` on a ring.
    pub(crate) fn parkable(&self, fd: OwnedFd, peer: Peer, slot: Rc<dyn Slot>) -> Option<(Stream, Parkable)> {
        let Sockets::Ready(reactor) = self else { return None };
        let (socket, parking) = (ready::Socket::accepted(reactor, fd, peer), Rc::default());
        let weak = Rc::downgrade(&socket);
        let stream = Stream::in_slot(socket, slot).parking_at(&parking);
        Some((stream, Parkable { socket: weak, parking }))
    }

    /// Returns a source of reports of idle sockets; `None` on a ring.
    pub(crate) fn reports(&self, poller: &Arc<IdlePoller>) -> Option<Rc<Reports>> {
        match self {
            Sockets::Ready(reactor) => Some(Reports::new(reactor, poller)),
            Sockets::Ring(_) => None,
        }
    }

    /// Watches a pipe for its end; `None` on a ring.
    pub(crate) fn hangup(&self, fd: OwnedFd) -> Option<Rc<Hangup>> {
        match self {
            Sockets::Ready(reactor) => Some(Hangup::new(reactor, fd)),
            Sockets::Ring(_) => None,
        }
    }

    /// Waits until the kernel has finished all operations it was given: the last call of a driver.
    pub(crate) fn end(&self) {
        match self {
            Sockets::Ready(_) => {}
            Sockets::Ring(ring) => ring.end(),
        }
    }
}

/// A socket whose conversation may be parked.
pub(crate) struct Parkable {
    socket: Weak<ready::Socket>,
    parking: Rc<ParkingSpot>,
}

impl Parkable {
    /// Returns the socket and its conversation, if the conversation was parked and did not end.
    pub(crate) fn parked(self) -> Option<(OwnedFd, Parked)> {
        let (parked, stream) = self.parking.take()?;
        let fd = match self.socket.upgrade() {
            Some(socket) => {
                drop(stream);
                socket.into_descriptor()?
            }
            // A transport over shared memory has taken it.
            None => match stream.into_endpoint()?.0 {
                Endpoint::Descriptor(fd) => Arc::into_inner(fd)?,
                Endpoint::Simulated(_) => return None,
            },
        };
        Some((fd, parked))
    }
}

/// A dispatcher's listener.
pub(crate) enum Acceptor {
    Ready(ReadyListener),
    Ring(RingListener),
}

impl Acceptor {
    /// Accepts the next connection, as a descriptor.
    pub(crate) fn poll_accept(&self, cx: &mut Context<'_>) -> Poll<io::Result<(OwnedFd, Peer)>> {
        match self {
            Acceptor::Ready(listener) => listener.poll_accept_fd(cx),
            Acceptor::Ring(listener) => listener.poll_accept_fd(cx),
        }
    }

    /// Ready once no connection is accepted any more except by [`Acceptor::accept_now`].
    pub(crate) fn poll_end(&self, cx: &mut Context<'_>) -> Poll<()> {
        match self {
            Acceptor::Ready(_) => Poll::Ready(()),
            Acceptor::Ring(listener) => listener.poll_end(cx),
        }
    }

    /// Accepts a connection that is already queued, regardless of this turn's bound: for the last check
    /// before closing.
    pub(crate) fn accept_now(&self) -> Option<(OwnedFd, Peer)> {
        match self {
            Acceptor::Ready(listener) => listener.accept_now(),
            Acceptor::Ring(listener) => listener.accept_now(),
        }
    }
}
