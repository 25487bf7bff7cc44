//! The fork master: it accepts, forks, counts, and buries.
//!
//! It serves nobody, and has no thread beside the one that does all this, in one loop around poll(2). What
//! must hold: a place is given back when its process has ended, whatever that ended of; a system without
//! another process or descriptor slows accepting, and is never asked in a circle; who was in the queue when
//! the order to stop came is still served.

use std::collections::HashMap;
use std::io::{self, Read as _};
use std::iter;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use plimsoll_io::{Peer, Setup, Stop};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{SocketFlags, acceptfrom_with};
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, getpid, kill_process, wait};
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM};

use super::child::{Child, code};
use super::fork;
use super::orders::{self, Order};
use crate::connections::{Admitted, Connections};
use crate::limits::{ACCEPT_PAUSE, ACCEPTS_AT_STOP_MAX, ACCEPTS_PER_TURN_MAX, KILLED_TIME, OWN_END_TIME};
use crate::ready::{Bound, is_that_connections, peer_of};
use crate::serve::dispatch::{Accepted, has_gone};

/// What the fork master has of the program.
pub struct Orders {
    pub(super) from: UnixStream,
    pub(super) stopped: OwnedFd,
}

/// What a fork master serves, and how.
pub struct Forking {
    /// Where to listen, and the protocol behind each.
    pub listeners: Vec<(Bound, Setup)>,
    /// Is ordered in each process when the program orders its own.
    pub stop: Stop,
    /// How long after the order connections may go on.
    pub grace: Duration,
    /// The count of connections and its bound, on cells that all processes share.
    pub connections: Arc<Connections>,
    /// Reads the configuration again, for connections that come from then on; whether that could be done.
    pub reload: Box<dyn FnMut() -> bool>,
}

/// A master at work.
struct Serving {
    orders: Option<UnixStream>,
    stopped: OwnedFd,
    /// Rings when a process of its own has ended.
    bell: UnixStream,
    plan: Forking,
    children: HashMap<Pid, Admitted>,
    pid: Pid,
    /// Whether the program has said so.
    has_begun: bool,
    paused_until: Option<Instant>,
    stopping: Option<Stopping>,
}

/// When what is left ends, after the order to stop.
struct Stopping {
    killed_at: Instant,
    is_killed: bool,
}

/// What this process found itself to be after a turn.
enum Turn {
    Master,
    /// The process of a connection that came to a listener.
    Child(usize, Accepted),
}

impl Orders {
    /// Accepts and forks until the program orders the end, and until the last connection has gone. It
    /// returns in the master only.
    ///
    /// # Errors
    /// What the system says before the first connection.
    pub fn serve(self, plan: Forking) -> io::Result<()> {
        let Orders { from, stopped } = self;
        let serving = Serving {
            orders: Some(from),
            stopped,
            bell: bell()?,
            plan,
            children: HashMap::new(),
            pid: getpid(),
            has_begun: false,
            paused_until: None,
            stopping: None,
        };
        serving.run();
        Ok(())
    }
}

/// What rings when a child has ended. What stops a program (a terminal's Ctrl-C, a service manager) tells
/// all of its processes; here it is the program's to say, so these signals end nobody.
fn bell() -> io::Result<UnixStream> {
    for signal in [SIGTERM, SIGINT, SIGHUP] {
        signal_hook::flag::register(signal, Arc::<AtomicBool>::default())?;
    }
    let (bell, rope) = UnixStream::pair()?;
    bell.set_nonblocking(true)?;
    signal_hook::low_level::pipe::register(SIGCHLD, rope)?;
    Ok(bell)
}

impl Serving {
    fn run(mut self) {
        while !self.is_over() {
            let ready = self.look();
            self.bury();
            self.obey();
            let turn = match self.stopping {
                None if ready.stopped => self.stop(),
                None => self.accept(&ready.listeners, ACCEPTS_PER_TURN_MAX as usize),
                Some(_) => Turn::Master,
            };
            if let Turn::Child(listener, accepted) = turn {
                self.become_child(listener, accepted);
            }
            self.kill_who_is_late();
        }
    }

    fn is_over(&self) -> bool {
        self.stopping.as_ref().is_some_and(|stopping| {
            self.children.is_empty() || stopping.killed_at + KILLED_TIME < Instant::now()
        })
    }
}

/// What a look around found.
struct Ready {
    stopped: bool,
    /// Listeners with somebody in their queue, by their place in the plan.
    listeners: Vec<usize>,
}

/// What came of one look into a listener's queue.
enum Taken {
    Nobody,
    One,
    /// This process is that of the connection.
    Child(Accepted),
}

impl Serving {
    /// Waits until there is something to do.
    fn look(&self) -> Ready {
        let orders = self.orders.iter().map(AsFd::as_fd);
        // Once it is seen, it would end every wait.
        let stopped = self.stopping.is_none().then(|| self.stopped.as_fd());
        let listeners: &[_] = if self.has_room() { &self.plan.listeners } else { &[] };
        let fds = iter::once(self.bell.as_fd()).chain(orders).chain(stopped);
        let fds = fds.chain(listeners.iter().map(|(bound, _)| bound.fd.as_fd()));
        let mut fds: Vec<_> = fds.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).collect();
        let timeout = self.timeout().map(|time| Timespec::try_from(time).unwrap_or_default());
        // An error is an interruption: then nothing is reported, and the loop comes round again.
        let _ = poll(&mut fds, timeout.as_ref());
        let is_ready = |fd: &PollFd<'_>| !fd.revents().is_empty();
        let (others, listening) = fds.split_at(fds.len() - listeners.len());
        let waiting = listening.iter().enumerate().filter(|(_, fd)| is_ready(fd));
        Ready {
            stopped: stopped.is_some() && others.last().is_some_and(is_ready),
            listeners: waiting.map(|(listener, _)| listener).collect(),
        }
    }

    fn timeout(&self) -> Option<Duration> {
        let killed_at = |stopping: &Stopping| match stopping.is_killed {
            false => stopping.killed_at,
            true => stopping.killed_at + KILLED_TIME,
        };
        let ends = self.stopping.as_ref().map(killed_at).or(self.pause_end());
        // A moment more, so that it is over then.
        ends.map(|end| end.saturating_duration_since(Instant::now()) + Duration::from_millis(1))
    }

    /// Whether another connection may be accepted now.
    fn has_room(&self) -> bool {
        let may_accept = self.has_begun && self.stopping.is_none() && self.pause_end().is_none();
        may_accept && !self.plan.connections.is_full()
    }

    /// When accepting goes on, if it pauses.
    fn pause_end(&self) -> Option<Instant> {
        self.paused_until.filter(|end| Instant::now() < *end)
    }

    fn pause(&mut self) {
        self.paused_until = Some(Instant::now() + ACCEPT_PAUSE);
    }

    /// Accepts at each of `listeners` as many as wait there, `max` at most.
    fn accept(&mut self, listeners: &[usize], max: usize) -> Turn {
        for &listener in listeners {
            for _ in 0..max {
                match self.take_from(listener) {
                    Taken::One => {}
                    Taken::Nobody => break,
                    Taken::Child(accepted) => return Turn::Child(listener, accepted),
                }
            }
        }
        Turn::Master
    }

    fn take_from(&mut self, listener: usize) -> Taken {
        if !self.has_room() {
            return Taken::Nobody;
        }
        let (fd, peer) = match accept_at(&self.plan.listeners[listener].0) {
            Ok(Some(accepted)) => accepted,
            Ok(None) => return Taken::Nobody,
            Err(error) => {
                tracing::warn!(%error, "cannot accept just now; is the limit of open files too low?");
                self.pause();
                return Taken::Nobody;
            }
        };
        // Who is refused is dropped here: its descriptor closes.
        let Some(admitted) = self.plan.connections.admit(&peer) else { return Taken::One };
        let accepted = Accepted { fd, peer, admitted };
        if has_gone(&accepted) { Taken::One } else { self.serve_apart(accepted) }
    }

    fn serve_apart(&mut self, accepted: Accepted) -> Taken {
        match fork::fork() {
            Ok(None) => return Taken::Child(accepted),
            Ok(Some(pid)) => drop(self.children.insert(pid, accepted.admitted)),
            Err(error) => {
                tracing::warn!(%error, "no process for a connection; it was dropped");
                self.pause();
            }
        }
        Taken::One
    }

    /// What is left of the master in the process of a connection: what it needs to serve it.
    fn become_child(self, listener: usize, accepted: Accepted) -> ! {
        let Serving { orders, stopped, bell, plan, children, pid: master, .. } = self;
        let Forking { mut listeners, stop, grace, connections, .. } = plan;
        let Accepted { fd, peer, admitted } = accepted;
        // Places are the master's to give back.
        std::mem::forget((children, admitted));
        let (_, setup) = listeners.swap_remove(listener);
        drop((orders, bell, listeners));
        Child { fd, peer, setup, master, stopped, stop, grace, connections }.live()
    }

    /// Does what the program has ordered.
    fn obey(&mut self) {
        let Some(from) = &self.orders else { return };
        match orders::next(from) {
            Ok(None) => {}
            Ok(Some((Order::Begin, number))) => {
                self.has_begun = true;
                orders::answer(from, number, true);
            }
            Ok(Some((Order::Reload, number))) => orders::answer(from, number, (self.plan.reload)()),
            // The program has no more to say. The order to stop comes another way.
            Err(_) => self.orders = None,
        }
    }

    /// Takes note of those that have ended.
    fn bury(&mut self) {
        if !self.has_rung() {
            return;
        }
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) => self.note_end(pid, status),
                Err(Errno::INTR) => {}
                // There are none, or none that has ended.
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
        drop(self.children.remove(&pid));
        let is_killed = self.stopping.as_ref().is_some_and(|stopping| stopping.is_killed);
        match (status.exit_status(), status.terminating_signal()) {
            (Some(code::SERVED | code::NOT_SERVED), _) => {}
            (Some(code::CUT_OFF), _) => self.plan.connections.count_cut_off(1),
            (None, Some(_)) if is_killed => self.plan.connections.count_cut_off(1),
            (None, Some(signal)) => {
                tracing::warn!(signal, "a signal ended the process of a connection; its client was cut off");
            }
            _ => {
                self.plan.connections.count_panic();
                tracing::error!("the process of a connection panicked: a defect of the server");
            }
        }
    }

    /// Takes in who was in the queues when the order to stop came, and nobody else.
    fn stop(&mut self) -> Turn {
        let all: Vec<usize> = (0..self.plan.listeners.len()).collect();
        let turn = self.accept(&all, ACCEPTS_AT_STOP_MAX);
        if matches!(turn, Turn::Master) {
            self.plan.listeners.clear();
            let killed_at = Instant::now() + self.plan.grace + OWN_END_TIME;
            self.stopping = Some(Stopping { killed_at, is_killed: false });
        }
        turn
    }

    /// Each ends itself when the grace is over; who has not a moment later is held up by something else.
    fn kill_who_is_late(&mut self) {
        let Some(stopping) = &mut self.stopping else { return };
        if !stopping.is_killed && stopping.killed_at < Instant::now() {
            stopping.is_killed = true;
            for pid in self.children.keys() {
                // It may have ended meanwhile, and waits to be buried.
                let _ = kill_process(*pid, Signal::KILL);
            }
        }
    }
}

/// The next connection that waits, if one does.
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
