//! The transport of an encrypted stream, over the transport of its connection.
//!
//! It performs no handshake. Bytes are encrypted when they are pushed, because the engine sends pushed bytes
//! without polling the task. Invariants: a stream ends when the peer has ended its session, and is broken
//! when only the connection ends. After the end of the own session, nothing is sent.

use std::cell::RefCell;
use std::io;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use plimsoll_io::{Address, EndProbe, Lease, Peer, Segment, Transport, Want};

use crate::ledger::Ledger;
use crate::session::{Facts, Session};

/// An encrypted stream.
pub(crate) struct Tls {
    inner: Rc<dyn Transport>,
    state: RefCell<State>,
}

struct State {
    session: Session,
    /// Received bytes that are not decrypted.
    received: Option<Lease>,
    ledger: Ledger,
    /// The error that broke the stream.
    broken: Option<Broken>,
    /// Whether the own session was ended.
    is_finished: bool,
}

#[derive(Clone)]
enum Broken {
    /// The connection ended before the session.
    Cut,
    /// The peer has violated the protocol, or has sent an alert.
    Failed(rustls::Error),
}

impl From<Broken> for io::Error {
    fn from(broken: Broken) -> io::Error {
        match broken {
            Broken::Cut => io::ErrorKind::UnexpectedEof.into(),
            Broken::Failed(error) => io::Error::new(io::ErrorKind::InvalidData, error),
        }
    }
}

impl Tls {
    /// Creates the stream of a session whose handshake is complete. `received` came behind the handshake.
    pub(crate) fn new(inner: Rc<dyn Transport>, session: Session, received: Option<Lease>) -> Rc<Tls> {
        let (ledger, broken, is_finished) = (Ledger::default(), None, false);
        Rc::new(Tls { inner, state: RefCell::new(State { session, received, ledger, broken, is_finished }) })
    }

    /// Whether the handshake resumed an earlier session.
    pub(crate) fn is_resumed(&self) -> bool {
        self.state.borrow().session.is_resumed()
    }

    /// Returns the decisions of the handshake.
    pub(crate) fn facts(&self) -> Facts {
        self.state.borrow().session.facts()
    }

    /// Whether the peer is an ACME server that validates a name, and sends no request.
    pub(crate) fn is_challenge(&self) -> bool {
        self.state.borrow().session.is_challenge()
    }

    /// Takes the session off the connection, to continue it later over the same connection.
    ///
    /// # Errors
    /// Returns the stream if something was received meanwhile, or the stream has ended or is in use.
    pub(crate) fn park(self: Rc<Self>) -> Result<(Rc<dyn Transport>, Session), Rc<Tls>> {
        if !self.state.borrow().is_quiet() || Rc::strong_count(&self) > 1 {
            return Err(self);
        }
        let Tls { inner, state } = Rc::try_unwrap(self)?;
        Ok((inner, state.into_inner().session))
    }
}

impl State {
    /// Whether nothing is in memory in either direction.
    fn is_quiet(&self) -> bool {
        let is_open = !self.is_finished && self.broken.is_none() && !self.session.has_ended();
        is_open && self.received.is_none() && !self.session.has_plain()
    }

    /// Decrypts received bytes. Sends what the session answers.
    fn decrypt(&mut self, mut received: Lease, inner: &dyn Transport) {
        if let Err(error) = self.session.receive(&mut received) {
            tracing::debug!(%error, "a TLS session has failed");
            self.broken = Some(Broken::Failed(error));
        }
        self.received = Some(received).filter(|rest| !rest.is_empty());
        let mut sealed = Vec::new();
        self.session.flush(&mut sealed);
        self.send(0, sealed, inner);
    }

    fn send(&mut self, plain: u64, sealed: Vec<u8>, inner: &dyn Transport) {
        if sealed.is_empty() || self.is_finished {
            return;
        }
        self.ledger.push(plain, sealed.len() as u64);
        inner.push(Segment::Owned(sealed));
    }
}

impl Transport for Tls {
    fn poll_recv(&self, cx: &mut Context<'_>, want: Want) -> Poll<io::Result<Option<Lease>>> {
        loop {
            {
                let mut state = self.state.borrow_mut();
                if let Some(plain) = state.session.take_plain() {
                    return Poll::Ready(Ok(Some(plain)));
                }
                if let Some(broken) = &state.broken {
                    return Poll::Ready(Err(broken.clone().into()));
                }
                if state.session.has_ended() {
                    return Poll::Ready(Ok(None));
                }
                if let Some(received) = state.received.take() {
                    state.decrypt(received, &*self.inner);
                    continue;
                }
            }
            let received = ready!(self.inner.poll_recv(cx, want))?;
            let mut state = self.state.borrow_mut();
            match received {
                Some(lease) => state.received = Some(lease),
                // This side has ended the session, too.
                None if state.is_finished => return Poll::Ready(Ok(None)),
                // A machine between the peers may have cut the connection.
                None => state.broken = Some(Broken::Cut),
            }
        }
    }

    fn is_encrypted(&self) -> bool {
        true
    }

    fn copies_segments(&self) -> bool {
        true
    }

    fn push(&self, segment: Segment) {
        debug_assert!(segment.is_in_memory(), "files and pipes are not taken");
        self.push_slice(segment.bytes());
    }

    fn push_slice(&self, bytes: &[u8]) {
        let mut state = self.state.borrow_mut();
        let sealed = state.session.seal(bytes);
        state.send(bytes.len() as u64, sealed, &*self.inner);
    }

    fn poll_drain(&self, cx: &mut Context<'_>, below: u64) -> Poll<io::Result<()>> {
        // There are more encrypted bytes than plain ones.
        self.inner.poll_drain(cx, below)
    }

    fn unsent(&self) -> u64 {
        match self.inner.lost() {
            0 => self.state.borrow_mut().ledger.pending(self.inner.unsent()),
            _ => 0,
        }
    }

    fn lost(&self) -> u64 {
        match self.inner.lost() {
            0 => 0,
            lost => self.state.borrow_mut().ledger.pending(lost + self.inner.unsent()),
        }
    }

    fn unacknowledged(&self) -> io::Result<Option<u64>> {
        self.inner.unacknowledged()
    }

    fn end_probe(&self) -> Option<EndProbe> {
        self.inner.end_probe()
    }

    fn round_trip(&self) -> Option<Duration> {
        self.inner.round_trip()
    }

    fn takes_files(&self) -> bool {
        false
    }

    fn finish(&self) {
        let mut state = self.state.borrow_mut();
        let sealed = state.session.close();
        state.send(0, sealed, &*self.inner);
        state.is_finished = true;
        self.inner.finish();
    }

    fn peer(&self) -> &Peer {
        self.inner.peer()
    }

    fn local(&self) -> io::Result<Address> {
        self.inner.local()
    }
}
