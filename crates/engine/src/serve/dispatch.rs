//! Accepting, as all dispatchers do it.
//!
//! It does not serve. Invariants: without a free descriptor or slot, accepting slows down and never spins. A
//! client that gets no slot receives a refusal without waiting. Connections that were queued when the order
//! to stop came are still served. (A deferred connection whose client has not [spoken
//! first](crate::Bound::client_speaks_first) is not in the queue yet.)

use std::future::{Future, poll_fn};
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use plimsoll_io::{Either, Io, Peer, select};
use rustix::io::Errno;
use rustix::net::sockopt::socket_error;
use rustix::net::{RecvFlags, SendFlags, Shutdown, recv, send, shutdown};

use crate::connections::{Admitted, Connections};
use crate::driver::Driver;
use crate::limits::{
    ACCEPT_PAUSE, ACCEPTS_AT_STOP_MAX, EVICTION_PAUSE, FULL_PAUSE, REFUSED_READ_BYTES, REFUSED_READS_MAX,
};
use crate::ready::{Bound, Service};
use crate::sockets::Acceptor;

/// A connection that may be served.
pub(super) struct Accepted {
    pub(super) fd: OwnedFd,
    pub(super) peer: Peer,
    pub(super) admitted: Admitted,
}

/// Accepts at `bound`, as long as there is room, until the order to stop. Passes every connection to `serve`
/// in the same turn in which there was room for it.
pub(super) fn accept_all(
    driver: &Rc<Driver>,
    bound: Bound,
    connections: &Arc<Connections>,
    room: impl Fn(&mut Context<'_>) -> Poll<()> + 'static,
    serve: impl Fn(Accepted) + 'static,
) -> impl Future<Output = ()> + 'static {
    let (io, connections, service) = (driver.io(), Arc::clone(connections), bound.service());
    connections.reserve_for(service.number);
    let listener = driver.sockets().acceptor(bound);
    async move {
        while let Either::Left(accepted) =
            select(next(&listener, service, &io, &connections, &room), io.stopping()).await
        {
            serve(accepted);
        }
        poll_fn(|cx| listener.poll_end(cx)).await;
        for _ in 0..ACCEPTS_AT_STOP_MAX {
            let is_full = connections.is_full(service.number);
            let waiting = if is_full { None } else { listener.accept_now() };
            let Some((fd, peer)) = waiting else { return };
            match connections.admit(&peer, service.number) {
                Some(admitted) => serve(Accepted { fd, peer, admitted }),
                None => refuse(&fd, service),
            }
        }
    }
}

/// The room of a dispatcher that can always take one more.
pub(super) fn always(_: &mut Context<'_>) -> Poll<()> {
    Poll::Ready(())
}

/// Returns whether the client has disconnected: without sending anything, or by a reset, even after sending.
/// A thread or a process costs more than a client's connect and close, so a flood of those would delay all
/// later clients.
pub(super) fn has_disconnected(accepted: &Accepted) -> bool {
    let looked = recv(&accepted.fd, &mut [0; 1], RecvFlags::PEEK | RecvFlags::DONTWAIT);
    // Bytes that arrived before a reset can be read after it.
    !matches!(looked, Ok((_, 1..)) | Err(Errno::AGAIN | Errno::INTR)) || is_reset(accepted)
}

fn is_reset(accepted: &Accepted) -> bool {
    !matches!(socket_error(&accepted.fd), Ok(Ok(())))
}

/// Sends the protocol's refusal to a client that gets no slot, without waiting. A new socket's buffer has
/// room for it.
pub(super) fn refuse(fd: &OwnedFd, service: Service) {
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    if service.refusal.is_empty() || send(fd, service.refusal, flags).is_err() {
        return;
    }
    // An error means that the client has disconnected, which is the aim.
    let _ = shutdown(fd, Shutdown::Write);
    let mut unread = [0; REFUSED_READ_BYTES];
    let flags = RecvFlags::TRUNC | RecvFlags::DONTWAIT;
    for _ in 0..REFUSED_READS_MAX {
        if !matches!(recv(fd, &mut unread, flags), Ok((_, 1..))) {
            return;
        }
    }
}

async fn next(
    listener: &Acceptor,
    service: Service,
    io: &Io,
    connections: &Arc<Connections>,
    room: &impl Fn(&mut Context<'_>) -> Poll<()>,
) -> Accepted {
    loop {
        while connections.is_full(service.number) {
            let is_evicting = connections.make_room(service.number);
            io.sleep(if is_evicting { EVICTION_PAUSE } else { FULL_PAUSE }).await;
        }
        let accepted = poll_fn(|cx| {
            ready!(room(cx));
            listener.poll_accept(cx)
        });
        match accepted.await {
            Ok((fd, peer)) => match connections.admit(&peer, service.number) {
                Some(admitted) => return Accepted { fd, peer, admitted },
                None => refuse(&fd, service),
            },
            Err(error) => {
                tracing::warn!(%error, "cannot accept just now; is the limit of open files too low?");
                io.sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}
