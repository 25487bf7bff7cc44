//! Accepting, as every dispatcher does it.
//!
//! It does not serve. What must hold: a system that is out of descriptors, or a server that is full, slows
//! accepting and never spins; who was in the queue when the order to stop came is still served
//! (one that is [to speak first](crate::Bound::client_speaks_first), and has not, is not in it yet).

use std::future::{Future, poll_fn};
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use plimsoll_io::{Either, Io, Peer, select};
use rustix::io::Errno;
use rustix::net::sockopt::socket_error;
use rustix::net::{RecvFlags, recv};

use crate::connections::{Admitted, Connections};
use crate::driver::Driver;
use crate::limits::{ACCEPT_PAUSE, ACCEPTS_AT_STOP_MAX, FULL_PAUSE};
use crate::ready::Bound;
use crate::sockets::Acceptor;

/// A connection that may be served.
pub(super) struct Accepted {
    pub(super) fd: OwnedFd,
    pub(super) peer: Peer,
    pub(super) admitted: Admitted,
}

/// Accepts at `bound`, as long as there is room, until the order to stop, and hands every connection to
/// `serve` in the same turn in which there was room for it.
pub(super) fn accept_all(
    driver: &Rc<Driver>,
    bound: Bound,
    connections: &Arc<Connections>,
    room: impl Fn(&mut Context<'_>) -> Poll<()> + 'static,
    serve: impl Fn(Accepted) + 'static,
) -> impl Future<Output = ()> + 'static {
    let (io, connections) = (driver.io(), Arc::clone(connections));
    let listener = driver.sockets().acceptor(bound);
    async move {
        while let Either::Left(accepted) =
            select(next(&listener, &io, &connections, &room), io.stopping()).await
        {
            serve(accepted);
        }
        poll_fn(|cx| listener.poll_end(cx)).await;
        for _ in 0..ACCEPTS_AT_STOP_MAX {
            let waiting = if connections.is_full() { None } else { listener.accept_now() };
            let Some((fd, peer)) = waiting else { return };
            if let Some(admitted) = connections.admit(&peer) {
                serve(Accepted { fd, peer, admitted });
            }
        }
    }
}

/// Who is always ready for one more.
pub(super) fn always(_: &mut Context<'_>) -> Poll<()> {
    Poll::Ready(())
}

/// Whether the peer has left again: without a word, or with a reset, whatever it had said before. A thread,
/// or even a process, costs more than a client's connect and close, so a flood of those would hold up
/// everybody who comes after.
pub(super) fn has_gone(accepted: &Accepted) -> bool {
    let looked = recv(&accepted.fd, &mut [0; 1], RecvFlags::PEEK | RecvFlags::DONTWAIT);
    // What came before a reset can be read after it.
    !matches!(looked, Ok((_, 1..)) | Err(Errno::AGAIN | Errno::INTR)) || is_reset(accepted)
}

fn is_reset(accepted: &Accepted) -> bool {
    !matches!(socket_error(&accepted.fd), Ok(Ok(())))
}

async fn next(
    listener: &Acceptor,
    io: &Io,
    connections: &Arc<Connections>,
    room: &impl Fn(&mut Context<'_>) -> Poll<()>,
) -> Accepted {
    loop {
        while connections.is_full() {
            io.sleep(FULL_PAUSE).await;
        }
        let accepted = poll_fn(|cx| {
            ready!(room(cx));
            listener.poll_accept(cx)
        });
        match accepted.await {
            Ok((fd, peer)) => {
                // Who is refused is dropped here: its descriptor closes.
                if let Some(admitted) = connections.admit(&peer) {
                    return Accepted { fd, peer, admitted };
                }
            }
            Err(error) => {
                tracing::warn!(%error, "cannot accept just now; is the limit of open files too low?");
                io.sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}
