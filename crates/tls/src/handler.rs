//! A handler that serves encrypted connections by another handler.
//!
//! It serves nothing itself. Invariants: the inner handler gets a stream only after a complete handshake. A
//! conversation that parks is resumed in the same session, on any thread.

use std::rc::Rc;
use std::sync::Arc;

use plimsoll_io::{Current, Elapsed, Handler, Io, LocalFuture, Parked, ParkingSpot, Resume, Segment, Stream};

use crate::handshake::encrypt;
use crate::limits::ALERT_TIME_MAX;
use crate::server::ServerTls;
use crate::session::Session;
use crate::transport::Tls;

/// A fatal alert in clear, `internal_error`, for a client whose connection has no room. Before a handshake,
/// records are not encrypted (RFC 8446, section 5.1).
pub const REFUSAL: &[u8] = &[21, 3, 1, 0, 2, 2, 80];

/// A handler that performs the server's handshake on each connection.
pub struct Secured {
    io: Io,
    inner: Rc<dyn Handler>,
    current: Arc<Current<ServerTls>>,
}

/// A parked conversation over TLS.
struct ParkedConversation {
    session: Session,
    conversation: Parked,
}

impl Secured {
    /// Creates a handler that serves encrypted connections by `inner`. Each gets the settings that are
    /// current at its start.
    pub fn new(io: Io, inner: Rc<dyn Handler>, current: Arc<Current<ServerTls>>) -> Secured {
        Secured { io, inner, current }
    }
}

impl Handler for Secured {
    fn serve(&self, stream: Stream) -> LocalFuture {
        let (io, inner, settings) = (self.io.clone(), Rc::clone(&self.inner), self.current.get());
        Box::pin(async move {
            let mut stream = stream;
            let spot = stream.parking();
            // Boxed: the memory is freed before the connection is served.
            let accepted = Box::pin(settings.perform(&io, &mut stream)).await;
            drop(settings);
            match accepted {
                Ok(tls) => serve(&*inner, stream, (tls, spot), |stream| inner.serve(stream)).await,
                Err(error) => tracing::debug!(peer = %stream.peer(), %error, "a TLS handshake failed"),
            }
        })
    }

    fn refuse(&self, stream: Stream) -> LocalFuture {
        let io = self.io.clone();
        Box::pin(async move {
            let mut stream = stream;
            stream.tx.push(Segment::Static(REFUSAL));
            let deadline = io.deadline();
            deadline.after(ALERT_TIME_MAX);
            let _: Result<std::io::Result<()>, Elapsed> = deadline.within(stream.finish()).await;
        })
    }

    fn resume(&self, stream: Stream, parked: Parked, how: Resume) -> LocalFuture {
        let inner = Rc::clone(&self.inner);
        Box::pin(async move {
            // The state of another protocol. An engine resumes a connection by its own handler, so this does
            // not happen.
            let Ok(parked) = parked.state.downcast::<ParkedConversation>() else { return };
            let ParkedConversation { session, conversation } = *parked;
            let mut stream = stream;
            let spot = stream.parking();
            let tls = encrypt(&mut stream, session);
            serve(&*inner, stream, (tls, spot), |stream| inner.resume(stream, conversation, how)).await;
        })
    }

    fn background(&self) -> LocalFuture {
        self.inner.background()
    }
}

/// Serves an encrypted connection until it ends or is parked. `spot` is where the engine takes it.
async fn serve(
    inner: &dyn Handler,
    stream: Stream,
    (mut tls, spot): (Rc<Tls>, Option<Rc<ParkingSpot>>),
    first: impl FnOnce(Stream) -> LocalFuture,
) {
    let Some(spot) = spot else {
        drop(tls);
        return first(stream).await;
    };
    let own = Rc::<ParkingSpot>::default();
    first(stream.parking_at(&own)).await;
    while let Some((conversation, stream)) = own.take() {
        let slot = Rc::clone(stream.slot());
        drop(stream);
        match tls.park() {
            Ok((connection, session)) => {
                let until = conversation.until;
                let state = Box::new(ParkedConversation { session, conversation });
                return spot.park(Parked { state, until }, Stream::in_slot(connection, slot));
            }
            // Something has arrived meanwhile.
            Err(busy) => {
                tls = busy;
                let transport: Rc<Tls> = Rc::clone(&tls);
                let stream = Stream::in_slot(transport, slot).parking_at(&own);
                inner.resume(stream, conversation, Resume::Serve).await;
            }
        }
    }
}
