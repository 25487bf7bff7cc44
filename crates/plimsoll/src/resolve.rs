//! Resolves host names through the operating system's resolver.
//!
//! Invariant: a lookup may block, so it never runs on an event loop.

use std::io;
use std::rc::Rc;

use plimsoll_client::http::Resolve;
use plimsoll_io::{Io, Work};

/// Returns a resolver that offloads lookups to a thread that may block.
pub(crate) fn resolve(io: &Io) -> Resolve {
    let io = io.clone();
    Rc::new(move |host, port| {
        let (io, host) = (io.clone(), host.to_owned());
        Box::pin(async move {
            let looked_up = io.offload(Work::Directory, move |_| {
                use std::net::ToSocketAddrs as _;
                (host.as_str(), port).to_socket_addrs().map(Iterator::collect)
            });
            looked_up.await.map_err(io::Error::from)?
        })
    })
}
