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
use std::task::{Context, Waker};
use std::time::Duration;

use plimsoll_io::Pool;
use plimsoll_io::limits::{BODY_BLOCK_BYTES, DISCARD_BYTES_MAX, HEAD_BLOCK_BYTES};

use super::poll_method::{EpollSet, Hint, Interest, PollMethod, wait_in_poll};
use super::socket::Socket;
use crate::flush_queue::FlushQueue;
use crate::notifier::Notifier;
use crate::splice::pipes_max;

/// An object with a descriptor that events refer to.
pub(super) trait Source: AsFd {
    /// Handles a hint.
    fn on_ready(&self, hint: Hint);
    /// Returns the events that it waits for, for poll(2).
    fn interest(&self) -> Interest;
}

enum PollSet {
    Poll,
    Epoll(RefCell<EpollSet>),
}

/// The token of the thread's notifier; sources have smaller ones.
const NOTIFIER: usize = usize::MAX;

/// The sockets of one thread.
pub(crate) struct Reactor {
    poll_set: PollSet,
    notifier: Arc<Notifier>,
    /// By token; `None` if the token is vacant.
    sources: RefCell<Vec<Option<Weak<dyn Source>>>>,
    vacant: RefCell<Vec<usize>>,
    pub(crate) to_flush: FlushQueue<Weak<Socket>>,
    hints: RefCell<Vec<Hint>>,
    pub(super) heads: Rc<Pool>,
    pub(super) bodies: Rc<Pool>,
    pub(super) pipes_max: usize,
    unread: RefCell<Vec<u8>>,
}

impl Reactor {
    pub(crate) fn new(method: PollMethod, notifier: &Arc<Notifier>) -> io::Result<Rc<Reactor>> {
        let poll_set = match method {
            PollMethod::Poll => PollSet::Poll,
            PollMethod::Epoll => {
                let set = EpollSet::new()?;
                set.add_stream(notifier.as_fd(), NOTIFIER)?;
                PollSet::Epoll(RefCell::new(set))
            }
        };
        Ok(Rc::new(Reactor {
            poll_set,
            notifier: Arc::clone(notifier),
            sources: RefCell::default(),
            vacant: RefCell::default(),
            to_flush: FlushQueue::default(),
            hints: RefCell::default(),
            heads: Pool::new(HEAD_BLOCK_BYTES),
            bodies: Pool::new(BODY_BLOCK_BYTES),
            pipes_max: pipes_max(),
            unread: RefCell::default(),
        }))
    }

    /// Sends the segments pushed since the last flush, as far as the sockets and each connection's share
    /// allow.
    pub(crate) fn flush(&self) {
        self.to_flush.flush(|socket| socket.upgrade().is_some_and(|socket| socket.flush()));
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

    /// Waits until a socket is ready, a notification comes or `timeout` elapses, and wakes the tasks
    /// concerned.
    pub(crate) fn wait_for_events(&self, timeout: Option<Duration>) {
        let mut hints = std::mem::take(&mut *self.hints.borrow_mut());
        match &self.poll_set {
            PollSet::Epoll(set) => set.borrow_mut().wait(timeout, &mut hints),
            PollSet::Poll => self.wait_with_poll(timeout, &mut hints),
        }
        for hint in hints.drain(..) {
            self.dispatch(hint);
        }
        *self.hints.borrow_mut() = hints;
    }

    fn wait_with_poll(&self, timeout: Option<Duration>, hints: &mut Vec<Hint>) {
        let sources = self.sources.borrow();
        let alive = sources.iter().enumerate().filter_map(|(token, source)| {
            let source = source.as_ref()?.upgrade()?;
            let interest = source.interest();
            // A source without interest is left out: a broken connection would otherwise end every wait at
            // once.
            (interest.read || interest.write || interest.hang_up).then_some((token, source, interest))
        });
        let alive: Vec<(usize, Rc<dyn Source>, Interest)> = alive.collect();
        if alive.is_empty() && timeout == Some(Duration::ZERO) {
            // A task is ready, and no other source has interest. A notification stays pending until the next
            // wait.
            return;
        }
        let sockets = alive.iter().map(|(token, source, interest)| (*token, source.as_fd(), *interest));
        wait_in_poll(&self.notifier, sockets, timeout, hints);
        drop(sources);
        // Not before: dropping the last reference to a socket removes it from the table.
        drop(alive);
    }

    fn dispatch(&self, hint: Hint) {
        let source = self.sources.borrow().get(hint.token).and_then(|source| source.as_ref()?.upgrade());
        if let Some(source) = source {
            source.on_ready(hint);
        }
    }

    /// Adds a source to the table. It is [watched](Reactor::watch_stream) once it has to wait: a connection
    /// that is served without a wait is never registered.
    pub(super) fn add<S: Source + 'static>(&self, make: impl FnOnce(usize) -> Rc<S>) -> Rc<S> {
        let token = self.vacant.borrow_mut().pop().unwrap_or_else(|| {
            self.sources.borrow_mut().push(None);
            self.sources.borrow().len() - 1
        });
        let source = make(token);
        let weak: Weak<S> = Rc::downgrade(&source);
        self.sources.borrow_mut()[token] = Some(weak);
        source
    }

    /// Registers a socket for events; a state that holds already is reported at once. Does nothing for
    /// poll(2), which gets the interests anew with each call.
    pub(super) fn watch_stream(&self, token: usize, fd: BorrowedFd<'_>) -> io::Result<()> {
        match &self.poll_set {
            PollSet::Epoll(set) => set.borrow().add_stream(fd, token),
            PollSet::Poll => Ok(()),
        }
    }

    /// Registers a listener, as [`Reactor::watch_stream`] does a socket.
    pub(super) fn watch_listener(&self, token: usize, fd: BorrowedFd<'_>) -> io::Result<()> {
        match &self.poll_set {
            PollSet::Epoll(set) => set.borrow().add_shared(fd, token),
            PollSet::Poll => Ok(()),
        }
    }

    /// Removes a socket from the table; its descriptor is about to close.
    pub(super) fn remove(&self, token: usize) {
        self.sources.borrow_mut()[token] = None;
        self.vacant.borrow_mut().push(token);
    }

    /// Whether an event is reported as long as its cause lasts.
    pub(super) fn is_level_triggered(&self) -> bool {
        matches!(self.poll_set, PollSet::Poll)
    }

    /// Ends the registration of a descriptor that may stay open, as a listener's does in other threads.
    pub(super) fn unwatch(&self, fd: BorrowedFd<'_>) {
        if let PollSet::Epoll(set) = &self.poll_set {
            set.borrow().remove(fd);
        }
    }
}

/// A source's place in the reactor's table, and the task that waits for its readiness.
pub(super) struct Registration {
    pub(super) reactor: Rc<Reactor>,
    token: usize,
    waker: RefCell<Option<Waker>>,
    pub(super) is_watched: Cell<bool>,
}

impl Registration {
    pub(super) fn new(reactor: &Rc<Reactor>, token: usize) -> Registration {
        let (waker, is_watched) = Default::default();
        Registration { reactor: Rc::clone(reactor), token, waker, is_watched }
    }

    /// Wakes the task at the next hint for `fd`. At the first call, `watch` registers `fd` for events.
    ///
    /// # Errors
    /// The kernel's error, if `fd` cannot be registered.
    pub(super) fn wait(
        &self,
        cx: &Context<'_>,
        fd: BorrowedFd<'_>,
        watch: impl Fn(&Reactor, usize, BorrowedFd<'_>) -> io::Result<()>,
    ) -> io::Result<()> {
        *self.waker.borrow_mut() = Some(cx.waker().clone());
        if !self.is_watched.get() {
            watch(&self.reactor, self.token, fd)?;
            self.is_watched.set(true);
        }
        Ok(())
    }

    pub(super) fn wake(&self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }

    pub(super) fn interest(&self) -> Interest {
        Interest { read: self.waker.borrow().is_some(), ..Interest::default() }
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        self.reactor.remove(self.token);
    }
}
