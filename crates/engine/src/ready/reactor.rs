//! The sockets of one thread: wakes tasks when a socket is ready, and flushes the sockets with something to
//! send.
//!
//! It is not an executor: it only wakes. Invariant: a source that was dropped is never touched, because the
//! table holds weak references. Tokens are reused; a stale event is then a wrong hint, which costs one
//! system call.

use std::cell::{Cell, RefCell, RefMut};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::time::Duration;

use plimsoll_io::Pool;
use plimsoll_io::limits::{BODY_BLOCK_BYTES, DISCARD_BYTES_MAX, HEAD_BLOCK_BYTES};

use super::hangup::Hangup;
use super::idle::Reports;
use super::listener::Accepting;
use super::park::{EpollSet, Hint, Interest, Park, wait_in_poll};
use super::socket::{Socket, pipes_max};
use crate::notifier::Notifier;

/// An object with a descriptor that events refer to.
enum Source {
    Vacant,
    Socket(Weak<Socket>),
    Listener(Weak<Accepting>),
    Hangup(Weak<Hangup>),
    Reports(Weak<Reports>),
}

enum Parked {
    Poll,
    Epoll(RefCell<EpollSet>),
}

/// The token of the thread's notifier; sources have smaller ones.
const BELL: usize = usize::MAX;

/// The sockets of one thread.
pub(crate) struct Reactor {
    parked: Parked,
    bell: Arc<Notifier>,
    sources: RefCell<Vec<Source>>,
    vacant: RefCell<Vec<usize>>,
    /// Sockets with segments pushed since the last flush.
    unflushed: RefCell<Vec<Weak<Socket>>>,
    /// Sockets that used up their share of this turn and have more to send.
    unfinished: RefCell<Vec<Weak<Socket>>>,
    hints: RefCell<Vec<Hint>>,
    turn: Cell<u64>,
    pub(super) heads: Rc<Pool>,
    pub(super) bodies: Rc<Pool>,
    pub(super) pipes_max: usize,
    unread: RefCell<Vec<u8>>,
}

impl Reactor {
    pub(crate) fn new(park: Park, bell: &Arc<Notifier>) -> io::Result<Rc<Reactor>> {
        let parked = match park {
            Park::Poll => Parked::Poll,
            Park::Epoll => {
                let set = EpollSet::new()?;
                set.add_stream(bell.as_fd(), BELL)?;
                Parked::Epoll(RefCell::new(set))
            }
        };
        Ok(Rc::new(Reactor {
            parked,
            bell: Arc::clone(bell),
            sources: RefCell::default(),
            vacant: RefCell::default(),
            unflushed: RefCell::default(),
            unfinished: RefCell::default(),
            hints: RefCell::default(),
            turn: Cell::new(0),
            heads: Pool::new(HEAD_BLOCK_BYTES),
            bodies: Pool::new(BODY_BLOCK_BYTES),
            pipes_max: pipes_max(),
            unread: RefCell::default(),
        }))
    }

    pub(crate) fn new_turn(&self) {
        self.turn.set(self.turn.get() + 1);
        self.unflushed.borrow_mut().append(&mut self.unfinished.borrow_mut());
    }

    pub(super) fn turn(&self) -> u64 {
        self.turn.get()
    }

    /// Sends the segments pushed since the last flush, as far as the sockets and each connection's share
    /// allow.
    pub(crate) fn flush(&self) {
        if self.unflushed.borrow().is_empty() {
            return;
        }
        let turn = self.turn();
        let mut sockets = self.unflushed.take();
        for socket in sockets.drain(..) {
            if let Some(alive) = socket.upgrade()
                && alive.flush(turn)
            {
                self.unfinished.borrow_mut().push(socket);
            }
        }
        // The allocation is kept for the next turn.
        let meanwhile = self.unflushed.replace(sockets);
        self.unflushed.borrow_mut().extend(meanwhile);
    }

    /// Returns the buffer for discarded bytes. Where the kernel drops the bytes (MSG_TRUNC), it writes
    /// nothing to the buffer, whose pages are then never touched.
    pub(super) fn unread(&self) -> RefMut<'_, Vec<u8>> {
        let mut unread = self.unread.borrow_mut();
        if unread.is_empty() {
            *unread = vec![0; DISCARD_BYTES_MAX];
        }
        unread
    }

    /// Whether a socket has more to send than its share of this turn.
    pub(crate) fn has_more(&self) -> bool {
        !self.unfinished.borrow().is_empty() || !self.unflushed.borrow().is_empty()
    }

    /// Records that `socket` has something to send when the task's turn ends.
    pub(super) fn flush_later(&self, socket: Weak<Socket>) {
        self.unflushed.borrow_mut().push(socket);
    }

    /// Waits until a socket is ready, the bell is notified or `timeout` elapses, and wakes the tasks
    /// concerned.
    pub(crate) fn park(&self, timeout: Option<Duration>) {
        let mut hints = std::mem::take(&mut *self.hints.borrow_mut());
        match &self.parked {
            Parked::Epoll(set) => set.borrow_mut().wait(timeout, &mut hints),
            Parked::Poll => self.park_in_poll(timeout, &mut hints),
        }
        for hint in hints.drain(..) {
            self.tell(hint);
        }
        *self.hints.borrow_mut() = hints;
    }

    fn park_in_poll(&self, timeout: Option<Duration>, hints: &mut Vec<Hint>) {
        let sources = self.sources.borrow();
        let alive: Vec<(usize, Alive, Interest)> = sources.iter().enumerate().filter_map(waiting).collect();
        if alive.is_empty() && timeout == Some(Duration::ZERO) {
            // A task is ready, and no other source has interest. The bell's notification stays pending until
            // the next park.
            return;
        }
        let sockets = alive.iter().map(|(token, source, interest)| (*token, source.as_fd(), *interest));
        wait_in_poll(&self.bell, sockets, timeout, hints);
        drop(sources);
        // Not before: dropping the last reference to a socket removes it from the table.
        drop(alive);
    }

    fn tell(&self, hint: Hint) {
        let alive = self.sources.borrow().get(hint.token).and_then(Source::alive);
        match alive {
            Some(Alive::Socket(socket)) => socket.on_ready(hint),
            Some(Alive::Listener(listener)) => listener.on_ready(),
            Some(Alive::Hangup(hangup)) => hangup.on_ready(),
            Some(Alive::Reports(reports)) => reports.on_ready(),
            None => {}
        }
    }

    /// Adds a socket to the table. It is [watched](Reactor::watch_stream) once it has to wait: a connection
    /// that is served without a wait is never registered.
    pub(super) fn add_socket(&self, make: impl FnOnce(usize) -> Rc<Socket>) -> Rc<Socket> {
        let token = self.claim();
        let socket = make(token);
        self.sources.borrow_mut()[token] = Source::Socket(Rc::downgrade(&socket));
        socket
    }

    /// As [`Reactor::add_socket`].
    pub(super) fn add_listener(&self, make: impl FnOnce(usize) -> Rc<Accepting>) -> Rc<Accepting> {
        let token = self.claim();
        let listener = make(token);
        self.sources.borrow_mut()[token] = Source::Listener(Rc::downgrade(&listener));
        listener
    }

    /// As [`Reactor::add_socket`].
    pub(super) fn add_hangup(&self, make: impl FnOnce(usize) -> Rc<Hangup>) -> Rc<Hangup> {
        let token = self.claim();
        let hangup = make(token);
        self.sources.borrow_mut()[token] = Source::Hangup(Rc::downgrade(&hangup));
        hangup
    }

    /// As [`Reactor::add_socket`].
    pub(super) fn add_reports(&self, make: impl FnOnce(usize) -> Rc<Reports>) -> Rc<Reports> {
        let token = self.claim();
        let reports = make(token);
        self.sources.borrow_mut()[token] = Source::Reports(Rc::downgrade(&reports));
        reports
    }

    /// Registers a socket for events; a state that holds already is reported at once. Does nothing for
    /// poll(2), which gets the interests anew with each call.
    pub(super) fn watch_stream(&self, token: usize, fd: BorrowedFd<'_>) -> io::Result<()> {
        match &self.parked {
            Parked::Epoll(set) => set.borrow().add_stream(fd, token),
            Parked::Poll => Ok(()),
        }
    }

    /// Registers a listener, as [`Reactor::watch_stream`] does a socket.
    pub(super) fn watch_listener(&self, token: usize, fd: BorrowedFd<'_>) -> io::Result<()> {
        match &self.parked {
            Parked::Epoll(set) => set.borrow().add_shared(fd, token),
            Parked::Poll => Ok(()),
        }
    }

    /// Removes a socket from the table; its descriptor is about to close.
    pub(super) fn remove(&self, token: usize) {
        self.sources.borrow_mut()[token] = Source::Vacant;
        self.vacant.borrow_mut().push(token);
    }

    /// Removes a listener from the table; its descriptor may stay open in other threads.
    pub(super) fn remove_listener(&self, token: usize, fd: BorrowedFd<'_>, is_watched: bool) {
        if let Parked::Epoll(set) = &self.parked
            && is_watched
        {
            set.borrow().remove(fd);
        }
        self.remove(token);
    }

    fn claim(&self) -> usize {
        self.vacant.borrow_mut().pop().unwrap_or_else(|| {
            self.sources.borrow_mut().push(Source::Vacant);
            self.sources.borrow().len() - 1
        })
    }
}

/// A source that has not been dropped.
enum Alive {
    Socket(Rc<Socket>),
    Listener(Rc<Accepting>),
    Hangup(Rc<Hangup>),
    Reports(Rc<Reports>),
}

impl Source {
    fn alive(&self) -> Option<Alive> {
        match self {
            Source::Vacant => None,
            Source::Socket(socket) => socket.upgrade().map(Alive::Socket),
            Source::Listener(listener) => listener.upgrade().map(Alive::Listener),
            Source::Hangup(hangup) => hangup.upgrade().map(Alive::Hangup),
            Source::Reports(reports) => reports.upgrade().map(Alive::Reports),
        }
    }
}

impl AsFd for Alive {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Alive::Socket(socket) => socket.as_fd(),
            Alive::Listener(listener) => listener.as_fd(),
            Alive::Hangup(hangup) => hangup.as_fd(),
            Alive::Reports(reports) => reports.as_fd(),
        }
    }
}

/// Returns a source's interest for poll(2). A source without interest is left out: a broken connection would
/// otherwise end every park at once.
fn waiting((token, source): (usize, &Source)) -> Option<(usize, Alive, Interest)> {
    let alive = source.alive()?;
    let interest = match &alive {
        Alive::Socket(socket) => socket.interest(),
        Alive::Listener(listener) => listener.interest(),
        Alive::Hangup(hangup) => hangup.interest(),
        Alive::Reports(reports) => reports.interest(),
    };
    (interest.read || interest.write).then_some((token, alive, interest))
}
