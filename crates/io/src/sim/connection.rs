//! A connection between two hosts: two pipes, two ends, and all their faults.
//!
//! Protocols do not hold it ([`super::socket`] is for them). A machine without power sends nothing: its
//! sends, and sends to it, cause a reset. Otherwise it behaves like the unpleasant parts of TCP under
//! Linux: closing on unread bytes, or bytes that arrive after the close, reset the peer. A reset may
//! take from the peer bytes that it has not read. Invariant: an end that was closed without having sent
//! everything never looks like a clean end to the peer.

use std::cell::{OnceCell, RefCell};
use std::io;
use std::rc::Rc;
use std::time::Duration;

use super::chance::PER_MILLE;
use super::host::Machine;
use super::link::Shared;
use super::pipe::{End, Pipe};
use super::trace::Happened;
use super::world::World;

/// One end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// The end that connected.
    Near,
    /// The end that was accepted from a listener.
    Far,
}

impl Side {
    pub(super) fn other(self) -> Side {
        match self {
            Side::Near => Side::Far,
            Side::Far => Side::Near,
        }
    }
}

/// The state of one end, with the pipe that it sends into.
pub(super) struct Half {
    pub(super) sends: Pipe,
    /// The error that broke the connection for this end; it is permanent.
    pub(super) broken: Option<io::ErrorKind>,
    /// The first error of sending; it is permanent, unless it is that of a file.
    pub(super) send_error: Option<io::ErrorKind>,
    /// Whether that is the error of a file, and the connection is intact.
    pub(super) is_of_file: bool,
    /// Whether the stream was dropped.
    pub(super) closed: bool,
    /// Whether a receive has returned the peer's end of sending.
    pub(super) end_received: bool,
}

pub(super) struct State {
    near: Half,
    far: Half,
    pub(super) connected: bool,
}

impl State {
    pub(super) fn half(&mut self, side: Side) -> &mut Half {
        match side {
            Side::Near => &mut self.near,
            Side::Far => &mut self.far,
        }
    }

    /// Returns the pipe that `side` receives from.
    pub(super) fn incoming(&mut self, side: Side) -> &mut Pipe {
        &mut self.half(side.other()).sends
    }
}

pub(super) struct Connection {
    pub(super) world: Rc<World>,
    pub(super) number: u32,
    near: Rc<Machine>,
    far: OnceCell<Rc<Machine>>,
    state: RefCell<State>,
    /// The state of the link that the two protocols have made of the connection.
    link: OnceCell<Rc<Shared>>,
}

impl Connection {
    pub(super) fn new(near: &Rc<Machine>, number: u32) -> Rc<Connection> {
        let world = Rc::clone(&near.world);
        let half = || {
            let window = world.draw(|chance| world.faults.window(chance));
            Half {
                sends: Pipe::new(window),
                broken: None,
                send_error: None,
                is_of_file: false,
                closed: false,
                end_received: false,
            }
        };
        let state = State { near: half(), far: half(), connected: false };
        Rc::new(Connection {
            world,
            number,
            near: Rc::clone(near),
            far: OnceCell::new(),
            state: RefCell::new(state),
            link: OnceCell::new(),
        })
    }

    /// Returns the state of the link that the connection carries. The first call creates it.
    pub(super) fn link(&self) -> &Rc<Shared> {
        self.link.get_or_init(Rc::default)
    }

    /// Accesses the state. `change` must not run a task.
    pub(super) fn with<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        change(&mut self.state.borrow_mut())
    }

    pub(super) fn machine(&self, side: Side) -> &Rc<Machine> {
        match side {
            Side::Near => &self.near,
            Side::Far => self.far.get().unwrap_or(&self.near),
        }
    }

    pub(super) fn log(&self, side: Side, happened: Happened, amount: usize) {
        self.world.log(self.machine(side).number, self.number, happened, amount);
    }

    fn later(self: &Rc<Self>, delay: Duration, event: impl FnOnce(&Rc<Connection>) + 'static) {
        let connection = Rc::clone(self);
        self.world.after(delay, move |_| event(&connection));
    }

    /// Connects: the other end is in a listener's backlog, and bytes may be sent.
    pub(super) fn connect(self: &Rc<Self>, far: &Rc<Machine>) {
        // Set once: a connection is connected once.
        let _ = self.far.set(Rc::clone(far));
        self.with(|state| {
            state.connected = true;
            state.near.sends.wake_drainer();
        });
        self.log(Side::Near, Happened::Connected, 0);
        self.plan_taking(Side::Near);
    }

    /// Refuses the connection: no listener is bound to the address.
    pub(super) fn refuse(&self) {
        self.log(Side::Near, Happened::Refused, 0);
        self.with(|state| {
            state.near.broken = Some(io::ErrorKind::ConnectionRefused);
            state.near.send_error = Some(io::ErrorKind::ConnectionRefused);
            state.near.sends.outbox.clear();
            state.near.sends.wake_drainer_always();
            state.far.sends.wake_receiver();
        });
    }

    /// Schedules that the kernel of `side` takes bytes, unless that is scheduled or would have no
    /// effect.
    pub(super) fn plan_taking(self: &Rc<Self>, side: Side) {
        let due = self.with(|state| {
            let (connected, half) = (state.connected, state.half(side));
            let broken = half.broken.is_some() && half.sends.outbox.unsent() > 0;
            let wanted = half.sends.takeable() > 0 || half.sends.end_is_due() || broken;
            let due = connected && wanted && !half.sends.taking && !half.closed;
            half.sends.taking |= due;
            due
        });
        if due {
            let delay = self.world.some_of(self.world.faults.delay_max);
            self.later(delay, move |connection| connection.take(side));
        }
    }

    /// Moves bytes of `side` from its process to its kernel, and the end behind the last one.
    fn take(self: &Rc<Self>, side: Side) {
        let (closed, broken, most) = self.with(|state| {
            let half = state.half(side);
            half.sends.taking = false;
            (half.closed, half.broken.is_some(), half.sends.takeable())
        });
        if closed {
            return;
        }
        if broken {
            self.fail_sending(side);
        } else if self.machine(side).is_cut() || most > 0 && self.world.chance(self.world.faults.resets) {
            self.reset(side);
            self.reset(side.other());
        } else {
            self.take_up_to(side, self.world.portion(most));
            self.plan_taking(side);
        }
    }

    fn take_up_to(self: &Rc<Self>, side: Side, count: usize) {
        let disk = Rc::clone(self.machine(side));
        match self.with(|state| state.half(side).sends.take(count, &*disk.disk)) {
            Ok(taken) => self.taken(side, taken),
            Err(error) if self.with(|state| state.half(side).sends.finished) => {
                self.abort(side, error.kind())
            }
            Err(error) => self.fail_file(side, error.kind()),
        }
    }

    /// Stops sending, because a file of `side` cannot be read. The protocol may send something else instead.
    fn fail_file(&self, side: Side, kind: io::ErrorKind) {
        self.log(side, Happened::FileTooShort, 0);
        self.with(|state| {
            let half = state.half(side);
            half.send_error = Some(kind);
            half.is_of_file = true;
            half.sends.outbox.clear();
            half.sends.wake_drainer_always();
            state.incoming(side).wake_receiver();
        });
    }

    /// Resumes sending after that. Returns the number of bytes that were not sent.
    pub(super) fn drop_unreadable(&self, side: Side) -> Option<u64> {
        self.with(|state| {
            let half = state.half(side);
            if half.sends.finished || half.broken.is_some() || !std::mem::take(&mut half.is_of_file) {
                return None;
            }
            half.send_error = None;
            Some(half.sends.outbox.take_lost())
        })
    }

    /// Ends the sending of `side`: cleanly, unless a file could not be read.
    pub(super) fn finish(self: &Rc<Self>, side: Side) {
        let unreadable = self.with(|state| {
            let half = state.half(side);
            half.sends.finished = true;
            half.send_error.filter(|_| half.is_of_file && half.broken.is_none())
        });
        match unreadable {
            Some(kind) => self.abort(side, kind),
            None => self.plan_taking(side),
        }
    }

    fn taken(self: &Rc<Self>, side: Side, count: usize) {
        self.log(side, Happened::Taken, count);
        self.with(|state| {
            let sends = &mut state.half(side).sends;
            if sends.end_is_due() {
                sends.end = End::OnTheWire;
            }
            sends.wake_drainer();
        });
        self.plan_arrival(side);
    }

    /// Aborts the connection for both ends, because a segment of `side` cannot be sent.
    fn abort(self: &Rc<Self>, side: Side, kind: io::ErrorKind) {
        self.log(side, Happened::FileTooShort, 0);
        self.with(|state| {
            let half = state.half(side);
            half.broken = Some(kind);
            half.send_error = Some(kind);
            half.sends.outbox.clear();
            half.sends.wake_drainer_always();
            state.incoming(side).wake_receiver();
        });
        self.send_reset(side.other());
    }

    /// Schedules that bytes of `side` arrive, unless that is scheduled or would have no effect.
    fn plan_arrival(self: &Rc<Self>, side: Side) {
        let due = self.with(|state| {
            let sends = &mut state.half(side).sends;
            let due = !sends.arriving && (sends.on_the_wire() > 0 || sends.end == End::OnTheWire);
            sends.arriving |= due;
            due
        });
        if due {
            self.later(self.world.link_delay(), move |connection| connection.arrive(side));
        }
    }

    /// Delivers bytes of `side`, or its end, to the other end.
    fn arrive(self: &Rc<Self>, side: Side) {
        let (wire, carried, gone) = self.with(|state| {
            let gone = state.half(side.other()).closed || self.machine(side.other()).is_cut();
            let sends = &mut state.half(side).sends;
            sends.arriving = false;
            if gone {
                let lost = sends.on_the_wire();
                sends.lose_wire();
                return (lost, 0, true);
            }
            (sends.on_the_wire(), sends.carried(), false)
        });
        match (gone, wire) {
            (true, 0) if !self.machine(side.other()).is_cut() => {}
            (true, _) => self.send_reset(side),
            (false, 0) => self.end_arrives(side),
            (false, _) => self.bytes_arrive(side, self.arriving_portion(wire, carried)),
        }
    }

    /// Returns how many of the bytes on the wire arrive now: up to the chosen split, if it has not been
    /// passed.
    fn arriving_portion(&self, wire: usize, carried: u64) -> usize {
        let split = self.world.faults.fixed_split.map(|split| split as u64);
        let until_split = split.and_then(|split| split.checked_sub(carried)).filter(|left| *left > 0);
        match until_split.and_then(|left| usize::try_from(left).ok()) {
            Some(left) => wire.min(left),
            None => self.world.portion(wire),
        }
    }

    fn bytes_arrive(self: &Rc<Self>, side: Side, count: usize) {
        self.log(side.other(), Happened::Arrived, count);
        let last = self.with(|state| {
            let sends = &mut state.half(side).sends;
            sends.arrive(count);
            sends.wake_receiver();
            sends.on_the_wire() == 0 && sends.end == End::OnTheWire
        });
        // The end may arrive with the last bytes or after them.
        if last && self.world.faults.splits && self.world.chance(PER_MILLE / 2) {
            self.end_arrives(side);
        } else {
            self.plan_arrival(side);
        }
    }

    fn end_arrives(self: &Rc<Self>, side: Side) {
        self.with(|state| {
            let sends = &mut state.half(side).sends;
            if sends.end == End::OnTheWire {
                sends.end = End::Arrived;
                sends.wake_receiver();
            }
        });
        self.log(side.other(), Happened::EndArrived, 0);
    }

    /// Sends a reset to `side`. Bytes that are already on the wire may still arrive before it.
    fn send_reset(self: &Rc<Self>, side: Side) {
        self.log(side.other(), Happened::ResetSent, 0);
        self.later(self.world.link_delay(), move |connection| connection.reset(side));
    }

    /// Delivers a reset to `side`.
    fn reset(self: &Rc<Self>, side: Side) {
        let discards = self.world.chance(self.world.faults.reset_discards);
        let arrived = self.with(|state| {
            let half = state.half(side);
            if half.closed || half.broken.is_some() {
                return false;
            }
            half.broken = Some(io::ErrorKind::ConnectionReset);
            half.sends.lose_wire();
            let end_received = half.end_received;
            let incoming = state.incoming(side);
            incoming.lose_wire();
            if discards && !end_received {
                incoming.lose_arrived();
            }
            incoming.wake_receiver();
            true
        });
        if arrived {
            self.log(side, Happened::ResetArrived, usize::from(discards));
            if self.with(|state| state.half(side).sends.outbox.unsent() > 0) {
                self.fail_sending(side);
            }
        }
    }

    /// Fails all sending of `side`, with one of the two errors that operating systems return.
    fn fail_sending(&self, side: Side) {
        let kinds = [io::ErrorKind::ConnectionReset, io::ErrorKind::BrokenPipe];
        let kind = kinds[self.world.draw(|chance| chance.index(kinds.len()))];
        self.with(|state| {
            let half = state.half(side);
            half.send_error.get_or_insert(kind);
            half.sends.outbox.clear();
            half.sends.wake_drainer_always();
        });
    }

    /// Closes `side` after its stream was dropped. After `finish`, the kernel may still take pushed
    /// bytes, as from an engine's last send. If any are left after that, the close is an abort.
    pub(super) fn close(self: &Rc<Self>, side: Side) {
        let (lost, most) = self.with(|state| {
            let connected = state.connected;
            let half = state.half(side);
            half.closed = true;
            (!connected || half.broken.is_some(), if half.sends.finished { half.sends.takeable() } else { 0 })
        });
        self.log(side, Happened::Closed, 0);
        if lost {
            return;
        }
        if self.machine(side).is_cut() {
            return self.send_reset(side.other());
        }
        if most > 0 {
            self.take_up_to(side, most);
        }
        let clean = self.with(|state| {
            let unread = state.incoming(side).arrived() > 0;
            let sends = &mut state.half(side).sends;
            if sends.end_is_due() {
                sends.end = End::OnTheWire;
            }
            let clean = sends.end != End::Open && !unread;
            sends.outbox.clear();
            clean
        });
        if clean {
            self.plan_arrival(side);
        } else {
            self.send_reset(side.other());
        }
    }
}
