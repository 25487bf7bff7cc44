//! A workload, as data: the requests, the number of users and the pace.
//!
//! Nothing runs here. Invariant: it includes everything that affects the measurement, so that a trial can
//! be repeated.

use std::path::PathBuf;
use std::time::Duration;

use plimsoll_tls::Connector;

use crate::files::{Files, Pick};
use crate::target::Target;
use crate::ten::{Mix, Request};

/// A workload.
#[derive(Clone, Debug)]
pub struct Workload {
    /// The address of the contender and the pattern of the targets.
    pub place: Target,
    /// Encrypts the connections to a contender whose scheme demands it.
    pub tls: Option<Connector>,
    /// The credentials of the users, which all use the same account.
    pub login: Login,
    /// The requests of the users.
    pub ask: Requests,
    /// The rule by which a user chooses the file of a request.
    pub pick: Pick,
    /// Number of users.
    pub users: usize,
    /// The rule for the time of a user's next request.
    pub pace: Pace,
    /// The condition that ends the trial.
    pub end: End,
    /// Duration of the warm-up before the measurement.
    pub warm_up: Duration,
    /// The use of connections.
    pub connections: Connections,
    /// The bodies that are verified.
    pub checked: Checked,
    /// A folder with reference files. Without it, the first body of a file is its reference.
    pub against: Option<PathBuf>,
    /// The folder in which bodies are saved.
    pub keep: Option<PathBuf>,
    /// Maximum duration of a request.
    pub timeout: Duration,
    /// Number of threads for the users.
    pub threads: usize,
    /// Cores on which these threads may run; empty for any.
    pub cpus: Vec<usize>,
    /// Seed of all pseudo-random choices.
    pub seed: u64,
}

/// The requests of users.
#[derive(Clone, Debug)]
pub enum Requests {
    /// Download existing files.
    Download(Files),
    /// Upload files, each under a new name.
    Upload {
        /// Size of each in bytes.
        bytes: u64,
    },
    /// Create accounts under new names. Only classic supports this.
    SignUp,
    /// The ten requests over HTTP, to a plimsoll server.
    Ten {
        /// How often each request occurs.
        mix: Mix,
        /// Size of each file in bytes.
        bytes: u64,
    },
}

impl Requests {
    /// Returns the names of the kinds of requests, if there are several.
    pub(crate) fn kinds(&self) -> Vec<&'static str> {
        match self {
            Requests::Ten { .. } => Request::ALL.iter().map(|request| request.name()).collect(),
            Requests::Download(_) | Requests::Upload { .. } | Requests::SignUp => Vec::new(),
        }
    }
}

/// The credentials of the users.
#[derive(Clone)]
pub enum Login {
    /// None: the users are guests.
    Nobody,
    /// An account and its password.
    Account {
        /// The account's name.
        name: String,
        /// The account's password.
        password: String,
    },
    /// The token of a login session.
    Token(String),
}

impl std::fmt::Debug for Login {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Login::Nobody => f.write_str("Nobody"),
            // Omits the credentials, because a workload may be logged.
            Login::Account { name, .. } => write!(f, "Account({name:?})"),
            Login::Token(_) => f.write_str("Token"),
        }
    }
}

/// The rule for the time of a user's next request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pace {
    /// This long after the previous response: the contender sets the pace.
    Closed {
        /// Time between a response and the next request.
        think: Duration,
    },
    /// At planned times, independent of the contender: the starts of all users together are evenly spaced.
    /// Latency counts from the planned start.
    Open {
        /// Requests per second.
        per_second: f64,
    },
}

/// The condition that ends a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// This much time was measured.
    After(Duration),
    /// This many requests were sent and have ended, with or without an error.
    Requests(u64),
    /// Each user has sent this many, and all have ended. The time of each user is measured.
    RequestsEach(u64),
}

/// The use of connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Connections {
    /// Each user has one keep-alive connection.
    Kept,
    /// Each request has a new one; the latency includes its setup.
    New,
}

/// The bodies that are verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checked {
    /// None.
    None,
    /// A pseudo-random one in this many.
    OneIn(u64),
    /// All.
    All,
}
