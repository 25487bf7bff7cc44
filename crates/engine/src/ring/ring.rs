//! The io_uring of one thread: submits operations and dispatches their completions.
//!
//! It is not an executor: it only wakes. Invariants: one system call per turn submits all operations of the
//! turn and waits. The memory of an operation is kept until its last completion. No completion is lost,
//! however many arrive.

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
use super::watched::Watched;
use crate::flush_queue::FlushQueue;
use crate::limits::{
    GATHERED_BYTES_MAX, RING_BODY_BLOCKS, RING_END_TIME, RING_FAILED_PAUSE, RING_HEAD_BLOCKS,
};
use crate::notifier::Notifier;
use crate::splice::pipes_max;

/// `IORING_RECVSEND_POLL_FIRST` of the kernel's interface: wait for data before the first attempt.
const POLL_FIRST: u16 = 1;

/// The result of an operation.
#[derive(Clone, Copy)]
struct Completion {
    key: Key,
    /// A count, a descriptor, or an error.
    result: Result<u32, Errno>,
    flags: u32,
}

/// The ring of one thread.
pub(crate) struct Ring {
    kernel: RefCell<IoUring>,
    operations: RefCell<Operations>,
    /// Taken out of the kernel's queue and not dispatched yet.
    completions: RefCell<Vec<Completion>>,
    heads: Provided,
    bodies: Provided,
    gathers: RefCell<Vec<Vec<u8>>>,
    notifier: Arc<Notifier>,
    pub(crate) to_flush: FlushQueue<Rc<Connection>>,
    pub(super) pipes_max: usize,
    flags: EnterFlags,
    has_ended: Cell<bool>,
}

impl Ring {
    pub(crate) fn new(notifier: &Arc<Notifier>) -> io::Result<Rc<Ring>> {
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
            notifier: Arc::clone(notifier),
            to_flush: FlushQueue::default(),
            pipes_max: pipes_max(),
            flags,
            has_ended: Cell::new(false),
        });
        ring.watch_notifier();
        Ok(ring)
    }

    /// Starts to send the segments pushed since the last flush, as far as each connection's share allows.
    pub(crate) fn flush(&self) {
        self.to_flush.flush(Connection::flush);
    }

    /// Submits the turn's operations, waits until one completes, a notification comes or `timeout` elapses,
    /// and wakes the tasks concerned.
    pub(crate) fn wait_for_events(&self, timeout: Option<Duration>) {
        let is_waiting = timeout != Some(Duration::ZERO) && self.completions.borrow().is_empty();
        self.hand_over(is_waiting, timeout);
        self.dispatch_all();
    }

    fn hand_over(&self, is_waiting: bool, timeout: Option<Duration>) {
        match self.enter(is_waiting, timeout) {
            // The timeout elapsed, a signal came, or the completion queue overflowed: the next call retries.
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
        // SAFETY: the flags declare the argument's type, and it lives as long as the call. `operations`
        // keeps the memory that the submitted entries point to until they have completed.
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

    fn dispatch_all(&self) {
        let mut completions = self.completions.take();
        for completion in completions.drain(..) {
            self.dispatch(completion);
        }
        // The allocation is kept for the next turn.
        let meanwhile = self.completions.replace(completions);
        self.completions.borrow_mut().extend(meanwhile);
    }

    fn dispatch(&self, completion: Completion) {
        let is_last = !cqueue::more(completion.flags);
        let watched = if is_last { None } else { self.operations.borrow().watched(completion.key) };
        if let Some(watched) = watched {
            watched.on_completed(self, completion.result, false);
        }
        let ended = if is_last { self.operations.borrow_mut().end(completion.key) } else { None };
        match ended {
            Some(Operation::Receive(connection, want)) => {
                connection.on_received(self.received(want, completion));
            }
            Some(Operation::Readable(connection)) => connection.on_readable(completion.result),
            Some(Operation::Send(connection)) => connection.on_sent(completion.result),
            Some(Operation::SendGathered(connection, bytes)) => {
                self.give_back(bytes);
                connection.on_sent(completion.result);
            }
            Some(Operation::Room(connection)) => connection.on_room(completion.result),
            Some(Operation::Accept(listener, name)) => {
                listener.on_accepted(completion.key, completion.result, &name);
            }
            Some(Operation::Notifier) => self.watch_notifier(),
            Some(Operation::Watch(watched)) => watched.on_completed(self, completion.result, true),
            None => {}
        }
    }

    /// Starts to wait for notifications from other threads. Each is reported once, so none has to be
    /// consumed.
    fn watch_notifier(&self) {
        if !self.has_ended() {
            let notifier = Fd(self.notifier.as_fd().as_raw_fd());
            let poll = opcode::PollAdd::new(notifier, u32::from(PollFlags::IN.bits())).multi(true).build();
            self.start(Operation::Notifier, poll);
        }
    }

    /// Queues an operation, to be submitted at the end of this turn.
    fn start(&self, operation: Operation, entry: squeue::Entry) -> Key {
        let key = self.operations.borrow_mut().keep(operation);
        self.submit(&entry.user_data(key.0));
        key
    }

    fn submit(&self, entry: &squeue::Entry) {
        loop {
            // SAFETY: the operation keeps the memory that the entry points to. The ring keeps the buffers,
            // and the operation keeps the ring.
            if unsafe { self.kernel.borrow_mut().submission().push(entry) }.is_ok() {
                return;
            }
            // The queue is full before the turn's end: it is submitted now.
            self.hand_over(false, None);
        }
    }

    /// Receives for `connection`. `mode` says whether to wait for data before the first attempt, after it, or
    /// not at all, as on a broken connection.
    pub(super) fn receive(&self, connection: &Rc<Connection>, want: Want, mode: ReceiveMode) -> Key {
        let flags =
            if mode == ReceiveMode::WithoutWaiting { RecvFlags::DONTWAIT } else { RecvFlags::empty() };
        let receive = opcode::Recv::new(connection.raw(), std::ptr::null_mut(), 0)
            .buf_group(self.provided(want).group())
            .ioprio(if mode == ReceiveMode::OnceReadable { POLL_FIRST } else { 0 })
            .flags(bits(flags.bits()));
        let entry = receive.build().flags(squeue::Flags::BUFFER_SELECT);
        self.start(Operation::Receive(Rc::clone(connection), want), entry)
    }

    /// Returns the result of a receive for `want`, with the block that the kernel chose, if any.
    fn received(&self, want: Want, completion: Completion) -> Received {
        let index = cqueue::buffer_select(completion.flags);
        let provided = self.provided(want);
        match (completion.result, index) {
            (Ok(bytes @ 1..), Some(index)) => {
                let has_more = cqueue::sock_nonempty(completion.flags);
                Received::Bytes { lease: provided.take(index, bytes as usize), has_more }
            }
            (result, index) => {
                index.into_iter().for_each(|index| provided.put_back(index));
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
    /// `bytes` must not move, change or be freed before `connection` is notified that the operation has
    /// completed. Their owner must live as long as `connection`.
    pub(super) unsafe fn send_lent(
        &self,
        connection: &Rc<Connection>,
        bytes: &[u8],
        flags: SendFlags,
    ) -> Key {
        let entry = send(connection, bytes, flags);
        self.start(Operation::Send(Rc::clone(connection)), entry)
    }

    /// Sends bytes that were gathered into a buffer of [`Ring::gather`].
    pub(super) fn send_gathered(&self, connection: &Rc<Connection>, bytes: Vec<u8>, flags: SendFlags) -> Key {
        let entry = send(connection, &bytes, flags);
        self.start(Operation::SendGathered(Rc::clone(connection), bytes), entry)
    }

    /// Returns an empty buffer to gather bytes in.
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

    /// Waits until `connection` has bytes, the peer's end or an error to receive.
    pub(super) fn wait_for_bytes(&self, connection: &Rc<Connection>) -> Key {
        let events = PollFlags::IN | PollFlags::RDHUP;
        let poll = opcode::PollAdd::new(connection.raw(), u32::from(events.bits()));
        self.start(Operation::Readable(Rc::clone(connection)), poll.build())
    }

    /// Waits until `connection` is writable, connected, or broken.
    pub(super) fn wait_for_room(&self, connection: &Rc<Connection>) -> Key {
        let poll = opcode::PollAdd::new(connection.raw(), u32::from(PollFlags::OUT.bits()));
        self.start(Operation::Room(Rc::clone(connection)), poll.build())
    }

    /// Waits for the events of a watched descriptor. Each is reported once.
    pub(super) fn watch(&self, watched: &Rc<Watched>) -> Key {
        let poll = opcode::PollAdd::new(watched.raw(), u32::from(watched.flags().bits())).multi(true);
        self.start(Operation::Watch(Rc::clone(watched)), poll.build())
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

    /// Cancels an operation; it still completes, with its result by then.
    pub(super) fn cancel(&self, key: Key) {
        let cancel = opcode::AsyncCancel::new(key.0).build();
        self.submit(&unreported(cancel));
    }

    /// Closes a descriptor that no operation uses.
    pub(super) fn close(&self, fd: OwnedFd) {
        if !self.has_ended() {
            let close = opcode::Close::new(Fd(fd.into_raw_fd())).build();
            self.submit(&unreported(close));
        }
    }

    /// Returns mode many operations are in progress, including the wait for the notifier.
    #[cfg(test)]
    pub(super) fn in_progress(&self) -> usize {
        self.operations.borrow().count()
    }

    pub(super) fn has_ended(&self) -> bool {
        self.has_ended.get()
    }

    /// Cancels every operation, and waits until each has completed. Connections that are dropped later are
    /// closed without the ring.
    pub(crate) fn end(&self) {
        self.flush();
        // They keep this ring alive.
        self.to_flush.clear_unfinished();
        self.has_ended.set(true);
        let all = opcode::AsyncCancel2::new(CancelBuilder::any()).build();
        self.submit(&unreported(all));
        let start = Instant::now();
        while self.operations.borrow().count() > 0 && start.elapsed() < RING_END_TIME {
            self.wait_for_events(Some(RING_FAILED_PAUSE));
        }
        // Operations that have not completed by then keep their memory and this ring: both are leaked.
        self.wait_for_events(Some(Duration::ZERO));
    }
}

/// When a receive is attempted.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ReceiveMode {
    /// At once, and again when data has arrived.
    Immediately,
    /// Only after data has arrived: the socket is empty.
    OnceReadable,
    /// At once and only once, without waiting.
    WithoutWaiting,
}

/// The result of a receive.
pub(super) enum Received {
    /// Bytes, and whether the socket has more.
    Bytes { lease: Lease, has_more: bool },
    /// The peer's end.
    End,
    /// No bytes, and the error.
    Failed(Errno),
}

fn send(connection: &Connection, bytes: &[u8], flags: SendFlags) -> squeue::Entry {
    let len = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    opcode::Send::new(connection.raw(), bytes.as_ptr(), len).flags(bits(flags.bits())).build()
}

/// Converts the flags of a system call to the type of the ring's operations.
fn bits(flags: u32) -> i32 {
    flags.cast_signed()
}

/// Marks an entry whose successful completion is not reported.
fn unreported(entry: squeue::Entry) -> squeue::Entry {
    entry.user_data(Key::UNREPORTED.0).flags(squeue::Flags::SKIP_SUCCESS)
}
