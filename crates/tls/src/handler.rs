//! A handler that serves encrypted connections by another handler.
//!
//! It serves nothing itself. Invariants: the inner handler gets a stream only after a complete handshake. A
//! conversation that parks is resumed in the same session, on any thread.

use std::rc::Rc;
use std::sync::Arc;

use plimsoll_io::{
    Current, Either, Elapsed, Handler, Io, LocalFuture, Parked, ParkingSpot, Resume, Segment, Stream, select,
};

use crate::admission::{Admission, Handshakes, Outcome};
use crate::handshake::{HandshakeError, encrypt, first_bytes};
use crate::limits::{ALERT_TIME_MAX, HANDSHAKE_TIME_MAX};
use crate::server::ServerTls;
use crate::session::Session;
use crate::transport::Tls;

/// A fatal `internal_error` alert in plaintext, for a client over a limit of connections or handshakes.
/// Before a handshake, records are not encrypted (RFC 8446, section 5.1).
pub const REFUSAL: &[u8] = &[21, 3, 1, 0, 2, 2, 80];

/// A handler that performs the server's handshake on each connection.
pub struct Secured {
    io: Io,
    inner: Rc<dyn Handler>,
    current: Arc<Current<ServerTls>>,
    admission: Admission,
}

/// The state of a parked connection: a conversation over TLS; `None` if its client has sent nothing yet.
type ParkedConnection = Option<ParkedConversation>;

/// A parked conversation over TLS.
struct ParkedConversation {
    session: Session,
    conversation: Parked,
}

impl Secured {
    /// Creates a handler that serves encrypted connections by `inner`. Each gets the settings that are
    /// current at its start.
    pub fn new(io: Io, inner: Rc<dyn Handler>, current: Arc<Current<ServerTls>>) -> Secured {
        let admission = Admission::new(Handshakes::new());
        Secured { io, inner, current, admission }
    }

    /// Bounds and counts handshakes with those of other threads.
    #[must_use]
    pub fn counted(self, handshakes: Arc<Handshakes>) -> Secured {
        Secured { admission: Admission::new(handshakes), ..self }
    }
}

impl Handler for Secured {
    fn serve(&self, stream: Stream) -> LocalFuture {
        let (io, inner, settings) = (self.io.clone(), Rc::clone(&self.inner), self.current.get());
        let admission = self.admission.clone();
        Box::pin(async move {
            let mut stream = stream;
            let parking = stream.parking();
            match has_begun(&io, &mut stream, parking.is_some()).await {
                Ok(true) => {}
                Ok(false) => return park_new(&io, parking, stream),
                Err(error) => return admission.note(Outcome::of(&error)),
            }
            let accepted = async |stream: &mut Stream| settings.perform(&io, stream).await;
            match admission.perform(&io, &mut stream, accepted).await {
                Ok(tls) if tls.is_challenge() => finish(&io, &mut stream).await,
                Ok(tls) => {
                    drop(settings);
                    serve(&*inner, stream, (tls, parking), |stream| inner.serve(stream)).await;
                }
                Err(HandshakeError::OverShare) => refuse(&io, &mut stream).await,
                Err(error) => tracing::debug!(peer = %stream.peer(), %error, "a TLS handshake failed"),
            }
        })
    }

    fn refuse(&self, stream: Stream) -> LocalFuture {
        let (io, mut stream) = (self.io.clone(), stream);
        Box::pin(async move { refuse(&io, &mut stream).await })
    }

    fn resume(&self, stream: Stream, parked: Parked, action: Resume) -> LocalFuture {
        // The state of another protocol. An engine resumes a connection by its own handler, so this does not
        // happen.
        let Ok(parked) = parked.state.downcast::<ParkedConnection>() else { return Box::pin(async {}) };
        let ParkedConversation { session, conversation } = match (*parked, action) {
            (Some(conversation), _) => conversation,
            (None, Resume::Serve) => return self.serve(stream),
            (None, Resume::Refuse) => return self.refuse(stream),
            (None, Resume::End) => return Box::pin(async {}),
        };
        let inner = Rc::clone(&self.inner);
        Box::pin(async move {
            let mut stream = stream;
            let parking = stream.parking();
            let tls = encrypt(&mut stream, session);
            serve(&*inner, stream, (tls, parking), |stream| inner.resume(stream, conversation, action)).await;
        })
    }

    fn background(&self) -> LocalFuture {
        self.inner.background()
    }
}

/// Ends a connection. The client has little time to receive what was sent.
async fn finish(io: &Io, stream: &mut Stream) {
    let deadline = io.deadline();
    deadline.after(ALERT_TIME_MAX);
    let _: Result<std::io::Result<()>, Elapsed> = deadline.within(stream.finish()).await;
}

/// Waits for the first bytes of a handshake. Returns false if the engine wants the worker, and can park the
/// connection.
async fn has_begun(io: &Io, stream: &mut Stream, can_park: bool) -> Result<bool, HandshakeError> {
    let room_wanted = async {
        match can_park {
            true => io.room_wanted().await,
            false => std::future::pending().await,
        }
    };
    match select(first_bytes(io, stream), room_wanted).await {
        Either::Left(begun) => begun.map(|()| true),
        Either::Right(()) => Ok(false),
    }
}

/// Parks a connection whose client has sent nothing.
fn park_new(io: &Io, parking: Option<Rc<ParkingSpot>>, stream: Stream) {
    if let Some(parking) = parking {
        let until = io.now() + HANDSHAKE_TIME_MAX;
        parking.park(Parked { state: Box::new(ParkedConnection::None), until }, stream);
    }
}

/// Refuses a connection that was to be encrypted: sends the alert [`REFUSAL`], without a handshake.
pub async fn refuse(io: &Io, stream: &mut Stream) {
    stream.tx.push(Segment::Static(REFUSAL));
    finish(io, stream).await;
}

/// Serves an encrypted connection until it ends or is parked. `parking` is where the engine takes it.
async fn serve(
    inner: &dyn Handler,
    stream: Stream,
    (mut tls, parking): (Rc<Tls>, Option<Rc<ParkingSpot>>),
    first: impl FnOnce(Stream) -> LocalFuture,
) {
    let Some(parking) = parking else {
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
                let state = Box::new(Some(ParkedConversation { session, conversation }));
                return parking.park(Parked { state, until }, Stream::in_slot(connection, slot));
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
