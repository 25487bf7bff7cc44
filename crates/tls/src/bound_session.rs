//! Sessions of several connections: a first one, and others that prove to come from the same client (FTP's
//! control connection and its data connections).
//!
//! A client proves it by resuming: only it has the session's secrets. The tickets carry a random id of the
//! session, so that the proof holds in TLS 1.2 and 1.3, and in any process. This module does not decide what
//! a connection without proof may do.
//!
//! Invariants: a further connection resumes its own session only. The id of a presented ticket is never
//! adopted: TLS 1.2 sends tickets in clear, so an eavesdropper can present one. A connection without proof
//! gets no ticket of the session.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use plimsoll_io::{Instant, Io, Stream};
use rustls::server::ProducesTickets;
use rustls::{HandshakeKind, ServerConfig};
use zeroize::Zeroizing;

use crate::clock::Clock;
use crate::handshake::{HandshakeError, perform_observed};
use crate::limits::{DOWNLOAD_TICKETS, SESSION_TICKETS, TICKET_ID_BYTES, TICKET_PERIOD, TICKETS_KEPT_MIN};
use crate::server::ServerTls;
use crate::session::{Facts, Session};

type Id = [u8; TICKET_ID_BYTES];

/// The id in tickets of no session.
const NO_SESSION: Id = [0; TICKET_ID_BYTES];

/// The session of a first connection, to which further ones belong.
pub struct BoundSession {
    config: Arc<ServerConfig>,
    clock: Arc<Clock>,
    tickets: Arc<SessionTickets>,
    history: History,
    signing_weight: u32,
}

/// The direction of the data on a further connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// The client sends. It gets no ticket: a client that closes with a ticket unread resets the connection,
    /// and the server could lose the end of the data.
    Upload,
    /// The client receives.
    Download,
}

/// The proof that a further connection comes from the session's client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proof {
    /// The client has resumed the session, so it is that of the first connection.
    Given,
    /// The client has not resumed the session, and the right client may be unable to.
    Missing,
    /// The client has not resumed the session, but the right client can: it has before.
    Withheld,
}

/// The tickets of one session.
#[derive(Debug)]
struct SessionTickets {
    keys: Arc<dyn ProducesTickets>,
    id: Id,
    /// The number of the next ticket.
    next: AtomicU64,
}

/// Produces the tickets of the first connection. It opens the tickets of all sessions: a client that returns
/// saves a full handshake.
#[derive(Debug)]
struct FirstTicketer(Arc<SessionTickets>);

/// Produces the tickets of one further connection. It opens those of its session only.
#[derive(Debug)]
struct FurtherTicketer {
    tickets: Arc<SessionTickets>,
    /// One more than the number of the ticket that was opened; 0 for none.
    opened: AtomicU64,
    kind: AtomicU8,
}

/// Values of [`FurtherTicketer::kind`], the kind of the handshake as far as it is decided.
const UNDECIDED: u8 = 0;
const FULL: u8 = 1;
const RESUMED: u8 = 2;

/// The resumptions of a session so far.
#[derive(Debug)]
struct History {
    has_resumed: bool,
    /// Whether the client has used a ticket twice.
    reuses_tickets: bool,
    /// The number of the latest ticket used.
    latest: Option<u64>,
    /// Unused tickets that the client has at least.
    unused: u32,
    /// The time until which the latest tickets can be opened.
    until: Instant,
}

impl ServerTls {
    /// Performs the handshake with a client on its first connection, and encrypts the stream. Returns the
    /// session, for further connections.
    ///
    /// # Errors
    /// As [`ServerTls::accept`].
    pub async fn accept_first(&self, io: &Io, stream: &mut Stream) -> Result<BoundSession, HandshakeError> {
        let mut id = NO_SESSION;
        io.entropy(&mut id);
        let keys = Arc::clone(&self.config.ticketer);
        let tickets = Arc::new(SessionTickets { keys, id, next: AtomicU64::new(0) });
        let mut config = ServerConfig::clone(&self.config);
        config.ticketer = Arc::new(FirstTicketer(Arc::clone(&tickets)));
        config.send_tls13_tickets = SESSION_TICKETS;
        self.clock.set(io.wall());
        let session = Session::server(Arc::new(config), self.signing_weight)?;
        let tls = perform_observed(io, stream, session, |_| {}).await?;
        let mut history = History::new();
        history.issued(tls.facts(), SESSION_TICKETS, io.now());
        let (config, clock) = (Arc::clone(&self.config), Arc::clone(&self.clock));
        Ok(BoundSession { config, clock, tickets, history, signing_weight: self.signing_weight })
    }
}

impl BoundSession {
    /// Performs the handshake on a further connection, and encrypts the stream. Returns whether the client
    /// has proved to be that of the first connection.
    ///
    /// # Errors
    /// As [`ServerTls::accept`].
    pub async fn accept(
        &mut self,
        io: &Io,
        stream: &mut Stream,
        direction: Direction,
    ) -> Result<Proof, HandshakeError> {
        let ticketer = Arc::new(FurtherTicketer {
            tickets: Arc::clone(&self.tickets),
            opened: AtomicU64::new(0),
            kind: AtomicU8::new(UNDECIDED),
        });
        let issued = match direction {
            Direction::Upload => 0,
            Direction::Download => DOWNLOAD_TICKETS,
        };
        let mut config = ServerConfig::clone(&self.config);
        config.ticketer = Arc::<FurtherTicketer>::clone(&ticketer);
        config.send_tls13_tickets = issued;
        self.clock.set(io.wall());
        let session = Session::server(Arc::new(config), self.signing_weight)?;
        let tls = perform_observed(io, stream, session, |facts| ticketer.observe(facts)).await?;
        let (facts, opened) = (tls.facts(), ticketer.opened.load(Ordering::Relaxed));
        match opened.checked_sub(1).filter(|_| facts.is_resumed()) {
            Some(number) => {
                self.history.resumed(number);
                self.history.issued(facts, issued, io.now());
                Ok(Proof::Given)
            }
            None => Ok(self.history.not_resumed(io.now())),
        }
    }
}

impl SessionTickets {
    /// Encrypts a ticket for the session with this id.
    fn seal(&self, id: &Id, session: &[u8]) -> Option<Vec<u8>> {
        let number = self.next.fetch_add(1, Ordering::Relaxed).to_be_bytes();
        let bound = Zeroizing::new([id, &number[..], session].concat());
        self.keys.encrypt(&bound)
    }

    /// Decrypts a ticket. Returns its id, its number and the session.
    fn open(&self, ticket: &[u8]) -> Option<(Id, u64, Vec<u8>)> {
        let bound = Zeroizing::new(self.keys.decrypt(ticket)?);
        let (id, rest) = bound.split_first_chunk::<TICKET_ID_BYTES>()?;
        let (number, session) = rest.split_first_chunk::<8>()?;
        Some((*id, u64::from_be_bytes(*number), session.to_vec()))
    }
}

impl ProducesTickets for FirstTicketer {
    fn enabled(&self) -> bool {
        self.0.keys.enabled()
    }

    fn lifetime(&self) -> u32 {
        self.0.keys.lifetime()
    }

    fn encrypt(&self, session: &[u8]) -> Option<Vec<u8>> {
        self.0.seal(&self.0.id, session)
    }

    fn decrypt(&self, ticket: &[u8]) -> Option<Vec<u8>> {
        self.0.open(ticket).map(|(_, _, session)| session)
    }
}

impl FurtherTicketer {
    /// Notes the decisions of the handshake after each receive.
    fn observe(&self, facts: Facts) {
        let kind = match facts.kind {
            None => UNDECIDED,
            Some(HandshakeKind::Resumed) => RESUMED,
            Some(_) => FULL,
        };
        self.kind.store(kind, Ordering::Relaxed);
    }

    /// Whether the client has proved, when a ticket is produced, that it has the session's secrets.
    fn is_proven(&self) -> bool {
        match self.kind.load(Ordering::Relaxed) {
            RESUMED => true,
            FULL => false,
            // TLS 1.2 sends the ticket of a resumption in the turn that accepts it. In full handshakes, a
            // ticket follows the client's second flight, and the first one decided the kind.
            _ => self.opened.load(Ordering::Relaxed) > 0,
        }
    }
}

impl ProducesTickets for FurtherTicketer {
    fn enabled(&self) -> bool {
        self.tickets.keys.enabled()
    }

    fn lifetime(&self) -> u32 {
        self.tickets.keys.lifetime()
    }

    fn encrypt(&self, session: &[u8]) -> Option<Vec<u8>> {
        let id = if self.is_proven() { &self.tickets.id } else { &NO_SESSION };
        self.tickets.seal(id, session)
    }

    fn decrypt(&self, ticket: &[u8]) -> Option<Vec<u8>> {
        let (id, number, session) = self.tickets.open(ticket)?;
        if id != self.tickets.id {
            return None;
        }
        self.opened.store(number + 1, Ordering::Relaxed);
        Some(session)
    }
}

impl History {
    fn new() -> History {
        let until = Instant::default();
        History { has_resumed: false, reuses_tickets: false, latest: None, unused: 0, until }
    }

    /// Notes tickets for the client of the session. A client need not keep all of them.
    fn issued(&mut self, facts: Facts, tls13_tickets: usize, now: Instant) {
        let tickets = if facts.is_tls13 { u32::try_from(tls13_tickets).unwrap_or(u32::MAX) } else { 1 };
        if tickets > 0 {
            self.until = now + TICKET_PERIOD;
        }
        self.unused = self.unused.saturating_add(tickets).min(TICKETS_KEPT_MIN);
    }

    /// Notes that the client has resumed the session by the ticket with this number.
    fn resumed(&mut self, number: u64) {
        self.reuses_tickets |= self.latest == Some(number);
        (self.has_resumed, self.latest) = (true, Some(number));
        self.unused = self.unused.saturating_sub(1);
    }

    /// Judges a connection that did not resume the session.
    fn not_resumed(&self, now: Instant) -> Proof {
        let can_resume = self.has_resumed && now < self.until;
        match can_resume && (self.reuses_tickets || self.unused > 0) {
            true => Proof::Withheld,
            false => Proof::Missing,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::tickets::Tickets;

    fn session(keys: &Tickets, id: u8) -> Arc<SessionTickets> {
        let keys = Arc::clone(&keys.0);
        Arc::new(SessionTickets { keys, id: [id; TICKET_ID_BYTES], next: AtomicU64::new(0) })
    }

    fn further(tickets: &Arc<SessionTickets>) -> FurtherTicketer {
        let tickets = Arc::clone(tickets);
        FurtherTicketer { tickets, opened: AtomicU64::new(0), kind: AtomicU8::new(UNDECIDED) }
    }

    fn facts(kind: HandshakeKind, is_tls13: bool) -> Facts {
        Facts { kind: Some(kind), is_tls13 }
    }

    #[test]
    fn a_further_connection_opens_tickets_of_its_own_session_only() {
        let keys = Tickets::new().expect("random numbers");
        let (own, other) = (session(&keys, 1), session(&keys, 2));
        let first = FirstTicketer(Arc::clone(&own));
        let ticket = first.encrypt(b"secrets").expect("a ticket");
        assert_eq!(further(&own).decrypt(&ticket).as_deref(), Some(&b"secrets"[..]));
        assert_eq!(further(&other).decrypt(&ticket), None);
        assert!(FirstTicketer(other).decrypt(&ticket).is_some(), "a returning client");
        let foreign = session(&Tickets::new().expect("random numbers"), 1);
        assert_eq!(further(&foreign).decrypt(&ticket), None, "the ticket of another listener");
        for at in 0..ticket.len() {
            let mut altered = ticket.clone();
            altered[at] ^= 1;
            assert_eq!(further(&own).decrypt(&altered), None);
        }
    }

    #[test]
    fn a_connection_without_proof_gets_no_ticket_of_the_session() {
        let own = session(&Tickets::new().expect("random numbers"), 1);
        let ticket = FirstTicketer(Arc::clone(&own)).encrypt(b"secrets").expect("a ticket");
        // The connection presents a recorded ticket, which the server opens but does not accept.
        let attacking = further(&own);
        assert!(attacking.decrypt(&ticket).is_some());
        attacking.observe(facts(HandshakeKind::Full, true));
        let got = attacking.encrypt(b"other secrets").expect("a ticket");
        assert_eq!(further(&own).decrypt(&got), None);
        let stranger = further(&own).encrypt(b"other secrets").expect("a ticket");
        assert_eq!(further(&own).decrypt(&stranger), None);
        let resumed = further(&own);
        assert!(resumed.decrypt(&ticket).is_some());
        let got = resumed.encrypt(b"secrets").expect("a ticket");
        assert!(further(&own).decrypt(&got).is_some());
    }

    fn resumed_by(numbers: &[u64], is_tls13: bool, issued: usize) -> (History, Instant) {
        let now = Instant::default();
        let mut history = History::new();
        history.issued(facts(HandshakeKind::Full, is_tls13), SESSION_TICKETS, now);
        for number in numbers {
            history.resumed(*number);
            history.issued(facts(HandshakeKind::Resumed, is_tls13), issued, now);
        }
        (history, now)
    }

    #[test]
    fn a_client_that_has_resumed_must_resume_while_it_has_tickets() {
        for (numbers, is_tls13, issued, expected) in [
            (&[][..], true, 0, Proof::Missing),
            // Some clients keep one ticket and use it once.
            (&[7], true, 0, Proof::Missing),
            (&[7], true, DOWNLOAD_TICKETS, Proof::Withheld),
            (&[7, 7, 7], true, 0, Proof::Withheld),
            (&[0, 1, 2, 3], false, 0, Proof::Withheld),
        ] {
            let (history, now) = resumed_by(numbers, is_tls13, issued);
            assert_eq!(history.not_resumed(now), expected, "{numbers:?}");
            let late = now + TICKET_PERIOD + Duration::from_secs(1);
            assert_eq!(history.not_resumed(late), Proof::Missing, "{numbers:?}");
        }
    }
}
