//! Tickets, by which clients resume sessions: sealed by keys that all processes of a server compute.
//!
//! It stores no session. A key follows from one secret, the kind of listener and the number of the period, so
//! that a process forked yesterday has today's key. Invariants: a ticket of one kind of listener opens no
//! session of another. A ticket is refused two periods after its own. Secrets are wiped.

use std::fmt;
use std::sync::Arc;

use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::hkdf::{HKDF_SHA256, KeyType, Salt};
use ring::rand::{SecureRandom as _, SystemRandom};
use rustls::Error;
use rustls::server::ProducesTickets;
use rustls::time_provider::TimeProvider as _;
use zeroize::Zeroizing;

use crate::clock::Clock;
use crate::limits::{TICKET_BYTES_MAX, TICKET_PERIOD};

const SECRET_BYTES: usize = 32;
/// The number of a ticket's period, at its start.
const PERIOD_BYTES: usize = 8;
/// Separates these keys from all others that are derived from a secret.
const PURPOSE: &[u8] = b"plimsoll session tickets 1";

/// The secret of which the keys of tickets are derived. It outlives a reload.
#[derive(Clone)]
pub struct TicketSecret(Arc<Zeroizing<[u8; SECRET_BYTES]>>);

/// The keys of the tickets of one kind of listener.
#[derive(Clone, Debug)]
pub struct Tickets(pub(crate) Arc<dyn ProducesTickets>);

struct TicketKeys {
    secret: TicketSecret,
    label: String,
    clock: Arc<Clock>,
}

impl TicketSecret {
    /// Draws a secret.
    ///
    /// # Errors
    /// The operating system has no random numbers.
    pub fn draw() -> Result<TicketSecret, Error> {
        let mut secret = Zeroizing::new([0; SECRET_BYTES]);
        SystemRandom::new().fill(&mut *secret).map_err(|_| Error::FailedToGetRandomBytes)?;
        Ok(TicketSecret(Arc::new(secret)))
    }

    /// Derives a secret from one that several servers share, so that each opens the tickets of all.
    #[must_use]
    pub fn of_shared(shared: &[u8]) -> TicketSecret {
        let mut secret = Zeroizing::new([0; SECRET_BYTES]);
        let derived = Salt::new(HKDF_SHA256, PURPOSE).extract(shared);
        // The length fits, so this does not fail.
        let _ = derived.expand(&[b"shared"], OfKey).and_then(|derived| derived.fill(&mut *secret));
        TicketSecret(Arc::new(secret))
    }

    /// Returns the keys of the listeners of this kind. Periods are by `clock`.
    #[must_use]
    pub fn tickets(&self, label: &str, clock: Arc<Clock>) -> Tickets {
        Tickets(Arc::new(TicketKeys { secret: self.clone(), label: label.to_owned(), clock }))
    }
}

impl Tickets {
    /// Draws keys that never change, for a test.
    ///
    /// # Errors
    /// The operating system has no random numbers.
    pub fn new() -> Result<Tickets, Error> {
        Ok(TicketSecret::draw()?.tickets("", Clock::new()))
    }
}

impl TicketKeys {
    fn period(&self) -> u64 {
        self.clock.current_time().map_or(0, |now| now.as_secs()) / TICKET_PERIOD.as_secs()
    }

    fn key(&self, period: u64) -> Option<LessSafeKey> {
        let mut key = Zeroizing::new([0; SECRET_BYTES]);
        let info = [self.label.as_bytes(), &period.to_be_bytes()];
        let derived = Salt::new(HKDF_SHA256, PURPOSE).extract(&**self.secret.0);
        derived.expand(&info, OfKey).and_then(|derived| derived.fill(&mut *key)).ok()?;
        UnboundKey::new(&CHACHA20_POLY1305, &*key).map(LessSafeKey::new).ok()
    }
}

/// The length of a key.
#[derive(Clone, Copy)]
struct OfKey;

impl KeyType for OfKey {
    fn len(&self) -> usize {
        SECRET_BYTES
    }
}

impl ProducesTickets for TicketKeys {
    fn enabled(&self) -> bool {
        true
    }

    fn lifetime(&self) -> u32 {
        u32::try_from(TICKET_PERIOD.as_secs()).unwrap_or(u32::MAX)
    }

    /// Returns the number of the period, the nonce, the sealed bytes, and their tag.
    fn encrypt(&self, plain: &[u8]) -> Option<Vec<u8>> {
        let period = self.period();
        let mut nonce = [0; NONCE_LEN];
        SystemRandom::new().fill(&mut nonce).ok()?;
        let head = period.to_be_bytes();
        let mut sealed = plain.to_vec();
        let key = self.key(period)?;
        let nonce_of_key = Nonce::assume_unique_for_key(nonce);
        key.seal_in_place_append_tag(nonce_of_key, Aad::from(head), &mut sealed).ok()?;
        Some([&head[..], &nonce, &sealed].concat()).filter(|ticket| ticket.len() <= TICKET_BYTES_MAX)
    }

    /// Opens tickets of this period and the one before. The clocks of servers that share a secret differ, so
    /// the next period's are opened, too.
    fn decrypt(&self, ticket: &[u8]) -> Option<Vec<u8>> {
        // A bound on what one attempt may test (https://eprint.iacr.org/2020/1491).
        if ticket.len() > TICKET_BYTES_MAX {
            return None;
        }
        let (head, rest) = ticket.split_first_chunk::<PERIOD_BYTES>()?;
        let (nonce, sealed) = rest.split_first_chunk::<NONCE_LEN>()?;
        let period = u64::from_be_bytes(*head);
        if period.abs_diff(self.period()) > 1 {
            return None;
        }
        let mut plain = sealed.to_vec();
        let nonce = Nonce::assume_unique_for_key(*nonce);
        let opened = self.key(period)?.open_in_place(nonce, Aad::from(*head), &mut plain).ok()?.len();
        plain.truncate(opened);
        Some(plain)
    }
}

impl fmt::Debug for TicketSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TicketSecret")
    }
}

impl fmt::Debug for TicketKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TicketKeys").field("label", &self.label).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use super::*;

    fn at(periods: u32) -> Arc<Clock> {
        let clock = Clock::new();
        clock.set(SystemTime::UNIX_EPOCH + (TICKET_PERIOD * periods) + Duration::from_secs(7));
        clock
    }

    #[test]
    fn a_ticket_is_opened_by_every_process_until_two_periods_later() {
        let secret = TicketSecret::draw().unwrap();
        let ticket = secret.tickets("http", at(100)).0.encrypt(b"a session").unwrap();
        for (period, is_opened) in [(98, false), (99, true), (100, true), (101, true), (102, false)] {
            let opened = secret.clone().tickets("http", at(period)).0.decrypt(&ticket);
            assert_eq!(opened.is_some(), is_opened, "{period}");
            assert!(opened.is_none_or(|opened| opened == b"a session"));
        }
    }

    #[test]
    fn a_ticket_of_another_secret_or_kind_or_one_that_was_changed_is_not_opened() {
        let secret = TicketSecret::draw().unwrap();
        let keys = secret.tickets("http", at(1)).0;
        let ticket = keys.encrypt(b"a session").unwrap();
        assert_ne!(keys.encrypt(b"a session").unwrap(), ticket, "a nonce of its own");
        assert_eq!(secret.tickets("ftp", at(1)).0.decrypt(&ticket), None);
        assert_eq!(TicketSecret::draw().unwrap().tickets("http", at(1)).0.decrypt(&ticket), None);
        for at in 0..ticket.len() {
            let mut changed = ticket.clone();
            changed[at] ^= 1;
            assert_eq!(keys.decrypt(&changed), None, "byte {at}");
            assert_eq!(keys.decrypt(&ticket[..at]), None, "cut at {at}");
        }
        assert_eq!(keys.decrypt(&vec![0; TICKET_BYTES_MAX + 1]), None);
    }

    #[test]
    fn servers_with_one_secret_open_each_others_tickets() {
        let of = |shared: &[u8]| TicketSecret::of_shared(shared).tickets("http", at(1)).0;
        let ticket = of(b"one").encrypt(b"a session").unwrap();
        assert!(of(b"one").decrypt(&ticket).is_some());
        assert_eq!(of(b"another").decrypt(&ticket), None);
    }
}
