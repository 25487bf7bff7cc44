//! The PROXY protocol before any other: a handler that learns the client from the header that a proxy sends
//! first, and has another handler serve the rest.
//!
//! It works under every engine, because the header is received from the stream. What must hold: the bytes
//! of a peer that is not such a proxy are never parsed as a header; a connection whose header does not arrive
//! ends within a bounded time.

use std::rc::Rc;
use std::sync::Arc;

use plimsoll_io::{Handler, Io, Lease, LocalFuture, Networks, Parked, Peer, Resume, Stream, Want};
use plimsoll_wire::proxy::parse;

use crate::Current;
use crate::limits::PROXY_HEADER_TIME_MAX;

/// Serves connections whose proxies announce their clients by the PROXY protocol.
pub struct Proxied {
    io: Io,
    inner: Rc<dyn Handler>,
    trusted: Arc<Current<Networks>>,
}

impl Proxied {
    /// Receives a header from peers in `trusted`, from every peer if that is empty, and serves by `inner`.
    pub fn new(io: Io, inner: Rc<dyn Handler>, trusted: Arc<Current<Networks>>) -> Proxied {
        Proxied { io, inner, trusted }
    }

    fn sends_header(&self, peer: &Peer) -> bool {
        let trusted = self.trusted.get();
        trusted.is_empty() || trusted.contain(peer)
    }

    /// Has `then` done with the stream behind its header.
    fn behind_header(&self, stream: Stream, then: fn(&dyn Handler, Stream) -> LocalFuture) -> LocalFuture {
        if !self.sends_header(stream.peer()) {
            return then(&*self.inner, stream);
        }
        let (io, inner) = (self.io.clone(), Rc::clone(&self.inner));
        Box::pin(async move {
            let peer = stream.peer().clone();
            // In memory of its own, which is freed before the connection is served.
            match Box::pin(receive_header(&io, stream)).await {
                Some(stream) => then(&*inner, stream).await,
                None => {
                    tracing::debug!(%peer, "a connection without a header of the PROXY protocol was dropped")
                }
            }
        })
    }
}

impl Handler for Proxied {
    fn serve(&self, stream: Stream) -> LocalFuture {
        self.behind_header(stream, |inner, stream| inner.serve(stream))
    }

    fn refuse(&self, stream: Stream) -> LocalFuture {
        self.behind_header(stream, |inner, stream| inner.refuse(stream))
    }

    fn resume(&self, stream: Stream, parked: Parked, how: Resume) -> LocalFuture {
        // The conversation has kept the client that the header named.
        self.inner.resume(stream, parked, how)
    }

    fn background(&self) -> LocalFuture {
        self.inner.background()
    }
}

/// The stream behind its header; none where no header comes in time.
async fn receive_header(io: &Io, mut stream: Stream) -> Option<Stream> {
    let deadline = io.deadline();
    deadline.after(PROXY_HEADER_TIME_MAX);
    let mut received: Option<Lease> = None;
    loop {
        let lease = deadline.within(stream.rx.recv(Want::Head)).await.ok()?.ok()??;
        match &mut received {
            Some(received) => received.append(&lease),
            None => received = Some(lease),
        }
        // It asks for no more than the wire's limits, so that this grows no further.
        let received = received.as_mut()?;
        if let Some(header) = parse(received).ok()? {
            received.consume(header.len);
            let client = header.source.map(|at| Peer::Ip(at.ip(), at.port()));
            let client = client.unwrap_or_else(|| stream.peer().clone());
            let rest = Lease::owned(received.to_vec());
            return Some(stream.behind_proxy(client, Some(rest)));
        }
    }
}
