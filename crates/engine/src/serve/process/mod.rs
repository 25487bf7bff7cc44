//! A process for each connection: the fork master, which makes them, and the program, of which it comes.
//!
//! The program keeps what has threads and handles: signals, logs, the configuration's file. Before it has any
//! of them, [`fork_master`] makes the master of it, which has one thread, accepts, and forks for each
//! connection. What they all share is numbers ([`shared_cells`](crate::shared_cells)).
//!
//! It is not a way to run programs. What must hold: a connection's process has nothing of others'
//! connections, and of the master nothing but what it serves; it ends when its connection does, and when
//! program or master end, however that is; whatever becomes of it is one client's harm.

mod child;
mod fork;
mod master;
mod orders;

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, PoisonError};

use plimsoll_io::{Notify, Stop};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, Resource, WaitOptions, WaitStatus, getpid, getrlimit, waitpid};

use crate::limits::{PROCESSES_MAX, PROCESSES_RESERVED};

pub use master::{Forking, Orders};
pub use orders::Reload;
use orders::{Line, Order};

/// Which of the two processes this is after [`fork_master`].
pub enum Forked {
    /// The one that was there before.
    Program(Master),
    /// The one that accepts and forks.
    Master(Orders),
}

/// The program's hold on its fork master. If the program ends, so do the master and all that come of it.
pub struct Master {
    pid: Pid,
    line: Arc<Mutex<Line>>,
    stop: Arc<StopLine>,
}

/// The pipe whose end is the order to stop: whoever holds its other end sees that, also who comes later.
struct StopLine(Mutex<Option<OwnedFd>>);

/// How many connections there may be, each of which is a process.
pub(super) fn connections_max() -> usize {
    let allowed = getrlimit(Resource::Nproc).current.unwrap_or(u64::MAX);
    let most = allowed.saturating_sub(PROCESSES_RESERVED).clamp(1, PROCESSES_MAX);
    usize::try_from(most).unwrap_or(usize::MAX)
}

/// Makes the fork master of this process, which may have one thread only.
///
/// # Errors
/// Where there are other threads, and what the system says.
pub fn fork_master() -> io::Result<Forked> {
    let (stopped, stop) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
    let (ours, masters) = UnixStream::pair()?;
    let program = getpid();
    match fork::fork()? {
        Some(pid) => {
            drop((masters, stopped));
            let (line, stop) = (Line::new(ours)?, Arc::new(StopLine(Mutex::new(Some(stop)))));
            Ok(Forked::Program(Master { pid, line: Arc::new(Mutex::new(line)), stop }))
        }
        None => {
            drop((ours, stop));
            if fork::end_with_parent(program).is_err() {
                // The program has ended, and there is nobody to tell.
                fork::end_with(0, || 0);
            }
            Ok(Forked::Master(Orders { from: masters, stopped }))
        }
    }
}

impl Master {
    /// Has it accept connections.
    ///
    /// # Errors
    /// Where it does not answer, and so has ended.
    pub fn begin(&self) -> io::Result<()> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner).order(Order::Begin).map(drop)
    }

    /// A way to have it read the configuration again.
    pub fn reload(&self) -> Reload {
        Reload(Arc::clone(&self.line))
    }

    /// Waits until it has ended, which it does after the order to stop, when the last connection has gone.
    ///
    /// # Errors
    /// Where it ended otherwise.
    pub fn wait(self, stop: &Stop) -> io::Result<()> {
        let line: Arc<dyn Notify> = Arc::<StopLine>::clone(&self.stop);
        stop.tell(&line);
        loop {
            match waitpid(Some(self.pid), WaitOptions::empty()) {
                Ok(Some((_, status))) => return how_it_ended(status),
                Ok(None) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

fn how_it_ended(status: WaitStatus) -> io::Result<()> {
    const NEXT: &str = "and with it all connections; start the server again, and look for why in its log";
    match (status.exit_status(), status.terminating_signal()) {
        (Some(0), _) => Ok(()),
        (_, Some(signal)) => {
            Err(io::Error::other(format!("signal {signal} ended the process that accepts, {NEXT}")))
        }
        _ => Err(io::Error::other(format!("the process that accepts has ended, {NEXT}"))),
    }
}

impl Notify for StopLine {
    fn notify(&self) {
        drop(self.0.lock().unwrap_or_else(PoisonError::into_inner).take());
    }
}
