//! A channel as a transport: a byte stream in both directions over two rings.
//!
//! It knows no protocol and no engine. Invariants: bytes that were published before the peer ended can still
//! be received. An end that the peer did not announce is an error, never a clean end. After the first error
//! of the peer's, nothing of the shared memory is read any more.

mod receiving;
mod stream;

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Waker};

use plimsoll_io::limits::{BODY_BLOCK_BYTES, HEAD_BLOCK_BYTES, TURN_RECEIVE_BYTES_MAX, TURN_SEND_BYTES_MAX};
use plimsoll_io::outbox::Outbox;
use plimsoll_io::{Address, Event, FileRange, Io, Lease, Link, Peer, Pool, Want, Watcher};

use crate::bells::Bells;
use crate::frame::{Incoming, Outgoing};
use crate::handler::Settings;
use crate::limits::{PASSED_BYTES_MIN, SLOTS_MAX};
use crate::meter::{Count, Meter, Open};
use crate::ring::{Consumer, Layout, MODE, Producer, SLOTS_WANTED, Wakeup};
use crate::waiting::Wait;
use crate::word::Word as _;

/// The value of the mode word with which the connecting side refuses descriptors.
const COPIES_WANTED: u64 = 1;

/// Which side of a channel this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// It connected: it may receive descriptors, and passes none.
    Connector(Bodies),
    /// It accepted: it may pass descriptors.
    Acceptor,
}

/// How files reach the connecting side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Bodies {
    /// As open descriptors.
    #[default]
    Passed,
    /// As bytes in the ring.
    Copied,
}

/// The memory that the channels of one thread share.
pub(crate) struct Pools {
    heads: Rc<Pool>,
    bodies: Rc<Pool>,
    /// The buffer into which a file is read that is copied.
    pub(crate) chunk: RefCell<Vec<u8>>,
    pub(crate) bells: Bells,
}

impl Pools {
    pub(crate) fn new() -> Rc<Pools> {
        let (heads, bodies) = (Pool::new(HEAD_BLOCK_BYTES), Pool::new(BODY_BLOCK_BYTES));
        let (chunk, bells) = Default::default();
        Rc::new(Pools { heads, bodies, chunk, bells })
    }

    fn lease(&self, want: Want) -> Lease {
        match want {
            Want::Head => self.heads.lease(),
            Want::Body => self.bodies.lease(),
        }
    }
}

/// One side of a channel.
pub(crate) struct Channel {
    pub(crate) io: Io,
    pub(crate) link: Box<dyn Link>,
    pub(crate) pools: Rc<Pools>,
    pub(crate) side: Side,
    /// The slots of this side.
    pub(crate) slots: usize,
    pub(crate) local: Address,
    peer: Peer,
    this: Weak<dyn Watcher>,
    pub(crate) state: RefCell<State>,
    pub(crate) counted: Arc<Open>,
}

/// The values that stay the same from a channel's set-up to its end.
#[derive(Clone)]
pub(crate) struct Terms {
    pub(crate) side: Side,
    pub(crate) slots: usize,
    pub(crate) local: Address,
    pub(crate) counted: Arc<Open>,
}

/// The state of the two rings, as this side knows it.
#[derive(Clone)]
pub(crate) struct Ends {
    pub(crate) outgoing: Outgoing,
    pub(crate) incoming: Incoming,
    pub(crate) untaken: VecDeque<u64>,
}

/// The state of one side.
pub(crate) struct State {
    pub(crate) outgoing: Outgoing,
    pub(crate) incoming: Incoming,
    pub(crate) outbox: Outbox,
    /// The ring's positions behind the frames that the peer has not taken yet, each of which has a slot.
    pub(crate) untaken: VecDeque<u64>,
    /// The wait of this side for the peer, if it waits.
    pub(crate) waiting: Option<Wait>,
    /// The passed file that is being received.
    pub(crate) file: Option<FileRange>,
    pub(crate) is_finishing: bool,
    pub(crate) has_sent_end: bool,
    /// The socket of a channel that was parked, which is not used any more.
    pub(crate) parked: Option<Arc<OwnedFd>>,
    /// The error for which the channel is not used any more.
    pub(crate) broken: Option<(io::ErrorKind, &'static str)>,
    /// Whether sending has failed, because the peer has closed its side.
    pub(crate) has_failed_to_send: bool,
    pub(crate) has_hung_up: bool,
    receiver: Option<Waker>,
    drainer: Option<(u64, Waker)>,
    /// Whether this side is called at the end of this turn.
    is_called: bool,
    received_in_turn: usize,
}

impl Channel {
    /// Creates one side over a link that is set up. The rings are empty.
    pub(crate) fn new(
        io: &Io,
        link: Box<dyn Link>,
        side: Side,
        local: Address,
        pools: &Rc<Pools>,
        settings: &Settings,
    ) -> io::Result<Rc<Channel>> {
        let layout = Layout::of(link.words().len()).ok_or(io::ErrorKind::InvalidData)?;
        let (writes, reads) = match side {
            Side::Connector(_) => (layout.to_acceptor, layout.to_connector),
            Side::Acceptor => (layout.to_connector, layout.to_acceptor),
        };
        let slots = settings.slots.clamp(1, SLOTS_MAX);
        if let Side::Connector(bodies) = side {
            if bodies == Bodies::Copied {
                link.words()[MODE].store(COPIES_WANTED, Ordering::Relaxed);
            }
            link.words()[SLOTS_WANTED].store(slots as u64, Ordering::Relaxed);
        }
        let counted = Arc::new(Open::new(&settings.meter, size_of_val(link.words())));
        let ends = Ends {
            outgoing: Outgoing::new(Producer::new(writes)),
            incoming: Incoming::new(Consumer::new(reads)),
            untaken: VecDeque::new(),
        };
        Channel::start(io, link, pools, Terms { side, slots, local, counted }, ends)
    }

    /// Starts to use a link whose rings are at `ends`.
    pub(crate) fn start(
        io: &Io,
        link: Box<dyn Link>,
        pools: &Rc<Pools>,
        Terms { side, slots, local, counted }: Terms,
        Ends { outgoing, incoming, untaken }: Ends,
    ) -> io::Result<Rc<Channel>> {
        let state = State {
            outgoing,
            incoming,
            outbox: Outbox::default(),
            untaken,
            waiting: None,
            file: None,
            is_finishing: false,
            has_sent_end: false,
            parked: None,
            broken: None,
            has_failed_to_send: false,
            has_hung_up: false,
            receiver: None,
            drainer: None,
            is_called: false,
            received_in_turn: 0,
        };
        let channel = Rc::new_cyclic(|this: &Weak<Channel>| Channel {
            io: io.clone(),
            link,
            pools: Rc::clone(pools),
            side,
            slots,
            local,
            peer: Peer::Unix,
            this: Weak::<Channel>::clone(this),
            state: RefCell::new(state),
            counted,
        });
        channel.link.watch(&channel.this)?;
        Ok(channel)
    }

    pub(crate) fn meter(&self) -> &Arc<Meter> {
        self.counted.meter()
    }

    /// Returns how many frames may be in the ring that this side writes: its own limit, or the lower one of
    /// the connecting side, which sets it before its first byte.
    pub(crate) fn slots(&self) -> usize {
        let wanted = match self.side {
            Side::Acceptor => self.region()[SLOTS_WANTED].load(Ordering::Relaxed),
            Side::Connector(_) => 0,
        };
        usize::try_from(wanted).ok().filter(|wanted| *wanted > 0).map_or(self.slots, |it| it.min(self.slots))
    }

    pub(crate) fn region(&self) -> &[AtomicU64] {
        self.link.words()
    }

    /// Whether a file of so many bytes is passed to the peer. The connecting side sets the mode before its
    /// first byte.
    pub(crate) fn passes(&self, bytes: u64) -> bool {
        let passes = self.side == Side::Acceptor && bytes >= PASSED_BYTES_MIN;
        passes && self.region()[MODE].load(Ordering::Relaxed) != COPIES_WANTED
    }

    /// Requests a call at the end of this turn, in which everything pushed by then is published together.
    fn call_at_turn_end(&self, state: &mut State) {
        if !std::mem::replace(&mut state.is_called, true) {
            self.link.call_at_turn_end(&self.this);
        }
    }

    /// Publishes what fits, and wakes the task that waits for that.
    fn send(&self, state: &mut State) {
        if state.has_hung_up && state.outbox.unsent() > 0 {
            state.fail_to_send();
        }
        if state.broken.is_none() && !state.has_hung_up {
            match self.fill_ring(state, TURN_SEND_BYTES_MAX) {
                // There may be room for more: in the next turn.
                Ok(true) => self.call_at_turn_end(state),
                Ok(false) => {}
                // The bytes that the peer has published before can still be received.
                Err((io::ErrorKind::BrokenPipe, _)) => {
                    state.has_hung_up = true;
                    state.fail_to_send();
                }
                Err((kind, why)) => self.fail(state, kind, why),
            }
        }
        state.wake_drainer();
    }

    /// Wakes the peer if it waits for what was published or released since the last call.
    pub(crate) fn wake_peer(&self, state: &mut State) {
        let region = self.region();
        if state.outgoing.ring().is_announced() && state.incoming.ring().is_announced() {
            return;
        }
        AtomicU64::fence();
        let (reads, writes) = (state.outgoing.ring().wakeup(region), state.incoming.ring().must_wake(region));
        let has_woken = match reads {
            Wakeup::Message => {
                self.link.ring_parked();
                true
            }
            Wakeup::Bell => self.link.ring(),
            Wakeup::None => writes && self.link.ring(),
        };
        self.meter().add(if has_woken { Count::Wakeups } else { Count::WakeupsSaved }, 1);
    }

    /// Ends the use of the channel because of an error.
    fn fail(&self, state: &mut State, kind: io::ErrorKind, why: &'static str) {
        if state.broken.is_none() {
            if kind == io::ErrorKind::InvalidData {
                self.meter().add(Count::Corrupt, 1);
                tracing::warn!(why, "a channel was dropped: its peer does not follow the protocol");
            }
            state.broken = Some((kind, why));
        }
        state.fail_to_send();
        state.wake_receiver();
        state.wake_drainer();
    }
}

impl State {
    fn fail_to_send(&mut self) {
        self.has_failed_to_send = true;
        self.outbox.clear();
    }

    fn wait_to_receive(&mut self, cx: &Context<'_>) {
        match &mut self.receiver {
            Some(waker) => waker.clone_from(cx.waker()),
            none => *none = Some(cx.waker().clone()),
        }
    }

    fn wake_receiver(&mut self) {
        if let Some(waker) = self.receiver.take() {
            waker.wake();
        }
    }

    /// Wakes the task that waits to drain, if it can continue.
    fn wake_drainer(&mut self) {
        let can_continue =
            |(below, _): &mut (u64, Waker)| self.has_failed_to_send || self.outbox.unsent() <= *below;
        if let Some((_, waker)) = self.drainer.take_if(can_continue) {
            waker.wake();
        }
    }
}

impl Watcher for Channel {
    fn on_event(&self, event: Event) {
        let mut state = self.state.borrow_mut();
        state.has_hung_up |= event == Event::HangUp;
        self.send(&mut state);
        self.wake_peer(&mut state);
        if self.can_receive(&mut state) {
            state.wake_receiver();
        }
    }

    fn on_turn_end(&self) {
        let mut state = self.state.borrow_mut();
        state.is_called = false;
        let has_used_turn = std::mem::take(&mut state.received_in_turn) >= TURN_RECEIVE_BYTES_MAX;
        if has_used_turn && self.can_receive(&mut state) {
            state.wake_receiver();
        }
        self.send(&mut state);
        self.wake_peer(&mut state);
    }
}
