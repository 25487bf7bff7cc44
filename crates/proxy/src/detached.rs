//! A request to an origin for the cache alone: it has a copy of a client's request, and no client.
//!
//! It does not decide what is fetched ([`crate::caching`] does). Invariant: nothing of it depends on the
//! client's connection, so that it goes on when the client has left.

use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};

use core::net::SocketAddr;
use plimsoll_io::{Address, Lease, Peer, Segment, Stream, Transport, Want};
use plimsoll_wire::http::head::{Framing, Head};

use crate::body::BodyReader;
use crate::cache::policy::{CacheStatus, FieldBlock};
use crate::cache::response_cache::ResponseCache;
use crate::cache::store::Object;
use crate::caching::{CachePass, PassKind, cache_request};
use crate::exchange::{Deadlines, Exchange, Outcome, RequestBody};
use crate::origin::Origin;
use crate::proxy::Shared;
use crate::request_head::ClientRequest;
use crate::route::{Destination, Route};
use crate::scheme::Scheme;

/// A copy of a client's request.
pub(crate) struct DetachedRequest {
    shared: Rc<Shared>,
    head: Head,
    block: Vec<u8>,
    fields: FieldBlock,
    peer: Peer,
    client: Peer,
    /// The forwarded host; `None` for the origins.
    forward: Option<Arc<Origin>>,
    target: Vec<u8>,
    host: Option<Vec<u8>>,
    /// The scheme on the client's connection, and the one that is reported to the origin.
    schemes: (Scheme, Scheme),
    addresses: (Option<SocketAddr>, Option<SocketAddr>),
}

impl DetachedRequest {
    /// Copies the request of an exchange.
    pub(crate) fn of(exchange: &Exchange<'_>) -> DetachedRequest {
        let (request, route) = (&exchange.request, exchange.route);
        let forward = match route.to {
            Destination::Origins => None,
            Destination::Forward(origin) => Some(Arc::clone(origin)),
        };
        DetachedRequest {
            shared: Rc::clone(exchange.shared),
            head: *request.head,
            block: request.block.get(..request.head.len()).unwrap_or_default().to_vec(),
            fields: request.fields.clone(),
            peer: request.peer.clone(),
            client: exchange.client.clone(),
            forward,
            target: route.target.clone(),
            host: route.host.clone(),
            schemes: (request.scheme, route.scheme),
            addresses: exchange.addresses,
        }
    }

    /// Sends the request, with the cache's part in it.
    pub(crate) async fn run(
        self,
        cache: &Arc<ResponseCache>,
        kind: PassKind,
        stored: Option<&Arc<Object>>,
    ) -> Outcome {
        let DetachedRequest { shared, head, block, fields, peer, client, addresses, .. } = self;
        let (forward, target, host, (own, scheme)) = (self.forward, self.target, self.host, self.schemes);
        let to = forward.as_ref().map_or(Destination::Origins, Destination::Forward);
        let route = Route { to, target, scheme, host, max_forwards: None };
        let of_client =
            ClientRequest { head: &head, block: &block, fields: &fields, peer: &peer, scheme: own };
        let (mut rx, mut tx) = Stream::new(Rc::new(NoClient(peer.clone()))).split();
        let (upload, download) = (shared.io.deadline(), shared.io.deadline());
        let mut body = RequestBody::new(BodyReader::new(Framing::None, None), false);
        let mut own_connection = None;
        let request = cache_request(&of_client, &route);
        let mut pass = CachePass::new(cache, &request, kind, CacheStatus::default());
        if let Some(object) = stored {
            pass = pass.validating(object);
        }
        let mut exchange = Exchange {
            shared: &shared,
            rx: &mut rx,
            tx: &mut tx,
            deadlines: Deadlines { upload: &upload, download: &download },
            request: of_client,
            client,
            route: &route,
            body: &mut body,
            keep: false,
            addresses,
            own_connection: &mut own_connection,
            side: None,
            pass: Some(pass),
        };
        let outcome = exchange.run().await;
        if let Some(own) = own_connection {
            own.1.close();
        }
        outcome
    }
}

/// The transport of a client that does not exist: it never sends, and takes everything.
struct NoClient(Peer);

impl Transport for NoClient {
    fn poll_recv(&self, _: &mut Context<'_>, _: Want) -> Poll<io::Result<Option<Lease>>> {
        Poll::Pending
    }

    fn push(&self, segment: Segment) {
        drop(segment);
    }

    fn poll_drain(&self, _: &mut Context<'_>, _: u64) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn unsent(&self) -> u64 {
        0
    }

    fn lost(&self) -> u64 {
        0
    }

    fn takes_files(&self) -> bool {
        false
    }

    fn finish(&self) {}

    fn peer(&self) -> &Peer {
        &self.0
    }

    fn local(&self) -> io::Result<Address> {
        Err(io::ErrorKind::NotConnected.into())
    }
}
