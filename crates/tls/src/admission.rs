//! Bounds the handshakes that one network has at a time, and counts their results.
//!
//! It performs none. Invariant: a handshake that ends releases its permit and is counted, however it ends.

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use plimsoll_io::{Cells, ClientNetwork, Io, Networks, Peer, Stream};

use crate::handshake::{HandshakeError, first_bytes};
use crate::limits::HANDSHAKES_PER_NETWORK;

/// The result of a handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was completed.
    Complete,
    /// The peers do not agree, or the client sent something else.
    Failed,
    /// The client took too long.
    Late,
    /// The connection broke.
    Broken,
    /// The client's network has too many.
    OverShare,
}

impl Outcome {
    /// All results, with their names in the metrics.
    pub const ALL: [(Outcome, &'static str); 5] = [
        (Outcome::Complete, "complete"),
        (Outcome::Failed, "failed"),
        (Outcome::Late, "late"),
        (Outcome::Broken, "broken"),
        (Outcome::OverShare, "over_share"),
    ];

    pub(crate) fn of(error: &HandshakeError) -> Outcome {
        match error {
            HandshakeError::Connection(_) => Outcome::Broken,
            HandshakeError::Late => Outcome::Late,
            HandshakeError::OverShare => Outcome::OverShare,
            HandshakeError::TooLong | HandshakeError::Untrusted(_) | HandshakeError::Refused(_) => {
                Outcome::Failed
            }
        }
    }
}

/// The handshakes of a server. Its threads share them; its processes share the counts only.
#[derive(Debug)]
pub struct Handshakes {
    by_network: Mutex<HashMap<ClientNetwork, u32>>,
    /// The peers whose handshakes are not bounded: each brings the connections of many clients.
    exempt: RwLock<Networks>,
    counts: Cells,
}

/// The admission to the handshakes of a server.
#[derive(Clone, Debug)]
pub struct Admission {
    handshakes: Arc<Handshakes>,
}

/// Counts a handshake once, as broken if its task is dropped before it ends: FTP's ABOR, or an eviction.
struct Counting<'a> {
    handshakes: &'a Handshakes,
    outcome: Outcome,
}

impl Drop for Counting<'_> {
    fn drop(&mut self) {
        self.handshakes.note(self.outcome);
    }
}

/// The permit of a handshake, one of those that its network has.
struct HandshakePermit {
    handshakes: Arc<Handshakes>,
    network: Option<ClientNetwork>,
}

impl Handshakes {
    /// The number of cells of the counts.
    pub const CELLS: usize = Outcome::ALL.len();

    /// Creates the handshakes of one process.
    #[must_use]
    pub fn new() -> Arc<Handshakes> {
        Handshakes::in_cells(Cells::own(Handshakes::CELLS))
    }

    /// As [`Handshakes::new`], with counts in these cells.
    #[must_use]
    pub fn in_cells(counts: Cells) -> Arc<Handshakes> {
        Arc::new(Handshakes { by_network: Mutex::default(), exempt: RwLock::default(), counts })
    }

    /// Does not bound the next handshakes of these peers. Replaces the earlier exemptions.
    pub fn exempt(&self, peers: Networks) {
        *self.exempt.write().unwrap_or_else(PoisonError::into_inner) = peers;
    }

    fn is_exempt(&self, peer: &Peer) -> bool {
        self.exempt.read().unwrap_or_else(PoisonError::into_inner).contain(peer)
    }

    /// Returns how many handshakes had this result.
    pub fn count(&self, outcome: Outcome) -> u64 {
        self.counts.get(outcome as usize).map_or(0, |count| count.load(Ordering::Relaxed))
    }

    fn note(&self, outcome: Outcome) {
        if let Some(count) = self.counts.get(outcome as usize) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Takes a permit for a handshake. Returns `None` if the client's network has [`HANDSHAKES_PER_NETWORK`]
    /// already. Loopback, Unix and exempt peers are not limited.
    fn admit(self: &Arc<Self>, peer: &Peer) -> Option<HandshakePermit> {
        let network = match peer {
            Peer::Ip(ip, _) if !ip.to_canonical().is_loopback() && !self.is_exempt(peer) => {
                Some(ClientNetwork::of(*ip))
            }
            _ => None,
        };
        if let Some(network) = network {
            let mut by_network = self.lock();
            let taken = by_network.entry(network).or_default();
            if *taken == HANDSHAKES_PER_NETWORK {
                return None;
            }
            *taken += 1;
        }
        Some(HandshakePermit { handshakes: Arc::clone(self), network })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ClientNetwork, u32>> {
        self.by_network.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Admission {
    /// Creates the admission to these handshakes.
    #[must_use]
    pub fn new(handshakes: Arc<Handshakes>) -> Admission {
        Admission { handshakes }
    }

    /// Performs a handshake when its client has sent something, and a permit is free for it. Counts its
    /// result. A client that has sent nothing takes no share of its neighbours' handshakes.
    ///
    /// # Errors
    /// The handshake failed, or has not begun because the client's network has too many
    /// ([`HandshakeError::OverShare`]).
    pub async fn perform<T>(
        &self,
        io: &Io,
        stream: &mut Stream,
        handshake: impl AsyncFnOnce(&mut Stream) -> Result<T, HandshakeError>,
    ) -> Result<T, HandshakeError> {
        let mut counting = Counting { handshakes: &self.handshakes, outcome: Outcome::Broken };
        let result = self.admit(io, stream, handshake).await;
        counting.outcome = result.as_ref().map_or_else(Outcome::of, |_| Outcome::Complete);
        result
    }

    async fn admit<T>(
        &self,
        io: &Io,
        stream: &mut Stream,
        handshake: impl AsyncFnOnce(&mut Stream) -> Result<T, HandshakeError>,
    ) -> Result<T, HandshakeError> {
        first_bytes(io, stream).await?;
        let permit = self.handshakes.admit(stream.peer()).ok_or(HandshakeError::OverShare)?;
        // Boxed: the memory is freed before the connection is served.
        let result = Box::pin(handshake(stream)).await;
        drop(permit);
        result
    }

    pub(crate) fn note(&self, outcome: Outcome) {
        self.handshakes.note(outcome);
    }
}

impl Drop for HandshakePermit {
    fn drop(&mut self) {
        let Some(network) = self.network else { return };
        let mut by_network = self.handshakes.lock();
        match by_network.get_mut(&network) {
            Some(taken) if *taken > 1 => *taken -= 1,
            _ => drop(by_network.remove(&network)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_has_its_share_of_handshakes_and_others_are_not_affected() {
        let handshakes = Handshakes::new();
        let peer = |last| Peer::Ip([203, 0, 113, last].into(), 1);
        let mut permits: Vec<HandshakePermit> =
            (0..HANDSHAKES_PER_NETWORK).map(|_| handshakes.admit(&peer(1)).unwrap()).collect();
        assert!(handshakes.admit(&peer(1)).is_none());
        assert!(handshakes.admit(&peer(2)).is_some());
        assert!(handshakes.admit(&Peer::Unix).is_some());
        permits.pop();
        assert!(handshakes.admit(&peer(1)).is_some());
        drop(permits);
        assert!(handshakes.lock().is_empty(), "nothing is remembered of networks without handshakes");
    }

    #[test]
    fn exempt_peers_bring_any_number_of_handshakes() {
        let (handshakes, peer) = (Handshakes::new(), Peer::Ip([203, 0, 113, 1].into(), 1));
        let admits = |handshakes: &Arc<Handshakes>| {
            let more = HANDSHAKES_PER_NETWORK + 1;
            (0..more).map(|_| handshakes.admit(&peer)).collect::<Vec<_>>().iter().all(Option::is_some)
        };
        assert!(!admits(&handshakes));
        handshakes.exempt(Networks::from(vec!["203.0.113.0/24".parse().unwrap()]));
        assert!(admits(&handshakes));
        handshakes.exempt(Networks::default());
        assert!(!admits(&handshakes));
    }

    #[test]
    fn results_are_counted() {
        let handshakes = Handshakes::new();
        handshakes.note(Outcome::Late);
        let counts = Outcome::ALL.map(|(outcome, _)| handshakes.count(outcome));
        assert_eq!(counts, [0, 0, 1, 0, 0]);
    }
}
