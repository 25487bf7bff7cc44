//! Both ends of a channel for protocols: a handler that accepts channels, and a connector.
//!
//! It serves nothing itself: the inner handler does, over a stream like any other. Invariants: a connection
//! whose handshake fails costs the server one bounded wait. A conversation that parks is resumed over the
//! same channel.

use std::io;
use std::rc::Rc;
use std::sync::Arc;

use plimsoll_io::{
    Address, Endpoint, Handler, Io, Link, LocalFuture, Parked, ParkingSpot, Resume, Slot, Stream,
};

use crate::handshake;
use crate::limits::{RING_BYTES, SLOTS};
use crate::meter::{Count, Meter};
use crate::parked::ParkedChannel;
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
                Ok(accepted) => accepted.serve(&*inner, |stream| then(&*inner, stream)).await,
                Err(error) => acceptor.refuse(&error),
            }
        })
    }
}

/// A connection with its channel.
struct Accepted {
    channel: Rc<Channel>,
    slot: Rc<dyn Slot>,
    /// The spot at which the engine takes the connection, and the one of the conversation over the channel.
    spots: Option<(Rc<ParkingSpot>, Rc<ParkingSpot>)>,
}

impl Accepted {
    fn new(channel: Rc<Channel>, slot: Rc<dyn Slot>, parking: Option<Rc<ParkingSpot>>) -> Accepted {
        Accepted { channel, slot, spots: parking.map(|parking| (parking, Rc::default())) }
    }

    fn stream(&self) -> Stream {
        let channel: Rc<Channel> = Rc::clone(&self.channel);
        let stream = Stream::in_slot(channel, Rc::clone(&self.slot));
        match &self.spots {
            Some((_, own)) => stream.parking_at(own),
            None => stream,
        }
    }

    /// Serves the connection until it ends or is parked.
    async fn serve(self, inner: &dyn Handler, first: impl FnOnce(Stream) -> LocalFuture) {
        first(self.stream()).await;
        let Some((parking, own)) = &self.spots else { return };
        while let Some((conversation, stream)) = own.take() {
            drop(stream);
            if let Some(channel) = self.channel.park() {
                let until = conversation.until;
                let state = Box::new(ParkedConversation { channel, conversation });
                let stream = Stream::in_slot(self.channel, self.slot);
                return parking.park(Parked { state, until }, stream);
            }
            // Something has arrived meanwhile.
            inner.resume(self.stream(), conversation, Resume::Serve).await;
        }
    }
}

/// A parked conversation over a channel.
struct ParkedConversation {
    channel: ParkedChannel,
    conversation: Parked,
}

impl Acceptor {
    async fn accept(&self, stream: Stream) -> io::Result<Accepted> {
        let (local, parking) = (stream.local()?, stream.parking());
        let (endpoint, slot) = endpoint_of(stream)?;
        let link: Box<dyn Link> = match endpoint {
            Endpoint::Descriptor(socket) => {
                // A channel that may be parked is resumed by any thread.
                let bells = parking.is_none().then_some(&self.pools.bells);
                Box::new(handshake::accept(&self.io, socket, self.settings.ring_bytes, bells).await?)
            }
            Endpoint::Simulated(link) => link,
        };
        let channel = Channel::new(&self.io, link, Side::Acceptor, local, &self.pools, &self.settings)?;
        Ok(Accepted::new(channel, slot, parking))
    }

    fn resume(&self, stream: Stream, channel: ParkedChannel) -> io::Result<Accepted> {
        let parking = stream.parking();
        let (endpoint, slot) = endpoint_of(stream)?;
        let Endpoint::Descriptor(socket) = endpoint else { return Err(io::ErrorKind::Unsupported.into()) };
        Ok(Accepted::new(channel.resume(&self.io, socket, &self.pools)?, slot, parking))
    }

    fn refuse(&self, error: &io::Error) {
        self.settings.meter.add(Count::Refused, 1);
        tracing::debug!(%error, "a connection did not become a channel");
    }
}

impl Handler for Channels {
    fn serve(&self, stream: Stream) -> LocalFuture {
        self.over_channel(stream, |inner, stream| inner.serve(stream))
    }

    fn refuse(&self, stream: Stream) -> LocalFuture {
        self.over_channel(stream, |inner, stream| inner.refuse(stream))
    }

    fn resume(&self, stream: Stream, parked: Parked, action: Resume) -> LocalFuture {
        let Ok(state) = parked.state.downcast::<ParkedConversation>() else {
            // The state of another protocol. An engine resumes a connection by its own handler, so this does
            // not happen.
            return Box::pin(async move { drop(stream) });
        };
        let (inner, ParkedConversation { channel, conversation }) = (Rc::clone(&self.inner), *state);
        let resumed = self.acceptor.resume(stream, channel);
        let meter = Arc::clone(&self.acceptor.settings.meter);
        Box::pin(async move {
            match resumed {
                Ok(accepted) => {
                    let first = |stream| inner.resume(stream, conversation, action);
                    accepted.serve(&*inner, first).await;
                }
                Err(error) => {
                    meter.add(Count::Corrupt, 1);
                    tracing::warn!(%error, "a parked channel was dropped");
                }
            }
        })
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
            Endpoint::Descriptor(socket) => {
                Box::new(handshake::connect(&self.io, socket, &self.pools.bells).await?)
            }
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
