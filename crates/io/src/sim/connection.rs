//! A connection between two hosts: two pipes, two ends, and everything that may happen to them.
//!
//! It is not what protocols hold ([`super::socket`] is). A machine without power sends nothing: what it would
//! send, or is sent, is answered with a reset. Else it behaves as TCP under Linux does where that hurts:
//! closing on unread bytes, or bytes that come after the close, reset the peer, and a reset may take from
//! the peer what it has not read. What must hold: an end that was closed without having sent everything is
//! never seen by the peer as a clean end.

use std::cell::{OnceCell, RefCell};
use std::io;
use std::rc::Rc;
use std::time::Duration;

use super::chance::PER_MILLE;
use super::host::Machine;
use super::pipe::{End, Pipe};
use super::trace::Happened;
use super::world::World;

/// Which end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// The end that connected.
    Near,
    /// The end that was listened at.
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

/// One end's own state, with the pipe that it sends into.
pub(super) struct Half {
    pub(super) sends: Pipe,
    /// What broke the connection for this end; it stays.
    pub(super) broken: Option<io::ErrorKind>,
    /// The first error of sending; it stays.
    pub(super) send_error: Option<io::ErrorKind>,
    /// The stream was dropped.
    pub(super) closed: bool,
    /// The peer's end of sending was told.
    pub(super) told_end: bool,
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

    /// The pipe that `side` receives from.
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
}

impl Connection {
    pub(super) fn new(near: &Rc<Machine>, number: u32) -> Rc<Connection> {
        let world = Rc::clone(&near.world);
        let half = || {
            let window = world.draw(|chance| world.faults.window(chance));
            Half { sends: Pipe::new(window), broken: None, send_error: None, closed: false, told_end: false }
        };
        let state = State { near: half(), far: half(), connected: false };
        Rc::new(Connection {
            world,
            number,
            near: Rc::clone(near),
            far: OnceCell::new(),
            state: RefCell::new(state),
        })
    }

    /// Changes the state, and puts down what follows from it. Nothing in `change` may run a task.
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

    fn later(self: &Rc<Self>, delay: Duration, what: impl FnOnce(&Rc<Connection>) + 'static) {
        let connection = Rc::clone(self);
        self.world.after(delay, move |_| what(&connection));
    }

    /// The other end has a listener's backlog to wait in: bytes may go.
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

    /// Nobody listens.
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

    /// Puts it down that the system of `side` will take bytes, unless that is planned or would be in vain.
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

    /// The system of `side` takes bytes from its process, and the end behind the last one.
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
            Err(error) => self.break_off(side, error.kind()),
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

    /// What `side` sends cannot be sent: it is over, for both.
    fn break_off(self: &Rc<Self>, side: Side, kind: io::ErrorKind) {
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

    /// Puts it down that bytes of `side` will arrive, unless that is planned or would be in vain.
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

    /// Bytes of `side` arrive at the other end, or its end does.
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

    /// How many of the bytes on the wire arrive now: up to the chosen split, if it is still ahead.
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
        // The end may come with the last bytes or after them.
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

    /// A reset is on its way to `side`. What is already on the wire may still come before it.
    fn send_reset(self: &Rc<Self>, side: Side) {
        self.log(side.other(), Happened::ResetSent, 0);
        self.later(self.world.link_delay(), move |connection| connection.reset(side));
    }

    /// A reset has arrived at `side`.
    fn reset(self: &Rc<Self>, side: Side) {
        let discards = self.world.chance(self.world.faults.reset_discards);
        let arrived = self.with(|state| {
            let half = state.half(side);
            if half.closed || half.broken.is_some() {
                return false;
            }
            half.broken = Some(io::ErrorKind::ConnectionReset);
            half.sends.lose_wire();
            let told_end = half.told_end;
            let incoming = state.incoming(side);
            incoming.lose_wire();
            if discards && !told_end {
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

    /// Sending fails for good, in one of the two ways that systems call it.
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

    /// The stream of `side` was dropped. After `finish`, the system gets one last chance to take what was
    /// pushed, as an engine's last send would; what it does not take makes this an abort.
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
