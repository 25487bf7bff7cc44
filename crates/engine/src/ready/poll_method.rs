//! The two system calls in which a thread waits until a socket is worth a system call.
//!
//! poll(2) serves a thread with one connection: each call passes every socket's interest. epoll registers
//! each socket once, edge-triggered. Invariant: both report the same hints; neither reads or writes.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, epoll, poll};

use crate::limits::EVENTS_MAX;
use crate::notifier::Notifier;

/// A readiness event: a hint at which system calls are worth trying.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hint {
    /// The socket's number in the reactor.
    pub(super) token: usize,
    /// A receive or an accept is worth trying.
    pub(super) readable: bool,
    /// A send is worth trying.
    pub(super) writable: bool,
    /// The peer has ended its sending or has sent an urgent byte, at which a receive ends, or the connection
    /// is broken. So a short receive does not mean that the socket is empty.
    pub(super) has_more: bool,
}

/// The events that a socket waits for, as poll(2) needs them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Interest {
    pub(super) read: bool,
    pub(super) write: bool,
    /// Only the peer's end of sending, and not its bytes.
    pub(super) hang_up: bool,
}

/// The system call in which a thread waits.
#[derive(Clone, Copy)]
pub(crate) enum PollMethod {
    /// In poll(2), for a thread with a connection or two.
    Poll,
    /// In epoll, for a thread with thousands; the set is created with the thread's reactor.
    Epoll,
}

/// An epoll set and the memory its events come in.
pub(super) struct EpollSet {
    fd: OwnedFd,
    events: Vec<epoll::Event>,
}

impl EpollSet {
    pub(super) fn new() -> io::Result<EpollSet> {
        Ok(EpollSet {
            fd: epoll::create(epoll::CreateFlags::CLOEXEC)?,
            events: Vec::with_capacity(EVENTS_MAX),
        })
    }

    /// Registers a stream socket for good; closing it removes it.
    pub(super) fn add_stream(&self, fd: BorrowedFd<'_>, token: usize) -> io::Result<()> {
        use epoll::EventFlags as Flags;
        let flags = Flags::IN | Flags::OUT | Flags::PRI | Flags::RDHUP | Flags::ET;
        Ok(epoll::add(&self.fd, fd, epoll::EventData::new_u64(token as u64), flags)?)
    }

    /// Registers a descriptor that other threads' sets may contain, too: an event wakes one of them.
    pub(super) fn add_shared(&self, fd: BorrowedFd<'_>, token: usize) -> io::Result<()> {
        use epoll::EventFlags as Flags;
        let flags = Flags::IN | Flags::ET | Flags::EXCLUSIVE;
        Ok(epoll::add(&self.fd, fd, epoll::EventData::new_u64(token as u64), flags)?)
    }

    /// Removes a socket whose descriptor stays open in another thread (a shared listener).
    pub(super) fn remove(&self, fd: BorrowedFd<'_>) {
        // If it is not in the set any more, there is nothing to remove.
        let _ = epoll::delete(&self.fd, fd);
    }

    /// Waits for events, and appends them as hints.
    pub(super) fn wait(&mut self, timeout: Option<Duration>, hints: &mut Vec<Hint>) {
        use epoll::EventFlags as Flags;
        self.events.clear();
        let timeout = timeout.map(timespec);
        // An error is an interruption: then there are no hints, and the event loop continues.
        let _ = epoll::wait(&self.fd, rustix::buffer::spare_capacity(&mut self.events), timeout.as_ref());
        hints.extend(self.events.iter().map(|event| {
            let (flags, data) = (event.flags, event.data);
            let broken = flags.intersects(Flags::HUP | Flags::ERR);
            Hint {
                token: usize::try_from(data.u64()).unwrap_or(usize::MAX),
                readable: flags.intersects(Flags::IN | Flags::RDHUP) || broken,
                writable: flags.contains(Flags::OUT) || broken,
                has_more: flags.intersects(Flags::RDHUP | Flags::PRI) || broken,
            }
        }));
    }
}

/// Waits in poll(2) for `sockets` and the `notifier`, and appends the events as hints.
pub(super) fn wait_in_poll<'a>(
    notifier: &Notifier,
    sockets: impl Iterator<Item = (usize, BorrowedFd<'a>, Interest)>,
    timeout: Option<Duration>,
    hints: &mut Vec<Hint>,
) {
    let (mut tokens, mut fds) = (Vec::new(), vec![PollFd::from_borrowed_fd(notifier.as_fd(), PollFlags::IN)]);
    for (token, fd, interest) in sockets {
        let mut flags = PollFlags::empty();
        flags.set(PollFlags::IN, interest.read);
        flags.set(PollFlags::RDHUP, interest.read || interest.hang_up);
        flags.set(PollFlags::OUT, interest.write);
        tokens.push(token);
        fds.push(PollFd::from_borrowed_fd(fd, flags));
    }
    let timeout = timeout.map(timespec);
    // An error is an interruption: then there are no hints, and the event loop continues.
    let _ = poll(&mut fds, timeout.as_ref());
    if !fds[0].revents().is_empty() {
        notifier.take();
    }
    for (fd, token) in fds[1..].iter().zip(tokens) {
        let flags = fd.revents();
        let broken = flags.intersects(PollFlags::HUP | PollFlags::ERR);
        if !flags.is_empty() {
            hints.push(Hint {
                token,
                readable: flags.intersects(PollFlags::IN | PollFlags::RDHUP) || broken,
                writable: flags.contains(PollFlags::OUT) || broken,
                has_more: flags.contains(PollFlags::RDHUP) || broken,
            });
        }
    }
}

fn timespec(time: Duration) -> Timespec {
    // Longer than any intended wait; the kernel refuses larger numbers.
    Timespec::try_from(time.min(Duration::from_secs(86_400 * 365))).unwrap_or_default()
}
