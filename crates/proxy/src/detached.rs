//! A request to an origin for the cache alone: it has a copy of a client's request, and no client.
//!
//! It does not decide what is fetched ([`crate::caching`] does). Invariant: nothing of it depends on the
//! client's connection, so that it goes on when the client has left.

use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};

use plimsoll_io::{Address, Lease, LocalFuture, Peer, Segment, Stream, Transport, Want};
use plimsoll_wire::http::head::Framing;

use crate::body::BodyReader;
use crate::cache::policy::CacheStatus;
use crate::cache::response_cache::ResponseCache;
use crate::caching::{CachePass, PassKind, cache_request};
use crate::exchange::{Deadlines, Exchange, Outcome, RequestBody};
use crate::request_head::ClientRequest;

/// Returns the exchange for a copy of a client's request, with the cache's part in it.
pub(crate) fn detached(client: &Exchange<'_>, cache: &Arc<ResponseCache>, kind: PassKind) -> LocalFuture {
    let (shared, cache) = (Rc::clone(client.shared), Arc::clone(cache));
    let ClientRequest { head, block, fields, peer, scheme } = &client.request;
    let (head, fields, peer, scheme) = (**head, (*fields).clone(), (*peer).clone(), *scheme);
    let block = block.get(..head.len()).unwrap_or_default().to_vec();
    let (route, addresses, client) = (client.route.clone(), client.addresses, client.client.clone());
    Box::pin(async move {
        let request = ClientRequest { head: &head, block: &block, fields: &fields, peer: &peer, scheme };
        let cached = cache_request(&request, &route);
        let (mut rx, mut tx) = Stream::new(Rc::new(NoClient(peer.clone()))).split();
        let (upload, download) = (shared.io.deadline(), shared.io.deadline());
        let mut own_connection = None;
        let mut exchange = Exchange {
            shared: &shared,
            rx: &mut rx,
            tx: &mut tx,
            deadlines: Deadlines { upload: &upload, download: &download },
            request,
            client,
            route: &route,
            body: &mut RequestBody::new(BodyReader::new(Framing::None, None), false),
            keep: false,
            addresses,
            own_connection: &mut own_connection,
            side: None,
            pass: Some(CachePass::new(&cache, &cached, kind, CacheStatus::default())),
        };
        // The client has its answer, or gets it from the cache.
        let _: Outcome = exchange.run().await;
        if let Some(own) = own_connection {
            own.1.close();
        }
    })
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
