//! The simulated counterpart of a link between two processes: shared memory, wake-ups, passed files.
//!
//! It has no handshake, and its memory is that of this process. Both hosts stand for one machine: a passed
//! file is on the disk of the host that passed it. Invariants: a wake-up arrives after a random delay, and is
//! never lost. A hang-up arrives once, behind the memory that was written before it.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io;
use std::rc::{Rc, Weak};
use std::sync::atomic::AtomicU64;

use super::connection::Side;
use super::socket::Socket;
use super::trace::Happened;
use crate::carrier::{Event, Link, Watcher};
use crate::file::{File, Fs as _};

/// Words before the rings, and of the two rings: small, so that they are often full.
const WORDS: usize = 128 + 2 * 256;

/// The state that both sides of a link share.
pub(super) struct Shared {
    words: Vec<AtomicU64>,
    near: End,
    far: End,
}

/// The state of one side.
#[derive(Default)]
struct End {
    watcher: RefCell<Option<Weak<dyn Watcher>>>,
    /// The files that were passed to this side.
    files: RefCell<VecDeque<File>>,
    is_closed: Cell<bool>,
    /// Whether the hang-up of the other side was reported to this one.
    has_heard: Cell<bool>,
}

impl Default for Shared {
    fn default() -> Shared {
        let words = (0..WORDS).map(|_| AtomicU64::new(0)).collect();
        Shared { words, near: End::default(), far: End::default() }
    }
}

impl Shared {
    fn end(&self, side: Side) -> &End {
        match side {
            Side::Near => &self.near,
            Side::Far => &self.far,
        }
    }
}

/// One side of a link.
pub(super) struct SimLink {
    socket: Rc<Socket>,
    shared: Rc<Shared>,
}

impl SimLink {
    /// Creates the link of a connection that its protocols no longer use as a stream.
    pub(super) fn new(socket: Rc<Socket>) -> SimLink {
        let shared = Rc::clone(socket.connection().link());
        SimLink { socket, shared }
    }

    /// Reports an event to one side after a delay.
    fn report(&self, side: Side, event: Event) {
        let shared = Rc::clone(&self.shared);
        let world = &self.socket.connection().world;
        world.after(world.some_of(world.faults.delay_max), move |_| {
            let end = shared.end(side);
            if event == Event::HangUp && end.has_heard.replace(true) {
                return;
            }
            let watcher = end.watcher.borrow().as_ref().and_then(Weak::upgrade);
            if let Some(watcher) = watcher {
                watcher.on_event(event);
            }
        });
    }
}

impl Link for SimLink {
    fn words(&self) -> &[AtomicU64] {
        &self.shared.words
    }

    fn watch(&self, watcher: &Weak<dyn Watcher>) -> io::Result<()> {
        let side = self.socket.side();
        *self.shared.end(side).watcher.borrow_mut() = Some(Weak::clone(watcher));
        // A wake-up of before is reported now.
        self.report(side, Event::Bell);
        if self.shared.end(side.other()).is_closed.get() {
            self.report(side, Event::HangUp);
        }
        Ok(())
    }

    fn call_at_turn_end(&self, watcher: &Weak<dyn Watcher>) {
        let (watcher, world) = (Weak::clone(watcher), &self.socket.connection().world);
        world.after(world.some_of(world.faults.delay_max), move |_| {
            if let Some(watcher) = watcher.upgrade() {
                watcher.on_turn_end();
            }
        });
    }

    fn ring(&self) -> bool {
        let (connection, side) = (self.socket.connection(), self.socket.side());
        connection.log(side, Happened::Taken, 0);
        if connection.machine(side).is_cut() || connection.world.chance(connection.world.faults.resets) {
            self.report(side, Event::HangUp);
            self.report(side.other(), Event::HangUp);
        } else {
            self.report(side.other(), Event::Bell);
        }
        true
    }

    fn pass(&self, file: &File) -> io::Result<bool> {
        self.shared.end(self.socket.side().other()).files.borrow_mut().push_back(file.clone());
        Ok(true)
    }

    fn take(&self) -> io::Result<File> {
        let taken = self.shared.end(self.socket.side()).files.borrow_mut().pop_front();
        taken.ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    fn read_passed(&self, file: &File, into: &mut [u8], offset: u64) -> io::Result<usize> {
        let from = self.socket.connection().machine(self.socket.side().other());
        from.disk.read_at(file, into, offset)
    }
}

impl Drop for SimLink {
    fn drop(&mut self) {
        let side = self.socket.side();
        self.shared.end(side).is_closed.set(true);
        self.report(side.other(), Event::HangUp);
    }
}
