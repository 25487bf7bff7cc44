//! The ring of one thread: what is handed to the kernel, and who hears that it is done.
//!
//! It is not an executor: it only wakes. What must hold: one system call per turn hands over all that was
//! asked for in it and waits; whatever memory an operation has is kept until its last completion; no
//! completion is lost, however many come.

use std::cell::{Cell, RefCell};
use std::io;
use std::os::fd::{AsFd, AsRawFd, IntoRawFd, OwnedFd};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use io_uring::types::{CancelBuilder, Fd, SubmitArgs, Timespec};
use io_uring::{EnterFlags, IoUring, cqueue, opcode, squeue};
use plimsoll_io::limits::{BODY_BLOCK_BYTES, HEAD_BLOCK_BYTES, POOL_KEPT_BLOCKS_MAX};
use plimsoll_io::{Lease, Pool, Want, poison};
use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, SocketFlags};

use super::buffers::Provided;
use super::connection::Connection;
use super::listener::{Accepting, Name};
use super::operations::{Key, Operation, Operations};
use super::probe;
use crate::limits::{
    GATHERED_BYTES_MAX, RING_BODY_BLOCKS, RING_END_TIME, RING_FAILED_PAUSE, RING_HEAD_BLOCKS,
};
use crate::notifier::Notifier;

/// `IORING_RECVSEND_POLL_FIRST` of the kernel's interface: wait before the first try.
const POLL_FIRST: u16 = 1;

/// How an operation ended.
#[derive(Clone, Copy)]
struct Completion {
    key: Key,
    /// What it came to: a count, a descriptor.
    result: Result<u32, Errno>,
    flags: u32,
}

/// The ring of one thread.
pub(crate) struct Ring {
    kernel: RefCell<IoUring>,
    operations: RefCell<Operations>,
    /// Taken out of the kernel's queue and not told yet.
    completions: RefCell<Vec<Completion>>,
    heads: Provided,
    bodies: Provided,
    gathers: RefCell<Vec<Vec<u8>>>,
    bell: Arc<Notifier>,
    /// Connections with something that was pushed since the last flush.
    unflushed: RefCell<Vec<Rc<Connection>>>,
    /// Connections that had their share of this turn and have more.
    unfinished: RefCell<Vec<Rc<Connection>>>,
    turn: Cell<u64>,
    flags: EnterFlags,
    has_ended: Cell<bool>,
}

impl Ring {
    pub(crate) fn new(bell: &Arc<Notifier>) -> io::Result<Rc<Ring>> {
        let kernel = probe::build()?;
        let (heads, bodies) = (Pool::new(HEAD_BLOCK_BYTES), Pool::new(BODY_BLOCK_BYTES));
        let heads = Provided::new(0, RING_HEAD_BLOCKS, &heads, &kernel.submitter())?;
        let bodies = Provided::new(1, RING_BODY_BLOCKS, &bodies, &kernel.submitter())?;
        let mut flags = EnterFlags::GETEVENTS | EnterFlags::EXT_ARG;
        flags.set(EnterFlags::NO_IOWAIT, kernel.params().is_feature_no_iowait());
        let ring = Rc::new(Ring {
            kernel: RefCell::new(kernel),
            operations: RefCell::default(),
            completions: RefCell::default(),
            heads,
            bodies,
            gathers: RefCell::default(),
            bell: Arc::clone(bell),
            unflushed: RefCell::default(),
            unfinished: RefCell::default(),
            turn: Cell::new(0),
            flags,
            has_ended: Cell::new(false),
        });
        ring.hear_the_bell();
        Ok(ring)
    }

    pub(crate) fn new_turn(&self) {
        self.turn.set(self.turn.get() + 1);
        self.unflushed.borrow_mut().append(&mut self.unfinished.borrow_mut());
    }

    pub(super) fn turn(&self) -> u64 {
        self.turn.get()
    }

    /// Begins to send what was pushed since the last flush, as far as one connection's share allows.
    pub(crate) fn flush(&self) {
        if self.unflushed.borrow().is_empty() {
            return;
        }
        let mut connections = self.unflushed.take();
        for connection in connections.drain(..) {
            if connection.flush() {
                self.unfinished.borrow_mut().push(connection);
            }
        }
        // The memory is kept for the next turn.
        let meanwhile = self.unflushed.replace(connections);
        self.unflushed.borrow_mut().extend(meanwhile);
    }

    /// Notes that `connection` has something to send when the task's turn ends.
    pub(super) fn flush_later(&self, connection: Rc<Connection>) {
        self.unflushed.borrow_mut().push(connection);
    }

    /// Notes that `connection` has more to send than its share of this turn.
    pub(super) fn flush_next_turn(&self, connection: Rc<Connection>) {
        self.unfinished.borrow_mut().push(connection);
    }

    /// Whether a connection has more to send than its share of this turn.
    pub(crate) fn has_more(&self) -> bool {
        !self.unfinished.borrow().is_empty() || !self.unflushed.borrow().is_empty()
    }

    /// Hands over what was asked for, waits until something is done, the bell rings or `timeout` is over, and
    /// tells who waits.
    pub(crate) fn park(&self, timeout: Option<Duration>) {
        let is_waiting = timeout != Some(Duration::ZERO) && self.completions.borrow().is_empty();
        self.hand_over(is_waiting, timeout);
        self.tell_all();
    }

    fn hand_over(&self, is_waiting: bool, timeout: Option<Duration>) {
        match self.enter(is_waiting, timeout) {
            // The time is over, a signal came, or the kernel has too much to tell: it is asked again.
            Ok(()) | Err(Errno::TIME | Errno::INTR | Errno::BUSY | Errno::AGAIN) => {}
            Err(error) => {
                tracing::error!(%error, "the ring does not work");
                std::thread::sleep(RING_FAILED_PAUSE);
            }
        }
        self.collect();
    }

    fn enter(&self, is_waiting: bool, timeout: Option<Duration>) -> Result<(), Errno> {
        let mut kernel = self.kernel.borrow_mut();
        let to_submit = u32::try_from(kernel.submission().len()).unwrap_or(u32::MAX);
        let time = timeout.filter(|_| is_waiting).map(Timespec::from);
        let mut args = SubmitArgs::new();
        if let Some(time) = &time {
            args = args.timespec(time);
        }
        let (wanted, flags) = (u32::from(is_waiting), self.flags.bits());
        // SAFETY: the flags say that the argument is what it is, and it lives as long as the call. What the
        // entries handed over point to is kept by `operations` until they have completed.
        let entered = unsafe { kernel.submitter().enter(to_submit, wanted, flags, Some(&args)) };
        match entered {
            Ok(_) => Ok(()),
            Err(error) => Err(Errno::from_io_error(&error).unwrap_or(Errno::IO)),
        }
    }

    /// Takes completions out of the kernel's queue.
    fn collect(&self) {
        let mut kernel = self.kernel.borrow_mut();
        let taken = kernel.completion().map(|entry| Completion {
            key: Key(entry.user_data()),
            result: u32::try_from(entry.result())
                .map_err(|_| Errno::from_raw_os_error(entry.result().wrapping_neg())),
            flags: entry.flags(),
        });
        self.completions.borrow_mut().extend(taken);
    }

    fn tell_all(&self) {
        let mut completions = self.completions.take();
        for completion in completions.drain(..) {
            self.tell(completion);
        }
        // The memory is kept for the next turn.
        let meanwhile = self.completions.replace(completions);
        self.completions.borrow_mut().extend(meanwhile);
    }

    fn tell(&self, completion: Completion) {
        let is_last = !cqueue::more(completion.flags);
        let ended = if is_last { self.operations.borrow_mut().end(completion.key) } else { None };
        match ended {
            Some(Operation::Receive(connection, want)) => {
                connection.on_received(self.received(want, completion));
            }
            Some(Operation::Send(connection)) => connection.on_sent(completion.result),
            Some(Operation::SendGathered(connection, bytes)) => {
                self.give_back(bytes);
                connection.on_sent(completion.result);
            }
            Some(Operation::Room(connection)) => connection.on_room(completion.result),
            Some(Operation::Accept(listener, name)) => {
                listener.on_accepted(completion.key, completion.result, &name);
            }
            Some(Operation::Bell) => self.hear_the_bell(),
            None => {}
        }
    }

    /// Asks to be told of every notice that other threads give. Nobody has to take one: each is told once.
    fn hear_the_bell(&self) {
        if !self.has_ended() {
            let bell = Fd(self.bell.as_fd().as_raw_fd());
            let poll = opcode::PollAdd::new(bell, u32::from(PollFlags::IN.bits())).multi(true).build();
            self.start(Operation::Bell, poll);
        }
    }

    /// Hands an operation over at the end of this turn.
    fn start(&self, operation: Operation, entry: squeue::Entry) -> Key {
        let key = self.operations.borrow_mut().keep(operation);
        self.submit(&entry.user_data(key.0));
        key
    }

    fn submit(&self, entry: &squeue::Entry) {
        loop {
            // SAFETY: what the entry points to is kept by its operation, and the buffers by this ring, which
            // the operation keeps.
            if unsafe { self.kernel.borrow_mut().submission().push(entry) }.is_ok() {
                return;
            }
            // The queue is full before the turn's end: it is handed over now.
            self.hand_over(false, None);
        }
    }

    /// Receives for `connection`. If `is_empty` says that nothing is there it waits before it tries; a
    /// connection that is broken is not waited for.
    pub(super) fn receive(&self, connection: &Rc<Connection>, want: Want, how: How) -> Key {
        let flags = if how == How::AtOnce { RecvFlags::DONTWAIT } else { RecvFlags::empty() };
        let receive = opcode::Recv::new(connection.raw(), std::ptr::null_mut(), 0)
            .buf_group(self.provided(want).group())
            .ioprio(if how == How::AfterAWait { POLL_FIRST } else { 0 })
            .flags(bits(flags.bits()));
        let entry = receive.build().flags(squeue::Flags::BUFFER_SELECT);
        self.start(Operation::Receive(Rc::clone(connection), want), entry)
    }

    /// What a receive for `want` has brought: the block that it chose, if it chose one.
    fn received(&self, want: Want, completion: Completion) -> Received {
        let slot = cqueue::buffer_select(completion.flags);
        let provided = self.provided(want);
        match (completion.result, slot) {
            (Ok(bytes @ 1..), Some(slot)) => {
                let has_more = cqueue::sock_nonempty(completion.flags);
                Received::Bytes { lease: provided.take(slot, bytes as usize), has_more }
            }
            (result, slot) => {
                slot.into_iter().for_each(|slot| provided.put_back(slot));
                result.map_or_else(Received::Failed, |_| Received::End)
            }
        }
    }

    fn provided(&self, want: Want) -> &Provided {
        match want {
            Want::Head => &self.heads,
            Want::Body => &self.bodies,
        }
    }

    /// Sends bytes that `connection` lends until the operation has completed.
    ///
    /// # Safety
    /// `bytes` must neither move, change nor be freed before `connection` has heard that the operation has
    /// completed; what holds them must live as long as `connection`.
    pub(super) unsafe fn send_lent(
        &self,
        connection: &Rc<Connection>,
        bytes: &[u8],
        flags: SendFlags,
    ) -> Key {
        let entry = send(connection, bytes, flags);
        self.start(Operation::Send(Rc::clone(connection)), entry)
    }

    /// Sends bytes that were gathered into [`Ring::gather`]'s memory.
    pub(super) fn send_gathered(&self, connection: &Rc<Connection>, bytes: Vec<u8>, flags: SendFlags) -> Key {
        let entry = send(connection, &bytes, flags);
        self.start(Operation::SendGathered(Rc::clone(connection), bytes), entry)
    }

    /// Memory to gather bytes in, empty.
    pub(super) fn gather(&self) -> Vec<u8> {
        self.gathers.borrow_mut().pop().unwrap_or_else(|| Vec::with_capacity(GATHERED_BYTES_MAX))
    }

    fn give_back(&self, mut bytes: Vec<u8>) {
        poison(&mut bytes);
        bytes.clear();
        let mut gathers = self.gathers.borrow_mut();
        if gathers.len() < POOL_KEPT_BLOCKS_MAX {
            gathers.push(bytes);
        }
    }

    /// Waits until `connection` has room to be sent into, is connected, or is broken.
    pub(super) fn wait_for_room(&self, connection: &Rc<Connection>) -> Key {
        let poll = opcode::PollAdd::new(connection.raw(), u32::from(PollFlags::OUT.bits()));
        self.start(Operation::Room(Rc::clone(connection)), poll.build())
    }

    /// Accepts one connection for `listener`.
    pub(super) fn accept(&self, listener: &Rc<Accepting>) -> Key {
        let mut name = Box::new(Name::default());
        let (address, len) = name.places();
        let accept = opcode::Accept::new(listener.raw(), address.cast(), len);
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let entry = accept.flags(bits(flags.bits())).build();
        self.start(Operation::Accept(Rc::clone(listener), name), entry)
    }

    /// Ends an operation before its time; it still completes, with what it came to by then.
    pub(super) fn cancel(&self, key: Key) {
        let cancel = opcode::AsyncCancel::new(key.0).build();
        self.submit(&for_nobody(cancel));
    }

    /// Closes a descriptor that no operation uses.
    pub(super) fn close(&self, fd: OwnedFd) {
        if !self.has_ended() {
            let close = opcode::Close::new(Fd(fd.into_raw_fd())).build();
            self.submit(&for_nobody(close));
        }
    }

    /// Operations under way; the wait for the bell is one.
    #[cfg(test)]
    pub(super) fn under_way(&self) -> usize {
        self.operations.borrow().count()
    }

    pub(super) fn has_ended(&self) -> bool {
        self.has_ended.get()
    }

    /// Ends every operation, and waits until each has ended. Who still has a connection closes it without
    /// the ring from now on.
    pub(crate) fn end(&self) {
        self.flush();
        // They hold this ring.
        drop(self.unfinished.take());
        self.has_ended.set(true);
        let all = opcode::AsyncCancel2::new(CancelBuilder::any()).build();
        self.submit(&for_nobody(all));
        let start = Instant::now();
        while self.operations.borrow().count() > 0 && start.elapsed() < RING_END_TIME {
            self.park(Some(RING_FAILED_PAUSE));
        }
        // What has not ended by then keeps its memory, and that of this ring: it is never freed.
        self.park(Some(Duration::ZERO));
    }
}

/// When a receive is tried.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum How {
    /// Now, and again when something has come.
    AtFirst,
    /// Not before something has come: nothing is there now.
    AfterAWait,
    /// Now or never.
    AtOnce,
}

/// What a receive came to.
pub(super) enum Received {
    /// Bytes, and whether the socket has more.
    Bytes { lease: Lease, has_more: bool },
    /// The peer's end.
    End,
    /// Nothing, and why.
    Failed(Errno),
}

fn send(connection: &Connection, bytes: &[u8], flags: SendFlags) -> squeue::Entry {
    let len = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    opcode::Send::new(connection.raw(), bytes.as_ptr(), len).flags(bits(flags.bits())).build()
}

/// The flags of a system call as the ring's operations take them.
fn bits(flags: u32) -> i32 {
    flags.cast_signed()
}

/// An entry of which nobody waits to hear that it is done.
fn for_nobody(entry: squeue::Entry) -> squeue::Entry {
    entry.user_data(Key::NOBODY.0).flags(squeue::Flags::SKIP_SUCCESS)
}
