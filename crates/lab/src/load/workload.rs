//! What is asked of a contender, by how many and how fast: a workload, as data.
//!
//! Nothing runs here. What must hold: everything that changes what is measured is in it, so that a trial
//! can be run again.

use std::path::PathBuf;
use std::time::Duration;

use crate::load::files::{Files, Pick};
use crate::load::place::Place;
use crate::load::ten::{Mix, Request};

/// A workload.
#[derive(Clone, Debug)]
pub struct Workload {
    /// Where the contender is, and the pattern of what is asked for.
    pub place: Place,
    /// Who the users are; they are all the same account.
    pub login: Login,
    /// What they ask for.
    pub ask: Ask,
    /// Which of the files a user takes for a request.
    pub pick: Pick,
    /// How many users.
    pub users: usize,
    /// When a user asks next.
    pub pace: Pace,
    /// When it is over.
    pub end: End,
    /// How long it goes on before anything is measured.
    pub warm_up: Duration,
    /// How connections are used.
    pub connections: Connections,
    /// Which bodies are verified.
    pub checked: Checked,
    /// A folder with the files as they should be; else what comes first is what should come.
    pub against: Option<PathBuf>,
    /// The folder that bodies are kept in.
    pub keep: Option<PathBuf>,
    /// How long a request may take.
    pub timeout: Duration,
    /// Threads that the users are spread over.
    pub threads: usize,
    /// Cores that these threads may run on; any, if there are none here.
    pub cpus: Vec<usize>,
    /// What chance is drawn from.
    pub seed: u64,
}

/// What users ask for.
#[derive(Clone, Debug)]
pub enum Ask {
    /// Files that are there.
    Download(Files),
    /// That a file be stored, of so many bytes, each under a name of its own.
    Upload {
        /// Bytes of each.
        bytes: u64,
    },
    /// That an account be made under a name of its own; classic has this.
    SignUp,
    /// The ten requests over HTTP, of a plimsoll server.
    Ten {
        /// How often each.
        mix: Mix,
        /// Bytes of each file.
        bytes: u64,
    },
}

impl Ask {
    /// The kinds of requests, where there is more than one.
    pub(crate) fn kinds(&self) -> Vec<&'static str> {
        match self {
            Ask::Ten { .. } => Request::ALL.iter().map(|request| request.name()).collect(),
            Ask::Download(_) | Ask::Upload { .. } | Ask::SignUp => Vec::new(),
        }
    }
}

/// Who the users are.
#[derive(Clone)]
pub enum Login {
    /// Nobody in particular.
    Nobody,
    /// An account and its password.
    Account {
        /// Its name.
        name: String,
        /// Its password.
        password: String,
    },
    /// A session's token.
    Token(String),
}

impl std::fmt::Debug for Login {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Login::Nobody => f.write_str("Nobody"),
            // A workload may be logged; what opens an account may not.
            Login::Account { name, .. } => write!(f, "Account({name:?})"),
            Login::Token(_) => f.write_str("Token"),
        }
    }
}

/// When a user asks next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pace {
    /// Once it has its answer and has thought for so long: the contender sets the pace.
    Closed {
        /// Time between an answer and the next request.
        think: Duration,
    },
    /// When it is planned, whatever the contender does: so many requests a second of all users together, in
    /// even steps. Latency counts from the planned start.
    Open {
        /// Requests a second.
        per_second: f64,
    },
}

/// When a trial is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// When so much time was measured.
    After(Duration),
    /// When so many requests were sent and have ended, well or not.
    Requests(u64),
}

/// How connections are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Connections {
    /// Each user keeps one.
    Kept,
    /// Each request has its own; making it counts in the latency.
    New,
}

/// Which bodies are verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checked {
    /// None.
    None,
    /// One in so many, by chance.
    OneIn(u64),
    /// All.
    All,
}
