//! The queue of one thread's sockets that have something to send.
//!
//! It sends nothing itself. Invariants: a socket that has used up its share of a turn continues in the next
//! turn, behind the others. The queue's memory is reused from turn to turn.

use std::cell::{Cell, RefCell};

/// References to sockets that have something to send.
pub(crate) struct FlushQueue<T> {
    turn: Cell<u64>,
    /// Sockets with segments pushed since the last flush.
    unflushed: RefCell<Vec<T>>,
    /// Sockets that used up their share of this turn and have more to send.
    unfinished: RefCell<Vec<T>>,
}

impl<T> Default for FlushQueue<T> {
    fn default() -> Self {
        FlushQueue { turn: Cell::new(0), unflushed: RefCell::default(), unfinished: RefCell::default() }
    }
}

impl<T> FlushQueue<T> {
    /// Starts a turn, in which each socket has a new share.
    pub(crate) fn new_turn(&self) {
        self.turn.set(self.turn.get() + 1);
        self.unflushed.borrow_mut().append(&mut self.unfinished.borrow_mut());
    }

    /// Returns the number of the present turn.
    pub(crate) fn turn(&self) -> u64 {
        self.turn.get()
    }

    /// Queues a socket, to be flushed when the task's turn ends.
    pub(crate) fn push(&self, socket: T) {
        self.unflushed.borrow_mut().push(socket);
    }

    /// Queues a socket that has more to send than its share of this turn.
    pub(crate) fn push_for_next_turn(&self, socket: T) {
        self.unfinished.borrow_mut().push(socket);
    }

    /// Calls `send` with each queued socket. If it returns true, the socket has more to send.
    pub(crate) fn flush(&self, send: impl Fn(&T) -> bool) {
        if self.unflushed.borrow().is_empty() {
            return;
        }
        let mut sockets = self.unflushed.take();
        for socket in sockets.drain(..) {
            if send(&socket) {
                self.push_for_next_turn(socket);
            }
        }
        // The allocation is reused in the next turn.
        let queued_meanwhile = self.unflushed.replace(sockets);
        self.unflushed.borrow_mut().extend(queued_meanwhile);
    }

    /// Whether a socket is queued.
    pub(crate) fn is_empty(&self) -> bool {
        self.unfinished.borrow().is_empty() && self.unflushed.borrow().is_empty()
    }

    /// Removes the sockets that have more to send.
    pub(crate) fn clear_unfinished(&self) {
        drop(self.unfinished.take());
    }
}
