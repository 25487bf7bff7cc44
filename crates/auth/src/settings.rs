//! What an operator sets of the auth tier.
//!
//! It is not read from a file here; a reload hands over a new one. What must hold: the default is what a
//! server on the open network should have.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use crate::account::Quota;

/// An operator's settings; a reload replaces them whole.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The cost of a password's hash.
    pub argon2: Argon2Settings,
    /// How long a session lasts from its log-in. Using it does not make it longer.
    pub session_time: Duration,
    /// How long a token or a password that was verified is believed without asking the directory again.
    /// What this server changes itself ends at once.
    pub remembered_time: Duration,
    /// Whether anybody may make an account.
    pub sign_up: SignUp,
    /// What a new account may store.
    pub quota: Quota,
    /// How wrong passwords are held back, and that requests take turns at the hashing; `None` is
    /// a laboratory's setting.
    pub attempts: Option<Attempts>,
    /// Passwords that are hashed at a time, of those that wait for their turn: some more than there are
    /// cores, so that no core waits for the next.
    pub hashes_at_once: usize,
    /// Bytes that a new password must have.
    pub password_bytes_min: usize,
    /// Whether each question is asked on a connection of its own, to an auth server elsewhere and to a
    /// database: a laboratory's setting, for what keeping them is worth.
    pub connect_each: bool,
}

/// The settings that hold at present, for all threads.
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
            quota: Quota::default(),
            attempts: Some(Attempts::default()),
            hashes_at_once: 4,
            password_bytes_min: 8,
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

/// Who may make an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignUp {
    /// Anybody who reaches the server.
    Open,
    /// The operator.
    Closed,
}

/// How wrong passwords are held back. An IPv6 address counts by its first 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attempts {
    /// Failures for one account's name from one address.
    pub per_name_from_address: Budget,
    /// Failures for one account's name, from wherever.
    pub per_name: Budget,
    /// Once `per_name` is used up: failures for one account's name from networks that have not failed at it
    /// for [`NETWORK_TRIED_TIME`](crate::limits::NETWORK_TRIED_TIME).
    pub per_name_from_fresh: Budget,
    /// Failures from one address, for whatever names.
    pub per_address: Budget,
    /// Sign-ups from one address, good or not: a hundred at once and one more each second, so that a class
    /// behind one address can sign up. What guards the machine is the bounded queue of the password hashing.
    pub sign_ups: Budget,
    /// How long the answer to the first wrong password waits; each further one waits twice as long.
    pub slow_first: Duration,
    /// The longest such wait.
    pub slow_max: Duration,
    /// Whether the machine itself (loopback, Unix sockets) has no budget per address.
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

/// So many at once, and then one more each time that one is forgiven. None at all counts as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// How many may come at once.
    pub count: u32,
    /// The time after which one of them is forgiven.
    pub forgiven_after: Duration,
}
