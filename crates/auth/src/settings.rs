//! The operator's settings of the auth tier.
//!
//! They are not read from a file here; a reload passes new ones. Invariant: the defaults are fit for a
//! server on a public network.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use plimsoll_rpc::Budget;

use crate::account::Quota;

/// An operator's settings; a reload replaces all of them.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The cost of a password hash.
    pub argon2: Argon2Settings,
    /// How long a session lasts from its log-in. Use does not extend it.
    pub session_time: Duration,
    /// How long a verified token or password is cached before it is checked again. Changes made by this
    /// server take effect at once.
    pub remembered_time: Duration,
    /// Whether clients may create accounts.
    pub sign_up: SignUp,
    /// Whether there are public links.
    pub links: bool,
    /// The storage limits of a new account.
    pub quota: Quota,
    /// The limits on wrong passwords. `None`, for measurements only, also disables the queue of the
    /// hashing.
    pub attempts: Option<Attempts>,
    /// Passwords that are hashed at a time, among requests that wait: slightly more than there are
    /// cores, so that no core is idle.
    pub hashes_at_once: usize,
    /// Whether each request to a remote auth server or a database gets a connection of its own. For
    /// measurements of what keep-alive connections save.
    pub connect_each: bool,
}

/// The settings in effect, shared by all threads.
pub(crate) struct InForce(RwLock<Arc<Settings>>);

impl InForce {
    pub(crate) fn new(settings: Settings) -> InForce {
        InForce(RwLock::new(Arc::new(settings)))
    }

    pub(crate) fn set(&self, settings: Settings) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(settings);
    }

    pub(crate) fn get(&self) -> Arc<Settings> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            argon2: Argon2Settings::default(),
            session_time: Duration::from_secs(30 * 24 * 3600),
            remembered_time: Duration::from_secs(300),
            sign_up: SignUp::Closed,
            links: true,
            quota: Quota::default(),
            attempts: Some(Attempts::default()),
            hashes_at_once: 4,
            connect_each: false,
        }
    }
}

/// The cost of an Argon2id hash (RFC 9106). The default is OWASP's first choice for a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Argon2Settings {
    /// Memory, in KiB.
    pub memory_kib: u32,
    /// Passes over the memory.
    pub passes: u32,
    /// Lanes.
    pub lanes: u32,
}

impl Default for Argon2Settings {
    fn default() -> Argon2Settings {
        Argon2Settings { memory_kib: 19_456, passes: 2, lanes: 1 }
    }
}

/// The right to create accounts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignUp {
    /// Any client.
    Open,
    /// Only the operator.
    Closed,
}

/// The limits on wrong passwords. An IPv6 address counts by its first 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attempts {
    /// Failures for one account's name from one address.
    pub per_name_from_address: Budget,
    /// Failures for one account's name, from all addresses.
    pub per_name: Budget,
    /// Once `per_name` is used up: failures for one account's name from networks that have not failed at it
    /// for [`NETWORK_TRIED_TIME`](crate::limits::NETWORK_TRIED_TIME).
    pub per_name_from_fresh: Budget,
    /// Failures from one address, for all names.
    pub per_address: Budget,
    /// Sign-ups from one address, successful or not. A hundred at once and one more each second: a class
    /// behind one address can sign up. The bounded queue of the password hashing protects the machine.
    pub sign_ups: Budget,
    /// The delay of the response to the first wrong password. Each further one doubles it.
    pub slow_first: Duration,
    /// The longest delay.
    pub slow_max: Duration,
    /// Whether clients on this machine (loopback, Unix sockets) have no budget per address.
    pub exempt_local: bool,
}

impl Default for Attempts {
    fn default() -> Attempts {
        let minute = Duration::from_secs(60);
        Attempts {
            per_name_from_address: Budget { count: 10, forgiven_after: minute },
            per_name: Budget { count: 50, forgiven_after: minute },
            per_name_from_fresh: Budget { count: 50, forgiven_after: minute / 3 },
            per_address: Budget { count: 100, forgiven_after: minute / 6 },
            sign_ups: Budget { count: 100, forgiven_after: minute / 60 },
            slow_first: Duration::from_millis(100),
            slow_max: Duration::from_secs(3),
            exempt_local: false,
        }
    }
}
