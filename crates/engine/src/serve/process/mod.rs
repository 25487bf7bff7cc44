//! A process for each connection: the fork master, which forks them, and the main process, which forked the
//! master.
//!
//! The main process owns the threads and handles: signals, logs, the configuration file. Before it has any of
//! them, [`fork_master`] forks the master, which has one thread, accepts, and forks for each connection. All
//! processes share counters only ([`shared_cells`](crate::shared_cells)).
//!
//! It is not a way to run programs. Invariants: a connection's process has no access to others' connections,
//! and keeps only what it serves with. It ends when its connection does, and when the main process or the
//! master ends, in any way. A crash of it harms one client only.
//!
//! Design: docs/design/process-engine.md.

mod allowed;
mod child;
mod fork;
mod log_throttle;
mod master;
mod orders;

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use plimsoll_io::{Notify, Stop};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, WaitStatus, getpid, kill_process, pidfd_open, waitpid,
};

use crate::limits::{KILLED_TIME, MASTER_END_TIME, OWN_END_TIME};

pub use allowed::{ProcessBound, processes_max};
pub use master::{Forking, Orders, ReloadScope};
pub use orders::Reload;
use orders::{Order, OrderChannel};

/// Which of the two processes this is after [`fork_master`].
pub enum Forked {
    /// The process that called it.
    Main(Master),
    /// The process that accepts and forks.
    Master(Orders),
}

/// The main process's handle of its fork master. If it ends, so do the master and all connections'
/// processes.
pub struct Master {
    pid: Pid,
    line: Arc<Mutex<OrderChannel>>,
    stop: Arc<StopLine>,
    /// The read end of that pipe, by which the main process itself sees the order.
    stopped: OwnedFd,
}

/// How a fork master ended, and when the order to stop came.
pub struct MasterEnd {
    /// When the order to stop came; `None` if the master ended before.
    pub ordered_at: Option<Instant>,
    /// The error to report if it did not end as it should.
    pub outcome: io::Result<()>,
}

/// The write end of the pipe whose closing is the order to stop. Every process with the read end sees it,
/// even one forked later.
struct StopLine(Mutex<Option<OwnedFd>>);

/// Forks the fork master from this process, which must have one thread only.
///
/// # Errors
/// Fails if there are other threads, or with the kernel's error.
pub fn fork_master() -> io::Result<Forked> {
    let (stopped, stop) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
    let (ours, masters) = UnixStream::pair()?;
    let main = getpid();
    match fork::fork()? {
        Some(pid) => {
            drop(masters);
            let (line, stop) = (OrderChannel::new(ours)?, Arc::new(StopLine(Mutex::new(Some(stop)))));
            Ok(Forked::Main(Master { pid, line: Arc::new(Mutex::new(line)), stop, stopped }))
        }
        None => {
            drop((ours, stop));
            if fork::end_with_parent(main).is_err() {
                // The main process has ended, so there is no process to report to.
                fork::end_with(0, || 0);
            }
            Ok(Forked::Master(Orders { from: masters, stopped }))
        }
    }
}

impl Master {
    /// Orders the master to accept connections.
    ///
    /// # Errors
    /// Fails if it does not answer, and so has ended.
    pub fn begin(&self) -> io::Result<()> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner).order(Order::Begin).map(drop)
    }

    /// Returns a handle that has the master reload the configuration.
    pub fn reload(&self) -> Reload {
        Reload(Arc::clone(&self.line))
    }

    /// Waits until the master has ended. After the order to stop, it ends when the last connection has ended
    /// or `grace` is over. A master that hangs is killed then.
    pub fn wait(self, stop: &Stop, grace: Duration) -> MasterEnd {
        let line: Arc<dyn Notify> = Arc::<StopLine>::clone(&self.stop);
        stop.register(&line);
        let mut ordered_at = None;
        let outcome = self.end(grace, &mut ordered_at);
        MasterEnd { ordered_at, outcome }
    }

    fn end(&self, grace: Duration, ordered_at: &mut Option<Instant>) -> io::Result<()> {
        let ended = pidfd_open(self.pid, PidfdFlags::empty())?;
        let is_ended = |time| wait_for_any(&[&ended], time);
        wait_for_any(&[&ended, &self.stopped], None)?;
        if !is_ended(Some(Duration::ZERO))? {
            *ordered_at = Some(Instant::now());
            let most = grace + OWN_END_TIME + KILLED_TIME + MASTER_END_TIME;
            if !is_ended(Some(most))? {
                // The kernel kills the connections' processes with it.
                let _ = kill_process(self.pid, Signal::KILL);
                is_ended(Some(KILLED_TIME))?;
                return Err(io::Error::other("the process that accepts did not end in time; it was killed"));
            }
        }
        loop {
            match waitpid(Some(self.pid), WaitOptions::empty()) {
                Ok(Some((_, status))) => return how_it_ended(status),
                Ok(None) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// Waits until one of `fds` is readable, for `time` at most; returns whether one is.
fn wait_for_any(fds: &[&OwnedFd], time: Option<Duration>) -> io::Result<bool> {
    let until = time.map(|time| Instant::now() + time);
    loop {
        let mut fds: Vec<_> = fds.iter().map(|fd| PollFd::new(*fd, PollFlags::IN)).collect();
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        let left = left.map(|left| Timespec::try_from(left).unwrap_or_default());
        match poll(&mut fds, left.as_ref()) {
            Ok(seen) => return Ok(seen > 0),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
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
