//! Dispatchers: how each kind of engine spreads connections over threads.
//!
//! They are small, because the layers below do the work: they accept, count, hand over, and drain.
//! Invariants: after the order to stop, no connection is cut off before the grace period is over. `serve`
//! returns when the last has ended.

mod dispatch;
mod idle;
mod loops;
mod pool;
pub(crate) mod process;
mod queue;
mod thread;
mod worker;

use std::fmt;
use std::io;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_io::{Setup, Stop};

use crate::connections::Connections;
use crate::limits::{DESCRIPTORS_RESERVED, WORKERS_PER_CORE};
use crate::offload::Offload;
use crate::ready::{Bound, PollMethod};
use crate::ring::{NoRing, check_ring};
use crate::sockets::Wait;

/// A kind of engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EngineKind {
    /// A process for each connection. [`fork_master`](process::fork_master) starts it, because only a
    /// process with one thread can be forked; [`serve()`] returns an error.
    Process,
    /// A thread for each connection.
    Thread,
    /// A fixed number of worker threads, each of which serves one connection at a time; others wait in a
    /// queue.
    Pool,
    /// An event loop for each core, in which all connections take turns.
    Epoll,
    /// An event loop for each core over its own io_uring, to which the I/O itself is handed.
    Uring,
}

/// The name of an engine that does not exist.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no engine {0:?}: write auto, process, thread, pool, epoll or uring")]
pub struct UnknownEngine(String);

impl EngineKind {
    /// All kinds.
    pub const ALL: [EngineKind; 5] =
        [EngineKind::Process, EngineKind::Thread, EngineKind::Pool, EngineKind::Epoll, EngineKind::Uring];

    /// Returns how many connections may be open with a limit of `open_files` descriptors. Each takes its
    /// socket, and may take up to `beside` more for its work. With a process for each connection, the number
    /// of processes is the bound.
    pub fn connections_max(self, open_files: u64, beside: u64) -> usize {
        let own = match self {
            EngineKind::Process => return process::processes_max().0,
            // The connection's thread has an eventfd.
            EngineKind::Thread | EngineKind::Pool => 2,
            EngineKind::Epoll | EngineKind::Uring => 1,
        };
        let (each, left) = (own + beside, open_files.saturating_sub(DESCRIPTORS_RESERVED));
        usize::try_from(left / each).unwrap_or(usize::MAX).max(1)
    }

    /// Returns the default number of threads for connections on a machine with so many cores.
    pub fn threads(self, cores: usize) -> usize {
        match self {
            EngineKind::Process | EngineKind::Thread => 1,
            EngineKind::Pool => cores.saturating_mul(WORKERS_PER_CORE),
            EngineKind::Epoll | EngineKind::Uring => cores,
        }
    }

    /// Whether each connection has a process of its own.
    pub fn forks(self) -> bool {
        self == EngineKind::Process
    }

    /// Whether the operator chooses the number of threads. If not, each connection has a thread or process.
    pub fn has_fixed_threads(self) -> bool {
        matches!(self, EngineKind::Pool | EngineKind::Epoll | EngineKind::Uring)
    }

    /// Checks that this kernel has the features that the engine needs.
    ///
    /// # Errors
    /// The reason, with advice for the operator.
    pub fn check(self) -> Result<(), NoRing> {
        if self == EngineKind::Uring { check_ring() } else { Ok(()) }
    }

    pub(crate) fn wait(self) -> Wait {
        match self {
            EngineKind::Process | EngineKind::Thread | EngineKind::Pool => Wait::Ready(PollMethod::Poll),
            EngineKind::Epoll => Wait::Ready(PollMethod::Epoll),
            EngineKind::Uring => Wait::Ring,
        }
    }

    pub(crate) fn offload(self) -> io::Result<Offload> {
        match self {
            EngineKind::Process | EngineKind::Thread | EngineKind::Pool => Offload::in_place(),
            EngineKind::Epoll | EngineKind::Uring => Offload::pooled(),
        }
    }
}

impl fmt::Display for EngineKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            EngineKind::Process => "process",
            EngineKind::Thread => "thread",
            EngineKind::Pool => "pool",
            EngineKind::Epoll => "epoll",
            EngineKind::Uring => "uring",
        })
    }
}

impl FromStr for EngineKind {
    type Err = UnknownEngine;

    fn from_str(name: &str) -> Result<EngineKind, UnknownEngine> {
        match name {
            "auto" | "epoll" => Ok(EngineKind::Epoll),
            "process" => Ok(EngineKind::Process),
            "thread" => Ok(EngineKind::Thread),
            "pool" => Ok(EngineKind::Pool),
            "uring" => Ok(EngineKind::Uring),
            _ => Err(UnknownEngine(name.to_owned())),
        }
    }
}

/// The treatment of a connection that arrives when all workers are taken and their queue is full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WhenFull {
    /// It is not accepted: it waits in the kernel.
    #[default]
    Block,
    /// It is accepted and refused; so is a connection that has waited too long in the queue.
    Refuse,
}

/// The text is neither `block` nor `refuse`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("write one of: block, refuse")]
pub struct NoWhenFull;

impl fmt::Display for WhenFull {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            WhenFull::Block => "block",
            WhenFull::Refuse => "refuse",
        })
    }
}

impl FromStr for WhenFull {
    type Err = NoWhenFull;

    fn from_str(word: &str) -> Result<WhenFull, NoWhenFull> {
        match word {
            "block" => Ok(WhenFull::Block),
            "refuse" => Ok(WhenFull::Refuse),
            _ => Err(NoWhenFull),
        }
    }
}

/// A server to run: its engine, listeners and bounds.
pub struct Plan {
    /// The kind of engine.
    pub engine: EngineKind,
    /// Number of event loops or of workers, whichever the engine has.
    pub threads: usize,
    /// The treatment of connections that arrive when all workers are taken.
    pub when_full: WhenFull,
    /// Addresses to listen on, and the protocol of each.
    pub listeners: Vec<(Bound, Setup)>,
    /// The order to stop.
    pub stop: Stop,
    /// How long after the order connections may continue.
    pub grace: Duration,
    /// The connection slots, shared with the metrics.
    pub connections: Arc<Connections>,
}

const FORKED_ONLY: &str = "the engine process serves by a fork master, which has to be made first";

/// Serves until the order to stop, and then until the last connection has ended or the grace period is over.
///
/// # Errors
/// Fails if the engine cannot be created.
pub fn serve(plan: Plan) -> io::Result<()> {
    plan.engine.check()?;
    match plan.engine {
        EngineKind::Process => Err(io::Error::new(io::ErrorKind::Unsupported, FORKED_ONLY)),
        EngineKind::Thread => thread::serve(plan),
        EngineKind::Pool => pool::serve(plan),
        EngineKind::Epoll | EngineKind::Uring => loops::serve(plan),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_limit_of_descriptors_still_allows_a_connection_and_a_large_one_its_share() {
        assert_eq!(EngineKind::Epoll.connections_max(10, 1), 1);
        assert_eq!(EngineKind::Epoll.connections_max(20_000, 1), 9_968);
        assert_eq!(EngineKind::Thread.connections_max(20_000, 1), 6_645);
    }

    #[test]
    fn a_pool_has_more_workers_than_there_are_cores() {
        assert_eq!(EngineKind::Pool.threads(2), 32);
        assert_eq!([EngineKind::Epoll, EngineKind::Uring].map(|kind| kind.threads(2)), [2, 2]);
    }

    #[test]
    fn every_engine_is_found_by_its_own_name() {
        for kind in EngineKind::ALL {
            assert_eq!(kind.to_string().parse(), Ok(kind));
        }
        for when in [WhenFull::Block, WhenFull::Refuse] {
            assert_eq!(when.to_string().parse(), Ok(when));
        }
        let unknown = "quick".parse::<EngineKind>().unwrap_err().to_string();
        assert!(unknown.contains("quick") && unknown.contains("epoll"), "{unknown}");
    }
}
