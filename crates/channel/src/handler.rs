//! Both ends of a channel for protocols: a handler that accepts channels, and a connector.
//!
//! It serves nothing itself: the inner handler does, over a stream like any other. Invariant: a connection
//! whose handshake fails costs the server one bounded wait.

use std::io;
use std::rc::Rc;
use std::sync::Arc;

use plimsoll_io::{Address, Endpoint, Handler, Io, Link, LocalFuture, Parked, Resume, Slot, Stream};

use crate::handshake;
use crate::limits::{RING_BYTES, SLOTS};
use crate::meter::{Count, Meter};
use crate::transport::{Bodies, Channel, Pools, Side};

/// The settings of a side.
#[derive(Clone)]
pub struct Settings {
    /// Bytes of each ring. The accepting side decides.
    pub ring_bytes: usize,
    /// Slots of each direction of a channel, up to [`SLOTS_MAX`](crate::limits::SLOTS_MAX). The accepting
    /// side uses no more than the connecting side has.
    pub slots: usize,
    /// The counters of all channels.
    pub meter: Arc<Meter>,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings { ring_bytes: RING_BYTES, slots: SLOTS, meter: Meter::own() }
    }
}

/// A handler that sets up a channel on each connection, and serves it by another handler.
pub struct Channels {
    inner: Rc<dyn Handler>,
    acceptor: Rc<Acceptor>,
}

struct Acceptor {
    io: Io,
    pools: Rc<Pools>,
    settings: Settings,
}

impl Channels {
    /// Creates a handler that serves channels by `inner`.
    pub fn new(io: Io, inner: Rc<dyn Handler>, settings: Settings) -> Channels {
        Channels { inner, acceptor: Rc::new(Acceptor { io, pools: Pools::new(), settings }) }
    }

    fn over_channel(&self, stream: Stream, then: fn(&dyn Handler, Stream) -> LocalFuture) -> LocalFuture {
        let (inner, acceptor) = (Rc::clone(&self.inner), Rc::clone(&self.acceptor));
        Box::pin(async move {
            // Boxed: the memory is freed before the connection is served.
            match Box::pin(acceptor.accept(stream)).await {
                Ok(stream) => then(&*inner, stream).await,
                Err(error) => {
                    acceptor.settings.meter.add(Count::Refused, 1);
                    tracing::debug!(%error, "a connection did not become a channel");
                }
            }
        })
    }
}

impl Acceptor {
    async fn accept(&self, stream: Stream) -> io::Result<Stream> {
        let (local, (endpoint, slot)) = (stream.local()?, endpoint_of(stream)?);
        let link: Box<dyn Link> = match endpoint {
            Endpoint::Descriptor(socket) => {
                Box::new(handshake::accept(&self.io, socket, self.settings.ring_bytes).await?)
            }
            Endpoint::Simulated(link) => link,
        };
        let channel = Channel::new(&self.io, link, Side::Acceptor, local, &self.pools, &self.settings)?;
        Ok(Stream::in_slot(channel, slot))
    }
}

impl Handler for Channels {
    fn serve(&self, stream: Stream) -> LocalFuture {
        self.over_channel(stream, |inner, stream| inner.serve(stream))
    }

    fn refuse(&self, stream: Stream) -> LocalFuture {
        self.over_channel(stream, |inner, stream| inner.refuse(stream))
    }

    fn resume(&self, stream: Stream, parked: Parked, how: Resume) -> LocalFuture {
        // A channel does not park, so there is none to be resumed.
        self.inner.resume(stream, parked, how)
    }

    fn background(&self) -> LocalFuture {
        self.inner.background()
    }
}

/// Connects channels, for one thread.
pub struct Connector {
    /// [For transports](Io::for_transport): each channel keeps a clone.
    io: Io,
    pools: Rc<Pools>,
    bodies: Bodies,
    settings: Settings,
}

impl Connector {
    /// Creates a connector whose channels receive files as `bodies` says.
    pub fn new(io: &Io, bodies: Bodies, settings: Settings) -> Connector {
        Connector { io: io.for_transport(), pools: Pools::new(), bodies, settings }
    }

    /// Connects to the Unix socket at `to`, and sets up a channel.
    ///
    /// # Errors
    /// The error of connecting; [`io::ErrorKind::InvalidInput`] for an address that is no Unix socket;
    /// [`io::ErrorKind::PermissionDenied`] if the peer runs under another user;
    /// [`io::ErrorKind::InvalidData`] if it is no channel's peer; [`io::ErrorKind::TimedOut`].
    pub async fn connect(&self, to: &Address) -> io::Result<Stream> {
        let connected = self.set_up(to).await;
        if connected.is_err() {
            self.settings.meter.add(Count::Refused, 1);
        }
        connected
    }

    async fn set_up(&self, to: &Address) -> io::Result<Stream> {
        if !matches!(to, Address::Unix(_)) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "a channel needs a Unix socket"));
        }
        let (endpoint, slot) = endpoint_of(self.io.connect(to).await?)?;
        let link: Box<dyn Link> = match endpoint {
            Endpoint::Descriptor(socket) => Box::new(handshake::connect(&self.io, socket).await?),
            Endpoint::Simulated(link) => link,
        };
        let side = Side::Connector(self.bodies);
        let channel = Channel::new(&self.io, link, side, to.clone(), &self.pools, &self.settings)?;
        Ok(Stream::in_slot(channel, slot))
    }
}

fn endpoint_of(stream: Stream) -> io::Result<(Endpoint, Rc<dyn Slot>)> {
    let unusable = || io::Error::new(io::ErrorKind::Unsupported, "this connection cannot carry a channel");
    stream.into_endpoint().ok_or_else(unusable)
}
