//! Names of servers, looked up by the system.
//!
//! What must hold: a look-up may wait, so it is done where that holds nobody up.

use std::io;
use std::rc::Rc;

use plimsoll_client::http::Resolve;
use plimsoll_io::{Io, Work};

/// Looks names up by the system, which may wait.
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
