//! The fork master: it accepts, forks, counts, and waits for ended processes.
//!
//! It serves no connection, and has one thread only, with one loop around poll(2). Invariants: a slot is
//! released when its process has ended, for any reason. Without a free process or descriptor, accepting
//! slows down and never spins. A connection that was accepted without a free process waits for one, and is
//! not dropped. Connections that were queued when the order to stop came are still served.

use std::collections::{HashMap, VecDeque};
use std::io::{self, Read as _};
use std::iter;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::task::{Wake, Waker};
use std::time::{Duration, Instant};

use plimsoll_io::{Peer, Setup, Stop};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{SocketFlags, acceptfrom_with};
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, getpid, kill_process, wait};
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM};

use super::child::{Child, code};
use super::fork;
use super::log_throttle::LogThrottle;
use super::orders::{self, Order};
use crate::connections::{Admitted, Connections};
use crate::limits::{
    ACCEPT_PAUSE, ACCEPTS_AT_STOP_MAX, ACCEPTS_PER_TURN_MAX, FULL_PAUSE, KILLED_TIME, OWN_END_TIME,
};
use crate::ready::{Bound, is_that_connections, peer_of};
use crate::serve::dispatch::{Accepted, has_disconnected, refuse};

/// The fork master's channels from the main process.
pub struct Orders {
    pub(super) from: UnixStream,
    pub(super) stopped: OwnedFd,
}

/// The files that a fork master reads again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReloadScope {
    /// The configuration, with all files that it names.
    Configuration,
    /// The files that the present configuration names.
    Files,
}

/// Configuration of a fork master.
pub struct Forking {
    /// Addresses to listen on, and the protocol of each.
    pub listeners: Vec<(Bound, Setup)>,
    /// Ordered in each process when the main process orders its own.
    pub stop: Stop,
    /// How long after the order connections may continue.
    pub grace: Duration,
    /// The connection slots, with cells that all processes share.
    pub connections: Arc<Connections>,
    /// Reloads the configuration for later connections, or only the files that it names; returns whether that
    /// succeeded.
    pub reload: Box<dyn FnMut(ReloadScope) -> bool>,
}

/// The state of a running master.
struct Serving {
    orders: Option<UnixStream>,
    stopped: OwnedFd,
    /// Becomes readable when a child process has ended.
    bell: UnixStream,
    plan: Forking,
    children: HashMap<Pid, Admitted>,
    /// Connections accepted without a free process: one, or after the order to stop all that were queued.
    held: VecDeque<Newcomer>,
    pid: Pid,
    /// Whether the main process has ordered the master to begin.
    has_begun: bool,
    paused_until: Option<Instant>,
    /// The latest warnings about missing descriptors, and about missing processes.
    log_throttles: [LogThrottle; 2],
    stopping: Option<Stopping>,
}

/// Kills the process of an evicted connection when it is woken. The process ID is still valid: a connection
/// leaves the registry when its process is waited for.
struct Kill(Pid);

impl Wake for Kill {
    fn wake(self: Arc<Self>) {
        // It may have ended meanwhile, as a zombie.
        let _ = kill_process(self.0, Signal::KILL);
    }
}

/// An accepted connection, and the protocol that serves it.
struct Newcomer {
    accepted: Accepted,
    setup: Setup,
}

/// The deadline of the remaining processes after the order to stop.
struct Stopping {
    killed_at: Instant,
    is_killed: bool,
}

/// Which process this is after a turn.
enum Side {
    Master,
    /// The process of a connection.
    Child(Newcomer),
}

impl Orders {
    /// Accepts and forks until the main process orders the end and the last connection has ended. Returns
    /// only in the master.
    ///
    /// # Errors
    /// Fails if the signal handlers, or the socket pair that SIGCHLD writes to, cannot be created.
    pub fn serve(self, plan: Forking) -> io::Result<()> {
        let Orders { from, stopped } = self;
        plan.listeners.iter().for_each(|(bound, _)| plan.connections.reserve_for(bound.service().number));
        let serving = Serving {
            orders: Some(from),
            stopped,
            bell: bell()?,
            plan,
            children: HashMap::new(),
            held: VecDeque::new(),
            pid: getpid(),
            has_begun: false,
            paused_until: None,
            log_throttles: Default::default(),
            stopping: None,
        };
        serving.run();
        Ok(())
    }
}

/// Creates the socket that becomes readable when a child has ended. Also has SIGTERM, SIGINT and SIGHUP
/// ignored: a terminal or a service manager sends them to all processes, but the main process alone acts on
/// them.
fn bell() -> io::Result<UnixStream> {
    for signal in [SIGTERM, SIGINT, SIGHUP] {
        signal_hook::flag::register(signal, Arc::<AtomicBool>::default())?;
    }
    let (bell, bell_end) = UnixStream::pair()?;
    bell.set_nonblocking(true)?;
    signal_hook::low_level::pipe::register(SIGCHLD, bell_end)?;
    Ok(bell)
}

impl Serving {
    fn run(mut self) {
        while !self.is_over() {
            let ready = self.look();
            self.reap_children();
            self.execute_order();
            let side = match self.stopping {
                None if ready.stopped => self.stop(),
                None => self.serve_held().or_else(|| self.accept(&ready.listeners)),
                Some(_) => self.serve_held(),
            };
            if let Side::Child(newcomer) = side {
                self.become_child(newcomer);
            }
            self.kill_who_is_late();
        }
    }

    fn is_over(&self) -> bool {
        self.stopping.as_ref().is_some_and(|stopping| {
            let is_nobody_left = self.children.is_empty() && self.held.is_empty();
            is_nobody_left || stopping.killed_at + KILLED_TIME < Instant::now()
        })
    }
}

impl Side {
    /// Returns the result of `next`, if this is still the master.
    fn or_else(self, next: impl FnOnce() -> Side) -> Side {
        if matches!(self, Side::Master) { next() } else { self }
    }
}

/// The descriptors that one poll reported.
struct Ready {
    stopped: bool,
    /// Listeners with queued connections, by their index in the plan.
    listeners: Vec<usize>,
}

/// The result of accepting once.
enum Taken {
    Nobody,
    One,
    /// This process is that of the connection.
    Child(Newcomer),
}

impl Serving {
    /// Waits until there is something to do.
    fn look(&self) -> Ready {
        let orders = self.orders.iter().map(AsFd::as_fd);
        // After the order, the pipe would end every wait.
        let stopped = self.stopping.is_none().then(|| self.stopped.as_fd());
        let listeners: Vec<usize> =
            (0..self.plan.listeners.len()).filter(|listener| self.has_room(*listener)).collect();
        let fds = iter::once(self.bell.as_fd()).chain(orders).chain(stopped);
        let fds = fds.chain(listeners.iter().map(|listener| self.plan.listeners[*listener].0.fd.as_fd()));
        let mut fds: Vec<_> = fds.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).collect();
        let timeout = self.timeout().map(|time| Timespec::try_from(time).unwrap_or_default());
        // An error is an interruption: then nothing is reported, and the loop continues.
        let _ = poll(&mut fds, timeout.as_ref());
        let is_ready = |fd: &PollFd<'_>| !fd.revents().is_empty();
        let (others, listening) = fds.split_at(fds.len() - listeners.len());
        let waiting = listeners.iter().zip(listening).filter(|(_, fd)| is_ready(fd));
        Ready {
            stopped: stopped.is_some() && others.last().is_some_and(is_ready),
            listeners: waiting.map(|(listener, _)| *listener).collect(),
        }
    }

    fn timeout(&self) -> Option<Duration> {
        let killed_at = |stopping: &Stopping| match stopping.is_killed {
            false => stopping.killed_at,
            true => stopping.killed_at + KILLED_TIME,
        };
        let stop_ends = self.stopping.as_ref().map(killed_at);
        // Connections that wait for a process need a turn even if the pause has ended since.
        let pause_ends = if self.held.is_empty() { self.pause_end() } else { self.paused_until };
        let looks_again = self.make_room_where_full().then(|| Instant::now() + FULL_PAUSE);
        let ends = stop_ends.into_iter().chain(pause_ends).chain(looks_again).min();
        // A millisecond more, so that the time is over then.
        ends.map(|end| end.saturating_duration_since(Instant::now()) + Duration::from_millis(1))
    }

    /// Returns whether another connection may be accepted now at `listener`.
    fn has_room(&self, listener: usize) -> bool {
        let may_accept = self.stopping.is_none() && self.held.is_empty() && self.pause_end().is_none();
        may_accept && self.has_slot(listener)
    }

    /// Returns whether there is a slot for a connection of `listener`, even if it must wait for a process.
    fn has_slot(&self, listener: usize) -> bool {
        let (bound, _) = &self.plan.listeners[listener];
        self.has_begun && !self.plan.connections.is_full(bound.service().number)
    }

    /// Evicts connections for listeners that have no slot. Returns whether there are any such listeners.
    fn make_room_where_full(&self) -> bool {
        let (connections, mut is_full) = (&self.plan.connections, false);
        for (bound, _) in &self.plan.listeners {
            let service = bound.service().number;
            if connections.is_full(service) {
                connections.make_room(service);
                is_full = true;
            }
        }
        is_full
    }

    /// Returns when accepting continues, if it is paused.
    fn pause_end(&self) -> Option<Instant> {
        self.paused_until.filter(|end| Instant::now() < *end)
    }

    fn pause(&mut self) {
        self.paused_until = Some(Instant::now() + ACCEPT_PAUSE);
    }

    /// Accepts some of the queued connections at each of `listeners`.
    fn accept(&mut self, listeners: &[usize]) -> Side {
        self.take_in(listeners, ACCEPTS_PER_TURN_MAX as usize, Serving::has_room)
    }

    /// Accepts up to `max` connections at each of `listeners`, as long as `may` permits.
    fn take_in(&mut self, listeners: &[usize], max: usize, may: fn(&Serving, usize) -> bool) -> Side {
        for &listener in listeners {
            for _ in 0..max {
                let taken = if may(self, listener) { self.take_from(listener) } else { Taken::Nobody };
                match taken {
                    Taken::One => {}
                    Taken::Nobody => break,
                    Taken::Child(newcomer) => return Side::Child(newcomer),
                }
            }
        }
        Side::Master
    }

    fn take_from(&mut self, listener: usize) -> Taken {
        let (bound, setup) = &self.plan.listeners[listener];
        let (fd, peer) = match accept_at(bound) {
            Ok(Some(accepted)) => accepted,
            Ok(None) => return Taken::Nobody,
            Err(error) => {
                if self.log_throttles[0].may_log() {
                    tracing::warn!(%error, "cannot accept just now; is the limit of open files too low?");
                }
                self.pause();
                return Taken::Nobody;
            }
        };
        let service = bound.service();
        let Some(admitted) = self.plan.connections.admit(&peer, service.number) else {
            refuse(&fd, service);
            return Taken::One;
        };
        let newcomer = Newcomer { accepted: Accepted { fd, peer, admitted }, setup: Arc::clone(setup) };
        if self.held.is_empty() {
            return self.fork_for(newcomer);
        }
        self.held.push_back(newcomer);
        Taken::One
    }

    /// Forks a process for `newcomer`, or keeps it waiting if the kernel allows no more processes.
    fn fork_for(&mut self, newcomer: Newcomer) -> Taken {
        // The client may have disconnected while it waited in the kernel's queue, or here.
        if has_disconnected(&newcomer.accepted) {
            return Taken::One;
        }
        match fork::fork() {
            Ok(None) => return Taken::Child(newcomer),
            Ok(Some(pid)) => {
                let admitted = newcomer.accepted.admitted;
                admitted.evict_by(Waker::from(Arc::new(Kill(pid))));
                drop(self.children.insert(pid, admitted));
            }
            Err(error) if is_for_want(&error) => {
                if self.log_throttles[1].may_log() {
                    tracing::warn!(%error, "{NO_PROCESS}");
                }
                self.held.push_front(newcomer);
                self.pause();
            }
            Err(error) => {
                tracing::error!(%error, "no process for a connection; it was dropped");
                self.pause();
            }
        }
        Taken::One
    }

    /// Forks processes for waiting connections, as far as the kernel allows.
    fn serve_held(&mut self) -> Side {
        while self.pause_end().is_none()
            && let Some(newcomer) = self.held.pop_front()
        {
            if let Taken::Child(newcomer) = self.fork_for(newcomer) {
                return Side::Child(newcomer);
            }
        }
        Side::Master
    }

    /// Reduces the copy of the master in a connection's process to what serves the connection.
    fn become_child(self, newcomer: Newcomer) -> ! {
        let Serving { orders, stopped, bell, plan, children, held, pid: master, .. } = self;
        let Forking { listeners, stop, grace, connections, .. } = plan;
        let Newcomer { accepted: Accepted { fd, peer, admitted }, setup } = newcomer;
        let entry = Arc::clone(admitted.entry());
        // Slots are the master's to release.
        std::mem::forget((children, admitted));
        held.into_iter().for_each(|other| std::mem::forget(other.accepted.admitted));
        drop((orders, bell, listeners));
        Child { fd, peer, entry, setup, master, stopped, stop, grace, connections }.live()
    }

    /// Executes the main process's next order.
    fn execute_order(&mut self) {
        let Some(from) = &self.orders else { return };
        match orders::next(from) {
            Ok(None) => {}
            Ok(Some((Order::Begin, number))) => {
                self.has_begun = true;
                orders::answer(from, number, true);
            }
            Ok(Some((Order::Reload, number))) => {
                orders::answer(from, number, (self.plan.reload)(ReloadScope::Configuration));
            }
            Ok(Some((Order::Refresh, number))) => {
                orders::answer(from, number, (self.plan.reload)(ReloadScope::Files));
            }
            // The main process sends no more orders. The order to stop uses the pipe.
            Err(_) => self.orders = None,
        }
    }

    /// Waits for child processes that have ended.
    fn reap_children(&mut self) {
        if !self.has_rung() {
            return;
        }
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) => self.note_end(pid, status),
                Err(Errno::INTR) => {}
                // There are no children, or none has ended.
                Ok(None) | Err(_) => return,
            }
        }
    }

    fn has_rung(&self) -> bool {
        let mut has_rung = false;
        while let Ok(1..) = (&self.bell).read(&mut [0; 64]) {
            has_rung = true;
        }
        has_rung
    }

    fn note_end(&mut self, pid: Pid, status: WaitStatus) {
        let is_evicted = self.children.remove(&pid).is_some_and(|admitted| admitted.is_evicted());
        let is_killed = self.stopping.as_ref().is_some_and(|stopping| stopping.is_killed);
        match (status.exit_status(), status.terminating_signal()) {
            (Some(code::SERVED | code::NOT_SERVED), _) => {}
            (None, Some(_)) if is_evicted => {}
            (Some(code::CUT_OFF), _) => self.plan.connections.count_cut_off(1),
            (None, Some(_)) if is_killed => self.plan.connections.count_cut_off(1),
            (None, Some(signal)) => {
                tracing::warn!(
                    signal,
                    "a signal ended the process of a connection; its client was disconnected"
                );
            }
            _ => {
                self.plan.connections.count_panic();
                tracing::error!("the process of a connection panicked: a defect of the server");
            }
        }
    }

    /// Accepts the connections that were queued when the order to stop came, and no others.
    fn stop(&mut self) -> Side {
        let all: Vec<usize> = (0..self.plan.listeners.len()).collect();
        let side = self.take_in(&all, ACCEPTS_AT_STOP_MAX, Serving::has_slot);
        if matches!(side, Side::Master) {
            self.plan.listeners.clear();
            let killed_at = Instant::now() + self.plan.grace + OWN_END_TIME;
            self.stopping = Some(Stopping { killed_at, is_killed: false });
        }
        side
    }

    /// Kills processes that are late: each should end itself when the grace period is over, so one that has
    /// not is blocked.
    fn kill_who_is_late(&mut self) {
        let Some(stopping) = &mut self.stopping else { return };
        if !stopping.is_killed && stopping.killed_at < Instant::now() {
            stopping.is_killed = true;
            self.plan.connections.count_cut_off(self.held.len());
            self.held.clear();
            for pid in self.children.keys() {
                // It may have ended meanwhile, as a zombie.
                let _ = kill_process(*pid, Signal::KILL);
            }
        }
    }
}

/// Logged when the kernel allows no more processes; points the operator to the cause.
const NO_PROCESS: &str = "the kernel allows no process for a connection, which waits for one; `plimsoll \
                          doctor --engine process` shows the limit";

/// Returns whether a later fork may succeed.
fn is_for_want(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::AGAIN | Errno::NOMEM))
}

/// Accepts the next queued connection, if there is one.
fn accept_at(bound: &Bound) -> io::Result<Option<(OwnedFd, Peer)>> {
    loop {
        match acceptfrom_with(&bound.fd, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC) {
            Ok((fd, address)) => return Ok(Some((fd, peer_of(address)))),
            Err(Errno::AGAIN) => return Ok(None),
            Err(error) if is_that_connections(error) => {}
            Err(error) => return Err(error.into()),
        }
    }
}
