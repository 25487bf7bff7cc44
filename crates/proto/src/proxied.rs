//! A handler for connections that start with a header of the PROXY protocol. It takes the client's address
//! from the header, counts the connection for it, and passes the connection to another handler.
//!
//! It works under every engine, because the header is received from the stream. Invariants: the bytes of an
//! untrusted peer are never parsed as a header. A connection whose header does not arrive ends within a
//! bounded time. A client whose address has its share of the connections is refused.

use std::rc::Rc;
use std::sync::Arc;

use plimsoll_io::{Handler, Io, Lease, LocalFuture, Networks, Parked, Peer, Resume, Segment, Stream, Want};
use plimsoll_wire::proxy::parse;

use crate::Current;
use crate::body_sender::linger;
use crate::limits::{PROXY_HEADER_TIME_MAX, REFUSED_LINGER_TIME};

/// A handler that receives the client's address before another handler serves the connection.
pub struct Proxied {
    io: Io,
    inner: Rc<dyn Handler>,
    trusted: Arc<Current<Networks>>,
    /// The protocol's message to a client whose address has too many connections.
    over_share: &'static [u8],
}

impl Proxied {
    /// Creates a handler that expects a header from the peers in `trusted`, or from every peer if that is
    /// empty, and serves by `inner`. `over_share` is the protocol's message to a client whose address has
    /// too many connections.
    pub fn new(
        io: Io,
        inner: Rc<dyn Handler>,
        trusted: Arc<Current<Networks>>,
        over_share: &'static [u8],
    ) -> Proxied {
        Proxied { io, inner, trusted, over_share }
    }

    fn sends_header(&self, peer: &Peer) -> bool {
        let trusted = self.trusted.get();
        trusted.is_empty() || trusted.contain(peer)
    }

    /// Calls `then` with the stream behind its header.
    fn behind_header(&self, stream: Stream, then: fn(&dyn Handler, Stream) -> LocalFuture) -> LocalFuture {
        if !self.sends_header(stream.peer()) {
            return then(&*self.inner, stream);
        }
        let (io, inner, over_share) = (self.io.clone(), Rc::clone(&self.inner), self.over_share);
        Box::pin(async move {
            let peer = stream.peer().clone();
            // Boxed: the memory is freed before the connection is served.
            match Box::pin(receive_header(&io, stream)).await {
                Some(stream) if stream.slot().count_for(Some(stream.peer())) => then(&*inner, stream).await,
                Some(stream) => Box::pin(refuse(&io, stream, over_share)).await,
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

    fn resume(&self, stream: Stream, parked: Parked, action: Resume) -> LocalFuture {
        // The parked conversation has the client's address.
        self.inner.resume(stream, parked, action)
    }

    fn background(&self) -> LocalFuture {
        self.inner.background()
    }
}

/// Sends a refusal, and ends the connection.
async fn refuse(io: &Io, mut stream: Stream, refusal: &'static [u8]) {
    stream.tx.push(Segment::Static(refusal));
    linger(io, &mut stream, &io.deadline(), REFUSED_LINGER_TIME).await;
}

/// Returns the stream behind its header; `None` if no header arrives in time.
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
        // The parser bounds the header, and with it the buffer.
        let received = received.as_mut()?;
        if let Some(header) = parse(received).ok()? {
            received.consume(header.len);
            let client = header.source.map(|at| Peer::Ip(at.ip(), at.port()));
            let client = client.unwrap_or_else(|| stream.peer().clone());
            let rest = Lease::owned(received.to_vec());
            return Some(stream.behind_proxy(client, header.is_encrypted, rest));
        }
    }
}
