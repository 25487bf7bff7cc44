//! Known networks: where an account has logged in from before.
//!
//! An address is stored only as a keyed hash. The key is the stored hash of the account's password, so a new
//! password forgets all networks of the old one. Invariant: a network becomes known only by a right password.

use crate::directory::AccountRow;
use plimsoll_rpc::Source;

/// Names the purpose of the hash, so that no other hash of this program can be equal to it.
const CONTEXT: &str = "plimsoll 2026 networks of earlier log-ins";

/// The keyed hash of an account and a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NetworkHash(pub(crate) [u8; 32]);

impl NetworkHash {
    /// Wraps a hash as a directory stores it.
    #[must_use]
    pub fn from_bytes(hash: [u8; 32]) -> NetworkHash {
        NetworkHash(hash)
    }

    /// Hashes the network of `from` for the account of `row`.
    pub(crate) fn of(row: &AccountRow, from: Source) -> NetworkHash {
        NetworkHash::under(&row.hash, from)
    }

    /// Hashes the network of `from` under the stored hash of a password.
    pub(crate) fn under(password_hash: &str, from: Source) -> NetworkHash {
        let key = blake3::derive_key(CONTEXT, password_hash.as_bytes());
        let network = from.network();
        NetworkHash(*blake3::keyed_hash(&key, &network).as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_depends_on_the_network_and_on_the_stored_password() {
        let from = |ip: &str| Source::Ip(ip.parse().unwrap());
        let hash = |ip| NetworkHash::under("$argon2id$one", from(ip));
        assert_eq!(hash("2001:db8::1"), hash("2001:db8::2"));
        assert_ne!(hash("192.0.2.1"), hash("192.0.2.2"));
        assert_ne!(hash("192.0.2.1"), NetworkHash::under("$argon2id$two", from("192.0.2.1")));
    }
}
